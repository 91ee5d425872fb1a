"""Limits of a request's body: its size, its media type, and the time it may take to arrive."""

from __future__ import annotations

import asyncio
import re

from starlette.exceptions import HTTPException
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memorist.errors import MemoristError, TooLargeError
from memorist.server.http.authentication import is_public
from memorist.server.http.problems import HttpError, header_values, refuse

MAX_BYTES = 8 * 1024 * 1024
TIMEOUT_S = 60.0
JSON_TYPE = re.compile(
    rb'application/(?:[a-z0-9!#$&^_.+-]+\+)?json(?:\s*;\s*charset\s*=\s*"?utf-8"?)?\s*;?\s*'
)


class BodyLimit:
    """Refuses bodies that are too large, too slow or not JSON, and any body on public paths.

    Starlette's middleware counts the bytes; this adds what it leaves out. Checking the media type
    is part of the defence against CSRF: forms cannot send `application/json`.
    """

    def __init__(
        self, app: ASGIApp, *, max_bytes: int = MAX_BYTES, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._app = RequestBodyLimitMiddleware(app, max_body_size=max_bytes)
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app read the body, or refuse it by what its headers say."""
        if scope["type"] != "http" or not has_body(scope):
            await self._app(scope, receive, send)
            return
        if (error := self._refusal(scope)) is not None:
            await refuse(error, scope, receive, send)
            return
        await self._app(scope, _receive_within(receive, self._timeout_s), send)

    def _refusal(self, scope: Scope) -> MemoristError | None:
        if is_public(scope):
            return TooLargeError("this address takes no body")
        if declared_length(scope) > self._max_bytes:
            return TooLargeError(f"the body has over {self._max_bytes} bytes")
        if not is_json(scope):
            return HttpError(415, "not_json", "a body must be application/json, as UTF-8")
        return None


def has_body(scope: Scope) -> bool:
    """Whether the headers announce a body."""
    return declared_length(scope) > 0 or bool(header_values(scope, b"transfer-encoding"))


def declared_length(scope: Scope) -> int:
    """The Content-Length, 0 if there is none."""
    lengths = [value.strip() for value in header_values(scope, b"content-length")]
    return max((int(length[:18]) for length in lengths if length.isdigit()), default=0)


def is_json(scope: Scope) -> bool:
    """Whether the headers say that the body is JSON in UTF-8, not compressed."""
    types = [value.strip().lower() for value in header_values(scope, b"content-type")]
    encodings = set(header_values(scope, b"content-encoding")) - {b"identity"}
    return len(types) == 1 and bool(JSON_TYPE.fullmatch(types[0])) and not encodings


def _receive_within(receive: Receive, timeout_s: float) -> Receive:
    """A `receive` that raises 408 if the whole body has not arrived in time."""
    deadline = asyncio.get_running_loop().time() + timeout_s
    complete = False

    async def receive_in_time() -> Message:
        nonlocal complete
        if complete:  # the app waits for the client to disconnect
            return await receive()
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408) from None
        complete = not message.get("more_body", False)
        return message

    return receive_in_time
