"""pgvector where it is, where it comes later, and where it cannot be used."""

from __future__ import annotations

import psycopg

from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store.postgres.store import PostgresStore
from tests.conformance.worlds import near

ALICE = Scope(user="alice", session="s")
VECTORS = {"one": [1.0, 0.0], "two": [0.6, 0.8], "three": [0.0, 0.0], "four": [-1.0, 0.1]}


def kind_of_vectors(url: str) -> str:
    asked = (
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'vectors'::regclass AND attname = 'embedding'"
    )
    with psycopg.connect(url) as connection:
        [(kind,)] = connection.execute(asked).fetchall()
    return str(kind)


def fill(store: PostgresStore) -> None:
    store.append(ALICE, [Message("user", text) for text in VECTORS])
    passages = store.unembedded(ALICE, "e", limit=9)
    store.put_vectors(ALICE, "e", {id_: VECTORS[text] for id_, text in passages.items()})


def test_vectors_are_stored_as_its_own_from_the_start(postgres_url: str) -> None:
    with PostgresStore(postgres_url) as store:
        fill(store)
        assert len(near(store, ALICE, "e", [1.0, 1.0], limit=9)) == len(VECTORS)
    assert kind_of_vectors(postgres_url) == "vector"


def test_vectors_of_before_it_came_are_taken_over_and_give_the_same(postgres_url: str) -> None:
    with PostgresStore(postgres_url, pgvector=False) as store:
        fill(store)
        before = near(store, ALICE, "e", [1.0, 1.0], limit=9)
    assert kind_of_vectors(postgres_url) == "real[]"
    for used in (True, False):  # and can be read without it again
        with PostgresStore(postgres_url, pgvector=used) as store:
            assert near(store, ALICE, "e", [1.0, 1.0], limit=9) == before
        assert kind_of_vectors(postgres_url) == "vector"


def test_there_is_a_way_back_to_arrays(postgres_url: str) -> None:
    with PostgresStore(postgres_url) as store:
        fill(store)
        before = near(store, ALICE, "e", [1.0, 1.0], limit=9)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("ALTER TABLE vectors ALTER COLUMN embedding TYPE real[]")
    with PostgresStore(postgres_url, pgvector=False) as store:
        assert near(store, ALICE, "e", [1.0, 1.0], limit=9) == before
    assert kind_of_vectors(postgres_url) == "real[]"


def test_a_table_that_others_hold_is_left_as_it_is(postgres_url: str) -> None:
    with PostgresStore(postgres_url, pgvector=False) as store:
        fill(store)
        before = near(store, ALICE, "e", [1.0, 1.0], limit=9)
    with psycopg.connect(postgres_url) as reader:
        reader.execute("SELECT count(*) FROM vectors")
        with PostgresStore(postgres_url) as store:
            assert store.check()["vectors"] == "pgvector"
            assert near(store, ALICE, "e", [1.0, 1.0], limit=9) == before
        assert kind_of_vectors(postgres_url) == "real[]"


def test_a_pgvector_that_crashed_once_is_not_tried_again(postgres_url: str) -> None:
    with PostgresStore(postgres_url) as store:
        assert store.check()["vectors"] == "pgvector"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "UPDATE memorist_meta SET value = replace(value, 'works', 'trying')"
            " WHERE key = 'pgvector'"
        )
    with PostgresStore(postgres_url) as store:
        assert "crashed" in store.check()["vectors"]
        store.append(ALICE, [Message("user", "hello")])
        [passage] = store.unembedded(ALICE, "e", limit=9)
        store.put_vectors(ALICE, "e", {passage: [1.0, 0.0]})
        assert len(near(store, ALICE, "e", [1.0, 1.0], limit=9)) == 1


def test_the_vector_of_a_question_is_cast_once_and_not_for_each_row(postgres_url: str) -> None:
    casts = "SELECT calls FROM pg_stat_xact_user_functions WHERE funcname = 'array_to_vector'"
    PostgresStore(postgres_url).close()
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {admin.info.dbname} SET track_functions = 'all'")
    with PostgresStore(postgres_url) as store:
        fill(store)

        def counted() -> int:
            rows = store._engine.read(
                ALICE.owner,
                lambda db: db._connection.execute(casts).fetchall(),  # type: ignore[attr-defined]
            )
            return sum(calls for (calls,) in rows)

        with store.reading(ALICE, lambda: None):
            before = counted()  # what was written just now may be among them
            near(store, ALICE, "e", [1.0, 1.0], limit=9)
            assert counted() == before + 1
