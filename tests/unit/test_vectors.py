"""Vectors in memory: exact while they are few, by their signs first when they are many."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store import vectors
from memorist.store.sqlite.store import SqliteEngine, SqliteStore
from memorist.store.vectors import (
    VectorIndex,
    VectorIndexCache,
    code_of,
    cosines,
    pack_vector,
    unpack_vectors,
)

Matrix = NDArray[np.float32]
ADA = Scope(user="ada", session="talk")


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    with SqliteStore(":memory:") as opened:
        yield opened


def indexes_of(store: SqliteStore) -> VectorIndexCache:
    assert isinstance(store._engine, SqliteEngine)
    return store._engine._indexes()


def described(store: SqliteStore, key: tuple[str, str]) -> str:
    for place, index in indexes_of(store)._indexes.items():
        if place[:2] == key:
            return f"{len(index)} by {'signs, then exactly' if index.coded else 'exact search'}"
    return "not searched yet"


def clustered(count: int, dimensions: int, seed: int = 1) -> Matrix:
    """Vectors as texts have them: about some dozens of subjects, none quite alike."""
    centres = np.random.default_rng(0).standard_normal((40, dimensions))
    random = np.random.default_rng(seed)
    rows = centres[random.integers(0, 40, count)] + random.standard_normal((count, dimensions))
    unit: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def fill(store: SqliteStore, rows: Matrix, scope: Scope = ADA) -> list[int]:
    """Give messages these vectors, and return their passages in the same order."""
    store.append(scope, [Message("user", "x") for _ in rows])
    passages = sorted(store.unembedded(scope, "m", limit=len(rows)))
    store.put_vectors(
        scope, "m", {id_: row.tolist() for id_, row in zip(passages, rows, strict=True)}
    )
    return passages


def search(store: SqliteStore, vector: Matrix, limit: int, scope: Scope = ADA) -> list[int]:
    user = scope.whole_user()
    return [it.passage for it in store.match_vector(user, "m", vector.tolist(), limit=limit)]


def shelf_of(rows: Matrix, coded: bool, step: int) -> VectorIndex:
    index = VectorIndex(coded)
    packed = [pack_vector(row.tolist()) for row in rows]
    values = [code_of(it) for it in packed] if coded else packed
    numbered = [(place + 1, 10 * place, value) for place, value in enumerate(values)]
    for start in range(0, len(rows), step):
        index.add(numbered[start : start + step])
    return index


def test_a_packed_vector_has_length_one_and_half_the_size() -> None:
    packed = pack_vector([3.0, 4.0])
    assert len(packed) == 4
    assert unpack_vectors(packed, 1)[0] == pytest.approx([0.6, 0.8], abs=1e-3)
    assert unpack_vectors(pack_vector([0.0, 0.0]), 1).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("dimensions", [1, 3, 8, 63, 64, 65, 384])
def test_a_code_is_a_bit_for_each_number_in_whole_words(dimensions: int) -> None:
    code = code_of(pack_vector([1.0] * dimensions))
    assert len(code) % 8 == 0
    assert sum(byte.bit_count() for byte in code) == dimensions
    assert not any(code_of(pack_vector([-1.0] * dimensions)))


def test_cosines_are_of_the_nearest_best_first() -> None:
    rows = [7, 8, 9], np.array([[1, 0], [0, 1], [1, 1]], np.float32)
    found = cosines(*rows, [5.0, 0.1], 2)
    assert [passage for passage, _ in found] == [7, 9]
    assert found[1][1] == pytest.approx(0.72, abs=0.01)
    assert cosines(*rows, [1, 0], 0) == cosines([], np.empty((0, 2), np.float32), [1, 0], 5) == []
    assert [score for _, score in cosines(*rows, [0, 0], 5)] == [0, 0, 0]


def test_an_exact_shelf_finds_what_looking_at_each_would() -> None:
    rows = clustered(3_000, 32)
    index = shelf_of(rows, coded=False, step=700)
    limits = (1, 3, 10, 40, 100, 500, 3_000, 9_000)
    for query, limit in zip(clustered(len(limits), 32, seed=2), limits, strict=True):
        best = np.argsort(-(rows @ query), kind="stable")[:limit]
        found = index.search(query.tolist(), limit, None)
        assert len(found) == min(limit, 3_000)
        assert found[0][0] == 10 * best[0]
        overlap = {passage for passage, _ in found} & {10 * int(place) for place in best}
        assert len(overlap) >= 0.99 * len(found)  # 16-bit floats may swap the last two


@pytest.mark.parametrize("coded", [False, True])
def test_a_shelf_that_grew_is_as_one_filled_at_once(coded: bool) -> None:
    rows = clustered(500, 20)
    grown, whole = shelf_of(rows, coded, step=7), shelf_of(rows, coded, step=500)
    assert len(grown) == len(whole) == 500
    assert grown.last == whole.last == 500
    for query in clustered(5, 20, seed=3):
        assert grown.search(query.tolist(), 30, None) == whole.search(query.tolist(), 30, None)
    empty = VectorIndex(coded)
    empty.add([])
    assert empty.search([1.0], 5, None) == []
    assert whole.search(rows[0].tolist(), 0, None) == []


@pytest.mark.parametrize("coded", [False, True])
def test_a_shelf_is_searched_among_those_allowed(coded: bool) -> None:
    rows = clustered(300, 64)
    index = shelf_of(rows, coded, step=300)
    allowed = np.array([10, 50, 90, 7, 999_999], np.int64)
    found = index.search(rows[0].tolist(), 50, allowed)
    assert {passage for passage, _ in found} == {10, 50, 90}
    assert index.search(rows[0].tolist(), 50, np.array([], np.int64)) == []


def test_signs_first_finds_what_exact_search_finds(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, clustered(2_500, 128))
    queries = clustered(20, 128, seed=5)
    exact = [search(store, query, 10) for query in queries]
    key = (ADA.owner, "m")
    assert described(store, key) == "2500 by exact search"
    indexes_of(store)._indexes.clear()
    monkeypatch.setattr(vectors, "EXACT_UP_TO", 1_000)
    coded = [search(store, query, 10) for query in queries]
    assert described(store, key) == "2500 by signs, then exactly"
    same = sum(len({*one} & {*two}) for one, two in zip(exact, coded, strict=True))
    assert same >= 0.9 * 200
    assert [one[0] for one in exact] == [two[0] for two in coded]


def test_a_shelf_that_outgrew_exact_search_is_made_anew(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "EXACT_UP_TO", 10)
    key, rows = (ADA.owner, "m"), clustered(40, 16)
    for start, kind in ((0, "8 by exact search"), (8, "16 by exact search")):
        fill(store, rows[start : start + 8])
        assert len(search(store, rows[start], 99)) == start + 8
        assert described(store, key) == kind
    fill(store, rows[16:24])
    search(store, rows[0], 99)
    passages = fill(store, rows[24:])
    assert search(store, rows[30], 1) == [passages[6]]
    assert described(store, key) == "40 by signs, then exactly"


@pytest.mark.parametrize("exact_up_to", [10, 10_000])
def test_what_was_forgotten_does_not_stand_before_what_is_there(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, exact_up_to: int
) -> None:
    monkeypatch.setattr(vectors, "EXACT_UP_TO", exact_up_to)
    monkeypatch.setattr(vectors, "RESCORED", 20)
    near, far = ADA.within(session="near"), ADA.within(session="far")
    north, east = np.array([0.1, 1.0], np.float32), np.array([1.0, 0.1], np.float32)
    fill(store, np.tile(north, (250, 1)), near)
    left = fill(store, np.tile(east, (30, 1)), far)
    assert not {*search(store, north, 10)} & {*left}
    store.forget(near)
    for _ in range(3):
        assert len({*search(store, north, 10)} & {*left}) == 10
        assert {*search(store, north, 99)} == {*left}
    assert described(store, (ADA.owner, "m")).startswith(
        "30 by"
    )  # too much on it was gone: it was made anew


def test_a_single_one_forgotten_is_counted_and_the_shelf_stays(store: SqliteStore) -> None:
    rows = clustered(20, 8)
    passages = fill(store, rows)
    assert search(store, rows[4], 1) == [passages[4]]
    gone = store.history(ADA)[4].message.message_id
    store.forget(ADA, message_id=gone)
    found = search(store, rows[4], 99)
    assert {*found} == {*passages} - {passages[4]}
    assert described(store, (ADA.owner, "m")) == "20 by exact search"
    [index] = indexes_of(store)._indexes.values()
    assert index.missing == 1


def test_the_least_used_shelf_goes_when_memory_is_short(store: SqliteStore) -> None:
    users = [Scope(user=name, session="talk") for name in ("a", "b", "c")]
    rows = clustered(50, 16)
    for user in users:
        fill(store, rows, user)
    shelves = indexes_of(store)
    shelves._max_bytes = 2 * (50 * 16 * 4 + 50 * 8)
    for user in (users[0], users[1], users[0], users[2], users[0]):
        assert len(search(store, rows[0], 5, user)) == 5
    held = [described(store, (user.owner, "m")) for user in users]
    assert held == ["50 by exact search", "not searched yet", "50 by exact search"]
    assert len(search(store, rows[0], 5, users[1])) == 5


@pytest.mark.parametrize("exact_up_to", [1, 10_000])
def test_zero_vectors_are_kept_and_asked_without_harm(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, exact_up_to: int
) -> None:
    monkeypatch.setattr(vectors, "EXACT_UP_TO", exact_up_to)
    rows = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0]], np.float32)
    passages = fill(store, rows)
    assert search(store, rows[1], 1) == [passages[1]]
    assert {*search(store, rows[0], 9)} == {*passages}
