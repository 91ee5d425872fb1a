"""MemoristStore beside LangGraph's own three stores: the same, but where the document says."""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import date
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore

from memorist import Memory
from memorist.agents.langgraph import MemoristStore
from memorist.errors import InvalidError
from memorist.records.entry import Search
from tests.support.postgres import Server

DOCUMENT = Path(__file__).parents[2] / "docs" / "langgraph.md"
LONG = bool(os.environ.get("MEMORIST_PROVE"))
OFFICIAL = ("memory", "sqlite", "postgres")
OURS = ("ours on SQLite", "ours on PostgreSQL")
Stores = dict[str, BaseStore]

_roots = (f"root{number}" for number in itertools.count())


class TidyMemory(InMemoryStore):
    """Without the empty namespaces that it remembers of every `get` and `delete`."""

    def _handle_list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        for namespace in [names for names, items in self._data.items() if not items]:
            del self._data[namespace]
        return super()._handle_list_namespaces(op)


@pytest.fixture(scope="module")
def stores(vector_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    path = tmp_path_factory.mktemp("langgraph") / "memory.db"
    with ExitStack() as stack:
        connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        stack.enter_context(closing(connection))
        sqlite = SqliteStore(connection)
        url = vector_server.create_database("langgraph_official")
        postgres = stack.enter_context(PostgresStore.from_conn_string(url))
        for official in (sqlite, postgres):
            official.setup()
        ours = [
            MemoristStore(stack.enter_context(Memory(where, embedder=None, extraction=None)))
            for where in (path, vector_server.create_database("langgraph_ours"))
        ]
        yield {
            "memory": TidyMemory(),
            "sqlite": sqlite,
            "postgres": postgres,
            **dict(zip(OURS, ours, strict=True)),
        }


# What all of them agree on.

labels = st.sampled_from(["a", "b", "ab", "c", "Ä", "a b"])
paths = st.lists(labels, max_size=3).map(tuple)
keys = st.sampled_from(["k", "K", "key two", "ключ", ""])
texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=9)
leaves = (
    st.none()
    | st.booleans()
    | texts
    | st.integers(-(2**53), 2**53)
    | st.integers(-999, 999).map(lambda whole: whole / 8)
)
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)
digits, letters = st.integers(0, 9), st.sampled_from("abc")
values = st.fixed_dictionaries({"n": digits, "s": letters, "b": st.booleans(), "more": anything})
equal = st.sampled_from(["$eq", "$ne"])
compared = st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])
filters = st.fixed_dictionaries(
    {},
    optional={
        "n": digits | st.dictionaries(compared, digits, min_size=1, max_size=2),
        "s": letters | st.dictionaries(equal, letters, min_size=1, max_size=2),
        "b": st.booleans() | st.dictionaries(equal, st.booleans(), min_size=1, max_size=1),
    },
)
wild = st.lists(labels | st.just("*"), min_size=1, max_size=3).map(tuple)
# Not by `builds`, which would make up what is left out.
conditions = st.one_of(
    wild.map(lambda path: MatchCondition("prefix", path)),
    wild.map(lambda path: MatchCondition("suffix", path)),
)
puts = st.tuples(paths, keys, values).map(lambda it: PutOp(*it))
operations = st.one_of(
    st.tuples(paths, keys).map(lambda it: GetOp(*it)),
    puts,
    puts,
    st.tuples(paths, keys).map(lambda it: PutOp(*it, None)),
    st.tuples(paths, filters).map(lambda it: SearchOp(*it, 100)),
    st.tuples(st.lists(conditions, max_size=2), st.none() | st.integers(2, 4)).map(
        lambda it: ListNamespacesOp(tuple(it[0]), it[1], 100)
    ),
)


def rooted(op: Op, root: str) -> Op:
    """The operation below a root that no other example has."""
    if isinstance(op, SearchOp):
        return op._replace(namespace_prefix=(root, *op.namespace_prefix))
    if isinstance(op, ListNamespacesOp):
        own = MatchCondition("prefix", (root,))
        rest = [
            it._replace(path=(root, *it.path)) if it.match_type == "prefix" else it
            for it in op.match_conditions or ()
        ]
        return op._replace(match_conditions=(own, *rest))
    return op._replace(namespace=(root, *op.namespace))


def told(result: Any, *, in_order: bool = False) -> Any:
    """A result without times and scores, and without an order where there is none."""
    if isinstance(result, Item):
        return (result.namespace, result.key, result.value)
    if isinstance(result, list):
        listed = [told(it) if isinstance(it, Item) else tuple(it) for it in result]
        return listed if in_order else sorted(listed, key=repr)
    return result


@settings(
    max_examples=1_000 if LONG else 30, deadline=None, suppress_health_check=list(HealthCheck)
)
@given(batches=st.lists(st.lists(operations, max_size=6), max_size=8))
def test_all_stores_give_the_same_answers(stores: Stores, batches: list[list[Op]]) -> None:
    root = next(_roots)
    for batch in batches:
        ops = [rooted(op, root) for op in batch]
        answers = {
            name: [told(result) for result in store.batch(ops)] for name, store in stores.items()
        }
        for name in (*OFFICIAL, *OURS):
            assert answers[name] == answers[OURS[0]], name


@settings(max_examples=400 if LONG else 12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    puts=st.lists(st.tuples(paths, keys, values), max_size=8),
    page=st.tuples(st.integers(0, 5), st.integers(0, 5)),
    where=filters,
)
def test_pages_are_in_the_order_of_postgres(
    stores: Stores, puts: list[tuple[Any, str, Any]], page: tuple[int, int], where: dict[str, Any]
) -> None:
    root, (limit, offset) = next(_roots), page
    names = ("postgres", *OURS)
    for path, key, value in puts:
        for name in names:
            stores[name].put((root, *path), key, value)
    found = [
        told(stores[name].search((root,), filter=where, limit=limit, offset=offset), in_order=True)
        for name in names
    ]
    assert found[0] == found[1] == found[2]
    listed = [
        stores[name].list_namespaces(prefix=(root,), limit=limit, offset=offset) for name in names
    ]
    assert sorted(listed[1]) == listed[1] == listed[2]


# Where they do not agree: what each of them does, and what we chose. The document lists the same.


def found_by(store: BaseStore, where: dict[str, Any]) -> str:
    """The keys that a filter finds among values of many kinds, or the error's kind."""
    root = next(_roots)
    kinds: dict[str, dict[str, Any]] = {
        "a": {"n": 1, "m": {"x": 1, "y": 2}},
        "b": {"n": True},
        "c": {"n": None},
        "d": {},
        "e": {"n": "10"},
        "f": {"n": 10},
        "g": {"m.x": 1},
        "h": {"n": 9, "m": [1, {"x": 1, "y": 2}]},
    }
    for key, value in kinds.items():
        store.put((root,), key, value)
    try:
        found = store.search((root,), filter=where, limit=100)
    except (ValueError, TypeError) as error:
        return "ValueError" if isinstance(error, ValueError) else "TypeError"
    return "".join(sorted(item.key for item in found))


FILTERS: list[tuple[dict[str, Any], tuple[str, str, str, str]]] = [
    # filter                      memory        sqlite        postgres      ours
    ({"n": 1}, ("ab", "ab", "a", "a")),
    ({"n": True}, ("ab", "ab", "b", "b")),
    ({"n": None}, ("cdg", "cdg", "c", "cdg")),
    ({"n": {"$ne": 1}}, ("cdefgh", "efh", "bcefh", "bcdefgh")),
    ({"m": {"x": 1}}, ("a", "ValueError", "ValueError", "a")),
    ({"m.x": 1}, ("g", "a", "g", "g")),
    ({"m": [1, {"x": 1}]}, ("h", "", "", "h")),
    ({"n": {"$gt": 8}}, ("TypeError", "efh", "bh", "fh")),
    ({"n": {"$lt": "2"}}, ("TypeError", "abefh", "aef", "e")),
    ({"n": {"$in": [1]}}, ("ValueError", "ValueError", "ValueError", "ValueError")),
]


@pytest.mark.parametrize(("where", "expected"), FILTERS, ids=[str(it) for it, _ in FILTERS])
def test_filters_differ_as_the_document_says(
    stores: Stores, where: dict[str, Any], expected: tuple[str, str, str, str]
) -> None:
    found = {name: found_by(store, where) for name, store in stores.items()}
    assert tuple(found[name] for name in (*OFFICIAL, OURS[0])) == expected
    assert found[OURS[1]] == found[OURS[0]]


def outcome(store: BaseStore, value: dict[str, Any]) -> str:
    """What becomes of a value that is not plain JSON, or not text to every database."""
    root = next(_roots)
    try:
        store.put((root,), "k", value)
    except (ValueError, TypeError, psycopg.Error):
        return "refused"
    found = store.get((root,), "k")
    assert found is not None
    return "kept" if found.value == value else "changed"


VALUES: list[tuple[str, dict[str, Any], tuple[str, str, str, str]]] = [
    # value                                    memory  sqlite     postgres   ours
    ("a NUL character", {"x": "a\x00b"}, ("kept", "kept", "refused", "kept")),
    ("half a character", {"x": "\ud800"}, ("kept", "refused", "refused", "kept")),
    ("a large integer", {"x": 2**100}, ("kept", "refused", "kept", "kept")),
    ("a tuple", {"x": (1, 2)}, ("kept", "changed", "changed", "changed")),
    ("a date", {"x": date(2026, 1, 2)}, ("kept", "changed", "refused", "refused")),
    ("not a number", {"x": float("nan")}, ("kept", "changed", "refused", "refused")),
]


@pytest.mark.parametrize(("what", "value", "expected"), VALUES, ids=[it for it, _, _ in VALUES])
def test_values_are_kept_as_the_document_says(
    stores: Stores, what: str, value: dict[str, Any], expected: tuple[str, str, str, str]
) -> None:
    found = {name: outcome(store, value) for name, store in stores.items()}
    assert tuple(found[name] for name in (*OFFICIAL, OURS[0])) == expected
    assert found[OURS[1]] == found[OURS[0]]


def test_what_is_over_is_never_read_here_and_until_swept_elsewhere(stores: Stores) -> None:
    root = next(_roots)
    for name in ("sqlite", "postgres", *OURS):
        stores[name].put((root,), "k", {"n": 1}, ttl=0.001)
    with pytest.raises(NotImplementedError):
        stores["memory"].put((root,), "k", {"n": 1}, ttl=0.001)
    time.sleep(0.1)
    for name in ("sqlite", "postgres"):
        assert stores[name].get((root,), "k", refresh_ttl=False) is not None
    for name in OURS:
        assert stores[name].get((root,), "k") is None
        assert stores[name].search((root,)) == []
        assert stores[name].list_namespaces(prefix=(root,)) == []


def test_the_moment_of_creation_stays_as_in_postgres(stores: Stores) -> None:
    root = next(_roots)
    kept = {}
    for name, store in stores.items():
        store.put((root,), "k", {"n": 1})
        first = store.get((root,), "k")
        time.sleep(0.002)
        store.put((root,), "k", {"n": 2})
        second = store.get((root,), "k")
        assert first is not None
        assert second is not None
        kept[name] = second.created_at == first.created_at
        assert (second.updated_at.tzinfo is None) == (name == "sqlite")
        assert second.updated_at > first.updated_at or name == "sqlite"  # by the second
    assert [name for name, is_kept in kept.items() if is_kept and name != "sqlite"] == [
        "postgres",
        *OURS,
    ]


def test_only_namespaces_that_hold_something_are_listed(stores: Stores) -> None:
    root = next(_roots)
    listed = {}
    for name, store in {**stores, "memory": InMemoryStore()}.items():
        store.get((root, "asked"), "k")
        store.put((root, "gone"), "k", {"n": 1})
        store.delete((root, "gone"), "k")
        store.put((root, "there"), "k", {"n": 1})
        listed[name] = store.list_namespaces(prefix=(root,))
    assert len(listed.pop("memory")) == 3
    assert all(names == [(root, "there")] for names in listed.values())


def test_namespaces_are_sorted_by_label(stores: Stores) -> None:
    root = next(_roots)
    for store in stores.values():
        for path in (("a", "z"), ("a-b",), ("a",)):
            store.put((root, *path), "k", {})
    listed = {name: store.list_namespaces(prefix=(root,)) for name, store in stores.items()}
    by_label = [(root, "a"), (root, "a", "z"), (root, "a-b")]
    by_text = [(root, "a"), (root, "a-b"), (root, "a", "z")]
    assert [listed[name] for name in OFFICIAL] == [by_label, by_text, by_text]
    assert [listed[name] for name in OURS] == [by_label, by_label]


@pytest.mark.parametrize("namespace", [("a.b",), ("",), (), ("langgraph",), ("a\x00b",), (1,)])
def test_namespaces_are_refused_as_langgraph_refuses_them(
    stores: Stores, namespace: tuple[Any, ...]
) -> None:
    for store in stores.values():
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {})
    for name in OURS:
        if namespace not in ((), ("langgraph",)):
            with pytest.raises(InvalidNamespaceError):
                stores[name].batch([GetOp(namespace, "k")])


def test_the_order_without_a_query_is_that_of_postgres(stores: Stores) -> None:
    root, found = next(_roots), {}
    for name, store in stores.items():
        for key in "bca":
            store.put((root,), key, {})
        found[name] = "".join(item.key for item in store.search((root,), query="ignored"))
    assert found["memory"] == "bca"  # inserted; without an index it ignores the question
    assert sorted(found["sqlite"]) == ["a", "b", "c"]  # all in one second
    assert found["postgres"] == found[OURS[0]] == found[OURS[1]] == "acb"


def test_negative_limits_are_refused(stores: Stores) -> None:
    root = next(_roots)
    for store in stores.values():
        for key in "ab":
            store.put((root,), key, {})
    assert len(stores["memory"].search((root,), limit=-1)) == 1
    assert len(stores["sqlite"].search((root,), limit=-1)) == 2
    for name in ("postgres", *OURS):
        with pytest.raises((psycopg.Error, InvalidError)):
            stores[name].search((root,), limit=-1)


def test_what_has_no_vector_comes_last_as_in_memory_and_is_left_out_in_postgres(
    vector_server: Server, stores: Stores
) -> None:
    index: Any = {"dims": 2, "embed": lambda texts: [[1.0, 0.0] for _ in texts]}
    url = vector_server.create_database("langgraph_vectors")
    with PostgresStore.from_conn_string(url, index=index) as postgres:
        postgres.setup()
        named: Stores = {"memory": InMemoryStore(index=index), "postgres": postgres}
        for name in OURS:
            named[name] = stores[name]
        root, found = next(_roots), {}
        for name, store in named.items():
            store.put((root,), "dog", {"text": "a dog"})
            store.put((root,), "none", {"text": "a dog"}, index=False)
            found[name] = [
                (item.key, item.score is None) for item in store.search((root,), query="dog")
            ]
    assert found.pop("postgres") == [("dog", False)]
    assert all(keys == [("dog", False), ("none", True)] for keys in found.values())


def test_reading_refreshes_as_each_read_says(stores: Stores) -> None:
    root = next(_roots)
    ours = stores[OURS[0]]
    assert isinstance(ours, MemoristStore)
    ours.put((root,), "k", {}, ttl=10)

    def end() -> Any:
        [found] = ours._memory.store.batch(ours.scope, [Search(prefix=(root,))])
        return found[0].expires_at  # type: ignore[union-attr]

    first = end()
    ours.get((root,), "k", refresh_ttl=False)
    assert end() == first
    ours.get((root,), "k")
    assert end() > first


def test_every_difference_is_in_the_document() -> None:
    document = DOCUMENT.read_text()
    for where, answers in FILTERS:
        cells = (f"`{json.dumps(where)}`", *(answer or "none" for answer in answers))
        assert f"| {' | '.join(cells)} |" in document
    for what, _, outcomes in VALUES:
        assert f"| {' | '.join((what, *outcomes))} |" in document
