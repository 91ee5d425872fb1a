"""Turns: how much one caller has worked on at once, so that nobody waits for another's work.

A turn lasts until the answer is given and every thread that worked for it is done: who hangs up
early has no room for more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memorist.errors import RateLimitedError
from memorist.server.http.asgi import REQUESTS, refuse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from memorist.server.principal import Principal

MOST = 16
THREADS = 64  # for the work of all callers; more than one of them has turns
LONGEST_WAIT_S = 5.0
FOR_ADMINS = 3  # times as many: they ask for many users
FOR_STREAMS = 4  # times as many: hardly any work is done for one that waits for updates
IN_LINE = 4  # times as many may wait as are worked on

Caller = tuple[str, ...]


class Turn:
    """A request that is worked on, until the last part of the work has ended."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._parts = 1

    def begin(self) -> bool:
        """Count another part of the work, unless all has ended."""
        self._parts += bool(self._parts)
        return bool(self._parts)

    def finish(self) -> None:
        """End one part of the work."""
        self._parts -= 1
        if not self._parts:
            self._end()


_turn: ContextVar[Turn | None] = ContextVar("the turn that work belongs to", default=None)


class Threads(ThreadPoolExecutor):
    """The threads of a server's loop; what they do belongs to the turn that asked for it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Have a call made in a thread."""
        future = super().submit(fn, *args, **named)
        turn = _turn.get()
        if turn is not None and turn.begin():
            loop = asyncio.get_running_loop()

            def done(_: Future[Any]) -> None:
                with suppress(RuntimeError):  # the server has ended, and its loop with it
                    loop.call_soon_threadsafe(turn.finish)

            future.add_done_callback(done)
        return future


@dataclass(slots=True)
class Line:
    """The free turns of one caller, and how many requests have or want one."""

    room: int
    free: asyncio.Semaphore
    asking: int = 0

    @property
    def full(self) -> bool:
        """Whether nobody else may wait."""
        return self.asking >= self.room * (1 + IN_LINE)


class Turns:
    """Works on so many requests of a caller at once; others wait in line, but not for long."""

    def __init__(self, app: ASGIApp, *, most: int = MOST, wait_s: float = LONGEST_WAIT_S) -> None:
        self._app = app
        self._most = most
        self._wait_s = wait_s
        self._lines: dict[Caller, Line] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let through whose turn it is; what is nobody's is not counted."""
        who = scope.get("state", {}).get("principal") if scope["type"] in REQUESTS else None
        if who is None or not self._most:
            await self._app(scope, receive, send)
            return
        turn = await self._turn_of(who, _is_stream(scope))
        if turn is None:
            error = RateLimitedError("too many requests at once; wait for answers, then retry")
            await refuse(error, scope, receive, send)
            return
        before = _turn.set(turn)
        try:
            await self._app(scope, receive, send)
        finally:
            _turn.reset(before)
            turn.finish()

    async def _turn_of(self, who: Principal, stream: bool) -> Turn | None:
        """A turn, once one is free; nothing if that takes too long."""
        # All keys of a user count as one; an admin's each for itself: its host serves many.
        caller = who.tenant, who.user or "", "" if who.user else who.name, str(stream)
        if caller not in self._lines:
            room = self._most * (FOR_ADMINS if who.admin else 1) * (FOR_STREAMS if stream else 1)
            self._lines[caller] = Line(room, asyncio.Semaphore(room))
        line = self._lines[caller]
        if line.full:
            return None
        line.asking += 1
        try:
            async with asyncio.timeout(self._wait_s):
                await line.free.acquire()
        except BaseException as error:
            self._leave(caller)
            if isinstance(error, TimeoutError):
                return None
            raise

        def end() -> None:
            line.free.release()
            self._leave(caller)

        return Turn(end)

    def _leave(self, caller: Caller) -> None:
        line = self._lines[caller]
        line.asking -= 1
        if not line.asking:
            del self._lines[caller]


def _is_stream(scope: Scope) -> bool:
    """Whether it is for updates, which one waits for as long as there may be some."""
    return scope.get("method") == "GET" and str(scope["path"]).endswith("/updates")
