"""Middleware: request ids, security headers, trusted hosts and origins, limits of bodies.

RequestIdMiddleware is the outermost. TrustedHosts answers 421 to a Host that is not ours (DNS
rebinding), TrustedOrigins 403 to an Origin that is neither the page's own, nor loopback, nor
configured (CSRF). BodyLimit is the innermost.
"""

from __future__ import annotations

import asyncio
import logging
import re
import uuid
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memorist.errors import ConfigError, ForbiddenError, MemoristError, TooLargeError
from memorist.server.http.authentication import is_public
from memorist.server.http.problems import REQUESTS, HttpError, header_values, refuse

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
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
HOST = re.compile(r"([a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
ORIGIN = re.compile(rf"[a-z][a-z0-9+.-]*://{HOST.pattern}")
LOOPBACK_PAGE = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
TRUSTED = "memorist.trusted_host"
MAX_BYTES = 8 * 1024 * 1024
BODY_TIMEOUT_S = 60.0
JSON_TYPE = re.compile(
    rb'application/(?:[a-z0-9!#$&^_.+-]+\+)?json(?:\s*;\s*charset\s*=\s*"?utf-8"?)?\s*;?\s*'
)
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


class TrustedHosts:
    """Starlette's TrustedHostMiddleware; what it refuses is answered as a problem document."""

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str] = ()) -> None:
        self._app = app
        names = [*LOOPBACK, *map(_host_name, hosts)]
        self._stock = TrustedHostMiddleware(self._accept, names, www_redirect=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app answer requests to our own host names."""
        if scope["type"] not in REQUESTS:
            await self._app(scope, receive, send)
            return

        async def send_if_trusted(message: Message) -> None:
            if TRUSTED in scope:
                await send(message)

        await self._stock(scope, receive, send_if_trusted)
        if TRUSTED not in scope:
            text = "this server does not answer to this host name; start it with --allow-host"
            await refuse(HttpError(421, "wrong_host", text), scope, receive, send)

    async def _accept(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[TRUSTED] = True
        await self._app(scope, receive, send)


class TrustedOrigins:
    """Refuses requests that a web page of another site made a browser send."""

    def __init__(self, app: ASGIApp, *, origins: Iterable[str] = ()) -> None:
        self._origins = frozenset(map(_origin, origins))
        self._app = _with_cors(app, self._origins) if self._origins else app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app answer programs, and pages of origins that we trust."""
        error = self._refusal(scope) if scope["type"] in REQUESTS else None
        if error is None:
            await self._app(scope, receive, send)
        else:
            await refuse(error, scope, receive, send)

    def _refusal(self, scope: Scope) -> ForbiddenError | None:
        headers = Headers(scope=scope)
        sent = headers.getlist("origin")
        if sent and not (len(sent) == 1 and self._is_trusted(sent[0].lower(), headers)):
            return ForbiddenError(
                "pages of this origin may not ask this server; start it with --allow-origin"
            )
        cross_site = headers.get("sec-fetch-site", "").strip().lower() == "cross-site"
        if not sent and cross_site and scope.get("method") not in SAFE_METHODS:
            return ForbiddenError("a page of another site may not do this")
        return None

    def _is_trusted(self, origin: str, headers: Headers) -> bool:
        host = headers.get("host", "").lower()
        same_origin = origin in (f"http://{host}", f"https://{host}")
        return same_origin or origin in self._origins or bool(LOOPBACK_PAGE.fullmatch(origin))


def _with_cors(app: ASGIApp, origins: frozenset[str]) -> ASGIApp:
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=("GET", "POST", "PUT", "PATCH", "DELETE"),
        allow_headers=(
            "Authorization",
            "If-Match",
            "Last-Event-ID",
            "Mcp-Protocol-Version",
            "Mcp-Session-Id",
            "X-Request-Id",
        ),
        expose_headers=("ETag", "Mcp-Session-Id", "Retry-After", "X-Request-Id"),
    )


def _host_name(text: str) -> str:
    """The name of a host; its port does not matter, as no attacker can choose it."""
    match = HOST.fullmatch(text.lower())
    if match is None:
        raise ConfigError(f"{text!r} is not a host; write a name, or a name and a port")
    return match[1]


def _origin(text: str) -> str:
    if ORIGIN.fullmatch(text.lower()) is None:
        raise ConfigError(f"{text!r} is not an origin; write it like https://app.example.com")
    return text.lower()


class BodyLimit:
    """Refuses bodies that are too large, too slow or not JSON, and any body on public paths.

    Starlette's middleware counts the bytes; this adds what it leaves out. Checking the media type
    is part of the defence against CSRF: forms cannot send `application/json`.
    """

    def __init__(
        self, app: ASGIApp, *, max_bytes: int = MAX_BYTES, timeout_s: float = BODY_TIMEOUT_S
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
