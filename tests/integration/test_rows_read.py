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
FETCHED = """
    SELECT coalesce(sum(idx_tup_fetch), 0) FROM pg_stat_xact_user_tables
    WHERE relname IN ('passages', 'chat_message_history')
"""


@pytest.fixture
def store(postgres_url: str) -> PostgresStore:
    store = PostgresStore(postgres_url)
    for scope in USERS:
        store.append(scope, [Message("user", "x") for _ in range(SAID)])
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ANALYZE")
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
