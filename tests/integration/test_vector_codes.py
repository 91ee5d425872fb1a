"""PostgreSQL's signs of the vectors of users who have many, and the search of them in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray

from memorist.records.message import Message
from memorist.records.query import Filters
from memorist.records.scope import Scope
from memorist.store import search
from memorist.store.engine import Db
from memorist.store.postgres import db as postgres_db
from memorist.store.postgres.store import PostgresStore
from memorist.store.vectors import code_of, pack_vector
from tests.support.schemas import earlier_schema

ADA = Scope(user="ada", session="s")
BEN = Scope(user="ben", session="s")
ADA_AT_ALL, BEN_AT_ALL = ADA.whole_user(), BEN.whole_user()
Matrix = NDArray[np.float32]


@pytest.fixture
def connection(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as opened:
        yield opened


def some(count: int, seed: int = 1, length: int = 70) -> Matrix:
    return np.random.default_rng(seed).standard_normal((count, length)).astype(np.float32)


def fill(store: PostgresStore, rows: Matrix, scope: Scope = ADA) -> list[int]:
    """Give new messages these vectors, and return their passages in the same order."""
    store.append(scope, [Message("user", "x") for _ in rows])
    passages = sorted(store.unembedded(scope.whole_user(), "e", limit=len(rows)))
    store.put_vectors(scope, "e", dict(zip(passages, rows.tolist(), strict=True)))
    return passages


def nearest(store: PostgresStore, vector: Sequence[float], limit: int, **how: Any) -> list[int]:
    scope: Scope = how.pop("scope", ADA_AT_ALL)
    return [hit.passage for hit in store.match_vector(scope, "e", vector, limit=limit, **how)]


def code(connection: psycopg.Connection[Any]) -> None:
    """As if everybody had many."""
    every = "(SELECT DISTINCT owner, embedder FROM vectors) AS v"
    connection.execute(f"SELECT code_vectors(owner, embedder, NULL) FROM {every}")


def coded(connection: psycopg.Connection[Any], scope: Scope = ADA) -> dict[int, bytes]:
    """The codes of a user's passages."""
    asked = "SELECT size, entries FROM vector_codes WHERE owner = %s ORDER BY part"
    entries = [
        held[n : n + size]
        for size, held in connection.execute(asked, (scope.owner,)).fetchall()
        for n in range(0, len(held), size)
    ]
    kept = {int.from_bytes(it[:8], "big", signed=True): it[8:] for it in entries if any(it)}
    assert len(kept) == sum(map(any, entries))
    return kept


def test_a_user_with_many_is_searched_by_signs_and_a_user_with_few_is_not(
    postgres_url: str, connection: psycopg.Connection[Any]
) -> None:
    rows = some(2_600)
    with PostgresStore(postgres_url) as store, PostgresStore(postgres_url) as other:
        passages = fill(store, rows[:1_900])
        fill(store, rows[:50], BEN)
        assert not coded(connection)
        assert nearest(other, rows[7].tolist(), 1) == [passages[7]]
        passages += fill(store, rows[1_900:2_500])
        codes = coded(connection)
        assert codes == {
            passage: code_of(pack_vector(row.tolist()))
            for passage, row in zip(passages, rows[:2_500], strict=True)
        }
        assert not coded(connection, BEN)
        for query in some(5, seed=2):
            cosines = rows[:2_500] @ query / np.linalg.norm(rows[:2_500], axis=1)
            best = [passages[place] for place in np.argsort(-cosines)[:10]]
            assert nearest(store, query.tolist(), 10) == nearest(other, query.tolist(), 10)
            assert len({*nearest(store, query.tolist(), 10)} & {*best}) >= 9
        passages += fill(store, rows[2_500:])  # which the other one sees, too, at once
        for asked in (store, other):
            assert nearest(asked, rows[2_555].tolist(), 1) == [passages[2_555]]
            assert set(nearest(asked, rows[0].tolist(), 9_999)) == {*passages}
            assert len(nearest(asked, rows[0].tolist(), 99, scope=BEN_AT_ALL)) == 50


@pytest.mark.parametrize("pgvector", [True, False])
def test_what_is_forgotten_is_not_found_and_leaves_no_signs(
    postgres_url: str, connection: psycopg.Connection[Any], pgvector: bool
) -> None:
    rows = some(300)
    with (
        PostgresStore(postgres_url, pgvector=pgvector) as store,
        PostgresStore(postgres_url, pgvector=pgvector) as other,
    ):
        passages, near = fill(store, rows), ADA.within(session="near")
        theirs = fill(store, rows[:20], BEN)
        code(connection)
        later = fill(store, rows[:5], near)
        assert {*coded(connection)} == {*passages, *later}
        for asked in (store, other):
            assert len(nearest(asked, rows[0].tolist(), 999)) == 305
        gone = store.history(ADA)[4].message.message_id
        store.forget(ADA, message_id=gone)
        assert passages.pop(4) not in coded(connection)
        store.forget(near)
        assert {*coded(connection)} == {*passages}
        last = fill(store, some(900, seed=4), near)  # in rows of their own, too
        assert len(nearest(other, rows[4].tolist(), 9_999)) == len(passages) + len(last)
        store.forget(near)
        assert {*nearest(other, rows[4].tolist(), 9_999)} == {*passages}
        passages += fill(store, some(3, seed=5))
        for asked in (store, other):
            assert {*nearest(asked, rows[4].tolist(), 999)} == {*passages}
        store.forget(ADA_AT_ALL)
        assert not connection.execute(
            "SELECT 1 FROM vector_codes WHERE owner = %s", (ADA.owner,)
        ).fetchall()
        assert [nearest(asked, rows[9].tolist(), 9) for asked in (store, other)] == [[], []]
        again = fill(store, rows[:30])  # too few to be coded
        for asked in (store, other):
            assert {*nearest(asked, rows[9].tolist(), 99)} == {*again}
        code(connection)
        again += fill(store, some(10, seed=3))
        for asked in (store, other):
            assert {*nearest(asked, rows[9].tolist(), 99)} == {*again}
            assert {*nearest(asked, rows[9].tolist(), 99, scope=BEN_AT_ALL)} == {*theirs}


def test_filters_lose_no_match(
    postgres_url: str, connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = some(900)
    with PostgresStore(postgres_url) as store:
        fill(store, rows[:800])
        far = fill(store, rows[800:], ADA.within(session="far"))
        code(connection)
        for measured in (2_000, 10):
            monkeypatch.setattr(postgres_db, "MEASURED", measured)
            found = nearest(store, rows[3].tolist(), 100, scope=ADA.within(session="far"))
            assert {*found} == {*far}
            assert not nearest(store, rows[3].tolist(), 5, filters=Filters(kinds=("fact",)))


def test_signs_are_the_same_without_pgvector(
    postgres_url: str, connection: psycopg.Connection[Any]
) -> None:
    with PostgresStore(postgres_url, pgvector=False) as store:
        fill(store, some(40))
        fill(store, np.array([[0, -0.0, 1e-30, -1, 2]], np.float32), BEN)
        code(connection)
        by_arrays = [coded(connection, scope) for scope in (ADA, BEN)]
    with PostgresStore(postgres_url):
        connection.execute("DELETE FROM vector_codes")
        code(connection)
        assert [coded(connection, scope) for scope in (ADA, BEN)] == by_arrays


def test_a_vector_that_is_committed_after_later_ones_were_read_is_not_passed_over(
    postgres_url: str, connection: psycopg.Connection[Any]
) -> None:
    rows = some(200)
    with PostgresStore(postgres_url) as store:
        passages = fill(store, rows[:150])
        code(connection)
        store.append(ADA, [Message("user", "x") for _ in rows[150:]])
        new = sorted(store.unembedded(ADA_AT_ALL, "e", limit=50))
        written, go_on = threading.Event(), threading.Event()

        def write(db: Db) -> None:
            search.put_vectors(db, ADA, "e", {new[0]: rows[150].tolist()})
            written.set()
            go_on.wait(60)

        def put(start: int) -> None:
            some_new = dict(zip(new[start:], rows[150 + start :].tolist(), strict=True))
            store.put_vectors(ADA, "e", some_new)

        first = threading.Thread(target=lambda: store._engine.write(ADA.owner, write))
        second = threading.Thread(target=put, args=(1,))
        first.start()
        assert written.wait(60)
        second.start()
        assert len(nearest(store, rows[0].tolist(), 999)) == len(passages)
        go_on.set()
        first.join()
        second.join()
        assert {*nearest(store, rows[0].tolist(), 999)} == {*passages, *new}


def test_a_store_of_the_schema_before_is_coded_and_stays_so_while_old_servers_write(
    postgres_url: str, connection: psycopg.Connection[Any]
) -> None:
    rows = some(2_050)
    with earlier_schema(9), PostgresStore(postgres_url) as store:
        store.append(ADA, [Message("user", "x") for _ in rows])
        passages = sorted(store.unembedded(ADA_AT_ALL, "e", limit=len(rows)))
        early = dict(zip(passages[:2_000], rows.tolist(), strict=False))
        store.put_vectors(ADA, "e", early)
    with PostgresStore(postgres_url) as store:
        assert {*coded(connection)} == {*passages[:2_000]}
        for passage, row in zip(passages[2_000:], rows[2_000:].tolist(), strict=True):
            connection.execute(
                "INSERT INTO vectors (owner, passage, embedder, embedding)"
                " VALUES (%s, %s, 'e', CAST(CAST(%s AS real[]) AS vector))",
                (ADA.owner, passage, row),
            )
        assert {*coded(connection)} == {*passages}
        assert {*nearest(store, rows[0].tolist(), 9_999)} == {*passages}
        assert nearest(store, rows[2_049].tolist(), 1) == [passages[2_049]]
