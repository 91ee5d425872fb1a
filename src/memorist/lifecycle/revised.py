"""What becomes of memories whose message was revised: they said what it says no longer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memorist.records.change import Add, Change, Restore, Retract
from memorist.records.fact import Fact
from memorist.records.memory_item import MemoryItem
from memorist.records.scope import Scope
from memorist.store.base import Store

REASON = "its message was revised"


def unsaid(
    store: Store, home: Scope, session: Scope, message_ids: Sequence[str], now: datetime
) -> list[Change]:
    """The end of what came of nothing but messages that were revised since."""
    made = store.derived(home, message_ids)
    if not made:  # as at first: nobody looks further
        return []
    revised = {id_ for id_ in message_ids if store.revisions(session, id_)}
    records = [*store.records(home, made), *store.facts(home)] if revised else []
    return [
        Retract(id=one.id, reason=REASON, at=now)
        for one in records
        if not _is_over(one) and one.sources and revised.issuperset(one.sources)
    ]


def said_again(store: Store, home: Scope, changes: Sequence[Change]) -> list[Change]:
    """The changes, where what was there before is not added: it stays, or holds again."""
    added = [change.record.id for change in changes if isinstance(change, Add)]
    known = {one.id: one for one in store.records(home, added)}
    kept = [
        change
        for change in changes
        if not (isinstance(change, Add) and change.record.id in known)
        and not (isinstance(change, Retract) and change.id in known)
    ]
    over = [one for one in known.values() if _is_over(one)]
    return kept + [Restore(id=one.id, reason="it was said again") for one in over]


def _is_over(record: MemoryItem | Fact) -> bool:
    return (record.known_to if isinstance(record, Fact) else record.ended_at) is not None
