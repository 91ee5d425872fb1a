"""Conformance of ends: a fact and the memory that states it end together, by whatever door."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from memorist.records.memories import (
    CORRECTED,
    Add,
    Expire,
    Fact,
    MemoryItem,
    Restore,
    Retract,
    Supersede,
)
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store.base import Store
from tests.conformance.worlds import fresh_scope, worded

MAY = datetime(2026, 5, 1, tzinfo=UTC)
JUNE = MAY + timedelta(days=31)


class Stated(NamedTuple):
    """A memory and its fact; a memory of another message that says the same in other words."""

    scope: Scope
    item: MemoryItem
    fact: Fact
    again: MemoryItem


def _stated(store: Store) -> Stated:
    scope = fresh_scope()
    first, second = Message("user", "one", created_at=MAY), Message("user", "two", created_at=MAY)
    store.append(scope, [first, second])
    ids = first.message_id, second.message_id
    whole = scope.whole_user()
    item = MemoryItem(scope=whole, text="I nest in Munich", sources=ids[:1], created_at=MAY)
    again = MemoryItem(scope=whole, text="Munich is my home", sources=ids[1:], created_at=MAY)
    fact = Fact(
        scope=whole,
        subject="user",
        predicate="lives in",
        object="Munich",
        valid_from=MAY,
        sources=ids,
        memory=item.id,
    )
    store.apply(whole, [Add(item), Add(fact), Add(again)])
    return Stated(whole, item, fact, again)


def _other_fact(known: Stated) -> Fact:
    return Fact(scope=known.scope, subject="user", predicate="lives in", object="Oslo")


def _other_item(known: Stated) -> MemoryItem:
    return MemoryItem(scope=known.scope, text="I nest in Oslo")


Door = Callable[[Store, Stated], None]
DOORS: dict[str, Door] = {
    "a fact takes its place": lambda store, it: store.apply(
        it.scope, [Supersede(old_id=it.fact.id, record=_other_fact(it), at=JUNE)]
    ),
    "the fact is over": lambda store, it: store.apply(it.scope, [Expire(id=it.fact.id, at=JUNE)]),
    "the fact was wrong": lambda store, it: store.apply(
        it.scope, [Retract(id=it.fact.id, at=JUNE)]
    ),
    "a memory takes its place": lambda store, it: store.apply(
        it.scope, [Supersede(old_id=it.item.id, record=_other_item(it), at=JUNE)]
    ),
    "the memory was wrong": lambda store, it: store.apply(
        it.scope, [Retract(id=it.item.id, at=JUNE)]
    ),
    "the other memory was wrong": lambda store, it: store.apply(
        it.scope, [Retract(id=it.again.id, at=JUNE)]
    ),
    "both memories are old": lambda store, it: store.apply(
        it.scope, [Expire(id=it.item.id, at=JUNE), Expire(id=it.again.id, at=JUNE)]
    ),
    "before it began": lambda store, it: store.apply(
        it.scope, [Expire(id=it.fact.id, at=MAY - timedelta(days=90))]
    ),
    "the fact is forgotten": lambda store, it: _forget(store, it),
}


def _forget(store: Store, known: Stated) -> None:
    store.forget(known.scope, record_id=known.fact.id)


def _present(store: Store, scope: Scope) -> set[str]:
    facts = {fact.id for fact in store.facts(scope) if fact.valid_to is None}
    return facts | {item.id for item in store.items(scope)}


class DoorsConformance:
    """Needs a fixture `store`."""

    @pytest.mark.parametrize("door", DOORS)
    def test_a_fact_and_what_states_it_end_together(self, store: Store, door: str) -> None:
        known = _stated(store)
        three = {known.item.id, known.fact.id, known.again.id}
        assert _present(store, known.scope) == three
        DOORS[door](store, known)
        assert not three & _present(store, known.scope)
        assert worded(store, known.scope, [("munich",)], limit=9) == []
        assert store.match_links(known.scope, ["munich"], limit=9) == []

    @pytest.mark.parametrize("door", [door for door in DOORS if "forgotten" not in door])
    @pytest.mark.parametrize("back", ["item", "fact"])
    def test_and_come_back_together(self, store: Store, door: str, back: str) -> None:
        known = _stated(store)
        DOORS[door](store, known)
        store.apply(known.scope, [Restore(id=getattr(known, back).id, reason="undone")])
        pair = {known.item.id, known.fact.id}
        assert pair <= _present(store, known.scope)
        found = {hit.id for hit in worded(store, known.scope, [("munich",)], limit=9)}
        assert pair <= found

    def test_a_fact_goes_on_while_another_memory_states_it(self, store: Store) -> None:
        known = _stated(store)
        store.apply(known.scope, [Expire(id=known.item.id, at=JUNE)])
        assert _present(store, known.scope) == {known.fact.id, known.again.id}

    def test_what_a_corrected_memory_says_is_marked_in_its_message_until_undone(
        self, store: Store
    ) -> None:
        scope, said = fresh_scope(), Message("user", "The cat is called Zuse", created_at=MAY)
        stored = store.append(scope, [said])
        whole = scope.whole_user()
        old = MemoryItem(scope=whole, text=said.text, sources=(said.message_id,), created_at=MAY)
        new = MemoryItem(scope=whole, text="The cat is called Turing")
        change = Supersede(old_id=old.id, record=new, at=JUNE, reason=CORRECTED)

        def marks() -> set[str]:
            return {hit.over for hit in worded(store, whole, [("zuse",)], limit=9)}

        store.apply(whole, [Add(old), change])
        assert (stored.added, marks()) == (1, {"until June 2026"})
        store.apply(whole, [Restore(id=old.id, reason="undone")])
        assert marks() == {""}

    def test_a_memory_of_two_facts_ends_with_the_first_and_leaves_the_other(
        self, store: Store
    ) -> None:
        known = _stated(store)
        work = Fact(
            scope=known.scope,
            subject="user",
            predicate="works at",
            object="Siemens",
            sources=known.item.sources,
            memory=known.item.id,
        )
        store.apply(known.scope, [Add(work), Expire(id=known.fact.id, at=JUNE)])
        assert _present(store, known.scope) == {work.id}
        store.apply(known.scope, [Restore(id=known.fact.id)])
        assert {known.item.id, known.fact.id, work.id} <= _present(store, known.scope)
        store.apply(known.scope, [Retract(id=known.item.id, at=JUNE)])
        assert _present(store, known.scope) == set()

    def test_another_statement_of_the_same_message_is_left_alone(self, store: Store) -> None:
        known = _stated(store)
        other = MemoryItem(scope=known.scope, text="I play chess", sources=known.item.sources)
        liked = MemoryItem(scope=known.scope, text="I love Munich", sources=known.item.sources)
        likes = Fact(
            scope=known.scope,
            subject="user",
            predicate="likes",
            object="Munich",
            sources=known.item.sources,
            memory=liked.id,
        )
        store.apply(known.scope, [Add(other), Add(liked), Add(likes)])
        store.apply(known.scope, [Retract(id=known.fact.id, at=JUNE)])
        assert _present(store, known.scope) == {other.id, liked.id, likes.id}
