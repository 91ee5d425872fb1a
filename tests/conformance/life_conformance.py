"""Conformance of a memory's life: versions, merging, restoring, spending, sources."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memorist.errors import ConflictError, LeaseLostError, NotFoundError
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
from memorist.records.values import new_id
from memorist.store.base import Store
from tests.conformance.worlds import claim_all, fresh_scope, texts, worded

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
JUNE = datetime(2026, 6, 1, tzinfo=UTC)


class LifeConformance:
    """Needs a fixture `store`."""

    def test_changes_decided_on_an_old_past_are_refused_and_none_is_made(
        self, store: Store
    ) -> None:
        scope = fresh_scope().whole_user()
        assert store.version(scope) == 0
        store.apply(scope, [Add(_item(scope, "first"))], base_version=0)
        seen = store.version(scope)
        store.apply(scope, [Add(_item(scope, "theirs"))])
        assert store.version(scope) == seen + 1
        for base in (0, seen, seen + 2):
            with pytest.raises(ConflictError):
                store.apply(scope, [Add(_item(scope, "mine"))], base_version=base)
        assert _current(store, scope) == ["first", "theirs"]
        assert worded(store, scope, [("mine",)], limit=9) == []
        store.apply(scope, [Add(_item(scope, "mine"))], base_version=store.version(scope))
        assert _current(store, scope) == ["first", "theirs", "mine"]

    def test_changes_decided_on_what_is_forgotten_meanwhile_are_refused(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        item = _item(scope, "Ada likes tea.")
        store.apply(scope, [Add(item)])
        seen = store.version(scope)
        store.forget(scope, record_id=item.id)
        with pytest.raises(ConflictError):
            store.apply(scope, [Add(item)], base_version=seen)
        assert store.kept_by_hand(scope, [item.id]) == {item.id}
        assert _current(store, scope) == []

    def test_of_many_that_decided_on_the_same_past_one_goes_first(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        base = store.version(scope)

        def change(number: int) -> bool:
            try:
                store.apply(scope, [Add(_item(scope, f"by {number}"))], base_version=base)
            except ConflictError:
                return False
            return True

        with ThreadPoolExecutor(6) as pool:
            assert sum(pool.map(change, range(6))) == 1
        assert (len(store.items(scope)), store.version(scope)) == (1, base + 1)

    def test_nothing_is_counted_where_nothing_changes_or_only_others_do(self, store: Store) -> None:
        scope, other = fresh_scope().whole_user(), fresh_scope().whole_user()
        store.apply(scope, [])
        store.apply(other, [Add(_item(other, "x"))])
        assert store.version(scope) == 0

    def test_several_jobs_are_done_with_their_changes_or_none_is(self, store: Store) -> None:
        scope = fresh_scope()
        for text in "ab":
            store.append(scope, [Message("user", text)])
        jobs = claim_all(store, scope)
        assert len(jobs) == 2
        store.release(jobs[1])
        with pytest.raises(LeaseLostError):
            store.apply(scope, [Add(_item(scope, "lost"))], done=jobs)
        assert (store.items(scope), len(store.jobs(scope))) == ([], 2)
        again = claim_all(store, scope)
        with pytest.raises(ConflictError):
            store.apply(scope, [Add(_item(scope, "x"))], done=again + jobs[:1], base_version=9)
        assert (store.items(scope), len(store.jobs(scope))) == ([], 2)
        store.apply(scope, [Add(_item(scope, "made"))], done=[jobs[0], *again], base_version=0)
        assert (_current(store, scope), store.jobs(scope)) == (["made"], [])

    def test_records_are_read_by_id_ended_or_not_and_only_ones_own(self, store: Store) -> None:
        scope, stranger = fresh_scope().whole_user(), fresh_scope().whole_user()
        item, fact = _item(scope, "x", "m1"), _lives(scope, "Berlin")
        store.apply(scope, [Add(item), Add(fact), Expire(id=item.id, at=MARCH)])
        found = store.records(scope, [fact.id, "unknown", item.id])
        assert {record.id for record in found} == {item.id, fact.id}
        assert [record.sources for record in found if record.id == item.id] == [("m1",)]
        assert store.records(stranger, [item.id, fact.id]) == []
        assert store.records(scope, []) == []

    def test_what_a_record_took_the_place_of_is_told(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        old, new = _lives(scope, "Munich"), _lives(scope, "Berlin")
        first, second = _item(scope, "one"), _item(scope, "two")
        store.apply(scope, [Add(old), Supersede(old_id=old.id, record=new, at=JUNE)])
        store.apply(scope, [Add(first), Supersede(old_id=first.id, record=second, at=JUNE)])
        assert [one.id for one in store.superseded_by(scope, new.id)] == [old.id]
        assert [one.id for one in store.superseded_by(scope, second.id)] == [first.id]
        assert store.superseded_by(scope, old.id) == []
        assert store.superseded_by(fresh_scope(), new.id) == []

    def test_the_memories_of_messages_are_told_once_each_and_without_the_facts(
        self, store: Store
    ) -> None:
        scope = fresh_scope().whole_user()
        item, fact = _item(scope, "x", "m1", "m2"), _lives(scope, "Berlin", sources=("m1",))
        ended = _item(scope, "y", "m2")
        store.apply(scope, [Add(item), Add(fact), Add(ended), Retract(id=ended.id)])
        assert store.derived(scope, ["m1"]) == [item.id]
        assert sorted(store.derived(scope, ["m1", "m2", "m3"])) == sorted([item.id, ended.id])
        assert store.derived(scope, []) == store.derived(fresh_scope(), ["m1"]) == []

    def test_a_use_is_counted_and_changes_no_version(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        used, unused = _item(scope, "used"), _item(scope, "unused")
        store.apply(scope, [Add(used), Add(unused)])
        version = store.version(scope)
        store.touch(scope, [used.id, "unknown"])
        store.touch(scope, [used.id])
        store.touch(scope, [])
        store.touch(fresh_scope(), [unused.id])
        found = {item.text: item for item in store.items(scope)}
        assert (found["used"].uses, found["unused"].uses) == (2, 0)
        assert found["used"].used_at is not None
        assert found["unused"].used_at is None
        assert store.version(scope) == version

    def test_a_restored_memory_holds_and_is_found_again(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        item = _item(scope, "the canary")
        for end in (Expire(id=item.id), Retract(id=item.id)):
            store.apply(scope, [Add(item), end])
            assert store.items(scope) == []
            store.apply(scope, [Restore(id=item.id, reason="undone")])
            [back] = store.items(scope)
            assert (back.ended_at, back.superseded_by, back.reason) == (None, None, "undone")
            assert [hit.id for hit in worded(store, scope, [("canary",)], limit=9)] == [item.id]
        assert "the canary" in store.unembedded(scope, "m", limit=9).values()
        with pytest.raises(NotFoundError):
            store.apply(scope, [Restore(id="unknown")])

    def test_restoring_what_holds_changes_nothing_that_can_be_found(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        item, fact = _item(scope, "the canary"), _lives(scope, "Canary Wharf")
        store.apply(scope, [Add(item), Add(fact)])
        store.apply(scope, [Restore(id=item.id), Restore(id=fact.id)])
        found = worded(store, scope, [("canary",)], limit=9)
        assert sorted(hit.id for hit in found) == sorted([item.id, fact.id])

    def test_a_restored_superseded_fact_holds_and_is_found_again(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        old, new = _lives(scope, "Munich", MARCH), _lives(scope, "Berlin", JUNE)
        store.apply(scope, [Add(old), Supersede(old_id=old.id, record=new, at=JUNE)])
        assert worded(store, scope, [("munich",)], limit=9) == []
        store.apply(scope, [Retract(id=new.id), Restore(id=old.id)])
        [fact] = store.facts(scope)
        assert (fact.object, fact.valid_to, fact.ended_at) == ("Munich", None, None)
        assert fact.superseded_by is None
        assert [hit.id for hit in worded(store, scope, [("munich",)], limit=9)] == [old.id]
        assert len(store.match_links(scope, ["munich"], limit=9)) == 1
        assert store.match_links(scope, ["berlin"], limit=9) == []

    def test_a_restored_retracted_fact_is_believed_again(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        fact = _lives(scope, "Paris", MARCH)
        store.apply(scope, [Add(fact), Retract(id=fact.id, at=JUNE)])
        assert store.facts(scope) == []
        store.apply(scope, [Restore(id=fact.id)])
        [back] = store.facts(scope)
        assert (back.known_to, back.valid_to) == (None, None)
        assert [hit.id for hit in worded(store, scope, [("paris",)], limit=9)] == [fact.id]

    def test_a_restored_fact_of_an_interval_keeps_its_end(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        fact = _lives(scope, "Paris", MARCH, valid_to=JUNE)
        store.apply(scope, [Add(fact), Retract(id=fact.id), Restore(id=fact.id)])
        [back] = store.facts(scope)
        assert (back.valid_from, back.valid_to) == (MARCH, JUNE)
        assert worded(store, scope, [("paris",)], limit=9) == []

    def test_with_a_fact_ends_the_memory_that_states_it_and_both_come_back(
        self, store: Store
    ) -> None:
        scope = fresh_scope().whole_user()
        said, newer = _item(scope, "I nest in Munich"), _item(scope, "I nest in Berlin")
        old = _lives(scope, "Munich", MARCH, memory=said.id)
        new = _lives(scope, "Berlin", JUNE, memory=newer.id)
        store.apply(scope, [Add(said), Add(old)])
        store.apply(scope, [Add(newer), Supersede(old_id=old.id, record=new, at=JUNE)])
        assert _current(store, scope) == ["I nest in Berlin"]
        [ended] = store.records(scope, [said.id])
        assert (ended.ended_at, ended.superseded_by) == (JUNE, newer.id)
        assert worded(store, scope, [("munich",)], limit=9) == []
        store.apply(scope, [Retract(id=new.id), Restore(id=old.id)])
        assert _current(store, scope) == ["I nest in Munich"]
        found = {hit.id for hit in worded(store, scope, [("munich",)], limit=9)}
        assert found == {said.id, old.id}
        assert worded(store, scope, [("berlin",)], limit=9) == []

    def test_the_end_of_a_fact_is_not_known_before_it_was_learnt(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        fact = _lives(scope, "Munich", MARCH)
        store.apply(scope, [Add(fact)])
        store.apply(scope, [Expire(id=fact.id, at=JUNE)])
        [ended] = store.facts(scope)
        assert ended.valid_to == JUNE
        assert ended.ended_at is not None
        july, before = JUNE + timedelta(days=30), ended.ended_at - timedelta(microseconds=1)
        assert len(store.facts(scope, valid_at=july, known_at=before)) == 1
        assert store.facts(scope, valid_at=july, known_at=ended.ended_at) == []
        assert len(store.facts(scope, valid_at=MARCH, known_at=ended.ended_at)) == 1

    def test_what_ended_stays_ended_as_it_did(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        item, fact = _item(scope, "x"), _lives(scope, "Munich", MARCH)
        store.apply(scope, [Add(item), Add(fact)])
        store.apply(scope, [Expire(id=item.id, at=MARCH), Expire(id=fact.id, at=JUNE)])
        later = JUNE + timedelta(days=9)
        store.apply(scope, [Expire(id=item.id, at=later), Expire(id=fact.id, at=later)])
        found = store.records(scope, [item.id, fact.id])
        ends = {one.ended_at if isinstance(one, MemoryItem) else one.valid_to for one in found}
        assert ends == {MARCH, JUNE}

    def test_every_user_is_told_page_by_page(self, store: Store) -> None:
        mine = [fresh_scope() for _ in range(5)]
        for scope in mine:
            store.append(scope, [Message("user", "hello")])
        found: list[Scope] = []
        while page := store.users(after=found[-1] if found else None, limit=2):
            assert len(page) <= 2
            found += page
        assert len(found) == len(set(found))
        assert {scope.whole_user() for scope in mine} <= set(found)
        store.forget(mine[0].whole_user())
        assert mine[0].whole_user() not in store.users(limit=100_000)


class SpendConformance:
    """Needs a fixture `store`."""

    def test_a_budget_holds_however_many_ask_at_once(self, store: Store) -> None:
        calls, tokens = store.spent()

        def ask(_: int) -> bool:
            return store.spend(calls=1, tokens=10, max_calls=calls + 12, max_tokens=tokens + 70)

        with ThreadPoolExecutor(8) as pool:
            granted = sum(pool.map(ask, range(40)))
        assert granted == 7  # the tokens were spent first
        assert store.spent() == (calls + 7, tokens + 70)
        assert not store.spend(calls=1, tokens=0, max_calls=calls + 7)
        assert store.spend(calls=1, tokens=5)  # no limit is no limit
        assert store.spent() == (calls + 8, tokens + 75)

    def test_what_was_not_used_is_given_back(self, store: Store) -> None:
        calls, tokens = store.spent()
        limit = tokens + 1_000
        assert store.spend(calls=1, tokens=1_000, max_tokens=limit)
        assert not store.spend(calls=1, tokens=1, max_tokens=limit)
        assert store.spend(calls=0, tokens=-900)
        assert store.spend(calls=1, tokens=900, max_tokens=limit)
        assert store.spent() == (calls + 2, limit)


class SourceConformance:
    """Needs a fixture `store`."""

    def test_a_forgotten_source_is_gone_with_all_that_came_of_it(self, store: Store) -> None:
        scope = fresh_scope()
        whole = scope.whole_user()
        web, mine = Message("user", "web canary"), Message("user", "my sparrow")
        store.append(scope, [web], source="web")
        [place] = store.append(scope, [mine]).seqs
        for job in claim_all(store, scope):
            store.apply(scope, [], done=job)
        old, new = _lives(scope, "Munich", MARCH), _lives(scope, "Canary", JUNE, source="web")
        both = _item(scope, "canary and sparrow", web.message_id, mine.message_id)
        store.apply(
            whole,
            [
                Add(_item(scope, "of the web", web.message_id)),
                Add(both),
                Add(old),
                Add(_item(scope, "stamped canary", source="web")),
                Add(_item(scope, "kept", mine.message_id)),
                Supersede(old_id=old.id, record=new, at=JUNE),
            ],
        )
        vectors = {id_: [1.0, 2.0] for id_ in store.unembedded(whole, "m", limit=99)}
        store.put_vectors(scope, "m", vectors)
        gone = store.forget(whole, source="web").counts
        assert (gone["messages"], gone["memories"], gone["facts"]) == (1, 3, 1)
        assert gone["vectors"] == gone["passages"] == 5
        assert texts(store.history(scope)) == ["my sparrow"]
        assert _current(store, whole) == ["kept"]
        [fact] = store.facts(whole)
        assert (fact.object, fact.valid_to, fact.superseded_by) == ("Munich", None, None)
        assert worded(store, whole, [("canary",)], limit=9) == []
        assert store.match_links(whole, ["canary"], limit=9) == []
        [hit] = worded(store, whole, [("munich",)], limit=9)
        assert hit.id == old.id
        again = [job for job in store.jobs(whole) if job.kind == "derive"]
        assert [(job.first_seq, job.last_seq) for job in again] == [(place, place)]

    def test_a_source_is_forgotten_for_one_user_session_and_agent_only(self, store: Store) -> None:
        user, other = fresh_scope().whole_user(), fresh_scope()
        one = user.within(agent="tutor", session="one")
        two = user.within(agent="coach", session="two")
        for scope in (one, two, other):
            store.append(scope, [Message("user", "from afar")], source="web")
            store.apply(scope, [Add(_item(scope, "planted", source="web"))])
        store.forget(one, source="web")
        assert [entry.session_id for entry in store.history(user)] == ["two"]
        assert [item.scope.agent for item in store.items(user)] == ["coach"]
        store.forget(user.within(agent="tutor"), source="web")
        assert len(store.history(user)) == 1
        assert store.forget(user, source="tool").total == 0
        store.forget(user, source="web")
        assert (store.history(user), store.items(user)) == ([], [])
        assert (len(store.history(other)), len(store.items(other))) == (1, 1)

    def test_what_came_between_is_bridged_when_it_is_forgotten(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        later = JUNE + timedelta(days=30)
        first, last = _lives(scope, "Munich", MARCH), _lives(scope, "Hamburg", later)
        between = _lives(scope, "Berlin", JUNE, source="web")
        store.apply(
            scope,
            [
                Add(first),
                Supersede(old_id=first.id, record=between, at=JUNE),
                Supersede(old_id=between.id, record=last, at=later),
            ],
        )
        store.forget(scope, source="web")
        homes = {fact.object: (fact.valid_to, fact.superseded_by) for fact in store.facts(scope)}
        assert homes == {"Munich": (later, last.id), "Hamburg": (None, None)}
        assert worded(store, scope, [("munich",)], limit=9) == []

    def test_a_person_whom_only_a_forgotten_message_named_goes_from_later_memories(
        self, store: Store
    ) -> None:
        scope = fresh_scope()
        named, she, own = (
            Message("user", text, new_id())
            for text in ("My sister Anna is here.", "She lives in Rome.", "Anna plays chess.")
        )
        store.append(scope, [named, she, own])
        kept = _item(scope, "Anna, who lives in Rome", she.message_id)
        store.apply(
            scope,
            [
                Add(_item(scope, "My sister Anna lives in Rome.", she.message_id)),
                Add(_item(scope, "The user's sister lives in Rome.", she.message_id)),
                Add(_item(scope, "Rome is on her mind.", she.message_id)),
                Add(_item(scope, "Anna plays chess.", own.message_id)),
            ],
        )
        store.apply(scope, [Add(kept)], by_hand=True)
        for job in claim_all(store, scope):
            store.apply(scope, [], done=job)
        gone = store.forget(scope, message_id=named.message_id).counts
        assert gone["memories"] == 2
        left = {"Rome is on her mind.", "Anna plays chess.", kept.text}
        assert set(_current(store, scope)) == left
        places = {entry.seq for entry in store.history(scope) if entry.message == she}
        assert {job.first_seq for job in store.jobs(scope) if job.kind == "derive"} == places

    def test_a_person_whom_a_message_names_no_longer_goes_from_later_memories(
        self, store: Store
    ) -> None:
        scope = fresh_scope()
        named, she = Message("user", "My sister Anna is here."), Message("user", "She is in Rome.")
        seqs = store.append(scope, [named, she]).seqs
        store.apply(scope, [Add(_item(scope, "My sister Anna is in Rome.", she.message_id))])
        claimed = claim_all(store, scope)
        read = [it for it in claimed if it.scope.session == scope.session]
        store.revise(scope, named.changed(content="My sister Anna is here today."))
        assert len(_current(store, scope)) == 1
        store.revise(scope, named.changed(content="My sister Maria is here."))
        assert _current(store, scope) == []
        assert {job.first_seq for job in store.jobs(scope)} == {*seqs}
        with pytest.raises(LeaseLostError):  # the worker has read the old name
            store.apply(scope, [], done=read)

    def test_a_revision_leaves_alone_who_works_on_what_was_said_much_later(
        self, store: Store
    ) -> None:
        scope = fresh_scope()
        said = [Message("user", f"It rained for {number} days.") for number in range(1, 26)]
        for message in said:
            store.append(scope, [message])
        jobs = claim_all(store, scope)
        store.revise(scope, said[0].changed(content="It rained for a day."))
        lost = list[int]()
        for place, job in enumerate(sorted(jobs, key=lambda it: it.first_seq)):
            try:
                store.apply(scope, [], done=job)
            except LeaseLostError:
                lost.append(place)
        assert lost == list(range(21))

    def test_a_promoted_reinforced_memory_goes_with_its_source_too(self, store: Store) -> None:
        scope = fresh_scope()
        web = Message("user", "planted", new_id())
        store.append(scope, [web], source="web")
        item = _item(scope, "planted", web.message_id)
        store.apply(scope, [Add(item), Promote(id=item.id), Reinforce(id=item.id)])
        store.forget(scope, source="web")
        assert store.items(scope, current=False) == []

    def test_the_facts_of_the_user_are_those_of_all_times_but_what_was_wrong(
        self, store: Store
    ) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "…", "m1")])
        home = Fact(scope=scope, subject="user", predicate="lives in", object="Rome")
        was = replace(
            home, id="was", object="Bonn", valid_from=MARCH, valid_to=MARCH + timedelta(1)
        )
        will = replace(home, id="will", object="Graz", valid_from=home.known_from + timedelta(9))
        wrong = replace(home, id="wrong", object="Oslo")
        hers = replace(home, id="hers", subject="Lena", object="Lyon")
        store.apply(
            scope, [Add(replace(home, sources=("m1",))), *map(Add, (was, will, wrong, hers))]
        )
        store.apply(scope, [Retract(id="wrong", at=home.known_from)])
        told = {(it.object, it.sources) for it in store.facts_of(scope, ["lives in", "diet"])}
        assert told == {("Rome", ("m1",)), ("Bonn", ()), ("Graz", ())}
        assert store.facts_of(Scope(user="bob"), ["lives in"]) == []


def _ways(store: Store, scope: Scope, message: Message) -> dict[str, Callable[[], object]]:
    """Each way to forget a message of a session."""
    return {
        "user": lambda: store.forget(scope.whole_user()),
        "session": lambda: store.forget(scope),
        "message": lambda: store.forget(scope, message_id=message.message_id),
        "source": lambda: store.forget(scope.whole_user(), source="user"),
    }


def _current(store: Store, scope: Scope) -> list[str]:
    return [item.text for item in store.items(scope)]


def _item(scope: Scope, text: str, *sources: str, source: str = "user") -> MemoryItem:
    return MemoryItem(scope=scope, text=text, sources=sources, source=source)


def _lives(
    scope: Scope,
    city: str,
    since: datetime = MARCH,
    *,
    valid_to: datetime | None = None,
    memory: str | None = None,
    source: str = "user",
    sources: tuple[str, ...] = (),
) -> Fact:
    return Fact(
        scope=scope,
        subject="Ada",
        predicate="lives in",
        object=city,
        valid_from=since,
        valid_to=valid_to,
        known_from=MARCH,
        memory=memory,
        source=source,
        sources=sources,
    )
