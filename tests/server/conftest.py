"""Servers for the tests: real ones, on loopback, with keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memorist import Memory
from memorist.server.auth import Guard
from memorist.server.chat import ChatRuntime
from memorist.server.http.app import Limits, _routes, build_app
from tests.support.http_server import Served, serving

UNLIMITED = Limits(requests_per_s=0, failures_per_s=0)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that asks for keys, on a memory without vectors."""
    path: Path = tmp_path_factory.mktemp("served") / "memory.db"
    with (
        Memory(path, embedder=None) as memory,
        serving(build_app(memory, Guard(memory.keys), UNLIMITED)) as url,
    ):
        server = Served(url, memory)
        with server.clients:
            yield server


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    """The OpenAPI document, which takes a second to make."""
    with Memory(":memory:", embedder=None, extraction=None) as memory:
        return _routes(memory, ChatRuntime(), False, Limits(), None).openapi()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """An empty memory in a file, for servers with several threads; nothing happens by itself."""
    with Memory(tmp_path / "memory.db", embedder=None, extraction=None) as opened:
        yield opened
