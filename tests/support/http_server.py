"""Real servers on loopback: uvicorn in a thread of the test's process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import httpx
import uvicorn

from memorist import Memory
from memorist.namespaces import ApiKeys
from memorist.server.auth import Keys


@contextmanager
def serving(app: Any, **options: Any) -> Iterator[str]:
    """The address of a server with this app, for as long as the block lasts."""
    options.setdefault("timeout_graceful_shutdown", 1)  # for streams that a browser still follows
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, log_level="error", server_header=False, **options
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        for _ in range(6_000):
            if server.started:
                break
            if not thread.is_alive():
                raise RuntimeError("the server did not start")
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(timeout=60)
        assert not thread.is_alive(), "the server did not end"


@dataclass(frozen=True)
class Served:
    """A running server and the memory behind it."""

    url: str
    memory: Memory
    clients: ExitStack = field(default_factory=ExitStack)

    def key(self, user: str | None = "ada", tenant: str = "default") -> str:
        """A new key for a user, or for an admin."""
        return Keys(self.memory.keys).create(tenant=tenant, user=user).text

    def client(self, user: str | None = "ada", tenant: str = "default") -> httpx.Client:
        """An HTTP client with a key of its own."""
        return self.with_key(self.key(user, tenant))

    def with_key(self, key: str | None) -> httpx.Client:
        """An HTTP client with this key."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        client = httpx.Client(base_url=self.url, headers=headers, timeout=30)
        return self.clients.enter_context(client)


def keys_of(store: Any) -> ApiKeys:
    """The API keys in a store without a memory around it."""
    return ApiKeys(cast(Any, SimpleNamespace(store=store)), "default")
