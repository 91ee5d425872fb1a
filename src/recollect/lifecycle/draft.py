"""A draft: what would be known if the changes gathered so far were made. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recollect.lifecycle.reconcile import Known
from recollect.records.change import Add, Change, Expire, Retract, Supersede
from recollect.records.fact import Fact
from recollect.records.memory_item import MemoryItem


class Draft:
    """Changes gathered one by one, each decided in the light of those before it."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._added: dict[str, MemoryItem | Fact] = {}
        self._ended: dict[str, Supersede | Expire | Retract] = {}

    def add(self, changes: Sequence[Change]) -> None:
        """Take further changes in."""
        for change in changes:
            if isinstance(change, Add | Supersede):
                self._added[change.record.id] = change.record
            if isinstance(change, Supersede):
                self._ended[change.old_id] = change
            elif isinstance(change, Expire | Retract):
                self._ended[change.id] = change
            self.changes.append(change)

    def over(self, known: Known) -> Known:
        """What is known, with the draft's changes on top."""
        items = {item.id: item for item in known.items}
        facts = {fact.id: fact for fact in known.facts}
        for record in self._added.values():
            if isinstance(record, Fact):
                facts[record.id] = record
            else:
                items[record.id] = record
        gone = self._ended.keys() | {facts[id_].memory for id_ in self._ended if id_ in facts}
        return Known(
            items=[item for item in items.values() if item.id not in gone],
            facts=[self._now(fact) for fact in facts.values()],
            said=known.said,
        )

    def _now(self, fact: Fact) -> Fact:
        change = self._ended.get(fact.id)
        if change is None:
            return fact
        if isinstance(change, Retract):
            return replace(fact, known_to=change.at)
        return replace(fact, valid_to=max(change.at, fact.valid_from or change.at))
