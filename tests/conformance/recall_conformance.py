"""Conformance of recall: filters, links, speakers, vectors and their jobs, and whose it all is."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from memorist.errors import LeaseLostError
from memorist.records.memories import Add, Expire, Fact, MemoryItem, Restore, Retract, Supersede
from memorist.records.message import Message
from memorist.records.query import NO_FILTERS, Filters, Found, SourceMessage, Synonym, Update
from memorist.records.scope import Scope
from memorist.records.values import new_id, to_micros
from memorist.store.base import Store
from tests.conformance.queue_conformance import take
from tests.conformance.recall_worlds import Lookup, World, searches, worlds
from tests.conformance.worlds import fresh_scope

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
DAY = timedelta(days=1)
EXAMPLES = 300 if os.environ.get("MEMORIST_PROVE") else 6


class FilterConformance:
    """Needs a fixture `store`."""

    def test_a_search_is_narrowed_by_kind_role_category_and_tags(self, store: Store) -> None:
        scope = fresh_scope()
        fill(store, scope)

        def found(**only: Any) -> set[str]:
            return words(store, scope.whole_user(), Filters.of(**only))

        assert found() == {"asked", "told", "item a", "item b", "is a fact", "note"}
        assert found(kind=("message",)) == {"asked", "told"}
        assert found(kind=("memory", "note")) == {"item a", "item b", "note"}
        assert found(role=("user",)) == {"asked"}
        assert found(role=("user", "assistant")) == {"asked", "told"}
        assert found(category=("drinks",)) == {"item a"}
        assert found(category=("drinks", "food")) == {"item a", "item b"}
        assert found(tags=("hot",)) == {"item a", "item b"}
        assert found(tags=("hot", "green")) == {"item a"}
        assert found(tags=("green", "cold")) == set()
        assert found(kind=("memory",), tags=("hot",), category=("food",)) == {"item b"}
        assert found(kind=("message",), tags=("hot",)) == set()
        assert found(role=("user",), kind=("memory",)) == set()

    def test_a_search_is_narrowed_by_time_both_ends_included(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(
            scope,
            [
                Message("user", f"apple {day}", created_at=MARCH + timedelta(days=day))
                for day in range(5)
            ],
        )

        def found(after: datetime | None = None, before: datetime | None = None) -> set[str]:
            return words(store, scope, Filters(after=after, before=before))

        day = timedelta(days=1)
        assert found(after=MARCH + 3 * day) == {"3", "4"}
        assert found(after=MARCH + 3 * day + TICK) == {"4"}
        assert found(before=MARCH + day) == {"0", "1"}
        assert found(before=MARCH + day - TICK) == {"0"}
        assert found(MARCH + 2 * day, MARCH + 2 * day) == {"2"}
        assert found(MARCH + 3 * day, MARCH + day) == set()

    def test_agent_and_session_narrow_every_channel(self, store: Store) -> None:
        user = fresh_scope().whole_user()
        homes = [user.within(agent=agent, session=agent) for agent in ("tutor", "coach")]
        for home in homes:
            message = Message("user", f"apple {home.agent}")
            store.append(home, [message])
            fact = Fact(
                scope=home,
                subject="Ada",
                predicate="of",
                object=f"apple {home.agent}",
                sources=(message.message_id,),
            )
            store.apply(home, [Add(fact)])
        embed(store, user, {"": [1.0, 0.0]})
        for narrow in (user.within(agent="coach"), user.within(session="coach"), homes[1]):
            for channel in channels(store, narrow, ["ada"]):
                said = {match.text for match in store.read(narrow, [it.passage for it in channel])}
                assert said in ({"apple coach"}, {"apple coach", "Ada of apple coach"})
        nowhere = user.within(agent="tutor", session="coach")
        assert channels(store, nowhere, ["ada"]) == [[], [], [], []]

    def test_a_filter_loses_no_match_to_those_that_fit_better(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("assistant", "apple apple apple") for _ in range(60)])
        store.append(
            scope,
            [Message("user", f"an apple, among much else that is said here: {it}") for it in "ab"],
        )
        vectors = {"apple": [1.0, 0.0], "an apple": [0.1, 1.0]}
        embed(store, scope.whole_user(), vectors)
        user, filters = scope.whole_user(), Filters(roles=("user",))
        worded = store.match_text(user, [("apple",)], limit=3, filters=filters)
        meant = store.match_vector(user, "m", [1.0, 0.0], limit=3, filters=filters)
        latest = store.newest(user, limit=3, filters=filters)
        for found in ([it.passage for it in worded], [it.passage for it in meant], latest):
            roles = [match.role for match in store.read(user, found)]
            assert roles == ["user", "user"]

    def test_the_newest_messages_come_newest_first(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", text) for text in "abcd"])
        store.apply(scope, [Add(MemoryItem(scope=scope, text="no message"))])
        newest = store.newest(scope.whole_user(), limit=3)
        assert [match.text for match in store.read(scope, newest)] == ["d", "c", "b"]
        assert store.newest(fresh_scope(), limit=3) == store.newest(scope, limit=0) == []

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(worlds(), searches())
    def test_nobody_finds_what_is_anothers_or_what_was_filtered_out(
        self, store: Store, world: World, asked: Lookup
    ) -> None:
        world.build(store, new_id())
        scope = world.scope(asked)
        allowed = world.allowed(asked)
        embed(store, Scope(user=scope.user, tenant=scope.tenant), {"": [1.0, 0.0]})
        filters = Filters.of(**asked.only)
        for channel in channels(store, scope, ["ada", "berlin"], filters, limit=1_000):
            read = store.read(scope, [it.passage for it in channel])
            assert {match.id for match in read} <= {record.id for record in allowed}
        synonyms = [Synonym("pear", ("apple",), 0.7)]
        for words, more in ((("apple",), synonyms[:0]), (("apple", "pear"), synonyms)):
            wanted = store.match_text(
                scope, [("apple",)], synonyms=more, limit=1_000, filters=filters
            )
            found = {match.id for match in store.read(scope, [it.passage for it in wanted])}
            told = {it.id: it.words.lower() for it in allowed}
            assert found == {id_ for id_, said in told.items() if any(it in said for it in words)}
        world.remove(store)


class LinkConformance:
    """Needs a fixture `store`."""

    def test_facts_are_found_one_and_two_steps_from_what_is_named(self, store: Store) -> None:
        user = fresh_scope().whole_user()
        relate(store, user, "Ada works-at Acme", "Acme is-in Berlin", "Berlin is-in Germany")
        assert linked(store, user, "ada") == ["Ada works-at Acme", "Acme is-in Berlin"]
        assert set(linked(store, user, "acme")) == {
            "Ada works-at Acme",
            "Acme is-in Berlin",
            "Berlin is-in Germany",
        }
        assert linked(store, user, "nobody") == linked(store, user) == []
        near, beyond = store.match_links(user, ["ada"], limit=9)
        assert near.score > beyond.score
        assert len(store.match_links(user, ["acme"], limit=2)) == 2
        assert store.match_links(user, ["acme"], limit=0) == []

    def test_the_messages_that_facts_came_from_are_found_with_them(self, store: Store) -> None:
        scope = fresh_scope()
        said, other = Message("user", "I started at Acme"), Message("user", "good night")
        store.append(scope, [said, other])
        relate(store, scope.whole_user(), "Ada works-at Acme", sources=(said.message_id, "unknown"))
        assert linked(store, scope.whole_user(), "ada") == [
            "Ada works-at Acme",
            "I started at Acme",
        ]

    def test_a_revised_message_is_still_the_source_of_its_facts(self, store: Store) -> None:
        scope = fresh_scope()
        message = Message("user", "we met on tuesday")
        store.append(scope, [message])
        fact = Fact(scope=scope, subject="Ada", predicate="met", object="Bob",
                    sources=(message.message_id,))  # fmt: skip
        store.apply(scope, [Add(fact)])
        store.revise(scope, message.changed(content="we met on wednesday"))
        found = store.match_links(scope.whole_user(), ["bob"], limit=9)
        matches = store.read(scope.whole_user(), [it.passage for it in found])
        assert {match.text for match in matches} == {"Ada met Bob", "we met on wednesday"}

    def test_names_of_things_are_found_however_they_are_written(self, store: Store) -> None:
        user = fresh_scope().whole_user()
        relate(store, user, "ZÜRICH-West is-in Switzerland")
        assert linked(store, user, "zurich west") == ["ZÜRICH-West is-in Switzerland"]

    def test_a_fact_that_no_longer_holds_is_not_linked_nor_its_source(self, store: Store) -> None:
        scope = fresh_scope()
        said = [Message("user", text) for text in ("old home", "a joke", "new home")]
        store.append(scope, said)
        user = scope.whole_user()
        munich, paris, berlin = (
            Fact(
                scope=user,
                subject="Ada",
                predicate="lives in",
                object=city,
                sources=(message.message_id,),
            )
            for city, message in zip(("Munich", "Paris", "Berlin"), said, strict=True)
        )
        store.apply(user, [Add(munich), Add(paris)])
        store.apply(user, [Supersede(old_id=munich.id, record=berlin), Retract(id=paris.id)])
        assert linked(store, user, "ada") == ["Ada lives in Berlin", "new home"]

    def test_nobody_elses_facts_are_linked(self, store: Store) -> None:
        ada, eve = (fresh_scope().whole_user() for _ in range(2))
        relate(store, ada, "Ada works-at Acme")
        relate(store, eve, "Eve spies-on Acme")
        assert linked(store, ada, "acme") == ["Ada works-at Acme"]
        assert linked(store, eve, "acme", "ada") == ["Eve spies-on Acme"]

    def test_a_forgotten_fact_links_nothing(self, store: Store) -> None:
        scope = fresh_scope()
        said = Message("user", "I started at Acme")
        store.append(scope, [said])
        relate(store, scope.whole_user(), "Ada works-at Acme", sources=(said.message_id,))
        relate(store, scope.whole_user(), "Acme is-in Berlin")
        store.forget(scope, message_id=said.message_id)
        assert linked(store, scope.whole_user(), "ada") == []
        assert linked(store, scope.whole_user(), "acme") == ["Acme is-in Berlin"]


class PassageConformance:
    """Needs a fixture `store`."""

    def test_a_passage_tells_what_ranking_must_know(self, store: Store) -> None:
        scope = fresh_scope()
        first, second = (
            Message("user", "apple one", name="Ada", created_at=MARCH),
            Message("assistant", "apple two"),
        )
        store.append(scope, [first])
        store.append(scope.within(session="other"), [Message("user", "apple between")])
        store.append(scope, [second])
        item = MemoryItem(scope=scope.whole_user(), text="apple item", importance=0.7)
        store.apply(scope.whole_user(), [Add(item)])
        user = scope.whole_user()
        ids = [it.passage for it in store.match_text(user, [("apple",)], limit=9)]
        texts = {match.passage: match.text for match in store.read(user, ids)}
        told = {texts[it.id]: it for it in store.passages(user, ids)}
        one, two, between = (told[f"apple {which}"] for which in ("one", "two", "between"))
        assert (one.kind, one.role, one.speaker) == ("message", "user", "Ada")
        assert (one.start, one.stop, one.said_at) == (0, 9, to_micros(MARCH))
        assert (one.previous, two.previous, between.previous) == (None, one.record, None)
        assert one.session == two.session != between.session
        assert (two.importance, two.speaker) == (None, None)
        derived = told["apple item"]
        assert (derived.kind, derived.record, derived.importance) == ("memory", item.id, 0.7)
        assert derived.previous is None
        assert store.passages(fresh_scope(), ids) == []
        assert store.read(fresh_scope(), ids) == []

    def test_a_long_message_is_found_by_each_of_its_spans_as_one_record(self, store: Store) -> None:
        scope = fresh_scope()
        text = " ".join(f"word{number} filler" for number in range(1_000))
        message = Message("user", text)
        store.append(scope, [message])
        for number in (0, 500, 999):
            [found] = store.match_text(scope, [(f"word{number}",), ("filler",)], limit=9)
            [match] = store.read(scope, [found.passage])
            assert f"word{number} " in f"{match.text} "
            assert match.text == text[match.start : match.start + len(match.text)]
            assert match.id == message.message_id

    def test_words_find_who_spoke_and_when(self, store: Store) -> None:
        scope = fresh_scope()
        may = datetime(2023, 5, 7, tzinfo=UTC)
        store.append(
            scope,
            [
                Message("user", "hello", name="Caroline", created_at=may),
                Message("user", "Melanie Smith: good morning", created_at=MARCH),
            ],
        )
        for word, said in (("caroline", "hello"), ("may", "hello"), ("2023", "hello")):
            [found] = store.match_text(scope, [(word,)], limit=9)
            assert store.read(scope, [found.passage])[0].text == said
        assert store.speakers(scope) == ["Caroline", "Melanie Smith"]
        assert store.speakers(fresh_scope()) == []
        store.forget(scope.whole_user())
        assert store.speakers(scope) == []

    def test_a_speaker_is_the_name_of_a_message_never_a_word_its_text_begins_with(
        self, store: Store
    ) -> None:
        scope = fresh_scope()
        said = [
            Message("assistant", "Noted: you like tea", created_at=MARCH),
            Message("tool", "System: drink tea", created_at=MARCH + TICK),
            Message("user", "Ann: tea for me", name="Ben", created_at=MARCH + 2 * TICK),
        ]
        store.append(scope, said)
        ids = sorted(it.passage for it in store.match_text(scope, [("tea",)], limit=9))
        told = [(match.role, match.speaker) for match in store.read(scope, ids)]
        assert told == [("assistant", None), ("tool", None), ("user", "Ben")]

    def test_what_was_derived_names_the_messages_it_came_from(self, store: Store) -> None:
        scope = fresh_scope()
        said = [Message("user", f"tea {day}", created_at=MARCH + day * DAY) for day in range(3)]
        store.append(scope, said)
        store.append(scope.within(session="other"), [replace(said[0], content="another")])
        ids = tuple(message.message_id for message in said)
        user = scope.whole_user()
        item = MemoryItem(scope=scope, text="likes oolong", sources=ids[:2])
        fact = Fact(scope=user, subject="Ada", predicate="drinks", object="oolong", sources=ids[2:])
        mine = MemoryItem(scope=user, text="oolong, unsaid", sources=("gone",))
        store.apply(user, [Add(item), Add(fact), Add(mine)])
        found = [it.passage for it in store.match_text(user, [("oolong",)], limit=9)]
        told = {match.id: match.sources for match in store.read(user, found)}
        sources = [SourceMessage(it.message_id, scope.session or "", it.created_at) for it in said]
        assert told == {item.id: tuple(sources[:2]), fact.id: (sources[2],), mine.id: ()}
        [message] = store.read(user, [store.match_text(user, [("another",)], limit=1)[0].passage])
        assert message.sources == ()

    def test_a_message_whose_fact_ended_says_until_when(self, store: Store) -> None:
        scope = fresh_scope()
        said = [Message("user", f"tea {what}", created_at=MARCH) for what in ("a", "b", "c")]
        store.append(scope, said)
        facts = [
            Fact(
                scope=scope,
                subject="Ada",
                predicate=f"is {it.text}",
                object="x",
                sources=(it.message_id,),
            )
            for it in said
        ]
        store.apply(scope, [*map(Add, facts)])
        ended = Expire(id=facts[0].id, at=MARCH + 31 * DAY), Retract(id=facts[1].id, at=MARCH)
        store.apply(scope, ended)

        def marks() -> list[str]:
            ids = sorted(it.passage for it in store.match_text(scope, [("tea",)], limit=9))
            return [match.over for match in store.read(scope, ids) if match.kind == "message"]

        assert marks() == ["until April 2026", "history", ""]
        store.apply(scope, [Restore(id=fact.id) for fact in facts[:2]])
        assert marks() == ["", "", ""]

    def test_a_message_whose_fact_ended_names_the_one_that_says_what_holds(
        self, store: Store
    ) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "…", id_) for id_ in ("m1", "m2", "m3")])
        home = Fact(scope=scope, subject="u", predicate="lives in", object="Rome", sources=("m1",))
        tea = replace(home, id="tea", predicate="likes", object="tea")
        since = home.known_from
        there = replace(home, id="there", object="Bonn", sources=("m2",), known_from=since)
        now = replace(home, id="now", object="Graz", sources=("m3",), known_from=since)
        trip = replace(home, id="trip", predicate="plans", object="to fly to Bari")
        store.apply(scope, [Add(home), Add(tea), Add(trip)])
        store.apply(scope, [Expire(id="trip", at=since, reason="said to be over")])
        quit_it = MemoryItem(scope=scope, text="I quit", sources=("m2",))
        job = replace(home, id="job", predicate="works at", object="Bosch")
        store.apply(scope, [Add(job), Add(quit_it), Expire(id="job", at=since, by=quit_it.id)])
        store.apply(scope, [Supersede(old_id=home.id, record=there, at=since, reason="moved")])
        store.apply(scope, [Supersede(old_id="there", record=now, at=since, reason="moved")])
        assert set(store.updates(scope, ["m1"])) == {
            Update("m1", "lives in", "Rome", holds=False, by="m3"),
            Update("m1", "likes", "tea", holds=True, by=None),
            Update("m1", "plans", "to fly to Bari", holds=False, by=None, until=since),
            Update("m1", "works at", "Bosch", holds=False, by=None, until=since, ended_by="m2"),
        }
        assert store.updates(Scope(user="bob"), ["m1"]) == []

    def test_a_message_is_as_important_as_its_score_says(self, store: Store) -> None:
        scope = fresh_scope()
        for score in (0.9, 0, "high", 7):
            data = {"importance_score": score}
            store.append(scope, [Message("user", "tea", structured_data=data)])
        ids = sorted(it.passage for it in store.match_text(scope, [("tea",)], limit=9))
        told = [it.importance for it in store.passages(scope, ids)]
        assert told == [pytest.approx(0.4), -0.5, None, None]  # beside a message without a score

    def test_a_rare_word_counts_more_than_a_common_one(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", f"tea again {number}") for number in range(20)])
        store.append(scope, [Message("user", "oolong once here")])
        found = store.match_text(scope, [("tea",), ("oolong",)], limit=3)
        assert store.read(scope, [found[0].passage])[0].text == "oolong once here"
        assert found[0].score > 2 * found[1].score > 0

    def test_kin_find_what_has_another_word_for_it(self, store: Store) -> None:
        scope = fresh_scope()
        told = ("a bike", "my bicycle" + " bicycle" * 400, "tea")  # said often, in one place
        store.append(scope, [Message("user", said) for said in told])
        store.append(fresh_scope(), [Message("user", "a stranger's bicycle")])
        synonyms = [Synonym("bicycl", ("bikes",), 0.6), Synonym("tea", ("coffee",), 0.9)]
        found = store.match_text(scope, [("bikes",)], synonyms=synonyms, limit=9)
        read = store.read(scope, [it.passage for it in found])
        assert [it.text[:10] for it in read] == ["a bike", "my bicycle"]
        assert 0 < found[1].score < found[0].score
        mine = Scope(user=scope.user, tenant=scope.tenant, session="another")
        assert store.match_text(mine, [("bikes",)], synonyms=synonyms, limit=9) == []


class VectorJobConformance:
    """Needs a fixture `store`. Other tests' jobs may wait in the same queue."""

    def test_a_job_waits_for_the_vectors_of_its_own_passages(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "a"), Message("user", "b")])
        job = take(store, scope, lease_seconds=600)
        store.append(scope, [Message("user", "not of this job")])
        waiting = store.waiting(job, "m", limit=9)
        assert sorted(waiting.values()) == ["a", "b"]
        assert len(store.waiting(job, "m", limit=1)) == 1
        first, _ = waiting
        store.put_vectors(scope, "m", {first: [1.0, 0.0]})
        assert len(store.waiting(job, "m", limit=9)) == 1
        assert len(store.waiting(job, "another", limit=9)) == 2

    def test_vectors_and_the_job_they_are_of_go_together(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "a")])
        lost = take(store, scope, lease_seconds=0)
        job = take(store, scope, lease_seconds=600)
        [passage] = store.waiting(job, "m", limit=9)
        with pytest.raises(LeaseLostError):
            store.put_vectors(scope, "m", {passage: [1.0]}, done=[lost])
        assert store.waiting(job, "m", limit=9).keys() == {passage}
        store.put_vectors(scope, "m", {passage: [1.0]}, done=[job])
        [next_job] = store.jobs(scope)
        assert (next_job.id, next_job.kind, next_job.attempts) == (job.id, "derive", 0)
        with pytest.raises(LeaseLostError):
            store.put_vectors(scope, "m", {}, done=[job])

    def test_a_derived_records_job_is_gone_with_its_vectors(self, store: Store) -> None:
        user = fresh_scope().whole_user()
        store.apply(user, [Add(MemoryItem(scope=user, text="an item"))])
        job = take(store, user, lease_seconds=600)
        assert (job.kind, job.scope.session) == ("vectors", None)
        waiting = store.waiting(job, "m", limit=9)
        assert list(waiting.values()) == ["an item"]
        store.put_vectors(user, "m", {id_: [1.0] for id_ in waiting}, done=[job])
        assert store.jobs(user) == []

    def test_a_renewed_lease_lasts_and_a_lost_one_cannot_be_renewed(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "a")])
        lost = take(store, scope, lease_seconds=0)
        job = take(store, scope, lease_seconds=600)
        with pytest.raises(LeaseLostError):
            store.renew(lost, lease_seconds=600)
        store.renew(job, lease_seconds=1_200)
        assert store.jobs(scope)[0].run_at > job.run_at

    def test_a_new_embedder_is_prepared_once_for_all_there_is(self, store: Store) -> None:
        scope = fresh_scope()
        user, name = scope.whole_user(), new_id()
        store.append(scope, [Message("user", text) for text in "abc"])
        store.write_note(user, "note", base_version=0)
        assert user in everyone_unprepared(store, name)
        known = {job.id for job in store.jobs(user)}
        store.prepare(user, name)
        store.prepare(user, name)
        added = [job for job in store.jobs(user) if job.id not in known]
        assert store.backlog([f"vectors:{name}"]) == len(added) == 2
        assert user not in everyone_unprepared(store, name)
        waiting = [text for job in added for text in store.waiting(job, name, limit=9).values()]
        assert sorted(waiting) == ["a", "b", "c", "note"]

    def test_a_backlog_counts_what_waits_of_a_kind(self, store: Store) -> None:
        scope = fresh_scope()
        before, all_before = store.backlog(["embed"]), store.backlog()
        store.append(scope, [Message("user", "a")])
        assert store.backlog(["embed"]) == before + 1
        assert store.backlog(["embed", "vectors"]) >= before + 1
        assert store.backlog() == all_before + 1
        assert store.backlog(["no such kind"]) == 0

    def test_embedders_of_different_lengths_live_side_by_side(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "a"), Message("user", "b")])
        ids = list(store.unembedded(scope, "small", limit=9))
        store.put_vectors(scope, "small", {ids[0]: [1.0, 0.0], ids[1]: [0.0, 1.0]})
        store.put_vectors(scope, "large", {ids[0]: [0.0, 0.0, 1.0], ids[1]: [1.0, 0.0, 0.0]})
        assert store.match_vector(scope, "small", [1.0, 0.1], limit=1)[0].passage == ids[0]
        assert store.match_vector(scope, "large", [1.0, 0.1, 0.0], limit=1)[0].passage == ids[1]
        assert store.match_vector(scope, "unknown", [1.0], limit=1) == []

    def test_a_revised_message_waits_for_the_vector_of_its_new_words(self, store: Store) -> None:
        scope = fresh_scope()
        message = Message("user", "tea")
        store.append(scope, [message])
        embed(store, scope.whole_user(), {"": [1.0, 0.0]})
        store.revise(scope, message.changed(content="coffee"))
        assert store.match_vector(scope, "m", [1.0, 0.0], limit=9) == []
        assert list(store.unembedded(scope, "m", limit=9).values()) == ["coffee"]
        assert [job.kind for job in store.jobs(scope)] == ["embed", "embed"]

    def test_the_name_of_a_speaker_is_forgotten_with_their_last_words(self, store: Store) -> None:
        scope = fresh_scope()
        first, last = Message("user", "Zoe Canary: hello"), Message("user", "hi", name="Ben")
        store.append(scope, [first, last])
        assert store.speakers(scope) == ["Ben", "Zoe Canary"]
        store.forget(scope, message_id=first.message_id)
        assert store.speakers(scope) == ["Ben"]

    def test_a_job_given_back_is_as_new(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "hello")])
        job = take(store, scope, lease_seconds=600)
        store.release(job)
        assert [(it.attempts, it.lease) for it in store.jobs(scope)] == [(0, None)]
        with pytest.raises(LeaseLostError):
            store.release(job)

    def test_what_was_forgotten_is_not_found_by_its_vector(self, store: Store) -> None:
        scope = fresh_scope()
        messages = [Message("user", text) for text in ("gone", "kept")]
        store.append(scope, messages)
        embed(store, scope.whole_user(), {"gone": [1.0, 0.0], "kept": [0.0, 1.0]})
        assert len(store.match_vector(scope, "m", [1.0, 0.0], limit=9)) == 2
        store.forget(scope, message_id=messages[0].message_id)
        [left] = store.match_vector(scope, "m", [1.0, 0.0], limit=1)
        assert store.read(scope, [left.passage])[0].text == "kept"


class RecallConformance(
    FilterConformance, LinkConformance, PassageConformance, VectorJobConformance
):
    """Everything that recall asks of a store. Needs a fixture `store`."""


def fill(store: Store, scope: Scope) -> None:
    """One record of each kind, all of them about apples."""
    store.append(scope, [Message("user", "apple asked"), Message("assistant", "apple told")])
    tagged = {"a": ("drinks", ("hot", "green")), "b": ("food", ("hot",))}
    items = [
        MemoryItem(scope=scope, text=f"apple item {name}", category=category, tags=tags)
        for name, (category, tags) in tagged.items()
    ]
    fact = Fact(scope=scope, subject="apple", predicate="is a", object="fact")
    store.apply(scope, [*map(Add, items), Add(fact)])
    store.write_note(scope.whole_user(), "apple note", base_version=0)


def words(store: Store, scope: Scope, filters: Filters) -> set[str]:
    """What is found by the word apple, without it."""
    found = store.match_text(scope, [("apple",)], limit=99, filters=filters)
    read = store.read(scope, [it.passage for it in found])
    return {match.text.removeprefix("apple ") for match in read}


def embed(store: Store, user: Scope, vectors: dict[str, list[float]]) -> None:
    """Give all that the user has the vector of the longest beginning it has."""
    waiting = store.unembedded(user, "m", limit=10_000)
    made = {
        id_: vectors[max((it for it in vectors if text.startswith(it)), key=len)]
        for id_, text in waiting.items()
    }
    if made:
        store.put_vectors(user, "m", made)


def channels(
    store: Store, scope: Scope, names: list[str], filters: Filters = NO_FILTERS, limit: int = 50
) -> list[list[Found]]:
    """What each way of searching finds."""
    return [
        store.match_text(scope, [("apple",)], limit=limit, filters=filters),
        store.match_vector(scope, "m", [1.0, 0.0], limit=limit, filters=filters),
        store.match_links(scope, names, limit=limit, filters=filters),
        [Found(id_, 1.0) for id_ in store.newest(scope, limit=limit, filters=filters)],
    ]


def relate(store: Store, user: Scope, *facts: str, sources: tuple[str, ...] = ()) -> None:
    """Store facts of three words."""
    for fact in facts:
        subject, predicate, object_ = fact.rsplit(" ", 2)
        made = Fact(
            scope=user, subject=subject, predicate=predicate, object=object_, sources=sources
        )
        store.apply(user, [Add(made)])


def linked(store: Store, user: Scope, *names: str) -> list[str]:
    """What is found by links from these names, best first."""
    found = store.match_links(user, names, limit=99)
    return [match.text for match in store.read(user, [it.passage for it in found])]


def everyone_unprepared(store: Store, embedder: str) -> list[Scope]:
    """All users that an embedder has not seen."""
    return store.unprepared(embedder, limit=100_000)
