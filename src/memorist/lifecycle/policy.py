"""The policy: what may become a memory, how important it is, and how long it stays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from memorist.language.lexicon import category_of, tags_of
from memorist.language.unsafe import find_secrets
from memorist.lifecycle.neighbours import every
from memorist.lifecycle.settings import DEFAULT_POLICY, Extraction, Policy, should_promote
from memorist.records.memories import Candidate, Expire, MemoryItem, Promote
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.records.values import later
from memorist.store.base import Store

MAX_KEPT = 100  # characters of each memory in memory during maintenance


def may_become_memory(message: Message, *, place: int, policy: Policy = DEFAULT_POLICY) -> bool:
    """Whether a message may become a memory; `place` is its number in the session."""
    return (
        not message.unfinished
        and place >= policy.min_messages
        and policy.min_chars <= len(message.text) <= policy.max_chars
        and not find_secrets(message.text)
    )


def has_room(made: int, policy: Policy = DEFAULT_POLICY) -> bool:
    """Whether another memory may be made when `made` came of the last messages."""
    return made < policy.share * policy.window


def classified(
    candidate: Candidate, *, has_tools: bool = False, policy: Policy = DEFAULT_POLICY
) -> Candidate:
    """The candidate with its category, importance and tags; working memory gets its end."""
    category = category_of(candidate.text)
    is_told = bool(candidate.claims) and candidate.kind in ("fact", "episode")
    if category == "user_preferences" and is_told:
        category = candidate.category  # "I always wanted to live in Graz" is no preference
    category = category or ("task_history" if has_tools else candidate.category)
    expires_at, importance = candidate.expires_at, candidate.importance
    if importance is None:
        boosted = policy.base_importance + policy.boosts.get(category, 0.0)
        importance = min(round(boosted, 2), 1.0)
    if candidate.kind == "working" and expires_at is None:
        expires_at = later(candidate.said_at, policy.working_for)
    return replace(
        candidate,
        category=category,
        importance=importance,
        tags=tuple(dict.fromkeys((*candidate.tags, *tags_of(candidate.text)))),
        expires_at=expires_at,
    )


def promote(
    store: Store, scope: Scope, ids: Iterable[str], now: datetime, policy: Policy = DEFAULT_POLICY
) -> None:
    """Promote those of some memories that have earned it."""

    def due() -> list[Promote]:
        items = (it for it in store.records(scope, sorted(ids)) if isinstance(it, MemoryItem))
        return [Promote(id=it.id) for it in items if should_promote(it, now, policy)]

    store.change(scope, due)


def surplus(items: Sequence[MemoryItem], policy: Policy = DEFAULT_POLICY) -> list[MemoryItem]:
    """The short-term memories beyond the limit: the least recently used."""
    short = [item for item in items if item.tier == "short"]
    short.sort(key=lambda item: (item.used_at or item.created_at, item.id))
    return short[: max(len(short) - policy.short_term, 0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintained:
    """What maintenance did, or would do."""

    changes: tuple[Promote | Expire, ...] = ()
    dry_run: bool = False

    @property
    def promoted(self) -> int:
        return sum(isinstance(change, Promote) for change in self.changes)

    @property
    def expired(self) -> int:
        return sum(isinstance(change, Expire) for change in self.changes)


def plan(
    items: Sequence[MemoryItem], now: datetime, extraction: Extraction
) -> list[Promote | Expire]:
    """The changes due among memories that have not ended. Pure."""
    policy = extraction.policy
    expired = [item for item in items if item.expires_at and item.expires_at <= now]
    planned = {item.id: item for item in expired if item.superseded_by}
    going = {item.id: "its time is over" for item in expired}
    going |= {id_: item.reason for id_, item in planned.items() if item.reason}
    ends = {id_: item.expires_at for id_, item in planned.items()}
    promoted = [
        item for item in items if item.id not in going and should_promote(item, now, policy)
    ]
    for rule in extraction.retention:
        going = rule.over([item for item in items if item.id not in going], now) | going
    rising = {item.id for item in promoted}
    rest = [item for item in items if item.id not in going and item.id not in rising]
    going |= {item.id: "made room for newer ones" for item in surplus(rest, policy)}
    return [
        *(Promote(id=item.id) for item in promoted if item.id not in going),
        *(  # of what a memory states, only what was announced to end is over
            Expire(id=id_, reason=why, at=ends.get(id_) or now, alone=id_ in planned)
            for id_, why in going.items()
        ),
    ]


def maintain(
    store: Store, scope: Scope, extraction: Extraction, now: datetime, *, dry_run: bool = False
) -> Maintained:
    """Make the changes due in a scope, or with `dry_run` only return them."""

    def due() -> list[Promote | Expire]:
        items = [
            replace(item, text=item.text[:MAX_KEPT])  # what it says does not matter here
            if len(item.text) > MAX_KEPT
            else item
            for item in every(partial(store.items, scope, current=False))
            if item.ended_at is None
        ]
        return plan(items, now, extraction)

    changes = due() if dry_run else store.change(scope, due)
    return Maintained(changes=tuple(changes), dry_run=dry_run)
