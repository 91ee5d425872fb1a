"""The primary dies or freezes, its standby is promoted: the same store goes on there."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from urllib.parse import urlsplit

import pytest

from memorist.store.postgres.store import PostgresStore
from tests.crash.evidence import SCOPE, batch, check_store
from tests.support.postgres import Server, start_server
from tests.support.waiting import until

WRITERS = ("left", "right")
MORE = 10  # appends of each writer that show that it goes on
PATIENCE = 300  # seconds, on a machine that is busy with other things


@pytest.fixture(scope="module")
def primary() -> Iterator[Server]:
    with closing(start_server(vector=False)) as server:
        if not server.can_restart:
            pytest.skip("the server given is not ours to kill")
        yield server


class Writing:
    """Threads that append to one store, each in order, and count what was acknowledged."""

    def __init__(self, url: str) -> None:
        self.acked = dict.fromkeys(WRITERS, 0)
        self.store = PostgresStore(url, patience_seconds=PATIENCE)
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(name,)) for name in WRITERS]

    def _write(self, name: str) -> None:
        while not self._is_over.is_set():
            self.store.append(SCOPE, batch(name, self.acked[name]))
            self.acked[name] += 1

    def go_on(self) -> None:
        """Return when each writer has stored some more."""
        goals = {name: acked + MORE for name, acked in self.acked.items()}

        def reached() -> bool:
            assert all(thread.is_alive() for thread in self._threads), "a writer has failed"
            return all(self.acked[name] >= goal for name, goal in goals.items())

        until(reached, PATIENCE)

    @contextmanager
    def running(self) -> Iterator[None]:
        with self.store:
            for thread in self._threads:
                thread.start()
            try:
                self.go_on()
                yield
                self.go_on()
            finally:
                self._is_over.set()
                for thread in self._threads:
                    thread.join()


def both(database: str, one: Server, other: Server) -> str:
    """The URL of a database that is at one of two servers."""
    parts, port = urlsplit(database), urlsplit(other.url).port
    return parts._replace(netloc=f"{urlsplit(one.url).netloc},127.0.0.1:{port}").geturl()


def at(database: str, server: Server) -> str:
    return urlsplit(database)._replace(netloc=urlsplit(server.url).netloc).geturl()


def test_a_primary_is_killed_and_nothing_acknowledged_is_lost_or_doubled(primary: Server) -> None:
    database = primary.create_database("failover")
    with closing(primary.add_standby()) as standby:
        url = both(database, primary, standby)
        writing, opened = Writing(url), list[PostgresStore]()
        with writing.running():
            primary.kill()
            opening = threading.Thread(target=lambda: opened.append(PostgresStore(url)))
            opening.start()  # it finds a standby only, and waits
            standby.promote()
            opening.join()
            with opened[0]:
                assert opened[0].history(SCOPE, last=1)
        check_store(at(database, standby), writing.acked, spare=0, why="one promotion")


@pytest.mark.prove
def test_of_twelve_promotions_none_loses_or_doubles_anything() -> None:
    with ExitStack() as servers:
        server = servers.enter_context(closing(start_server(vector=False)))
        database = server.create_database("failover")
        standby = servers.enter_context(closing(server.add_standby()))
        writing = Writing(both(database, server, standby))
        with writing.running():
            for _ in range(12):
                server.kill()
                standby.promote()
                writing.go_on()
                server.close()
                port = urlsplit(server.url).port
                server, standby = standby, servers.enter_context(closing(standby.add_standby(port)))
        check_store(at(database, server), writing.acked, spare=0, why="twelve promotions")


@pytest.mark.prove
def test_a_primary_freezes_and_nothing_acknowledged_is_lost_or_doubled() -> None:
    with closing(start_server(vector=False)) as server, closing(server.add_standby()) as standby:
        database = server.create_database("failover")
        writing = Writing(both(database, server, standby))
        frozen = list[int]()
        try:
            with writing.running():
                frozen += server.processes()
                for process in frozen:
                    os.kill(process, signal.SIGSTOP)
                standby.promote()
            check_store(at(database, standby), writing.acked, spare=0, why="a frozen primary")
        finally:
            for process in reversed(frozen):
                os.kill(process, signal.SIGCONT)
