"""Request ids, security headers, and the handler of last resort: the outermost middleware."""

from __future__ import annotations

import logging
import re
import uuid

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memorist.server.http.problems import REQUESTS, header_values, refuse

SAFE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
STATIC_FOLDER = "/web/"  # files that are the same for everyone, and may be cached
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
log = logging.getLogger("memorist.server")


class RequestIdMiddleware:
    """Gives each request an id and each response our headers; no exception gets past it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app; an exception is logged and answered by its kind and the request id only."""
        if scope["type"] not in REQUESTS:
            await self._app(scope, receive, send)
            return
        id_ = request_id(header_values(scope, b"x-request-id"))
        scope.setdefault("state", {})["request_id"] = id_
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                message.setdefault("headers", [])
                _add_headers(MutableHeaders(scope=message), id_, scope["path"])
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except BaseException as error:
            if not isinstance(error, Exception):
                raise  # cancelled: no client waits for a response
            if isinstance(error, ClientDisconnect):
                return
            log.error("%s: %s", id_, type(error).__name__)
            # A response that was cut short stays open: the server then closes the connection.
            if not started:
                await refuse(error, scope, receive, send_with_headers)


def request_id(sent: list[bytes]) -> str:
    """The client's own id if it is one and harmless, otherwise a new one."""
    if len(sent) == 1 and SAFE_ID.fullmatch(sent[0]):
        return sent[0].decode()
    return uuid.uuid4().hex


def _add_headers(headers: MutableHeaders, request_id: str, path: str) -> None:
    del headers["server"]
    headers.update({**SECURITY_HEADERS, "x-request-id": request_id})
    if not path.startswith(STATIC_FOLDER) and "no-store" not in headers.get("cache-control", ""):
        headers["cache-control"] = "no-store"
