"""What PostgreSQL itself guards, whatever our queries say."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from memorist.errors import ConfigError, StoreError, StoreUnavailableError
from memorist.records.activity import TurnReceipt
from memorist.records.documents import Article, Chunk, Summary
from memorist.records.entry import Put
from memorist.records.memories import Add, Fact, MemoryItem
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store.postgres.store import PostgresStore
from tests.conformance.worlds import worded
from tests.support.postgres import Server

ALICE = Scope(user="alice", session="s")
BOB = Scope(user="bob", session="s")
GUARDED = """
    SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
    AND relname NOT IN
      ('session_uuids', 'memorist_meta', 'memorist_writes', 'spending', 'api_keys')
    ORDER BY relname
"""


@pytest.fixture
def url(postgres_with_tables: str) -> Iterator[str]:
    with PostgresStore(postgres_with_tables) as store:
        for scope in (ALICE, BOB):
            store.append(scope, [Message("user", "secret", message_id="m", name="Al")])
            fact = Fact(scope=scope, subject="he", predicate="keeps", object="a secret")
            item = MemoryItem(scope=scope, text="secret", sources=("m",), tags=("t",))
            store.apply(scope, [Add(item), Add(fact)])
            store.revise(scope, Message("user", "revised", message_id="m"))
            store.write_note(scope, "secret", base_version=0)
            article = Article(scope=scope.whole_user(), title="secret", text="secret")
            store.put_article(article, [Chunk(0, 6)])
            kept = Put(namespace=("notes",), key="secret", value={"secret": 1})
            store.batch(scope.whole_user(), [], [kept])
            turn = TurnReceipt(session_id=scope.session or "s", asked_id="m", receipt={})
            store.add_receipt(scope, turn)
            [entry] = store.history(scope)
            brief = Summary(
                scope=scope,
                text="secret",
                last_seq=entry.seq,
                messages=1,
                made_by="extractive",
                tokens_before=1,
                tokens=1,
            )
            store.write_summary(scope, brief, of=[entry])
            turn = TurnReceipt(session_id="s", asked_id="m", receipt={})
            store.add_receipt(scope, turn)
            [passage, *_] = store.unembedded(scope, "e", limit=9)
            store.put_vectors(scope, "e", {passage: [1.0]})
        with psycopg.connect(postgres_with_tables) as connection:
            connection.execute("SELECT code_vectors(owner, 'e', NULL) FROM vectors")
        yield postgres_with_tables


def _count(connection: psycopg.Connection[tuple[int]], table: str, owner: str | None) -> int:
    with connection.transaction():
        connection.execute("SET LOCAL ROLE memorist_app")
        if owner is not None:
            connection.execute("SELECT set_config('memorist.owner', %s, true)", (owner,))
        row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # no WHERE
        assert row is not None
        return row[0]


def test_a_query_without_its_where_sees_one_users_rows(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        tables = [name for (name,) in connection.execute(GUARDED)]
        assert len(tables) == 28
        # Nobody is active, nothing was done by hand, and few words wait to be placed.
        for table in set(tables) - {
            "user_agent_active_sessions",
            "kept_views",
            "postings",
            "placed_messages",
        }:
            row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert row is not None
            assert _count(connection, table, ALICE.owner) == row[0] // 2 > 0, table


def test_a_query_without_an_owner_sees_nothing(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for (table,) in connection.execute(GUARDED).fetchall():
            assert _count(connection, table, None) == 0, table
            assert _count(connection, table, "") == 0, table


def test_a_query_without_its_where_changes_one_users_rows(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        with connection.transaction():
            connection.execute("SET LOCAL ROLE memorist_app")
            connection.execute("SELECT set_config('memorist.owner', %s, true)", (ALICE.owner,))
            assert connection.execute("DELETE FROM chat_message_history").rowcount == 1
            with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute("UPDATE memory_items SET owner = %s", (BOB.owner,))
        row = connection.execute("SELECT count(*) FROM chat_message_history").fetchone()
        assert row == (1,)


def test_words_are_found_in_the_owners_passages_however_they_are_asked_for(url: str) -> None:
    ask = "SELECT length(places) FROM places_of(%s, ARRAY['secret'], ARRAY['secret'], 99, 99)"
    with psycopg.connect(url) as connection:
        connection.execute("SET LOCAL ROLE memorist_app")
        assert connection.execute(ask, (ALICE.owner,)).fetchall() == []
        connection.execute("SELECT set_config('memorist.owner', %s, true)", (ALICE.owner,))
        for _ in ("while they wait", "when they are placed"):
            assert connection.execute(ask, (BOB.owner,)).fetchall() == []
            assert connection.execute(ask, (ALICE.owner,)).fetchall() == [(5 * 8,)]
            for owner in (ALICE.owner, BOB.owner):
                connection.execute("SELECT place_words(%s, 1)", (owner,))
        assert connection.execute("SELECT DISTINCT owner FROM postings").rowcount == 1
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO passage_words VALUES (%s, 1, '{}')", (BOB.owner,))


def test_words_are_found_by_their_index_also_by_those_whom_security_binds(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("SET LOCAL enable_seqscan = off")  # there are too few rows to need it
        connection.execute("SET LOCAL ROLE memorist_app")
        ask = f"EXPLAIN SELECT places FROM postings WHERE owner = '{ALICE.owner}' AND word = 1"
        assert "owner = " in str(plan := connection.execute(ask).fetchall())
        assert "word = " in str([line for (line,) in plan if "Index Cond" in line])
        ask = f"EXPLAIN SELECT id FROM passage_words WHERE owner = '{ALICE.owner}' AND NOT placed"
        assert "words_waiting" in str(connection.execute(ask).fetchall())


def test_the_setting_does_not_outlive_its_transaction(url: str) -> None:
    with PostgresStore(url, max_connections=1) as store:
        store.history(ALICE)
        pool = store._engine._pool  # type: ignore[attr-defined]
        with pool.connection() as connection:
            row = connection.execute(
                "SELECT current_setting('memorist.owner', true), current_user"
            ).fetchone()
        assert row == ("", "memorist_app")


def test_every_table_forces_row_level_security_and_leads_its_keys_with_the_owner(url: str) -> None:
    with psycopg.connect(url) as connection:
        loose = connection.execute(
            "SELECT relname FROM pg_class WHERE relname = ANY(%s)"
            " AND NOT (relrowsecurity AND relforcerowsecurity)",
            ([name for (name,) in connection.execute(GUARDED)],),
        ).fetchall()
        assert loose == []
        keys = connection.execute(
            "SELECT i.indexrelid::regclass::text, a.attname FROM pg_index i"
            " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]"
            " JOIN pg_class c ON c.oid = i.indrelid WHERE c.relname = ANY(%s) AND i.indisunique",
            ([name for (name,) in connection.execute(GUARDED)],),
        ).fetchall()
        others = {key for key, column in keys if column != "owner"}
        assert others == {  # which other programs name in ON CONFLICT
            "user_agent_active_sessions_user_id_agent_name_key",
            "agent_long_term_memory_user_id_agent_name_key",
        }


def test_an_ordinary_user_without_rights_to_make_roles_is_bound_by_force(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE plain_user LOGIN PASSWORD 'plain'")
        connection.execute("GRANT CREATE, USAGE ON SCHEMA public TO plain_user")
    url = psycopg.conninfo.make_conninfo(postgres_url, user="plain_user", password="plain")
    with PostgresStore(url) as store:
        assert "bound by it" in store.check()["row-level security"]
        store.append(ALICE, [Message("user", "mine")])
        store.append(BOB, [Message("user", "his")])
        assert len(store.history(ALICE.whole_user())) == 1
        assert len(store.claim(limit=9)) == 2
    for named, count in ((ALICE.owner, 1), (Scope(user="eve").owner, 0)):
        with psycopg.connect(url, options=f"-c memorist.owner={named}") as connection:
            rows = connection.execute("SELECT * FROM chat_message_history").fetchall()
            assert len(rows) == count
    with psycopg.connect(url) as connection:  # the application's own, as it made the tables
        for table, count in (("chat_message_history", 2), ("passages", 0), ("sessions", 0)):
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()
            assert len(rows) == count, table


def test_a_member_of_the_role_who_may_make_none_works_as_it_where_it_was_granted_the_tables(
    url: str, vector_server: Server
) -> None:
    member = {"user": "member", "password": "member"}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE member LOGIN PASSWORD 'member' IN ROLE memorist_app")
    other = vector_server.create_database("other")
    with psycopg.connect(other, autocommit=True) as connection:
        connection.execute("GRANT CREATE, USAGE ON SCHEMA public TO member")
    for bound_by in ("role memorist_app", "connecting user"):
        with PostgresStore(psycopg.conninfo.make_conninfo(other, **member)) as store:
            assert bound_by in store.check()["row-level security"]
            store.append(ALICE, [Message("user", "mine")])
            assert store.history(BOB) == []
        with psycopg.connect(other, autocommit=True) as connection:
            connection.execute("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM memorist_app")
    vector_server.drop_database(other)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE member")


def test_a_user_above_row_level_security_who_cannot_step_down_is_refused(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE above LOGIN PASSWORD 'above' BYPASSRLS")
        connection.execute("GRANT CREATE, USAGE ON SCHEMA public TO above")
    url = psycopg.conninfo.make_conninfo(postgres_url, user="above", password="above")
    with pytest.raises(StoreError, match="row-level security"):
        PostgresStore(url)


def test_a_schema_named_after_the_login_is_found_by_the_working_role(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA postgres")
        connection.execute("CREATE TABLE postgres.not_ours (secret text)")
    with PostgresStore(postgres_url) as store:
        store.append(ALICE, [Message("user", "hello")])
        assert len(worded(store, ALICE, [("hello",)], limit=9)) == 1
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SELECT to_regclass('postgres.chat_message_history')").fetchone()
        assert row != (None,)
        connection.execute("SET ROLE memorist_app")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM postgres.not_ours")


def test_a_wrong_password_or_database_is_said_at_once(postgres_with_tables: str) -> None:
    started = time.monotonic()
    for wrong in ({"password": "wrong"}, {"dbname": "nowhere"}):
        with pytest.raises(StoreUnavailableError, match="no way to PostgreSQL"):
            PostgresStore(psycopg.conninfo.make_conninfo(postgres_with_tables, **wrong))
    assert time.monotonic() - started < 10
    with pytest.raises(ConfigError):
        PostgresStore("postgresql://[")


def test_what_is_appended_while_its_session_is_forgotten_is_there_or_gone_whole(
    postgres_with_tables: str,
) -> None:
    with PostgresStore(postgres_with_tables) as store, ThreadPoolExecutor(4) as threads:
        for _ in range(20):
            store.append(ALICE, [Message("user", "first")])
            work = [threads.submit(store.append, ALICE, [Message("user", "x")]) for _ in range(3)]
            threads.submit(store.forget, ALICE).result()
            for one in work:
                one.result()
        left = len(store.history(ALICE))
        assert store.forget(ALICE.whole_user()).counts.get("messages", 0) == left
    with psycopg.connect(postgres_with_tables) as connection:
        for table in ("chat_message_history", "passages", "passage_words", "jobs", "sessions"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
