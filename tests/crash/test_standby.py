"""The host of the primary freezes, its standby is promoted: the store goes on there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from memorist.store.postgres.store import PostgresStore
from tests.crash.evidence import SCOPE, batch, check_store
from tests.support import postgres
from tests.support.postgres import Server, start_server

PAUSE_SECONDS = 5  # until somebody promotes the standby


class Standby:
    """A copy of a server that follows it."""

    def __init__(self, primary: Server) -> None:
        assert primary._programs is not None
        parts = urlsplit(primary.url)
        self.port = postgres._free_port()
        self._programs = primary._programs
        self._folder = Path(tempfile.mkdtemp(prefix="standby-", dir=postgres._base()))
        if postgres.SERVER_USER:
            shutil.chown(self._folder, postgres.SERVER_USER)
        data, user = self._folder / "data", postgres.SERVER_USER
        tool = shutil.which("pg_basebackup")
        assert tool is not None
        postgres._run(tool, "-D", data, "-R", "-c", "fast", "-d", primary.url, user=user)
        with (data / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"port = {self.port}\n")
        self.control("start", "-w")
        # What is acknowledged is on both.
        with psycopg.connect(primary.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
        login = f"postgresql://{parts.username}:{parts.password}@127.0.0.1"
        self.url = f"{login}:{self.port}"
        self.both = f"{login}:{parts.port},127.0.0.1:{self.port}"

    def control(self, *arguments: str) -> None:
        paths = ("-D", self._folder / "data", "-l", self._folder / "log")
        program = self._programs / "pg_ctl"
        postgres._run(program, *paths, *arguments, user=postgres.SERVER_USER)

    def close(self) -> None:
        self.control("stop", "-m", "immediate")
        shutil.rmtree(self._folder, ignore_errors=True)


def processes_of(server: Server) -> list[int]:
    """The server's process and its children."""
    first = int((server._folder / "data/postmaster.pid").read_text().split()[0])
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(first)], capture_output=True)
    return [first, *map(int, listed.stdout.split())]


@pytest.fixture
def pair() -> Iterator[tuple[Server, Standby]]:
    if shutil.which("pg_basebackup") is None:
        pytest.skip("there is no pg_basebackup here")
    primary = start_server(vector=False)
    if not primary.can_restart:
        pytest.skip("the server given is not ours to freeze")
    standby = Standby(primary)
    yield primary, standby
    standby.close()
    primary.close()


@pytest.mark.prove
def test_the_promoted_standby_is_found_and_nothing_acknowledged_is_lost(
    pair: tuple[Server, Standby],
) -> None:
    primary, standby = pair
    name = urlsplit(primary.create_database("standby")).path
    url = f"{standby.both}{name}"
    acked = [0]
    longest = 0.0
    is_over = threading.Event()

    def write(store: PostgresStore) -> None:
        nonlocal longest
        while not is_over.is_set():
            began = time.monotonic()
            store.append(SCOPE, batch("writer", acked[0]))
            acked[0] += 1
            longest = max(longest, time.monotonic() - began)

    with PostgresStore(url, patience_seconds=90) as store:
        store.append(SCOPE, batch("writer", 0))
        acked[0] = 1
        writer = threading.Thread(target=write, args=(store,))
        writer.start()
        frozen = processes_of(primary)
        for process in frozen:
            os.kill(process, signal.SIGSTOP)
        try:
            time.sleep(PAUSE_SECONDS)
            standby.control("promote")
            before, deadline = acked[0], time.monotonic() + 60
            while acked[0] < before + 50 and time.monotonic() < deadline and writer.is_alive():
                time.sleep(0.1)
            is_over.set()
            writer.join()
            why = f"the longest append took {longest:.1f} s"
            assert acked[0] >= before + 50, why
            check_store(f"{standby.url}{name}", {"writer": acked[0]}, spare=0, why=why)
            print(why)
        finally:
            for process in reversed(frozen):
                os.kill(process, signal.SIGCONT)
