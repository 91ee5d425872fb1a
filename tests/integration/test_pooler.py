"""PostgreSQL through PgBouncer in transaction mode, where no session is one's own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg

from memorist import Memory
from memorist.store.postgres.store import PostgresStore
from tests.support.models import WordEmbedder
from tests.support.pgbouncer import SESSIONS, pooled

USERS = [f"user{number}" for number in range(2 * SESSIONS)]
SESSIONS_OPEN = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'memorist'"


def test_more_clients_than_sessions_write_recall_and_forget(postgres_with_tables: str) -> None:
    def talk(user: str) -> list[str]:
        for number in range(8):  # more often than it takes for a statement to be prepared
            memory.remember(f"{user} saw the tram {number}", user=user, session="s")
        memory.jobs.catch_up(300)
        first, *_ = memory.history(user=user)
        memory.forget(user=user, message=first.message_id)
        memory.remember("the end", user=user, session="s")
        assert b"".join(memory.export(user))
        return [hit.text for hit in memory.recall("which tram?", user=user, deadline_ms=None).hits]

    with (
        pooled(postgres_with_tables) as url,
        Memory(PostgresStore(url), embedder=WordEmbedder(), extraction=None) as memory,
        ThreadPoolExecutor(len(USERS)) as threads,
        psycopg.connect(postgres_with_tables, autocommit=True) as connection,
    ):
        for user, found in zip(USERS, threads.map(talk, USERS), strict=True):
            told = [f"{user} saw the tram {number}" for number in range(1, 8)]
            assert [message.content for message in memory.history(user=user)] == [*told, "the end"]
            assert found
            assert set(found) <= {*told, "the end"}
        row = connection.execute(SESSIONS_OPEN).fetchone()
        assert row is not None
        assert 0 < row[0] <= SESSIONS
