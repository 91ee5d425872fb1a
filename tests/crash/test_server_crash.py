"""PostgreSQL crashes under load and comes back; the store that was open goes on."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from memorist.store.base import Store
from tests.crash.evidence import USER, batch, check_store, open_store
from tests.support.postgres import URL_VARIABLE, Server, start_server

SEED = 20_260_918
WRITERS = 4
BACK_WITHIN_SECONDS = 5.0

# A COMMIT waits this long before it is flushed, so that every crash comes in the middle of some.
# What they wrote is then gone, and the server gives out their transaction numbers a second time.
SLOW_COMMITS = (
    "ALTER SYSTEM SET fsync = on",  # without which there is no delay
    "ALTER SYSTEM SET commit_delay = 20000",
    "ALTER SYSTEM SET commit_siblings = 0",
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server of this test's own, which it may crash."""
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    with contextlib.closing(start_server(vector=True)) as own:
        with psycopg.connect(own.url, autocommit=True) as connection:
            for setting in SLOW_COMMITS:
                connection.execute(setting)
        own.stop()
        own.start()
        yield own


def test_three_server_crashes_lose_nothing_and_need_no_reopening(server: Server) -> None:
    crash_under_load(server, outages_seconds=[7.5, 0.0, 1.0])


@pytest.mark.prove
def test_twenty_server_crashes_lose_nothing_and_need_no_reopening(server: Server) -> None:
    chance = random.Random(SEED)
    crash_under_load(server, outages_seconds=[chance.uniform(0, 10) for _ in range(20)])


class Writer(threading.Thread):
    """Appends until told to stop; `acked` counts the appends that returned."""

    def __init__(self, store: Store, name: str, stop: threading.Event) -> None:
        super().__init__(name=name)
        self.acked = 0
        self.error: Exception | None = None
        self._store, self._stop_now = store, stop
        self._scope = USER.within(session=name)  # one each: in one session, they would take turns

    def run(self) -> None:
        try:
            while not self._stop_now.is_set():
                self._store.append(self._scope, batch(self.name, self.acked))
                self.acked += 1
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error


def crash_under_load(server: Server, outages_seconds: list[float]) -> None:
    url = server.create_database("crash")
    stop = threading.Event()
    with open_store(url) as store:
        writers = [Writer(store, f"writer{number}", stop) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        try:
            wait_for_progress(writers, 10)
            delays = [crash_once(server, outage, writers) for outage in outages_seconds]
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        assert [writer.error for writer in writers] == [None] * WRITERS
    back = [
        f"{outage:.1f} → {delay:.1f}" for outage, delay in zip(outages_seconds, delays, strict=True)
    ]
    why = f"{len(back)} crashes of seed {SEED}; seconds of outage → until back: {back}"
    check_store(url, {writer.name: writer.acked for writer in writers}, spare=0, why=why)
    assert max(delays) < BACK_WITHIN_SECONDS, why


def crash_once(server: Server, outage_seconds: float, writers: list[Writer]) -> float:
    """Crash, wait, restart; return the seconds until every writer was acknowledged again."""
    server.stop("immediate")
    time.sleep(outage_seconds)
    server.start()
    return wait_for_progress(writers, 60)


def wait_for_progress(writers: list[Writer], patience_seconds: float) -> float:
    """Wait until each writer, or its error, gets ahead of where it is; return the seconds."""
    began = time.monotonic()
    before = [writer.acked for writer in writers]
    while time.monotonic() - began < patience_seconds:
        if any(writer.error for writer in writers):
            break
        if all(writer.acked > start for writer, start in zip(writers, before, strict=True)):
            break
        time.sleep(0.01)
    return time.monotonic() - began
