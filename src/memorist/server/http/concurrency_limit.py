"""The concurrency limit: how many requests of one caller are worked on at once.

A request keeps its slot until its response is complete and every thread that worked for it is
done, so that a client that disconnects early cannot start more work than one that waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from memorist.errors import RateLimitedError
from memorist.server.auth import Principal
from memorist.server.http.problems import REQUESTS, refuse

MAX_CONCURRENT = 16
THREADS = 64  # for the work of all callers; more than one caller has slots
MAX_WAIT_S = 5.0
ADMIN_FACTOR = 3  # an admin's key asks for many users
STREAM_FACTOR = 4  # a stream that waits for updates does hardly any work
QUEUE_FACTOR = 4  # so many times the slots may wait for one

Caller = tuple[str, ...]


class Slot:
    """A request's place under the limit; freed when the last part of its work has ended."""

    def __init__(self, free: Callable[[], None]) -> None:
        self._free = free
        self._parts = 1

    def begin_part(self) -> bool:
        """Count another part of the work, unless all has ended."""
        self._parts += bool(self._parts)
        return bool(self._parts)

    def end_part(self) -> None:
        """End one part of the work."""
        self._parts -= 1
        if not self._parts:
            self._free()


_slot: ContextVar[Slot | None] = ContextVar("the slot of the current request", default=None)


class WorkerThreads(ThreadPoolExecutor):
    """The event loop's thread pool; each call counts as work of the request that made it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Run a call in a thread."""
        future = super().submit(fn, *args, **named)
        slot = _slot.get()
        if slot is not None and slot.begin_part():
            loop = asyncio.get_running_loop()

            def done(_: Future[Any]) -> None:
                with suppress(RuntimeError):  # the loop is closed: the server has ended
                    loop.call_soon_threadsafe(slot.end_part)

            future.add_done_callback(done)
        return future


@dataclass(slots=True)
class _CallerSlots:
    """The slots of one caller, and how many requests hold or wait for one."""

    size: int
    free: asyncio.Semaphore
    requests: int = 0


class ConcurrencyLimit:
    """Works on so many requests of a caller at once; more wait a little, then get 429."""

    def __init__(
        self, app: ASGIApp, *, max_concurrent: int = MAX_CONCURRENT, max_wait_s: float = MAX_WAIT_S
    ) -> None:
        self._app = app
        self._max_concurrent = max_concurrent
        self._max_wait_s = max_wait_s
        self._callers: dict[Caller, _CallerSlots] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app answer once the caller has a free slot; public paths are not counted."""
        who = scope.get("state", {}).get("principal") if scope["type"] in REQUESTS else None
        if who is None or not self._max_concurrent:
            await self._app(scope, receive, send)
            return
        slot = await self._acquire(who, _is_stream(scope))
        if slot is None:
            error = RateLimitedError("too many requests at once; wait for answers, then retry")
            await refuse(error, scope, receive, send)
            return
        before = _slot.set(slot)
        try:
            await self._app(scope, receive, send)
        finally:
            _slot.reset(before)
            slot.end_part()

    async def _acquire(self, who: Principal, stream: bool) -> Slot | None:
        """A slot of the caller's; none if that takes too long or too many wait already."""
        # All keys of a user count together; an admin's keys do not, as each serves many users.
        caller = who.tenant, who.user or "", "" if who.user else who.name, str(stream)
        if caller not in self._callers:
            factor = (ADMIN_FACTOR if who.admin else 1) * (STREAM_FACTOR if stream else 1)
            size = self._max_concurrent * factor
            self._callers[caller] = _CallerSlots(size, asyncio.Semaphore(size))
        slots = self._callers[caller]
        if slots.requests >= slots.size * (1 + QUEUE_FACTOR):
            return None
        slots.requests += 1
        try:
            async with asyncio.timeout(self._max_wait_s):
                await slots.free.acquire()
        except BaseException as error:
            self._leave(caller)
            if isinstance(error, TimeoutError):
                return None
            raise

        def free() -> None:
            slots.free.release()
            self._leave(caller)

        return Slot(free)

    def _leave(self, caller: Caller) -> None:
        slots = self._callers[caller]
        slots.requests -= 1
        if not slots.requests:
            del self._callers[caller]


def _is_stream(scope: Scope) -> bool:
    """Whether the request follows a message's updates, which may last for minutes."""
    return scope.get("method") == "GET" and str(scope["path"]).endswith("/updates")
