"""The app: every route, behind the layers that let a request through."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from memorist import __version__
from memorist.aio_life import in_thread
from memorist.errors import MemoristError, MissingExtraError
from memorist.memory import Memory
from memorist.server.auth import Guard
from memorist.server.chat import Chats
from memorist.server.http.authenticate import Authenticate
from memorist.server.http.body_limit import Bodies
from memorist.server.http.concurrency_limit import MOST, THREADS, Threads, Turns
from memorist.server.http.hosts import Hosts
from memorist.server.http.openapi import describe
from memorist.server.http.problems import on_error, on_http, on_invalid
from memorist.server.http.rate_limit import FailedLogins, Rates
from memorist.server.http.request_id import Identify
from memorist.server.http.routes import ROUTERS
from memorist.server.http.validation import check_query
from memorist.server.mcp.http import McpApp

try:
    from anyio.to_thread import current_default_thread_limiter
    from fastapi import Depends, FastAPI
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException
    from starlette.staticfiles import StaticFiles
    from starlette.types import ASGIApp
except ImportError as error:
    raise MissingExtraError("server") from error

WEB = Path(__file__).parent.parent / "web"
MOST_TENANTS = 1_024  # that are kept in hand


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is taken: bytes of a body, requests of a caller, hosts and origins."""

    body_bytes: int = 8 * 1024 * 1024
    requests_per_s: float = 100.0
    burst: int = 200
    at_once: int = MOST
    failures_per_s: float = 10.0
    hosts: Sequence[str] = field(default=())
    origins: Sequence[str] = field(default=())


DEFAULT_LIMITS = Limits()


def build_app(
    memory: Memory,
    guard: Guard,
    limits: Limits = DEFAULT_LIMITS,
    *,
    chats: Chats | None = None,
    owned: bool = False,
) -> ASGIApp:
    """The HTTP API and MCP on one memory, for those whom the guard lets in.

    `chats` has the model that answers; without one, chat says so. With `owned`, the memory is
    made ready when the server starts and closed when it ends.
    """
    return _shielded(_routes(memory, chats or Chats(), owned), guard, limits)


def _routes(memory: Memory, chats: Chats, owned: bool) -> FastAPI:
    of_tenant = lru_cache(maxsize=MOST_TENANTS)(memory.of_tenant)
    mcp = McpApp(memory, of_tenant=of_tenant)

    @asynccontextmanager
    async def alive(_: FastAPI) -> AsyncIterator[None]:
        _get_threads()
        await in_thread(app.openapi)  # queries are checked by it: not while the first one waits
        if owned:
            _watch_for_the_end(app.state.stopping)
            await in_thread(memory.warm_up)
        async with mcp.run():
            yield
        await chats.close()
        if owned:
            await in_thread(memory.close)

    app = FastAPI(
        title="Memorist",
        version=__version__,
        summary="The memory of AI agents.",
        docs_url=None,
        redoc_url=None,
        lifespan=alive,
        redirect_slashes=False,
        dependencies=[Depends(check_query)],
    )
    app.state.memory = memory
    app.state.stopping = asyncio.Event()  # for answers that would go on for long
    app.state.chats = chats
    app.state.of_tenant = of_tenant
    handlers: dict[Any, Any] = {
        MemoristError: on_error,
        HTTPException: on_http,
        RequestValidationError: on_invalid,
        Exception: on_error,  # else the framework answers in a form of its own
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
    for router in ROUTERS:
        app.include_router(router)
    app.mount("/web", StaticFiles(directory=WEB), name="web")
    app.add_route("/mcp", cast(Any, mcp), include_in_schema=False)  # an app, as Starlette allows
    describe(app)
    return app


def _get_threads() -> None:
    """Have enough of them that one caller, who has so many turns, leaves some to the others."""
    asyncio.get_running_loop().set_default_executor(Threads(THREADS))
    current_default_thread_limiter().total_tokens = THREADS


def _watch_for_the_end(stopping: asyncio.Event) -> None:
    """Have it known when the server is told to stop: it waits for open answers before it ends."""
    loop = asyncio.get_running_loop()
    if threading.current_thread() is not threading.main_thread():
        return  # where nobody gets signals

    def with_notice(then: Any) -> Any:
        def told(number: int, frame: Any) -> None:
            loop.call_soon_threadsafe(stopping.set)
            then(number, frame)

        return told

    for number in (signal.SIGINT, signal.SIGTERM):
        if callable(then := signal.getsignal(number)):
            signal.signal(number, with_notice(then))


def _shielded(app: ASGIApp, guard: Guard, limits: Limits) -> ASGIApp:
    """The layers before the routes; the last one here is the first that a request meets."""
    app = Bodies(app, most_bytes=limits.body_bytes)
    app = Turns(app, most=limits.at_once)
    app = Rates(app, per_s=limits.requests_per_s, burst=limits.burst)
    app = Authenticate(app, guard)
    app = FailedLogins(app, per_s=limits.failures_per_s)
    app = Hosts(app, hosts=limits.hosts, origins=limits.origins)
    return Identify(app)
