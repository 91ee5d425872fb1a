"""Several writers at once, as processes and as threads, on one store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from memorist import Message
from memorist.store.sqlite.files import refuse_foreign
from memorist.store.sqlite.store import MIGRATIONS
from tests.crash.evidence import SCOPE, batch, check_store, open_store
from tests.crash.processes import Forked, finish, read_line, start, tell
from tests.support.examples import LONG
from tests.support.waiting import until

APPENDS = 500 if LONG else 200
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(key::text, 0)) FROM sessions"
WAITING = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


def test_two_processes_append_to_one_session_at_once(target: str) -> None:
    names = ["left", "right"]
    children = [start("writer", target, name, APPENDS) for name in names]
    check_writers(target, names, children, APPENDS)


def test_six_processes_create_and_fill_one_new_store_at_once(new_target: str) -> None:
    names = [f"writer{number}" for number in range(6)]
    children = [start("writer", new_target, name, 10) for name in names]
    check_writers(new_target, names, children, 10)


def test_eight_threads_share_one_store_object(target: str) -> None:
    names = [f"thread{number}" for number in range(8)]

    def write(name: str) -> list[str]:
        for number in range(60):
            added = store.append(SCOPE, batch(name, number)).added
            assert added == len(batch(name, number))
            if number % 10 == 0:  # reads beside the writes
                assert store.find(SCOPE, [f"{name}n{number}p0"])
        return [entry.message.message_id for entry in store.history(SCOPE)]

    with open_store(target) as store, ThreadPoolExecutor(len(names)) as threads:
        seen = list(threads.map(write, names))
    check_store(target, dict.fromkeys(names, 60), spare=0, why="eight threads")
    for name, ids in zip(names, seen, strict=True):  # each saw at least its own, in order
        own = [id_ for id_ in ids if id_.startswith(f"{name}n")]
        assert own == [message.message_id for k in range(60) for message in batch(name, k)]


@pytest.mark.parametrize("count", [1, 3])
def test_what_waits_for_a_session_is_numbered_after_what_it_waited_for(
    postgres_with_tables: str, count: int
) -> None:
    url, said = postgres_with_tables, [Message("user", f"tea {n}") for n in range(count)]
    with open_store(url) as store, psycopg.connect(url) as other:
        store.append(SCOPE, [Message("user", "first")])
        other.execute(LOCK)
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(store.append, SCOPE, said)
            until(lambda: other.execute(WAITING).fetchall())
            [(taken,)] = other.execute("SELECT nextval('message_seq')").fetchall()
            other.commit()
            assert waiting.result().added == count
        assert all(entry.seq > taken for entry in store.history(SCOPE)[1:])


def test_a_file_that_another_process_is_just_creating_is_not_called_foreign(tmp_path: Path) -> None:
    files = 100 if LONG else 30
    creator = start("creator", tmp_path, files)
    for number in range(files):
        path = tmp_path / f"{number}.db"
        while not (tmp_path / f"{number}.done").exists() and creator.poll() is None:
            refuse_foreign(str(path), MIGRATIONS[-1][0])
    finish(creator)


def check_writers(target: str, names: list[str], children: list[Forked], count: int) -> None:
    """Let the writers go at once; none may fail, and all they wrote must be there."""
    for child in children:
        assert read_line(child) == "ready"
    for child in children:
        tell(child)
    wanted = [str(number) for number in range(count)]
    assert [finish(child) for child in children] == [wanted] * len(children)
    check_store(target, dict.fromkeys(names, count), spare=0, why=f"{len(names)} processes")
