"""Databases that are not ours to write are refused, and stay as they were."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import psycopg
import pytest

from memorist.errors import SchemaError, StoreDamagedError
from memorist.store.postgres.store import PostgresStore
from memorist.store.sqlite.store import SqliteStore
from tests.crash.evidence import SCOPE, batch

TABLES = "SELECT relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace"


def test_a_newer_schema_is_refused_and_its_file_untouched(tmp_path: Path) -> None:
    path = tmp_path / "newer.db"
    with SqliteStore(path) as store:
        store.append(SCOPE, batch("writer", 0))
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 1_000)
    connection.close()
    check_refused(path, SchemaError)


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_the_file_of_another_program_is_refused_and_untouched(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "other.db"
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", journal)
    connection.execute("CREATE TABLE contacts (name); INSERT INTO contacts VALUES ('Ada')")
    connection.close()
    check_refused(path, StoreDamagedError)


def test_the_file_that_another_program_has_open_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE contacts (name)")  # which lies in the -wal file only
    with pytest.raises(StoreDamagedError):
        SqliteStore(path)
    assert connection.execute("SELECT count(*) FROM sqlite_schema").get == 1
    assert connection.pragma("application_id") == 0
    connection.close()


@pytest.mark.parametrize("size", [1, 2, 20, 512, 5_000, 100_000])
def test_a_text_file_is_refused_and_untouched(tmp_path: Path, size: int) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(("Dear diary, today was a good day.\n" * 3_000)[:size])
    check_refused(path, StoreDamagedError)


def test_a_newer_schema_in_postgres_is_refused_and_untouched(postgres_url: str) -> None:
    with PostgresStore(postgres_url) as store:
        store.append(SCOPE, batch("writer", 0))
    with psycopg.connect(postgres_url) as connection:
        connection.execute(
            "UPDATE memorist_meta SET value = '1000' WHERE key IN ('schema', 'oldest')"
        )
    before = postgres_state(postgres_url)
    threads = set(threading.enumerate())
    with pytest.raises(SchemaError, match="1000") as refused:
        PostgresStore(postgres_url)
    assert postgres_state(postgres_url) == before
    left = set(threading.enumerate()) - threads
    assert not left, f"after {refused.type.__name__} the pool goes on"


def check_refused(path: Path, error: type[Exception]) -> None:
    """Opening fails twice in the same way, and not a byte of the file changes."""
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(error):
            SqliteStore(path)
        assert path.read_bytes() == before


def postgres_state(url: str) -> list[object]:
    """What the database holds, with the transactions that wrote it."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(TABLES).fetchall()
        meta = connection.execute("SELECT xmin::text, key, value FROM memorist_meta").fetchall()
        log = connection.execute("SELECT xmin::text, id FROM chat_message_history").fetchall()
        return [sorted(tables), sorted(meta), sorted(log)]
