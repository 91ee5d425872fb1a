"""Conformance of events, counts and receipts: in order, each user's own, gone when forgotten."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memorist.errors import InvalidError
from memorist.records.activity import Event, RecalledId, TurnReceipt
from memorist.records.documents import Article, Chunk
from memorist.records.memories import (
    Add,
    Expire,
    Fact,
    MemoryItem,
    Promote,
    Reinforce,
    Restore,
    Retract,
    Supersede,
)
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.records.values import Tally
from memorist.store import activity
from memorist.store.base import Store
from tests.conformance.page_conformance import walk
from tests.conformance.worlds import HOSTILE_USERS, claim_all, fresh_scope

MARCH = datetime(2026, 3, 1, tzinfo=UTC)


def changes(events: tuple[Event, ...]) -> list[tuple[str, str, str]]:
    return [(event.kind, event.change, event.id) for event in events]


def item_of(scope: Scope, text: str = "Ada likes tea.", **fields: Any) -> MemoryItem:
    return MemoryItem(scope=scope, text=text, **fields)


def turn(asked: str, session: str = "talk", **fields: Any) -> TurnReceipt:
    receipt = {"window": 10, "parts": [{"name": "memories", "ids": ["m-in-parts"]}]}
    return TurnReceipt(session_id=session, asked_id=asked, **{"receipt": receipt, **fields})


class ActivityConformance:
    """Needs a fixture `store`."""

    def test_what_is_stored_and_changed_is_told_in_order(self, store: Store) -> None:
        scope = fresh_scope().within(agent="tutor")
        begun = store.events(scope)
        assert begun.items == ()
        store.append(scope, [Message("user", "I like tea", "m1"), Message("user", "Hm", "m2")])
        old, new = item_of(scope), item_of(scope, "Ada likes coffee.")
        fact = Fact(scope=scope, subject="Ada", predicate="likes", object="tea", id="f")
        store.apply(scope, [Add(old), Add(fact)])
        store.apply(scope, [Supersede(old_id=old.id, record=new, reason="said so")])
        store.apply(scope, [Reinforce(id=new.id), Promote(id=new.id), Expire(id=new.id)])
        store.apply(scope, [Restore(id=new.id), Retract(id=fact.id)])
        store.revise(scope, Message("user", "I like coffee", "m1"))
        told = store.events(scope, after=begun.place)
        assert changes(told.items) == [
            ("message", "stored", "m1"),
            ("message", "stored", "m2"),
            ("memory", "add", old.id),
            ("fact", "add", fact.id),
            ("memory", "supersede", old.id),
            ("memory", "add", new.id),
            ("memory", "reinforce", new.id),
            ("memory", "promote", new.id),
            ("memory", "expire", new.id),
            ("memory", "restore", new.id),
            ("fact", "retract", fact.id),
            ("message", "revised", "m1"),
        ]
        assert {(event.session, event.agent) for event in told.items} == {("talk", "tutor")}
        assert told.items[-1].place == told.place
        assert store.events(scope, after=told.place).items == ()

    def test_events_go_on_after_each_of_them(self, store: Store) -> None:
        scope, place = fresh_scope(), "0.0"
        store.append(scope, [Message("user", "hi", f"m{number}") for number in range(3)])
        store.apply(scope, [Add(item_of(scope)), Add(item_of(scope, "Ada sails."))])
        whole = store.events(scope, after=place).items
        assert len(whole) == 5
        found: list[Event] = []
        while batch := store.events(scope, after=place, limit=2):
            if not batch.items:
                break
            found += batch.items
            place = batch.place
        assert tuple(found) == whole
        for number, event in enumerate(whole, start=1):
            assert store.events(scope, after=event.place).items == whole[number:]

    def test_a_user_hears_of_nobody_else(self, store: Store) -> None:
        mine, other = fresh_scope(), fresh_scope()
        places = {scope: store.events(scope).place for scope in (mine, other)}
        for scope in (mine, other):
            store.append(scope, [Message("user", "hi", f"of {scope.tenant}")])
            store.apply(scope, [Add(item_of(scope, id=f"by {scope.tenant}"))])
            store.add_receipt(scope, turn(f"of {scope.tenant}"))
        for scope in (mine, other):
            told = store.events(scope, after=places[scope]).items
            assert [event.id for event in told] == [f"of {scope.tenant}", f"by {scope.tenant}"]
            assert store.counts(scope).messages == store.counts(scope).memories == Tally(1)
            [kept] = store.receipts(scope)
            assert kept.asked_id == f"of {scope.tenant}"
            assert store.receipts(scope, id=kept.id) == [kept]
        [theirs] = store.receipts(other)
        assert store.receipts(mine, id=theirs.id) == []

    def test_users_with_odd_names_hear_of_their_own(self, store: Store) -> None:
        tenant = fresh_scope().tenant
        users = [Scope(tenant=tenant, user=user, session="s") for user in HOSTILE_USERS]
        places = [store.events(scope).place for scope in users]
        for number, scope in enumerate(users):
            store.append(scope, [Message("user", "hi", str(number))])
        for number, (scope, place) in enumerate(zip(users, places, strict=True)):
            assert [event.id for event in store.events(scope, after=place).items] == [str(number)]

    def test_a_place_that_is_none_is_refused(self, store: Store) -> None:
        for wrong in ("", "1", "1.", "x.y", "1.2.3", "-1.2", "1.2\n", "9" * 19 + ".1", "١.٢"):
            with pytest.raises(InvalidError):
                store.events(fresh_scope(), after=wrong)
        scope = fresh_scope()
        assert store.events(scope, after=f"{9**18}.{9**18}").items == ()  # of another database
        store.append(scope, [Message("user", "hi", "m")])
        place = store.events(scope, after=f"{9**18}.{9**18}").place
        assert place == store.events(scope).place

    def test_of_many_changes_the_newest_are_told(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(activity, "MOST_EVENTS", 5)
        scope = fresh_scope()
        items = [item_of(scope, f"Ada has {number} boats.") for number in range(9)]
        store.apply(scope, [Add(item) for item in items])
        told = store.events(scope, after="0.0").items
        assert [event.id for event in told] == [item.id for item in items[-5:]]
        store.forget(scope.whole_user(), record_id=items[0].id)
        assert changes(store.events(scope, after="0.0").items)[-1] == (
            "memory",
            "forget",
            items[0].id,
        )

    def test_a_job_that_is_given_up_is_told_and_that_it_is_done_after_all(
        self, store: Store
    ) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "hi", "m")])
        place = store.events(scope).place
        [job] = claim_all(store, scope)
        store.fail(job, "no model", final=True)
        store.retry(scope, job.id)
        store.apply(scope, [], done=claim_all(store, scope))
        told = changes(store.events(scope, after=place).items)
        assert told == [("job", "failed", str(job.id)), ("job", "done", str(job.id))]

    def test_what_processes_died_of_is_told(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("memorist.store.jobs.MAX_DEATHS", 1)
        scope = fresh_scope()
        store.append(scope, [Message("user", "hi", "m")])
        place = store.events(scope).place
        for _ in range(2):
            claim_all(store, scope, lease_seconds=-1)
        [event] = store.events(scope, after=place).items
        assert (event.kind, event.change, event.session) == ("job", "failed", "talk")

    def test_what_is_forgotten_leaves_no_event_but_that(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "I like tea", "m1"), Message("user", "Hm", "m2")])
        item = item_of(scope, sources=("m1",))
        store.apply(scope, [Add(item)])
        store.revise(scope, Message("user", "I like coffee", "m1"))
        store.forget(scope, message_id="m1")
        told = changes(store.events(scope, after="0.0").items)
        assert told == [("message", "stored", "m2"), ("memory", "forget", item.id)]
        store.forget(scope.whole_user())
        assert store.events(scope, after="0.0").items == ()

    def test_counts_are_of_what_there_is(self, store: Store) -> None:
        scope = fresh_scope()
        empty = store.counts(scope)
        assert {getattr(empty, name) for name in type(empty).__dataclass_fields__} == {Tally(0)}
        store.append(scope, [Message("user", "I like tea"), Message("user", "Hm")])
        store.append(scope.within(session="other"), [Message("user", "Hi")])
        past = MARCH - timedelta(days=9)
        over = item_of(scope, "It rains.", created_at=past, expires_at=past + timedelta(days=1))
        items, fact = (
            [item_of(scope), item_of(scope, "Ada sails."), over],
            Fact(scope=scope, subject="Ada", predicate="likes", object="tea"),
        )
        store.apply(scope, [*map(Add, items), Add(fact)])
        store.apply(scope, [Retract(id=items[1].id), Retract(id=fact.id)])
        article = Article(scope=scope.whole_user(), title="Tea", text="Tea is hot.")
        store.put_article(article, [Chunk(0, 11)])
        counts = store.counts(scope)
        assert (counts.messages, counts.sessions, counts.articles) == (Tally(3), Tally(2), Tally(1))
        assert (counts.memories, counts.memories_current) == (Tally(3), Tally(1))
        assert (counts.facts, counts.facts_current) == (Tally(1), Tally(0))
        assert (counts.waiting.count > 0, counts.dead.count) == (True, 0)

    def test_counting_ends_somewhere(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(activity, "MOST_COUNTED", 2)
        scope = fresh_scope()
        store.append(scope, [Message("user", "Hm") for _ in range(4)])
        items = [item_of(scope, f"Ada has {number} boats.") for number in range(2)]
        store.apply(scope, [Add(item) for item in items])
        counts = store.counts(scope)
        assert (counts.messages, counts.memories) == (Tally(2, more=True), Tally(2))

    def test_receipts_come_back_newest_first_in_pages(self, store: Store) -> None:
        scope = fresh_scope()
        other = scope.within(session="other")
        for home in (scope, other):
            store.append(home, [Message("user", "Where?", f"q{number}") for number in range(5)])
        recalled = (RecalledId("memory", "m", 0.25), RecalledId("message", "x", 0.125))
        kept = [
            turn(f"q{number}", message_id="a", recalled=recalled, created_at=MARCH)
            for number in range(5)
        ]
        theirs = turn("q0", session="other", created_at=MARCH + timedelta(days=1))
        for receipt in (*kept, theirs):
            store.add_receipt(scope, receipt)
            store.add_receipt(scope, receipt)  # again, as after a lost answer
        kept.sort(key=lambda receipt: receipt.id, reverse=True)
        assert store.receipts(scope) == kept
        assert store.receipts(scope.whole_user()) == [theirs, *kept]
        for size in (1, 2, 9):
            pages = walk(
                lambda limit, after: store.receipts(scope, limit=limit, after=after),
                lambda receipt: (receipt.created_at, receipt.id),
                size,
            )
            assert pages == kept

    def test_of_many_receipts_the_newest_are_kept(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(activity, "MOST_RECEIPTS", 2)
        scope = fresh_scope()
        store.append(scope, [Message("user", "Where?", "q")])
        kept = [turn("q", created_at=MARCH + timedelta(days=day)) for day in range(4)]
        for receipt in kept:
            store.add_receipt(scope, receipt)
        assert store.receipts(scope) == [kept[3], kept[2]]

    def test_a_receipt_goes_with_whatever_it_names(self, store: Store) -> None:
        whole = fresh_scope().whole_user()
        for what in ("question", "answer", "memory", "part", "session", "user"):
            scope = whole.within(session=f"about {what}")
            messages = [Message("user", text, text) for text in ("q", "a", "m-in-parts", "else")]
            store.append(scope, messages)
            item = item_of(scope, f"Ada likes the {what}.")
            store.apply(scope, [Add(item)])
            recalled = (RecalledId("memory", item.id, 0.5),)
            named = {"message_id": "a", "recalled": recalled}
            store.add_receipt(scope, turn("q", scope.session or "", **named))
            store.forget(scope, message_id="else")
            assert len(store.receipts(scope)) == 1
            ways: dict[str, dict[str, Any]] = {
                "question": {"message_id": "q"},
                "answer": {"message_id": "a"},
                "memory": {"record_id": item.id},
                "part": {"message_id": "m-in-parts"},
            }
            store.forget(whole if what == "user" else scope, **ways.get(what, {}))
            assert store.receipts(scope) == []

    def test_a_turn_that_was_forgotten_meanwhile_leaves_no_receipt(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "Where?", "q")])
        store.add_receipt(scope, turn("q", session="elsewhere"))
        store.forget(scope, message_id="q")
        store.add_receipt(scope, turn("q"))
        assert store.receipts(scope.whole_user()) == []
