"""Refuses foreign host names (DNS rebinding) and foreign web pages (CSRF); answers CORS.

A Host that is not ours is 421. An Origin that is neither the page's own, nor loopback, nor
configured is 403. Only configured origins are allowed, by CORS, to read responses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memorist.errors import ConfigError, ForbiddenError
from memorist.server.http.problems import REQUESTS, HttpError, refuse

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
HOST = re.compile(r"([a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
ORIGIN = re.compile(rf"[a-z][a-z0-9+.-]*://{HOST.pattern}")
LOOPBACK_PAGE = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
TRUSTED = "memorist.trusted_host"


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
