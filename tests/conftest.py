"""What all tests share: real PostgreSQL servers, started once, stopped at the end."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
import signal
from collections.abc import Iterator

import httpx
import pytest
from httpx._config import DEFAULT_TIMEOUT_CONFIG as PATIENCE
from httpx._transports import default as transports
from hypothesis import settings

from memorist import Memory
from memorist.store.postgres.store import PostgresStore
from tests.support import forked
from tests.support.postgres import Server, start_server

_numbers = itertools.count(1)
gc.disable()  # until all tests are imported
# Each client would read all certificates anew, which takes longer than most requests here.
vars(transports)["create_ssl_context"] = functools.cache(httpx.create_ssl_context)
# On a machine that does much else, an answer can take longer than httpx waits by default.
PATIENCE.connect = PATIENCE.read = PATIENCE.write = PATIENCE.pool = 60
# Where the tests run in the background Ctrl-C is ignored, and would be by their children, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same few examples each time, so that a change is what a failure is about; `make prove` looks
# for others. No deadline: how long an example takes is also what the other workers are at.
settings.register_profile("steady", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("default" if os.environ.get("MEMORIST_PROVE") else "steady")


LONG = (
    "tests/server/test_raw_http",
    "tests/server/test_mcp_fuzz",
    "tests/crash/",
    "tests/conformance/",
)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None):  # this one starts those that run the tests
        forked.share()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long goes first, so that no worker is left alone with it at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def pytest_collection_finish() -> None:
    """What is imported stays: garbage is not looked for in it, which takes a second each time."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def vector_server() -> Iterator[Server]:
    """A PostgreSQL with a pgvector that works."""
    with contextlib.closing(start_server(vector=True)) as server:
        yield server


@pytest.fixture(scope="session")
def plain_server() -> Iterator[Server]:
    """A PostgreSQL without pgvector."""
    with contextlib.closing(start_server(vector=False)) as server:
        yield server


@pytest.fixture
def postgres_url(vector_server: Server) -> Iterator[str]:
    """A new, empty database on the server with pgvector; deleted before it is on the disk."""
    url = vector_server.create_database(f"test{next(_numbers)}")
    yield url
    vector_server.drop_database(url)


@pytest.fixture(scope="session")
def _with_tables(vector_server: Server) -> str:
    url = vector_server.create_database("tables")
    PostgresStore(url).close()
    return url


@pytest.fixture
def postgres_with_tables(vector_server: Server, _with_tables: str) -> Iterator[str]:
    """A new database in which a store has made its tables: a copy, which takes a moment."""
    url = vector_server.create_database(f"test{next(_numbers)}", copy_of=_with_tables)
    yield url
    vector_server.drop_database(url)


@pytest.fixture
def memory() -> Iterator[Memory]:
    """An empty memory without vectors, in which nothing happens in the background."""
    with Memory(":memory:", embedder=None, extraction=None) as opened:
        yield opened
