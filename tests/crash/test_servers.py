"""Several `memorist serve` on one store under load; one is killed, or stands still for a while."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import apsw
import httpx
import pytest

from memorist.records.log import LogEntry
from tests.crash.evidence import USER, check_file, check_log, open_store
from tests.crash.server_load import Load, word_of
from tests.support.servers import ServerProcess, end_servers

SEED = 20_261_120
PLAIN = ("--rate", "0")  # one caller, and many requests


@pytest.fixture(autouse=True)
def _no_server_is_left_behind() -> Iterator[None]:
    yield
    end_servers()


def test_two_servers_on_one_file_keep_everything_though_one_is_killed(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    servers = start(path, 2)
    with Load([server.url for server in servers], SEED) as load:
        kill_and_restart(servers, load, pause_s=0.5)
    check(path, servers, load)


def test_three_servers_on_one_postgres_keep_everything_though_one_is_killed(
    postgres_url: str,
) -> None:
    servers = start(postgres_url, 3)
    with Load([server.url for server in servers], SEED) as load:
        kill_and_restart(servers, load, pause_s=0.5)
    check(postgres_url, servers, load)


@pytest.mark.prove
def test_servers_are_killed_again_and_again(target: str) -> None:
    servers = start(target, 3)
    with Load([server.url for server in servers], SEED, writers=8, sessions=20) as load:
        for _ in range(6):
            kill_and_restart(servers, load, pause_s=10)
    check(target, servers, load)


@pytest.mark.prove
def test_a_server_that_stands_still_costs_others_at_most_a_retry(target: str) -> None:
    servers = start(target, 2)
    with Load([server.url for server in servers], SEED) as load, ThreadPoolExecutor(1) as thread:
        load.until_all_write()
        stop_amid_a_write(servers[0], target)
        waiting = thread.submit(write_patiently, servers[1])
        for _ in range(12):  # seconds; SQLite's patience is 10
            assert httpx.get(f"{servers[1].url}/health", timeout=5).status_code == 200
            load.go_on(1)
        servers[0].signal(signal.SIGCONT)
        # PostgreSQL locks what is written, SQLite all there is, for whoever's turn it is.
        assert waiting.result() in (200, 503)
        load.until_all_write()  # both are back
        assert write_patiently(servers[1]) == 200
    check(target, servers, load)


def write_patiently(server: ServerProcess) -> int:
    """Begin a session and wait for the answer, be it that one must try again."""
    asked = {"agent": "patient", "new": True}
    answer = httpx.post(f"{server.url}/api/sessions/resolve", json=asked, timeout=60)
    assert answer.status_code == 200 or int(answer.headers["Retry-After"]) > 0
    return answer.status_code


def start(target: str, count: int) -> list[ServerProcess]:
    """So many servers, which all find a store that nobody has made yet."""
    servers = [ServerProcess(target, *PLAIN, embedder="none") for _ in range(count)]
    return [server.until_up() for server in servers]


def kill_and_restart(servers: list[ServerProcess], load: Load, *, pause_s: float) -> None:
    """`kill -9` the first of the servers amid the load; a new one takes its place as the last."""
    load.until_all_write()
    load.go_on(pause_s)
    killed = servers.pop(0)
    killed.kill()
    servers.append(killed.again().until_up())
    load.until_all_write()


def stop_amid_a_write(server: ServerProcess, target: str) -> None:
    """Let a server stand still; on SQLite, while it holds the lock that others need."""
    for _ in range(500):
        server.signal(signal.SIGSTOP)
        if target.startswith("postgresql://") or _is_locked(target):
            return
        server.signal(signal.SIGCONT)
        time.sleep(0.011)
    raise AssertionError("it never held the lock")


def _is_locked(path: str) -> bool:
    """Whether nobody else gets to write for a while."""
    connection = apsw.Connection(path)
    connection.set_busy_timeout(1_000)
    try:
        connection.execute("BEGIN IMMEDIATE; ROLLBACK")
    except apsw.BusyError:
        return True
    finally:
        connection.close()
    return False


def check(target: str, servers: list[ServerProcess], load: Load) -> None:
    """All that was acknowledged is there, once, in order; the servers end, and had no bad day."""
    for server in servers:
        server.signal(signal.SIGTERM)
    for server in servers:
        server.ended()
        assert "Traceback" not in server.said()
    why = f"seed {SEED}, {sum(load.acked.values())} appends, {dict(load.told)}"
    assert all(load.acked.values()), why
    with open_store(target) as store:
        entries = [_named(entry) for entry in store.history(USER)]
    check_log(entries, load.acked, spare=0, why=why)
    sessions = {(one.message.message_id.partition("n")[0], one.session_id) for one in entries}
    assert len(sessions) == len(load.acked), why  # nobody's went to two
    if not target.startswith("postgresql://"):
        check_file(target, why)


def _named(entry: LogEntry) -> LogEntry:
    """An entry by the id that its content carries, whatever id the server gave it."""
    message = replace(entry.message, message_id=word_of(entry.message.content))
    return entry._replace(message=message)
