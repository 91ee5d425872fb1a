"""New knowledge meets old: purely, what changes because of what was just said.

Only facts that share subject and predicate are looked at, and nothing less trusted changes
what was said by someone more trusted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from recollect.lifecycle.candidate import Candidate, Claim
from recollect.lifecycle.similar import alike, contains
from recollect.lifecycle.thinking import DEFAULT_POLICY, Policy
from recollect.lifecycle.tools import is_lesson
from recollect.records.change import Add, Change, Expire, Reinforce, Restore, Retract, Supersede
from recollect.records.fact import FIRST, Fact, topic_of
from recollect.records.log import trust_of
from recollect.records.memory_item import MemoryItem
from recollect.records.scope import Scope
from recollect.records.text import fold

SURER = 0.05  # a fact told again


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known that bears on a candidate: like memories, facts on its topics, words said."""

    items: Sequence[MemoryItem] = ()
    facts: Sequence[Fact] = ()
    said: Sequence[str] = ()


def reconcile(
    candidate: Candidate,
    known: Known,
    *,
    scope: Scope,
    now: datetime,
    policy: Policy = DEFAULT_POLICY,
) -> list[Change]:
    """The changes that a candidate asks for, given what is known."""
    if is_echo(candidate, known, policy):
        return []
    if not candidate.text:  # a fact that was given as one
        return list(_claims(candidate, known.facts, scope, now, memory=None))
    twin = _twin(candidate, known.items, policy)
    if twin is not None:
        changes: list[Change] = [_again(twin.id, twin.sources, candidate, policy)]
        return changes + list(_claims(candidate, known.facts, scope, now, memory=None))
    item = _item(candidate, scope)
    facts = list(_claims(candidate, known.facts, scope, now, memory=item.id))
    return [Add(item), *facts]


def is_echo(candidate: Candidate, known: Known, policy: Policy = DEFAULT_POLICY) -> bool:
    """Whether somebody other than the user only repeats what was said or remembered."""
    if candidate.source in ("user", "import") or is_lesson(candidate):
        return False
    texts = (*known.said, *(item.text for item in known.items))
    return any(contains(candidate.text, text) >= policy.echo for text in texts)


def undo(record: MemoryItem | Fact, replaced: Sequence[MemoryItem | Fact]) -> list[Change]:
    """The changes that take back the last thing that happened to a record.

    What ended holds again, and what took its place is taken back; else the record itself is
    taken back, and what it replaced holds again.
    """
    over = record.ended_at if isinstance(record, MemoryItem) else record.valid_to or record.known_to
    if over is not None:
        changes: list[Change] = [Restore(id=record.id, reason="undone")]
        if record.superseded_by is not None:
            changes.insert(0, Retract(id=record.superseded_by, reason="undone"))
        return changes
    return [
        Retract(id=record.id, reason="undone"),
        *(Restore(id=old.id, reason="undone") for old in replaced),
    ]


def derived_id(*parts: str) -> str:
    """The same id for the same thought about the same message, so that twice is once."""
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:32]


def _twin(candidate: Candidate, items: Sequence[MemoryItem], policy: Policy) -> MemoryItem | None:
    if is_lesson(candidate):  # the same tools with the same end, however long they took
        return next((item for item in items if item.tags == candidate.tags), None)
    best = max(items, key=lambda item: alike(candidate.text, item.text), default=None)
    if best is None or alike(candidate.text, best.text) < policy.alike:
        return None
    return best


def _again(id_: str, cited: Sequence[str], candidate: Candidate, policy: Policy) -> Reinforce:
    room = policy.max_sources - len(cited)
    return Reinforce(id=id_, sources=candidate.sources[: max(room, 0)], at=candidate.said_at)


def _item(candidate: Candidate, scope: Scope) -> MemoryItem:
    return MemoryItem(
        id=derived_id("memory", *candidate.sources, candidate.text),
        scope=scope, text=candidate.text, kind=candidate.kind, category=candidate.category,
        importance=candidate.importance, tags=candidate.tags, source=candidate.source,
        sources=candidate.sources, created_at=candidate.said_at, expires_at=candidate.expires_at,
    )  # fmt: skip


def _claims(
    candidate: Candidate, facts: Sequence[Fact], scope: Scope, now: datetime, memory: str | None
) -> Iterator[Change]:
    for claim in candidate.claims:
        topic = topic_of(claim.subject, claim.predicate)
        rivals = [fact for fact in facts if fact.topic == topic and fact.known_to is None]
        yield from settle(claim, rivals, candidate, _fact(claim, candidate, scope, now, memory))


def settle(claim: Claim, rivals: Sequence[Fact], candidate: Candidate, new: Fact) -> list[Change]:
    """What a claim changes among the facts with its subject and predicate."""
    since = new.valid_from or candidate.said_at
    same = [fact for fact in rivals if _folded(fact.object) == _folded(claim.object)]
    if claim.ends:
        ending = [fact for fact in same if _open_at(fact, since) and _may_change(candidate, fact)]
        return [Expire(id=fact.id, at=since, reason="said to be over") for fact in ending]
    if again := next((fact for fact in same if fact.holds(since)), None):
        surer = min(again.confidence + SURER, 1.0)
        return [Reinforce(id=again.id, sources=candidate.sources, importance=surer)]
    others = [fact for fact in rivals if claim.single and fact not in same]
    holding = [fact for fact in others if _open_at(fact, since)]
    if not all(_may_change(candidate, fact) for fact in holding):
        return []
    if candidate.corrects and holding:
        return _correct(holding, new)
    if holding:
        old, *rest = holding
        why = "something newer was said"
        first = Supersede(old_id=old.id, record=new, at=since, reason=why)
        return [first, *(Expire(id=fact.id, at=since, reason=why) for fact in rest)]
    return [Add(_before_later(new, since, others))]


def _correct(wrong: Sequence[Fact], right: Fact) -> list[Change]:
    """What was wrong was never so: the right one holds for as long as the wrong one seemed to."""
    since = min(fact.valid_from or FIRST for fact in wrong)
    began = replace(right, valid_from=None if since == FIRST else since)
    return [
        *(Retract(id=fact.id, at=right.known_from, reason="corrected") for fact in wrong),
        Add(began),
    ]


def _before_later(new: Fact, since: datetime, others: Sequence[Fact]) -> Fact:
    """A fact of an earlier time, learnt late, held until the next one began."""
    later = [fact for fact in others if fact.valid_from is not None and fact.valid_from > since]
    if not later:
        return new
    following = min(later, key=lambda fact: fact.valid_from or since)
    if new.valid_to is not None and new.valid_to <= (following.valid_from or since):
        return new
    return replace(
        new, valid_to=following.valid_from, superseded_by=following.id, reason="told later"
    )


def _fact(
    claim: Claim, candidate: Candidate, scope: Scope, now: datetime, memory: str | None
) -> Fact:
    return Fact(
        id=derived_id("fact", *candidate.sources, claim.subject, claim.predicate, claim.object),
        scope=scope, subject=claim.subject, predicate=claim.predicate, object=claim.object,
        valid_from=claim.valid_from or candidate.said_at, valid_to=claim.valid_to, known_from=now,
        source=candidate.source, sources=candidate.sources, memory=memory,
    )  # fmt: skip


def _open_at(fact: Fact, moment: datetime) -> bool:
    """Whether a fact holds until further notice, and did at the moment."""
    return fact.valid_to is None and (fact.valid_from or FIRST) <= moment


def _may_change(candidate: Candidate, fact: Fact) -> bool:
    return trust_of(candidate.source) >= trust_of(fact.source)


def _folded(text: str) -> str:
    return " ".join(fold(text).split())
