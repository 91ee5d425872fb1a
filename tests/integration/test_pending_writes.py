"""SQLite commits writes that wait for their turn together, each as it would be alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memorist.errors import ConflictError, StoreBusyError
from memorist.records.log import Appended
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store.sqlite.store import SqliteStore
from tests.conformance.worlds import worded
from tests.support.waiting import until

ADA = Scope(user="ada", session="s")
COUNT = 12


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "memory.db") as opened:
        opened.append(ADA, [Message("user", "the first", message_id="first")])
        yield opened


@contextmanager
def gathered(store: SqliteStore, *calls: Callable[[], Any]) -> Iterator[list[Future[Any]]]:
    """Calls of as many threads, all of which wait for their turn until the block ends."""
    with ThreadPoolExecutor(len(calls)) as threads, store._file._locked():
        futures = [threads.submit(call) for call in calls]
        until(lambda: len(store._file._pending) == len(calls))
        yield futures


def commits(store: SqliteStore) -> list[int]:
    """One number for each transaction of the writer from here on."""
    seen: list[int] = []

    def note() -> bool:
        seen.append(threading.get_ident())
        return False  # it goes on

    store._file._db().connection.set_commit_hook(note)
    return seen


def append(store: SqliteStore, number: int) -> Callable[[], Appended]:
    message = Message("user", f"heron number{number}", message_id=f"m{number}")
    return lambda: store.append(ADA, [message])


def test_writes_that_wait_are_committed_at_once(store: SqliteStore) -> None:
    seen = commits(store)
    with gathered(store, *(append(store, number) for number in range(COUNT))) as futures:
        pass
    results = [future.result() for future in futures]
    assert len(seen) == 1
    stored = {entry.message.message_id: entry.seq for entry in store.history(ADA)}
    assert [result.seqs for result in results] == [(stored[f"m{n}"],) for n in range(COUNT)]
    for number in range(COUNT):
        [found] = worded(store, ADA, [(f"number{number}",)], limit=3)
        assert found.id == f"m{number}"


def test_one_that_fails_changes_nothing_and_the_others_are_stored(store: SqliteStore) -> None:
    other = Message("user", "other words", message_id="first")
    again = Message("user", "the first", message_id="first")
    with gathered(
        store,
        append(store, 0),
        lambda: store.append(ADA, [Message("user", "lost"), other]),
        lambda: store.append(ADA, [again]),
        append(store, 1),
    ) as futures:
        pass
    with pytest.raises(ConflictError):
        futures[1].result()
    assert futures[2].result().added == 0
    assert sorted(entry.message.message_id for entry in store.history(ADA)) == ["first", "m0", "m1"]
    assert worded(store, ADA, [("lost",)], limit=3) == []


def test_one_whose_patience_ends_is_taken_back(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "memory.db", patience_seconds=0.2) as store:
        with gathered(store, append(store, 0)) as [future]:
            assert isinstance(future.exception(timeout=60), StoreBusyError)
        append(store, 1)()
        assert [entry.message.message_id for entry in store.history(ADA)] == ["m1"]


def test_what_may_take_long_is_written_alone(store: SqliteStore) -> None:
    seen = commits(store)
    with gathered(store, append(store, 0)) as [waiting]:
        store.forget(ADA)  # by the thread that has the lock
        assert len(seen) == 1
        assert store.history(ADA) == []
    assert waiting.result().added == 1
    assert len(seen) == 2
