"""How many rows PostgreSQL reads for a recall: few, however many the user has."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from memorist.records.message import Message
from memorist.records.query import NO_FILTERS
from memorist.records.scope import Scope
from memorist.store.engine import Db
from memorist.store.postgres.store import PostgresStore

USERS = [Scope(user=f"user {number}", session="s") for number in range(20)]
SAID = 200
FEW = 30  # for ten of them, where a user has 200
MANY = 3_000  # of one user, where others have few
FETCHED = """
    SELECT coalesce(sum(idx_tup_fetch), 0) FROM pg_stat_xact_user_tables
    WHERE relname IN ('passages', 'chat_message_history', 'view_sources', 'postings')
"""
ONE_WITH_MANY = """
    INSERT INTO view_sources SELECT %(owner)s, 'v' || n, 'm' FROM generate_series(1, %(many)s) AS n;
    INSERT INTO postings SELECT %(owner)s, n, 0, '' FROM generate_series(1, %(many)s) AS n;
    INSERT INTO view_sources SELECT gen_random_uuid(), 'v', 'm' FROM generate_series(1, %(many)s);
    INSERT INTO postings SELECT gen_random_uuid(), 1, 0, '' FROM generate_series(1, %(many)s);
"""


@pytest.fixture
def store(postgres_url: str) -> PostgresStore:
    store = PostgresStore(postgres_url)
    for scope in USERS:
        store.append(scope, [Message("user", "x") for _ in range(SAID)])
    with psycopg.ClientCursor(psycopg.connect(postgres_url, autocommit=True)) as cursor:
        cursor.execute(ONE_WITH_MANY, {"owner": USERS[0].owner, "many": MANY})
        cursor.execute("ANALYZE")
        cursor.connection.close()
    return store


def fetched(store: PostgresStore, read: Callable[[], object]) -> int:
    """The rows that a recall's transaction fetches for one of its questions."""

    def count(db: Db) -> int:
        return int(db._connection.execute(FETCHED).fetchone()[0])  # type: ignore[attr-defined]

    with store.reading(USERS[0].whole_user(), lambda: None):
        read()
        return store._engine.read(USERS[0].owner, count)


def test_the_newest_messages_are_found_without_the_others(store: PostgresStore) -> None:
    ada = USERS[0].whole_user()
    with store:
        assert fetched(store, lambda: store.newest(ada, limit=10, filters=NO_FILTERS)) == 10


def test_passages_are_read_with_the_message_before_each(store: PostgresStore) -> None:
    ada = USERS[0].whole_user()
    with store:
        ids = store.newest(ada, limit=10, filters=NO_FILTERS)
        assert len(store.passages(ada, ids)) == 10
        assert fetched(store, lambda: store.passages(ada, ids)) <= FEW


def test_messages_are_read_without_the_others(store: PostgresStore) -> None:
    ada = USERS[0].whole_user()
    with store:
        ids = store.newest(ada, limit=10, filters=NO_FILTERS)
        assert len(store.read(ada, ids)) == 10
        assert fetched(store, lambda: store.read(ada, ids)) <= FEW


def test_words_and_sources_of_a_user_with_many_are_read_without_the_others(
    store: PostgresStore,
) -> None:
    owner = USERS[0].owner

    def words() -> object:
        asked = {"words": ["heron"], "stems": ["~x"], "most": 2_000, "in_all": 9_000}
        return store._engine.read(owner, lambda db: db.rows("postings", owner=owner, **asked))

    def sources() -> object:
        ids = ["v7", "v2000", "v9"]
        return store._engine.read(owner, lambda db: db.rows("sources_of", owner=owner, ids=ids))

    with store:
        assert fetched(store, words) <= FEW
        assert sources() == [("v2000", "m"), ("v7", "m"), ("v9", "m")]
        assert fetched(store, sources) <= FEW
