"""Maintenance: expire and promote memories by policy and retention rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memorist.errors import ConflictError
from memorist.lifecycle.policy import is_expired, should_promote, surplus
from memorist.lifecycle.settings import Extraction
from memorist.records.change import Expire, Promote
from memorist.records.memory_item import MemoryItem
from memorist.records.scope import Scope
from memorist.store.base import Store

ATTEMPTS = 5


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


def plan(items: Sequence[MemoryItem], now: datetime, extraction: Extraction) -> Maintained:
    """The changes due among memories that have not ended. Pure."""
    policy = extraction.policy
    going = {item.id: "its time is over" for item in items if is_expired(item, now)}
    promoted = [
        item for item in items if item.id not in going and should_promote(item, now, policy)
    ]
    for rule in extraction.retention:
        going = rule.over([item for item in items if item.id not in going], now) | going
    rising = {item.id for item in promoted}
    rest = [item for item in items if item.id not in going and item.id not in rising]
    going |= {item.id: "made room for newer ones" for item in surplus(rest, policy)}
    return Maintained(
        changes=(
            *(Promote(id=item.id) for item in promoted if item.id not in going),
            *(Expire(id=id_, reason=why, at=now) for id_, why in going.items()),
        )
    )


def maintain(
    store: Store, scope: Scope, extraction: Extraction, now: datetime, *, dry_run: bool = False
) -> Maintained:
    """Make the changes due in a scope, or with `dry_run` only return them."""
    for _ in range(ATTEMPTS):
        version = store.version(scope)
        items = [item for item in store.items(scope, current=False) if item.ended_at is None]
        planned = plan(items, now, extraction)
        if dry_run:
            return replace(planned, dry_run=True)
        try:
            store.apply(scope, planned.changes, base_version=version)
        except ConflictError:
            continue  # another process was quicker: plan again
        return planned
    raise ConflictError("this user's memories keep changing; try again later")
