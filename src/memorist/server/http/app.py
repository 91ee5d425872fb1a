"""The ASGI app: every route, behind the middleware that limits and authenticates requests."""

import asyncio
import gc
import mimetypes
import signal
import threading
from asyncio import to_thread
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, cast

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from memorist import __version__
from memorist.errors import MemoristError
from memorist.memory import Memory
from memorist.server.auth import Guard
from memorist.server.chat import ChatRuntime
from memorist.server.http import middleware
from memorist.server.http.limits import (
    MAX_CONCURRENT,
    THREADS,
    ConcurrencyLimit,
    LoginThrottle,
    RateLimit,
    TokenBuckets,
    WorkerThreads,
)
from memorist.server.http.openapi import describe
from memorist.server.http.problems import on_error, on_http, on_invalid
from memorist.server.http.routes import (  # noqa: F401 - each adds its routes to the router
    activity,
    chat,
    context,
    documents,
    entries,
    maintenance,
    memories,
    messages,
    system,
    transfer,
)
from memorist.server.http.routing import router
from memorist.server.mcp.http import McpApp
from memorist.server.observe import ObserveRequests
from memorist.server.worker_process import WorkerLink

WEB = Path(__file__).parent.parent / "web"
for ending in (".js", ".mjs"):  # a system may have other types, which browsers refuse to run
    mimetypes.add_type("text/javascript", ending)
MAX_TENANTS = 1_024  # whose memories are cached
YOUNG_OBJECTS = 10_000  # before garbage is looked for: a chat makes a thousand
# The framework's own, off: where the host traces, it would tell what a request's query says.
TELEMETRY = TelemetryConfig(tracing=False, metrics=False, logs=False, auto_configure=False)
# Looked for first, as a path is compared with one route after the other.
OFTEN = ("/api/messages", "/api/recall", "/api/context", "/api/chat")
router.routes.sort(key=lambda route: getattr(route, "path", "") not in OFTEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a server: bytes of a body or of a file, requests of a caller, trusted hosts
    and origins.
    """

    body_bytes: int = middleware.MAX_BYTES
    file_bytes: int = middleware.MAX_FILE_BYTES
    requests_per_s: float = 100.0
    burst: int = 200
    at_once: int = MAX_CONCURRENT
    failures_per_s: float = 10.0
    hosts: Sequence[str] = ()
    origins: Sequence[str] = ()


def build_app(
    memory: Memory,
    guard: Guard,
    limits: Limits = Limits(),  # noqa: B008 - it is frozen
    *,
    chats: ChatRuntime | None = None,
    owned: bool = False,
    worker: WorkerLink | None = None,
) -> ASGIApp:
    """The HTTP API and MCP on one memory, for callers that the guard authenticates.

    `chats` has the model that answers; without one, chat says so. With `owned`, the memory is
    warmed up at startup and closed at shutdown. `worker` is the process that works for it.
    """
    app: ASGIApp = _routes(memory, chats or ChatRuntime(), owned, limits, worker)
    app = middleware.BodyLimit(app, max_bytes=limits.body_bytes, max_file_bytes=limits.file_bytes)
    app = ConcurrencyLimit(app, max_concurrent=limits.at_once)
    app = RateLimit(app, TokenBuckets(limits.requests_per_s, limits.burst))
    app = middleware.Authenticate(app, guard)
    app = LoginThrottle(app, TokenBuckets(limits.failures_per_s, 5 * limits.failures_per_s))
    app = middleware.TrustedOrigins(app, origins=limits.origins)
    app = middleware.TrustedHosts(app, hosts=limits.hosts)
    return ObserveRequests(middleware.RequestIdMiddleware(app))  # the first that a request meets


def _routes(
    memory: Memory, chats: ChatRuntime, owned: bool, limits: Limits, worker: WorkerLink | None
) -> FastAPI:
    mcp = McpApp(memory, max_bytes=limits.body_bytes)

    @asynccontextmanager
    async def alive(_: FastAPI) -> AsyncIterator[None]:
        # The thread pools hold more than one caller's requests, so that others get a thread.
        asyncio.get_running_loop().set_default_executor(WorkerThreads(THREADS))
        current_default_thread_limiter().total_tokens = THREADS
        if owned:
            _watch_signals(app.state.stopping)
            await to_thread(memory.warm_up)
            # What is loaded stays: a collection that looks at it all stops everybody for .1 s.
            gc.collect()
            gc.freeze()
            gc.set_threshold(YOUNG_OBJECTS)
            memory.wake()  # for what waits since another server ended
        async with mcp.run():
            yield
        await chats.close()
        if owned:
            await to_thread(memory.close)

    app = FastAPI(
        title="Memorist",
        version=__version__,
        summary="The memory of AI agents.",
        openapi_url=None,  # FastAPI's own route would make the document on the event loop
        lifespan=alive,
        telemetry=TELEMETRY,
        redirect_slashes=False,
        exception_handlers={
            MemoristError: on_error,
            HTTPException: on_http,
            RequestValidationError: on_invalid,
            RecursionError: on_error,
            Exception: on_error,  # otherwise the framework answers in a form of its own
        },
    )
    app.state.memory = memory
    app.state.probe = system.StoreProbe(memory)
    app.state.stopping = asyncio.Event()  # ends responses that stream for long
    app.state.chats, app.state.limits, app.state.worker = chats, limits, worker
    if worker is not None:
        worker.watch()
    app.state.polls = activity.EventPolls()
    app.state.memory_of_tenant = lru_cache(maxsize=MAX_TENANTS)(memory.tenant)
    app.router.routes += router.routes  # a router that is included looks at all of them twice
    app.mount("/web", GZipMiddleware(StaticFiles(directory=WEB)), name="web")
    app.add_route("/openapi.json", _openapi, include_in_schema=False)
    app.add_route("/mcp", cast(Any, mcp), include_in_schema=False)  # an app, as Starlette allows
    describe(app)
    return app


async def _openapi(request: Request) -> JSONResponse:
    """The OpenAPI document; the first time it takes a second to make."""
    document = await to_thread(request.app.openapi)
    root = request.scope.get("root_path", "").rstrip("/")
    return JSONResponse(document | {"servers": [{"url": root}]} if root else document)


def _watch_signals(stopping: asyncio.Event) -> None:
    """Set the event at SIGINT or SIGTERM: uvicorn waits for open streams before it shuts down."""
    loop = asyncio.get_running_loop()
    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread gets signals

    def handle(handler: Any, number: int, frame: Any) -> None:
        loop.call_soon_threadsafe(stopping.set)
        handler(number, frame)

    for number in (signal.SIGINT, signal.SIGTERM):
        if callable(handler := signal.getsignal(number)):
            signal.signal(number, partial(handle, handler))
