"""SQLite at its limits: no room left, and a lock that another process holds."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from memorist.errors import StoreBusyError, StoreFullError
from memorist.store.sqlite.store import SqliteEngine, SqliteStore
from tests.crash.evidence import SCOPE, batch, batch_ids, check_store
from tests.crash.processes import finish, kill, read_line, start, tell


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A store with one message in it."""
    made = str(tmp_path / "memory.db")
    with SqliteStore(made) as store:
        store.append(SCOPE, batch("first", 0))
    return made


@pytest.fixture
def hasty(path: str) -> Iterator[SqliteStore]:
    """The store, opened by someone of little patience."""
    with SqliteStore(path, patience_seconds=0.2) as store:
        yield store


def test_a_full_store_says_so_and_goes_on_when_there_is_room(path: str) -> None:
    with SqliteStore(path) as store:
        writer = cast(SqliteEngine, store._engine)._db().connection
        limit = int(str(writer.pragma("page_count"))) + 20
        writer.pragma("max_page_count", limit)
        acked = append_until_full(store)
        stored = [entry.message.message_id for entry in store.history(SCOPE)]
        assert stored == [*batch_ids("first", 1), *batch_ids("writer", acked)]
        with pytest.raises(StoreFullError):
            store.append(SCOPE, batch("writer", acked))
        writer.pragma("max_page_count", limit + 1_000)
        for number in range(acked, acked + 20):
            store.append(SCOPE, batch("writer", number))
    check_store(path, {"first": 1, "writer": acked + 20}, spare=0, why="full, then grown")


def test_a_lock_held_too_long_is_a_busy_error_and_nothing_is_written(
    path: str, hasty: SqliteStore
) -> None:
    holder = start("holder", path)
    assert read_line(holder) == "held"
    began = time.monotonic()
    with pytest.raises(StoreBusyError):
        hasty.append(SCOPE, batch("writer", 0))
    assert 0.15 < time.monotonic() - began < 5
    assert not hasty.find(SCOPE, batch_ids("writer", 1)), "reads go on, and find nothing"
    tell(holder)
    finish(holder)
    assert len(hasty.history(SCOPE)) == 1
    hasty.append(SCOPE, batch("writer", 0))
    check_store(path, {"first": 1, "writer": 1}, spare=0, why="locked, then released")


def test_a_store_opens_and_reads_while_another_process_holds_the_lock(path: str) -> None:
    holder = start("holder", path)
    assert read_line(holder) == "held"
    with SqliteStore(path, patience_seconds=0.2) as store:
        assert [entry.message.message_id for entry in store.history(SCOPE)] == ["firstn0p0"]
    tell(holder)
    finish(holder)


def test_a_lock_released_in_time_is_waited_for(path: str) -> None:
    holder = start("holder", path)
    assert read_line(holder) == "held"
    release = threading.Timer(0.5, tell, [holder])
    began = time.monotonic()
    release.start()
    with SqliteStore(path, patience_seconds=30) as store:
        store.append(SCOPE, batch("writer", 0))
    assert time.monotonic() - began > 0.45
    release.join()
    finish(holder)
    check_store(path, {"first": 1, "writer": 1}, spare=0, why="waited for a lock")


def test_the_lock_of_a_killed_process_is_gone(path: str, hasty: SqliteStore) -> None:
    holder = start("holder", path)
    assert read_line(holder) == "held"
    kill(holder)
    hasty.append(SCOPE, batch("writer", 0))
    check_store(path, {"first": 1, "writer": 1}, spare=0, why="the holder was killed")


def append_until_full(store: SqliteStore) -> int:
    """Append until there is no room; return how many appends were acknowledged."""
    for number in range(10_000):
        try:
            store.append(SCOPE, batch("writer", number))
        except StoreFullError:
            assert number > 0
            return number
    pytest.fail("the store was never full")
