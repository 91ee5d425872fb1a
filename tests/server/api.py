"""A real server for tests of the HTTP API, and those who ask it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from memorist import Memory
from memorist.server.auth import Guard, Keys
from memorist.server.http.app import Limits, build_app
from memorist.server.http.routing import ApiRoute, router
from tests.support.http_server import serving

ROUTES = [it for it in router.routes if isinstance(it, ApiRoute) and it.include_in_schema]


@dataclass(frozen=True, slots=True)
class Api:
    """A memory, and clients for two of its users, an admin, and an admin of another tenant."""

    memory: Memory
    url: str
    ada: httpx.Client
    eve: httpx.Client
    admin: httpx.Client
    stranger: httpx.Client


@contextmanager
def an_api(folder: Path, **options: Any) -> Iterator[Api]:
    """A server on a new SQLite file, for as long as the block lasts."""
    options = {"embedder": None, "extraction": None, **options}
    with Memory(folder / "api.db", **options) as memory, ExitStack() as stack:
        app = build_app(memory, Guard(memory.keys), Limits(requests_per_s=0))
        url = stack.enter_context(serving(app))

        def client(tenant: str, user: str | None) -> httpx.Client:
            key = Keys(memory.keys).create(tenant=tenant, user=user).text
            headers = {"Authorization": f"Bearer {key}"}
            return stack.enter_context(httpx.Client(base_url=url, headers=headers, timeout=30))

        yield Api(
            memory,
            url,
            client("default", "ada"),
            client("default", "eve"),
            client("default", None),
            client("other", None),
        )


def post(client: httpx.Client, path: str, *, status: int = 200, **body: Any) -> Any:
    """The answer to a JSON body, which must have this status."""
    return _answer(client.post(path, json=body), status)


def get(client: httpx.Client, path: str, *, status: int = 200, **query: Any) -> Any:
    """The answer to a query, which must have this status."""
    return _answer(client.get(path, params=query), status)


def walk(client: httpx.Client, path: str, limit: int, **query: Any) -> list[Any]:
    """All items of a list, page by page."""
    items: list[Any] = []
    cursor = None
    while True:
        if cursor is not None:
            query["cursor"] = cursor
        page = get(client, path, limit=limit, **query)
        assert len(page["items"]) <= limit
        items += page["items"]
        if (cursor := page["next"]) is None:
            return items


def _answer(response: httpx.Response, status: int) -> Any:
    assert response.status_code == status, response.text
    return response.json() if response.content else None
