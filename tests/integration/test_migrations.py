"""A database of an earlier schema is brought up to date on opening, wholly or not at all.

The migrations of these tests are their own: a second and a third schema of a store that has data.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import psycopg
import pytest

from memorist.errors import SchemaError, StoreBusyError, StoreError
from memorist.language.text import stems
from memorist.records.memories import Add, Fact, MemoryItem
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.records.values import now, to_micros
from memorist.store.base import Store
from memorist.store.engine import load_migrations
from memorist.store.postgres import schema as postgres_engine
from memorist.store.postgres.db import QUERIES
from memorist.store.postgres.store import PostgresStore
from memorist.store.sqlite import store as sqlite_engine
from memorist.store.sqlite.db import all_spelled
from memorist.store.sqlite.store import SqliteStore
from tests.conformance.worlds import worded
from tests.support.schemas import earlier_schema
from tests.support.waiting import until

LATEST = len(sqlite_engine.MIGRATIONS)  # the schema that this Memorist comes with
ADA = Scope(user="ada", agent="tutor", session="talk")
SECOND = "ALTER TABLE facts ADD COLUMN colour TEXT NOT NULL DEFAULT 'green';"
THIRD = "CREATE TABLE colours (name TEXT PRIMARY KEY); INSERT INTO colours VALUES ('green');"
BESIDE = f"-- beside: {LATEST}\nALTER TABLE facts ADD COLUMN shape TEXT;"
BROKEN = "CREATE TABLE half_done (name TEXT); INSERT INTO nowhere VALUES (1);"
WAITING = "SELECT 1 FROM pg_locks WHERE relation = 'memorist_meta'::regclass AND NOT granted"
DIES_AT_THE_SECOND = """
import os, sys
from pathlib import Path
from typing import Any
from memorist.store.engine import load_migrations
from memorist.store.base import Store
from memorist.store.sqlite import store as engine
from memorist.store.sqlite.store import SqliteStore
import apsw
engine.MIGRATIONS = [*engine.MIGRATIONS, *load_migrations(Path(sys.argv[2]))]
apsw.connection_hooks.append(
    lambda connection: connection.create_scalar_function("die", lambda: os.kill(os.getpid(), 9))
)
SqliteStore(sys.argv[1])
"""
Migrate = Callable[..., None]


@pytest.fixture
def migrate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Migrate:
    """Adds migrations after those that a store comes with."""

    def add(*scripts: str) -> None:
        folder = tmp_path / "migrations"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for number, script in enumerate(scripts, start=LATEST + 1):
            (folder / f"{number:04}_test.sql").write_text(script)
        for engine in (sqlite_engine, postgres_engine):
            shipped = engine.MIGRATIONS[:LATEST]
            monkeypatch.setattr(engine, "MIGRATIONS", [*shipped, *load_migrations(folder)])

    return add


def fill(store: Store) -> None:
    store.append(ADA, [Message("user", "I moved to Berlin", "m1", name="Ada")])
    item = MemoryItem(scope=ADA, text="Likes pelicans", sources=("m1",))
    fact = Fact(scope=ADA, subject="Ada", predicate="lives in", object="Berlin")
    store.apply(ADA, [Add(item), Add(fact)])
    store.write_note(ADA, "Prefers tea", base_version=0)


def check(store: Store, schema: int) -> None:
    """All that was there is there, is found, and goes on."""
    assert store.check()["schema"] == str(schema)
    assert [entry.message.text for entry in store.history(ADA)] == ["I moved to Berlin"]
    assert [item.sources for item in store.items(ADA)] == [("m1",)]
    assert [fact.object for fact in store.facts(ADA)] == ["Berlin"]
    for word in ("berlin", "pelican", "tea"):
        assert worded(store, ADA.whole_user(), [(word,)], limit=5)
    note = store.note(ADA)
    assert note is not None
    store.write_note(ADA, "Prefers tea", base_version=note.version)


def schema_of(path: Path) -> int:
    with closing(apsw.Connection(str(path))) as connection:
        return int(str(connection.pragma("user_version")))


def test_a_sqlite_file_of_an_earlier_schema_is_brought_up_to_date(
    tmp_path: Path, migrate: Migrate
) -> None:
    path = tmp_path / "memory.db"
    with SqliteStore(path) as store:
        fill(store)
        check(store, LATEST)
    for schema, scripts in ((LATEST + 1, [SECOND]), (LATEST + 2, [SECOND, THIRD])):
        migrate(*scripts)
        for _ in range(2):  # the second time there is nothing to do
            with SqliteStore(path) as store:
                check(store, schema)
    with closing(apsw.Connection(str(path))) as connection:
        assert connection.execute("SELECT colour FROM facts").fetchall() == [("green",)]
        assert connection.execute("SELECT name FROM colours").fetchall() == [("green",)]


def test_a_sqlite_migration_that_fails_leaves_the_schema_before_it(
    tmp_path: Path, migrate: Migrate
) -> None:
    path = tmp_path / "memory.db"
    with SqliteStore(path) as store:
        fill(store)
    migrate(SECOND, BROKEN)
    with pytest.raises(StoreError):
        SqliteStore(path)
    assert schema_of(path) == LATEST
    migrate(SECOND, THIRD)
    with SqliteStore(path) as store:
        check(store, LATEST + 2)


def test_a_process_killed_in_a_sqlite_migration_leaves_the_schema_before_it(
    tmp_path: Path, migrate: Migrate
) -> None:
    path = tmp_path / "memory.db"
    with SqliteStore(path) as store:
        fill(store)
    migrate(SECOND, "CREATE TABLE half_done (name TEXT); SELECT die();")
    command = [sys.executable, "-c", DIES_AT_THE_SECOND, str(path), str(tmp_path / "migrations")]
    assert subprocess.run(command, check=False).returncode == -9
    assert schema_of(path) == LATEST
    migrate(SECOND, THIRD)
    with SqliteStore(path) as store:
        check(store, LATEST + 2)


def test_those_who_open_a_store_at_once_migrate_it_once(
    tmp_path: Path, postgres_url: str, migrate: Migrate
) -> None:
    path = tmp_path / "memory.db"
    for open_store in (lambda: SqliteStore(path), lambda: PostgresStore(postgres_url)):
        migrate()
        with open_store() as store:
            fill(store)
        migrate(SECOND, THIRD)
        with ThreadPoolExecutor(4) as threads:
            stores = [threads.submit(open_store) for _ in range(4)]
        for opened in stores:
            with opened.result() as store:
                check(store, LATEST + 2)


def test_a_program_older_than_the_schema_is_refused_at_its_next_transaction(
    tmp_path: Path, postgres_url: str, migrate: Migrate
) -> None:
    path = tmp_path / "memory.db"
    for open_store in (lambda: SqliteStore(path), lambda: PostgresStore(postgres_url)):
        migrate()
        with open_store() as older:
            fill(older)
            migrate(SECOND)
            with open_store() as newer:
                for call in (
                    lambda: older.append(ADA, [Message("user", "lost?", "m2")]),
                    lambda: older.history(ADA),
                    lambda: older.claim(),
                ):
                    with pytest.raises(SchemaError, match=f"schema {LATEST + 1}.*up to {LATEST};"):
                        call()
                check(newer, LATEST + 1)
        migrate()
        with pytest.raises(SchemaError, match="install a newer Memorist"):
            open_store()


def test_older_and_newer_servers_share_a_database_where_a_migration_says_so(
    postgres_url: str, migrate: Migrate
) -> None:
    migrate()
    with PostgresStore(postgres_url) as older:
        fill(older)
        migrate(BESIDE)
        with PostgresStore(postgres_url) as newer:
            check(older, LATEST + 1)
            check(newer, LATEST + 1)
            migrate()
            with PostgresStore(postgres_url) as restarted:
                check(restarted, LATEST + 1)
            migrate(BESIDE, THIRD)
            with PostgresStore(postgres_url) as newest:
                check(newest, LATEST + 2)
                for store in (older, newer):
                    with pytest.raises(SchemaError):
                        store.history(ADA)


def test_what_begins_while_a_migration_runs_waits_and_is_then_refused(
    postgres_url: str, migrate: Migrate
) -> None:
    migrate()
    with PostgresStore(postgres_url) as older, psycopg.connect(postgres_url) as migration:
        fill(older)
        migration.execute("LOCK TABLE memorist_meta")
        migration.execute(
            "UPDATE memorist_meta SET value = %s WHERE key IN ('schema', 'oldest')", (LATEST + 1,)
        )
        with (
            ThreadPoolExecutor(1) as thread,
            psycopg.connect(postgres_url, autocommit=True) as watcher,
        ):
            append = thread.submit(older.append, ADA, [Message("user", "lost?", "m2")])
            until(lambda: watcher.execute(WAITING).fetchall())
            migration.commit()
            with pytest.raises(SchemaError):
                append.result()
    migrate(SECOND)
    with PostgresStore(postgres_url) as newer:
        assert not newer.find(ADA, ["m2"])


@pytest.mark.parametrize("bound", [False, True], ids=["superuser", "bound by security"])
def test_a_postgres_database_of_an_earlier_schema_is_brought_up_to_date(
    postgres_url: str, migrate: Migrate, bound: bool
) -> None:
    url = postgres_url
    if bound:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("CREATE ROLE early_user LOGIN PASSWORD 'early'")
            connection.execute("GRANT CREATE, USAGE ON SCHEMA public TO early_user")
        url = psycopg.conninfo.make_conninfo(url, user="early_user", password="early")
    with PostgresStore(url) as store:
        fill(store)
        check(store, LATEST)
    migrate(SECOND, BROKEN)
    with pytest.raises(StoreError):
        PostgresStore(url)
    migrate()
    with PostgresStore(url) as store:  # all migrations of one opening are one transaction
        check(store, LATEST)
    migrate(SECOND, THIRD)
    for _ in range(2):
        with PostgresStore(url) as store:
            check(store, LATEST + 2)


def test_sessions_and_notes_of_the_fourth_schema_get_moments_and_a_key_by_user(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = postgres_engine.MIGRATIONS
    monkeypatch.setattr(postgres_engine, "MIGRATIONS", shipped[:4])
    PostgresStore(postgres_url).close()
    homes = [Scope(user="ada", tenant=tenant, agent="tutor") for tenant in ("default", "acme")]
    homes.append(Scope(user="a" * 60_000, agent="tutor"))
    micros = 1_800_000_000_123_456
    with psycopg.connect(postgres_url) as connection:
        for home in homes:
            session = (home.owner, home.user, "tutor", "talk", micros, micros)
            marks = ", ".join(["%s"] * len(session))
            connection.execute(f"INSERT INTO user_agent_active_sessions VALUES ({marks})", session)
            written = (home.owner, home.user, "tutor", home.owner, 1, "Tea", micros, micros)
            marks = ", ".join(["%s"] * len(written))
            connection.execute(f"INSERT INTO agent_long_term_memory VALUES ({marks})", written)
    monkeypatch.setattr(postgres_engine, "MIGRATIONS", shipped)
    with PostgresStore(postgres_url) as store:
        for home in homes:
            note = store.note(home)
            assert note is not None
            assert to_micros(note.created_at) == micros
            store.open_session(home.within(session="talk"))
            assert store.write_note(home, "Coffee", base_version=1).version == 2
    with psycopg.connect(postgres_url) as connection:
        for table in ("user_agent_active_sessions", "agent_long_term_memory"):
            rows = connection.execute(f"SELECT user_id, created_at FROM {table}").fetchall()
            assert {row[0] for row in rows} == {"ada", None}
            assert {to_micros(row[1]) for row in rows} == {micros}


def test_a_schema_that_another_process_keeps_locked_is_waited_for_until_the_deadline(
    postgres_url: str,
) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (postgres_engine._LOCK,))
        began = time.monotonic()
        with pytest.raises(StoreBusyError):
            PostgresStore(postgres_url, patience_seconds=0.5)
        assert time.monotonic() - began < 10


def test_a_file_of_the_first_schema_takes_messages_with_an_importance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, shipped = tmp_path / "memory.db", sqlite_engine.MIGRATIONS
    monkeypatch.setattr(sqlite_engine, "MIGRATIONS", shipped[:1])
    SqliteStore(path).close()
    assert schema_of(path) == 1
    monkeypatch.setattr(sqlite_engine, "MIGRATIONS", shipped)
    with SqliteStore(path) as store:
        fill(store)
        check(store, LATEST)


def test_memories_and_facts_of_the_tenth_schema_are_listed_by_the_beginnings_of_their_words(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    long = f"Likes gannets. {'And gulls, of course. ' * 200}Owns a teapot."
    with earlier_schema(10) as before:
        plain = staticmethod(lambda owner, text: all_spelled(owner, stems(text)))
        before.setattr(sqlite_engine.SqliteEngine, "view_words", plain)
        with SqliteStore(path) as store:
            fill(store)
            store.apply(ADA, [Add(MemoryItem(scope=ADA, text=long))])
            ranked = [worded(store, ADA, [(word,)], limit=9) for word in ("pelicans", "gulls")]
            assert store.items(ADA, text="pel") == []
    with SqliteStore(path) as store:
        assert [item.text for item in store.items(ADA, text="pel")] == ["Likes pelicans"]
        assert [item.text for item in store.items(ADA, text="teap")] == [long]
        assert [fact.object for fact in store.facts(ADA, text="lives ber")] == ["Berlin"]
        assert store.facts(ADA, text="pel") == []
        assert [worded(store, ADA, [(word,)], limit=9) for word in ("pelicans", "gulls")] == ranked
        store.forget(ADA, record_id=store.items(ADA, text="teap")[0].id)
        assert store.items(ADA, text="gu") == []
        check(store, LATEST)


def test_what_the_eleventh_schema_holds_is_overtaken_by_nothing_until_it_is_linked(
    tmp_path: Path, postgres_url: str
) -> None:
    openers: list[Callable[[], Store]] = [
        lambda: SqliteStore(tmp_path / "memory.db"),
        lambda: PostgresStore(postgres_url),
    ]
    for open_store in openers:
        with earlier_schema(11), open_store() as store:
            fill(store)
            [id_] = store.newest(ADA, limit=1)
        with open_store() as store:
            assert [it.overtaken_by for it in store.passages(ADA, [id_])] == [0]
            store.put_vectors(ADA, "e", {id_: [1.0]}, overtaken={id_: id_ + 1})
            assert [it.overtaken_by for it in store.passages(ADA, [id_])] == [id_ + 1]
            check(store, LATEST)


def test_sessions_of_the_sixteenth_schema_are_listed_by_when_they_were_last_active(
    tmp_path: Path, postgres_url: str
) -> None:
    openers: list[Callable[[], Store]] = [
        lambda: SqliteStore(tmp_path / "memory.db"),
        lambda: PostgresStore(postgres_url),
    ]
    whole, days = ADA.whole_user(), {"old": 3, "new": 1, "middle": 2}
    for open_store in openers:
        with earlier_schema(16), open_store() as store:
            for session, day in days.items():
                said = Message("user", "hi", created_at=datetime(2026, 1, day, tzinfo=UTC))
                store.append(whole.within(session=session), [said])
        with open_store() as store:
            newest = store.sessions(whole, newest_first=True, limit=2)
            assert [it.id for it in newest] == ["old", "middle"]


def test_a_list_knows_of_what_a_server_of_the_sixteenth_schema_says_meanwhile(
    postgres_url: str,
) -> None:
    whole, began = ADA.whole_user(), now()

    def say(store: Store, session: str, hours: int) -> None:
        said = Message("user", "hi", created_at=began + timedelta(hours=hours))
        store.append(whole.within(session=session), [said])

    with PostgresStore(postgres_url) as store:
        say(store, "old", 1)
        say(store, "new", 2)
        with earlier_schema(LATEST) as older:  # the schema is the newest, and the program is not
            older.setitem(QUERIES, "set_up", QUERIES["set_up"].replace("notes_activity", "nothing"))
            with PostgresStore(postgres_url) as old_store:
                say(old_store, "old", 3)
        assert [it.id for it in store.sessions(whole, newest_first=True, limit=1)] == ["old"]
