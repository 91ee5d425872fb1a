"""The MCP server over HTTP in a thread or process of its own, and a caller whom a header names.

python -m tests.support.mcp_http database     # prints its port
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from memorist import Memory
from memorist.records.scope import Principal
from memorist.server.mcp.http import McpApp
from tests.support.forked import Forked
from tests.support.mcp_servers import environment

ALONE, WHOLE = "tests.support.mcp_http", "tests.support.mcp_whole"
ADA = {"Authorization": "Bearer acme/ada"}
ADMIN = {"Authorization": "Bearer acme/"}


class Named:
    """Stands for the layer that knows who is asking: the bearer token is `tenant/user`."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Tell who is asking, if the request says so."""
        token = dict(scope.get("headers", ())).get(b"authorization", b"").decode("latin-1")
        if token.startswith("Bearer "):
            tenant, _, user = token.removeprefix("Bearer ").partition("/")
            principal = Principal(tenant=tenant, user=user or None)
            scope.setdefault("state", {})["principal"] = principal
        await self.app(scope, receive, send)


def make_app(memory: Memory, mcp: McpApp | None = None) -> Any:
    """An app with nothing but MCP."""
    mcp = mcp or McpApp(memory)

    @asynccontextmanager
    async def alive(_: Starlette) -> AsyncIterator[None]:
        async with mcp.run():
            yield

    return Named(Starlette(routes=[Route("/mcp", endpoint=mcp)], lifespan=alive))


def _listening() -> socket.socket:
    """A socket whose protocol is named, as asyncio else lets small answers wait for each other."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.bind(("127.0.0.1", 0))
    made.listen()
    return made


@contextmanager
def serving_here(app: Any) -> Iterator[str]:
    """The address of an app that a thread serves."""
    listening = _listening()
    config = uvicorn.Config(app, log_level="error", ws="none", lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp?tools=all"
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        listening.close()
        assert not thread.is_alive()


@contextmanager
def serving_elsewhere(database: Path, module: str = ALONE) -> Iterator[str]:
    """The address of a server in a process of its own."""
    server = Forked(module, database, ready=(module,), environment=environment(database))
    try:
        port = server.stdout.readline().decode().strip()
        assert port, "the server did not start"
        yield f"http://127.0.0.1:{port}/mcp?tools=all"
        assert server.poll() is None, "the server died"
    finally:
        if server.poll() is None:
            os.kill(server.pid, signal.SIGTERM)
        server.communicate()


def main(make: Any = make_app) -> None:
    """Serve a database until somebody ends it."""
    with Memory(sys.argv[1], embedder=None, extraction=None) as memory:
        listening = _listening()
        print(listening.getsockname()[1], flush=True)
        config = uvicorn.Config(make(memory), log_level="error", ws="none", lifespan="on")
        asyncio.run(uvicorn.Server(config).serve([listening]))


if __name__ == "__main__":
    main()
