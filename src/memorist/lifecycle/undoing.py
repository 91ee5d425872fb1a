"""Undoing: what a change ended holds again, and what took its place does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memorist.errors import ConflictError, NotFoundError
from memorist.lifecycle.reconcile import NEWER, OFF
from memorist.records.memories import (
    CORRECTED,
    EDITED,
    Change,
    Expire,
    Fact,
    MemoryItem,
    Restore,
    Retract,
)
from memorist.records.scope import Scope
from memorist.store.base import Store


def undone(store: Store, scope: Scope, id_: str, now: datetime) -> list[Change]:
    """The changes that undo the last thing that happened to a fact, or to a memory's facts."""
    changes: list[Change] = []
    known = store.records(scope, [id_])
    if not known:
        raise NotFoundError("no memory or fact with this id for this user")
    replaced = [known[0], *store.superseded_by(scope, id_)]
    corrected = any(isinstance(one, MemoryItem) and one.reason == CORRECTED for one in replaced)
    records = known if corrected else facts_of(store, scope, known[0]) or known
    for one in records:
        successors = store.records(scope, [one.superseded_by] if one.superseded_by else [])
        if has_ended(one) and any(successor.superseded_by for successor in successors):
            raise ConflictError("what replaced it was replaced itself; undo that first")
        if any(type(successor) is not type(one) for successor in successors):
            one = replace(one, superseded_by=None)  # a memory that says it is over
        replaced = store.superseded_by(scope, one.id)
        alone = any(_went_alone(store, scope, it) for it in ([one] if has_ended(one) else replaced))
        changes += undo(one, replaced, now, alone=alone)
    return changes


def _went_alone(store: Store, scope: Scope, record: MemoryItem | Fact) -> bool:
    """Whether the words of a memory were changed, and the facts that it states went on."""
    if isinstance(record, Fact) or record.ended_at is None:
        return False
    if record.reason == EDITED:
        return True
    stated = store.stated_by(scope, record.id)
    return bool(stated) and not any(map(record.ended_with, stated))


def facts_of(store: Store, scope: Scope, record: MemoryItem | Fact) -> list[Fact]:
    """The facts that a memory states: those that hold, or those that ended with it."""
    if isinstance(record, Fact):
        return []
    stated = store.stated_by(scope, record.id)
    if record.ended_at is not None:
        return [fact for fact in stated if record.ended_with(fact)]
    return [fact for fact in stated if not has_ended(fact)]


def undo(
    record: MemoryItem | Fact,
    replaced: Sequence[MemoryItem | Fact],
    now: datetime,
    *,
    alone: bool = False,
) -> list[Change]:
    """The changes that undo the last one: restore what ended, retract what took its place."""
    if has_ended(record):
        by = [record.superseded_by] if record.superseded_by is not None else []
        retracted = [Retract(id=id_, reason="undone", at=now, alone=alone) for id_ in by]
        return [*retracted, Restore(id=record.id, reason="undone")]
    ended = [old for old in replaced if has_ended(old)] or replaced[-1:]
    by_id = ended[-1].id if ended else None
    facts = [old for old in ended if isinstance(old, Fact)]
    days = [old.valid_from for old in facts if old.reason == OFF and old.valid_from]
    return [
        Retract(id=record.id, reason="undone", at=now, by=by_id, alone=alone),
        *(Restore(id=old.id, reason="undone") for old in ended),
        *(  # what a plan was to end is to end again
            Expire(id=old.id, at=day, reason=NEWER, planned=True)
            for day in days[:1]
            for old in facts
            if old.reason != OFF
        ),
    ]


def has_ended(record: MemoryItem | Fact) -> bool:
    """Whether a change ended a record; a fact that was stated with its end has not ended."""
    taken_back = isinstance(record, Fact) and record.known_to is not None
    return taken_back or record.ended_at is not None
