"""The outermost layer: a request id, the headers of every answer, and the last boundary."""

from __future__ import annotations

import logging
import re
import uuid
from typing import TYPE_CHECKING

from memorist.server.http.asgi import REQUESTS, refuse, values

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

GOOD_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
PUBLIC = "/web/"  # files that are the same for everyone, and may be kept
STARTS = ("http.response.start", "websocket.http.response.start")
POLICY = (
    b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    b"object-src 'none'"
)
SECURITY = (
    (b"content-security-policy", POLICY),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
OURS = {b"server", b"x-request-id", *(name for name, _ in SECURITY)}
log = logging.getLogger("memorist.server")

Headers = list[tuple[bytes, bytes]]


class Identify:
    """Names each request, hardens each answer, and lets no exception out."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app answer; what it fails with is told by its kind and the request id only."""
        if scope["type"] not in REQUESTS:
            await self._app(scope, receive, send)
            return
        id_ = request_id(values(scope, b"x-request-id"))
        scope.setdefault("state", {})["request_id"] = id_
        answer = _Answer(send, id_, not scope["path"].startswith(PUBLIC))
        try:
            await self._app(scope, receive, answer.send)
        except BaseException as error:
            if not isinstance(error, Exception):
                raise  # cancelled: nobody waits for an answer
            log.error("%s: %s", id_, type(error).__name__)
            # An answer that is cut short is left open: the server then closes the connection.
            if not answer.started:
                await refuse(error, scope, receive, answer.send)


class _Answer:
    """What is sent, with our headers; remembers whether it began."""

    def __init__(self, send: Send, request_id: str, private: bool) -> None:
        self._send = send
        self._id = request_id.encode()
        self._private = private
        self.started = False

    async def send(self, message: Message) -> None:
        """Send it on; the beginning gets the headers."""
        if message["type"] in STARTS:
            self.started = True
            headers = hardened(list(message.get("headers", ())), self._id, self._private)
            message = {**message, "headers": headers}
        elif message["type"] in ("websocket.accept", "websocket.close"):
            self.started = True
        await self._send(message)


def request_id(given: list[bytes]) -> str:
    """The caller's own id if it is one and harmless, else a new one."""
    if len(given) == 1 and GOOD_ID.fullmatch(given[0]):
        return given[0].decode()
    return uuid.uuid4().hex


def hardened(headers: Headers, request_id: bytes, private: bool) -> Headers:
    """The headers of an answer, with ours in place of any of the same name."""
    kept = [(name, value) for name, value in headers if name.lower() not in OURS]
    if private and not any(b"no-store" in value for _, value in kept):
        kept.append((b"cache-control", b"no-store"))  # wins over whatever else is said of keeping
    return [*kept, *SECURITY, (b"x-request-id", request_id)]
