"""Conformance of entries: JSON under keys in namespaces, found, timed, forgotten."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memorist.errors import InvalidError, NotFoundError, RecordError
from memorist.records.entry import Ask, Entry, Get, Ids, Namespace, Namespaces, Put, Search
from memorist.records.message import Message
from memorist.records.query import Filters
from memorist.records.scope import Scope
from memorist.store.base import Store
from tests.conformance.worlds import HOSTILE_USERS, ODD_TEXTS, fresh_scope, near, worded

NOTES = ("notes", "ada")
SOON = timedelta(seconds=60)


def fresh_owner() -> Scope:
    """Somebody whom no other test has."""
    return fresh_scope().whole_user()


def put(key: str = "k", namespace: Namespace = NOTES, **more: Any) -> Put:
    """A small entry, with something changed."""
    return Put(namespace=namespace, key=key, **{"value": {"n": 1}, **more})


def get(store: Store, scope: Scope, key: str = "k", namespace: Namespace = NOTES) -> Entry | None:
    """The entry of a key, if there is one."""
    [found] = store.batch(scope, [Get(namespace=namespace, key=key)])
    assert len(found) <= 1
    return found[0] if found else None  # type: ignore[return-value]


def keys(store: Store, scope: Scope, **asked: Any) -> list[str]:
    """The keys of what a search finds, in its order."""
    [found] = store.batch(scope, [Search(**asked)])
    return [entry.key for entry in found]  # type: ignore[union-attr]


class EntryConformance:
    """Needs a fixture `store`."""

    def test_an_entry_comes_back_as_it_was(self, store: Store) -> None:
        scope = fresh_owner()
        value = {"text": "Zürich", "n": 1.5, "list": [1, None, True, {"deep": []}], "big": 2**200}
        store.batch(scope, [], [put(value=value)])
        found = get(store, scope)
        assert found is not None
        assert (found.namespace, found.key, found.value) == (NOTES, "k", value)
        assert found.created_at == found.updated_at
        assert found.created_at.utcoffset() == timedelta(0)
        assert get(store, scope, "other") is None
        assert get(store, scope, namespace=("notes",)) is None

    def test_what_was_written_elsewhere_keeps_its_date_and_its_own_time_to_live(
        self, store: Store
    ) -> None:
        scope, then = fresh_owner(), datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
        store.batch(scope, [], [put(written_at=then, ttl=SOON)])
        found = get(store, scope)
        assert found is not None
        assert (found.created_at, found.updated_at) == (then, then)
        assert found.expires_at is not None
        assert abs(found.expires_at - datetime.now(UTC) - SOON) < timedelta(seconds=30)
        with pytest.raises(RecordError, match="no time zone"):
            put(written_at=then.replace(tzinfo=None))

    def test_odd_texts_come_back_as_values_keys_and_labels(self, store: Store) -> None:
        scope = fresh_owner()
        odd = {**ODD_TEXTS, "nul": "a\x00b", "half a character": "\ud800"}
        for text in odd.values():
            store.batch(scope, [], [put(text, value={text: text}, texts=(text,))])
            found = get(store, scope, text)
            assert found is not None
            assert found.value == {text: text}
        for label in ("*", "%", "a/b", "a-b", "ßẞ", "👩‍👩‍👧‍👦", "[a]", "'"):
            store.batch(scope, [], [put(namespace=(label,))])
            assert keys(store, scope, prefix=(label,)) == ["k"]

    def test_what_is_not_json_or_no_namespace_is_refused(self, store: Store) -> None:
        deep: list[Any] = []
        for _ in range(100):
            deep = [deep]
        for value in ({"x": float("nan")}, {1: 2}, {"x": {1}}, {"x": 2**5_000}, {"x": deep}, [1]):
            with pytest.raises(RecordError):
                put(value=value)
        for namespace in (("",), ("a.b",), ("a\x00",), ("x" * 1_001,), (1,), "ab", None, 5):
            with pytest.raises(RecordError):
                put(namespace=namespace)  # type: ignore[arg-type]
        for wrong in ({"texts": "many"}, {"texts": None}, {"texts": [1]}, {"ttl": 5}):
            with pytest.raises(RecordError, match=f"{next(iter(wrong))} must be"):
                put(**wrong)
        searches: list[dict[str, Any]]
        searches = [{"limit": -1}, {"offset": -1}, {"where": {"n": {"$in": [1]}}}]
        for search in searches:
            with pytest.raises(InvalidError):
                Search(**search)

    def test_a_second_value_takes_the_place_of_the_first(self, store: Store) -> None:
        scope = fresh_owner()
        store.batch(scope, [], [put(value={"n": 1, "old": True})])
        first = get(store, scope)
        store.batch(scope, [], [put(value={"n": 2})])
        second = get(store, scope)
        assert first is not None
        assert second is not None
        assert second.value == {"n": 2}
        assert second.created_at == first.created_at < second.updated_at

    def test_reads_see_what_was_there_before_the_writes_beside_them(self, store: Store) -> None:
        scope = fresh_owner()
        asks: list[Ask] = [Get(namespace=NOTES, key="k"), Search(), Namespaces()]
        assert store.batch(scope, asks, [put(value={"n": 1})]) == [[], [], []]
        [got, found, names] = store.batch(scope, asks, [put(value=None)])
        assert [entry.value for entry in got] == [{"n": 1}]  # type: ignore[union-attr]
        assert len(found) == 1
        assert names == [NOTES]
        assert get(store, scope) is None

    def test_of_two_values_for_one_place_the_later_counts(self, store: Store) -> None:
        scope = fresh_owner()
        store.batch(scope, [], [put(value={"n": 1}), put(value=None), put(value={"n": 3})])
        found = get(store, scope)
        assert found is not None
        assert found.value == {"n": 3}
        store.batch(scope, [], [put(value={"n": 4}), put(value=None)])
        assert get(store, scope) is None

    def test_a_prefix_is_of_whole_labels(self, store: Store) -> None:
        scope = fresh_owner()
        places = [("a",), ("a", "b"), ("a", "b", "c"), ("ab",), ("a-b",), ("a!",), ("b", "a"), ()]
        for place in places:
            store.batch(scope, [], [put("/".join(place), namespace=place)])
        assert set(keys(store, scope, prefix=("a",))) == {"a", "a/b", "a/b/c"}
        assert set(keys(store, scope, prefix=("a", "b"))) == {"a/b", "a/b/c"}
        assert keys(store, scope, prefix=("b", "a", "c")) == []
        assert len(keys(store, scope)) == len(places)
        [names] = store.batch(scope, [Namespaces()])
        assert names == sorted(places)

    def test_the_newest_come_first_a_page_at_a_time(self, store: Store) -> None:
        scope = fresh_owner()
        for number in range(5):
            store.batch(scope, [], [put(str(number))])
        store.batch(scope, [], [put("1", value={"n": 2})])
        assert keys(store, scope) == ["1", "4", "3", "2", "0"]
        assert keys(store, scope, limit=2, offset=1) == ["4", "3"]
        assert keys(store, scope, limit=9, offset=4) == ["0"]
        assert keys(store, scope, limit=0) == keys(store, scope, offset=9) == []
        assert keys(store, scope, where={"n": 1}, limit=2, offset=1) == ["3", "2"]

    def test_ranks_say_what_comes_first_and_the_rest_follows(self, store: Store) -> None:
        scope = fresh_owner()
        for number in range(4):
            store.batch(scope, [], [put(str(number))])
        ranks = {put("1").id: 0.5, put("0").id: 0.9, put("gone").id: 0.7}
        assert keys(store, scope, ranks=ranks) == ["0", "1", "3", "2"]
        assert keys(store, scope, ranks=ranks, limit=2) == ["0", "1"]
        assert keys(store, scope, ranks=ranks, limit=2, offset=1) == ["1", "3"]
        assert keys(store, scope, ranks=ranks, prefix=("other",)) == []
        [found] = store.batch(scope, [Search(ranks=ranks, limit=3)])
        assert [entry.score for entry in found] == [0.9, 0.5, None]  # type: ignore[union-attr]
        [ids] = store.batch(scope, [Ids(of=Search(where={"n": 1}, limit=1))])
        assert set(ids) == {put(str(number)).id for number in range(4)}

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ({"n": 1}, "ab"),
            ({"n": 1.0}, "ab"),
            ({"n": True}, ""),
            ({"n": None}, "cde"),
            ({"m": {"x": 1}}, "a"),
            ({"m.x": 1}, ""),
            ({"m": {"x": {"$gt": 1}}}, "b"),
            ({"m": {}}, "ab"),
            ({"l": [1, 2]}, "b"),
            ({"l": [2, 1]}, ""),
            ({"l": [1]}, ""),
            ({"n": {"$eq": 1}}, "ab"),
            ({"n": {"$ne": 1}}, "cde"),
            ({"s": {"$gt": "b"}}, "d"),
            ({"n": {"$gte": 1, "$lt": 2}}, "ab"),
            ({"n": {"$gt": 1}}, ""),
            ({"s": {"$lt": 9}}, ""),
            ({"n": {"$lte": 1}, "m": {"x": 1}}, "a"),
            ({}, "abcde"),
            ({"m": {"$eq": {"x": 1}}}, ""),
            ({"m": {"$eq": {"x": 1, "y": 2}}}, "a"),
            ({"s": {"$ne": None}}, "cd"),
        ],
    )
    def test_conditions_are_on_values(
        self, store: Store, where: Mapping[str, Any], expected: str
    ) -> None:
        scope = fresh_owner()
        values: dict[str, dict[str, Any]] = {
            "a": {"n": 1, "m": {"x": 1, "y": 2}},
            "b": {"n": 1.0, "m": {"x": 2}, "l": [1, 2]},
            "c": {"s": "b"},
            "d": {"n": None, "s": "c"},
            "e": {},
        }
        puts = [put(key, value=value) for key, value in values.items()]
        store.batch(scope, [], puts)
        assert "".join(sorted(keys(store, scope, where=where))) == expected


class EntryLifeConformance:
    """Needs a fixture `store`."""

    def test_what_is_over_is_read_by_nobody(self, store: Store) -> None:
        scope = fresh_owner()
        over, lasting = put("over", ttl=timedelta(0), texts=("gulls",)), put("lasting", ttl=SOON)
        store.batch(scope, [], [over, put("ever")])
        store.batch(scope, [], [lasting])
        assert get(store, scope, "over") is None
        assert keys(store, scope) == keys(store, scope, where={"n": 1}) == ["lasting", "ever"]
        assert keys(store, scope, ranks={over.id: 1.0}) == ["lasting", "ever"]
        store.batch(scope, [], [put("gone", namespace=("x",), ttl=-SOON)])
        [names] = store.batch(scope, [Namespaces()])
        assert names == [NOTES]
        assert worded(store, scope, [("gulls",)], limit=5) == []

    def test_reading_gives_new_time_to_those_who_want_it(self, store: Store) -> None:
        scope = fresh_owner()
        store.batch(scope, [], [put("ttl", ttl=SOON), put("none")])

        def end() -> datetime:
            found = get(store, scope, "ttl")
            assert found is not None
            assert found.expires_at is not None
            return found.expires_at

        first = end()
        asks: list[Ask] = [Get(namespace=NOTES, key="ttl", refresh=True), Search(refresh=True)]
        for ask in asks:
            before = end()
            assert before == end()
            store.batch(scope, [ask])
            assert end() > before
        assert end() - first < SOON
        assert store.batch(scope, [Search(limit=0, refresh=True)]) == [[]]

    def test_what_is_over_does_not_come_back(self, store: Store) -> None:
        scope = fresh_owner()
        store.batch(scope, [], [put(ttl=timedelta(milliseconds=1))])
        time.sleep(0.005)
        asks: list[Ask] = [Get(namespace=NOTES, key="k", refresh=True), Search(refresh=True)]
        assert store.batch(scope, asks) == [[], []]
        assert get(store, scope) is None
        assert store.sweep(scope) == 1

    def test_what_comes_in_the_place_of_what_is_over_is_new(self, store: Store) -> None:
        scope = fresh_owner()
        store.batch(scope, [], [put(ttl=timedelta(milliseconds=1))])
        time.sleep(0.005)
        store.batch(scope, [], [put()])
        found = get(store, scope)
        assert found is not None
        assert found.created_at == found.updated_at
        assert found.expires_at is None

    def test_what_is_over_is_swept(self, store: Store) -> None:
        scope = fresh_owner()
        store.batch(scope, [], [put(str(n), ttl=timedelta(milliseconds=1)) for n in range(3)])
        time.sleep(0.005)
        assert store.sweep(scope) == 3
        assert store.sweep(scope) == 0
        store.batch(scope, [], [put("late", ttl=timedelta(milliseconds=1))])
        time.sleep(0.005)
        store.batch(scope, [], [put()])
        assert store.sweep(scope) == 0
        assert store.forget(scope).counts["entries"] == 1

    def test_an_entry_is_found_by_its_words_and_its_vectors(self, store: Store) -> None:
        scope = fresh_owner()
        texts = ("Gulls eat chips", "and sleep on one leg " * 80)
        store.batch(scope, [], [put(texts=texts), put("other", texts=("Ravens eat plums",))])
        [match] = worded(store, scope, [("chip",)], limit=5)
        assert (match.kind, match.id, match.text) == ("entry", put().id, texts[0])
        far = worded(store, scope, [("sleeping",)], limit=5)
        assert {hit.id for hit in far} == {put().id}
        assert "".join(hit.text for hit in sorted(far, key=lambda hit: hit.start)) == texts[1]
        waiting = store.unembedded(scope, "e", limit=9)
        assert waiting.keys() >= {match.passage, *(hit.passage for hit in far)}
        store.put_vectors(scope, "e", {match.passage: [1.0, 0.0]})
        assert [hit.id for hit in near(store, scope, "e", [1.0, 0.0], limit=5)] == [put().id]

    def test_a_search_may_be_among_some_records_only(self, store: Store) -> None:
        scope = fresh_owner()
        store.batch(scope, [], [put(str(n), texts=("Gulls eat chips",)) for n in range(300)])
        some = Filters(kinds=("entry",), records=(put("7").id, put("8").id))
        found = store.match_text(scope, [("gulls",)], limit=9, filters=some)
        hits = store.read(scope, [it.passage for it in found])
        assert {hit.id for hit in hits} == set(some.records)

    def test_the_index_follows_the_value(self, store: Store) -> None:
        scope = fresh_owner()
        store.batch(scope, [], [put(texts=("gulls",))])
        [first] = store.match_text(scope, [("gulls",)], limit=5)
        store.batch(scope, [], [put(texts=("gulls",), value={"n": 2})])
        assert [it.passage for it in store.match_text(scope, [("gulls",)], limit=5)] == [
            first.passage  # its vector is still good
        ]
        store.batch(scope, [], [put(texts=("ravens",))])
        assert worded(store, scope, [("gulls",)], limit=5) == []
        assert len(worded(store, scope, [("ravens",)], limit=5)) == 1
        store.batch(scope, [], [put(texts=())])
        assert worded(store, scope, [("ravens",)], limit=5) == []
        store.batch(scope, [], [put(texts=("gulls",))])
        store.batch(scope, [], [put(value=None)])
        assert worded(store, scope, [("gulls",)], limit=5) == []

    def test_nobody_sees_the_entries_of_another(self, store: Store) -> None:
        tenant = fresh_scope().tenant
        scopes = [Scope(tenant=tenant, user=user) for user in HOSTILE_USERS]
        for number, scope in enumerate(scopes):
            store.batch(scope, [], [put(value={"n": number}, texts=("gulls",))])
        for number, scope in enumerate(scopes):
            found = get(store, scope)
            assert found is not None
            assert found.value == {"n": number}
            assert len(keys(store, scope)) == len(worded(store, scope, [("gulls",)], limit=9)) == 1

    def test_entries_go_with_their_owner_and_are_counted(self, store: Store) -> None:
        scope, other = fresh_owner(), fresh_owner()
        for one in (scope, other):
            store.batch(one, [], [put(texts=("gulls",)), put("b")])
        store.append(scope.within(session="talk"), [Message("user", "hello")])
        store.forget(scope.within(session="talk"))
        assert len(keys(store, scope)) == 2
        assert store.forget(scope, record_id=put("b").id).counts == {"entries": 1}
        with pytest.raises(NotFoundError):
            store.forget(scope, record_id=put("b").id)
        gone = store.forget(scope).counts
        assert (gone["entries"], gone["passages"], gone["users"]) == (1, 1, 1)
        assert keys(store, scope) == []
        assert worded(store, scope, [("gulls",)], limit=5) == []
        assert len(keys(store, other)) == 2

    def test_many_who_write_at_once_lose_nothing(self, store: Store) -> None:
        scope = fresh_owner()

        def write(number: int) -> None:
            own = put(f"own {number}", texts=(f"own{number}",))
            shared = [put(str(n), value={"by": number}, texts=(f"by{number}",)) for n in range(4)]
            store.batch(scope, [], [own, *(shared if number % 2 else shared[::-1])])

        with ThreadPoolExecutor(6) as threads:
            list(threads.map(write, range(24)))
        [found] = store.batch(scope, [Search(limit=None)])
        assert len(found) == 28
        for entry in found:  # each is found by what it says, and by nothing else
            assert isinstance(entry, Entry)
            if not entry.key.startswith("own"):
                word = f"by{entry.value['by']}"
                assert entry.id in {hit.id for hit in worded(store, scope, [(word,)], limit=9)}
        assert len(store.unembedded(scope, "e", limit=99)) == 28
