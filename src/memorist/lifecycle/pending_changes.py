"""A draft: what would be known if the changes gathered so far were made. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from memorist.lifecycle.reconcile import Known, after, ended_by
from memorist.records.change import Add, Change, Supersede
from memorist.records.memory_item import MemoryItem


class Draft:
    """Changes gathered one by one, each decided in the light of those before it."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def add(self, changes: Sequence[Change]) -> None:
        """Take further changes in."""
        self.changes += changes

    def over(self, known: Known) -> Known:
        """What is known, with the draft's changes on top."""
        facts = after(known.facts, self.changes)
        ended = {ended_by(change) for change in self.changes}
        ended |= {fact.memory for fact in facts if fact.id in ended}  # it goes with what it states
        added = (it.record for it in self.changes if isinstance(it, Add | Supersede))
        items = {it.id: it for it in (*known.items, *added) if isinstance(it, MemoryItem)}
        return Known(
            items=[item for item in items.values() if item.id not in ended],
            facts=facts,
            said=known.said,
        )
