"""What a request brings: JSON, not too much, not too deep, not too slowly; read here, once.

    app = Bodies(app)   # the app then gets the whole body as one message

Bodies in memory are bounded together: who finds no room waits a little, then is told to retry.
Where nobody needs to say who they are, no body is taken at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memorist.errors import MemoristError, TooLargeError
from memorist.server.http.asgi import refuse, values
from memorist.server.http.authenticate import is_public
from memorist.server.http.nesting import Nesting
from memorist.server.http.problems import HttpError, problem_response, request_id_of
from memorist.server.http.rate_limit import caller_of
from memorist.server.http.room import SHARES, Room

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MIB = 1024 * 1024
MOST_BYTES = 8 * MIB
MOST_DEPTH = 64
MOST_VALUES = 100_000  # a value takes up to 30 times its bytes once it is parsed
ROOM = 32 * MIB  # of bodies; what is parsed from them, and what waits, comes on top
SMALL = 64 * 1024  # needs no room: the server has as much in hand for each connection
STEP = 256 * 1024  # of room at a time
LINGER_S = 2.0  # for the sender to read why it was refused
LINGERING = 2  # that are read at once to their end, for nothing: others must not wait for it
JSON_TYPE = re.compile(
    rb'application/(?:[a-z0-9!#$&^_.+-]+\+)?json(?:\s*;\s*charset\s*=\s*"?utf-8"?)?\s*;?\s*'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How slowly a body may come: so many bytes in each window, and all of it in time."""

    least_bytes: int = 64 * 1024
    window_s: float = 10.0
    total_s: float = 60.0


class Bodies:
    """Reads each body under limits, and hands it on as one message."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        most_bytes: int = MOST_BYTES,
        most_depth: int = MOST_DEPTH,
        most_values: int = MOST_VALUES,
        pace: Pace = Pace(),  # noqa: B008
        room: Room | None = None,
    ) -> None:
        self._app = app
        self.most_bytes = most_bytes
        self.most_depth = most_depth
        self.most_values = most_values
        self.pace = pace
        self.room = room or Room(max(ROOM, SHARES * most_bytes))
        self._lingering = asyncio.Semaphore(LINGERING)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app have the body, or refuse it; whoever leaves amid it is let go."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        reading = _Reading(self, scope, receive)
        try:
            try:
                replay = _replay(await reading.whole(), receive)
            except _Left:
                return
            except MemoristError as error:
                reading.give_back()
                error.__traceback__ = None  # its frames hold what was read
                say = refuse if reading.ended else self._refuse_unread
                await say(error, scope, receive, send)
                return
            await self._app(scope, replay, send)
        finally:
            reading.give_back()

    async def _refuse_unread(
        self, error: Exception, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer amid a body, then close; not at once, as that could cost the sender the answer."""
        told = problem_response(error, request_id_of(scope))
        headers = [*told.raw_headers, (b"connection", b"close")]
        await send({"type": "http.response.start", "status": told.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": bytes(told.body), "more_body": True})
        with contextlib.suppress(TimeoutError):  # it goes on sending: it could have read
            async with asyncio.timeout(LINGER_S), self._lingering:
                while (await receive()).get("more_body"):
                    pass
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class _Left(Exception):
    """The client went away amid the body."""


class _Reading:
    """One body on its way in."""

    def __init__(self, limits: Bodies, scope: Scope, receive: Receive) -> None:
        self._limits = limits
        self._scope = scope
        self._receive = receive
        self._nesting = Nesting(most_depth=limits.most_depth, most_values=limits.most_values)
        self._chunks: list[bytes] = []
        self._size = 0
        self._declared = declared_length(scope)
        most = self._declared or limits.most_bytes  # of unknown length: it may become the largest
        self._stay = limits.room.enter(caller_of(scope), most)
        self.ended = False

    async def whole(self) -> bytes:
        """All of it; raises what is to be answered instead."""
        if is_public(self._scope) and has_body(self._scope):
            raise TooLargeError("this address takes no body")
        if self._declared:
            self._check(self._declared)
        await self._read()
        body, self._chunks = b"".join(self._chunks), []
        self._limits.room.settle(self._stay, self._size)
        return body

    def give_back(self) -> None:
        """Let go of what was read, and leave the room that it took."""
        self._limits.room.leave(self._stay)
        self._chunks.clear()

    async def _read(self) -> None:
        pace = self._limits.pace
        end = self._now() + pace.total_s
        window_end, wanted = self._now() + pace.window_s, pace.least_bytes
        while not self.ended:
            message = await self._next(min(end, window_end))
            self.ended = not message.get("more_body", False)
            await self._keep(message.get("body", b""))
            if self._size >= wanted:
                window_end, wanted = self._now() + pace.window_s, self._size + pace.least_bytes

    def _now(self) -> float:
        """The sender's time: it stands still while we wait for room."""
        return asyncio.get_running_loop().time() - self._stay.waited_s

    async def _next(self, until: float) -> Message:
        try:
            async with asyncio.timeout_at(until + self._stay.waited_s):
                message = await self._receive()
        except TimeoutError:
            raise HttpError(408, "too_slow", "the body came too slowly") from None
        if message["type"] == "http.disconnect":
            raise _Left
        return message

    async def _keep(self, chunk: bytes) -> None:
        if not chunk:
            return
        self._size += len(chunk)
        self._check(self._size)
        if self._size > SMALL:
            await self._take(-(-self._size // STEP) * STEP)
        self._nesting.feed(chunk)
        self._chunks.append(chunk)

    def _check(self, size: int) -> None:
        if size > self._limits.most_bytes:
            raise TooLargeError(f"the body has over {self._limits.most_bytes} bytes")
        if not is_json(self._scope):
            raise HttpError(415, "not_json", "a body must be application/json, as UTF-8")

    async def _take(self, size: int) -> None:
        try:
            await self._limits.room.take(self._stay, size)
        except TimeoutError:
            words = "too many large requests at once; wait, then retry"
            raise HttpError(503, "busy", words, headers={"Retry-After": "2"}) from None


def has_body(scope: Scope) -> bool:
    """Whether the request says that a body comes with it."""
    return declared_length(scope) > 0 or bool(values(scope, b"transfer-encoding"))


def declared_length(scope: Scope) -> int:
    """The body's length as its header says; nothing said is none."""
    said = [value.strip() for value in values(scope, b"content-length")]
    return max((int(one[:18]) for one in said if one.isdigit()), default=0)


def is_json(scope: Scope) -> bool:
    """Whether the body says that it is JSON in UTF-8, and not packed."""
    kinds = [value.strip().lower() for value in values(scope, b"content-type")]
    packed = set(values(scope, b"content-encoding")) - {b"identity"}
    return len(kinds) == 1 and bool(JSON_TYPE.fullmatch(kinds[0])) and not packed


def _replay(body: bytes, receive: Receive) -> Receive:
    """A receive that gives the body once, and then what really comes: that the client left."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again
