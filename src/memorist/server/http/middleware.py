"""Middleware: request ids, security headers, trusted hosts and origins, callers, limits of bodies.

RequestIdMiddleware is the outermost. TrustedHosts answers 421 to a Host that is not ours (DNS
rebinding), TrustedOrigins 403 to an Origin that is neither the page's own, nor loopback, nor
configured (CSRF), Authenticate 401 to callers it does not know. BodyLimit is the innermost.
"""

import asyncio
import logging
import re
import uuid
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.exceptions import HTTPException
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memorist.errors import (
    ConfigError,
    ForbiddenError,
    MemoristError,
    TooLargeError,
    UnauthorizedError,
)
from memorist.records.scope import Principal
from memorist.server.auth import Guard
from memorist.server.http.problems import REQUESTS, HttpError, header_values, refuse, request_id_of

SAFE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
PROBES = ("/health", "/ready")  # what monitors ask for; cheap, so never rate limited
PUBLIC = frozenset({"/", *PROBES, "/docs", "/openapi.json"})
STATIC_FOLDER = "/web/"  # files that are the same for everyone, and may be cached
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
_OURS = {b"server", b"x-request-id", b"cache-control", *(name for name, _ in _RAW_HEADERS)}
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
HOST = re.compile(r"([a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
ORIGIN = re.compile(rf"[a-z][a-z0-9+.-]*://{HOST.pattern}")
LOOPBACK_PAGE = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
# Headers of proxies. Behind one, others than the local user can connect.
PROXY_HEADERS = (b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip")
AUTH_THREADS = 4
RECHECK_S = 1.0  # between two looks at the key of a response that goes on
CORS: dict[str, Any] = {
    "allow_methods": ("GET", "POST", "PUT", "PATCH", "DELETE"),
    "allow_headers": "Authorization Last-Event-ID Mcp-Protocol-Version Mcp-Session-Id "
    "X-Request-Id".split(),
    "expose_headers": ("Mcp-Session-Id", "Retry-After", "X-Request-Id"),
}
MAX_BYTES = 8 * 1024 * 1024
MAX_FILE_BYTES = 1024 * 1024 * 1024
FILES = ("/api/import", "/api/restore")  # what takes a file, as the whole body
BODY_TIMEOUT_S = 60.0  # for all of a body, or for the next bytes of a file
JSON_TYPE = re.compile(
    rb'application/(?:[a-z0-9!#$&^_.+-]+\+)?json(?:\s*;\s*charset\s*=\s*"?utf-8"?)?(?:\s*;)?'
)
OCTETS_TYPE = re.compile(rb"application/octet-stream")
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
                message["headers"] = _with_ours(message.get("headers", ()), scope["path"], id_)
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - any other would show its text to the client
            log.error("%s: %s", id_, type(error).__name__)
            # A response that was cut short stays open: the server then closes the connection.
            if not started:
                await refuse(error, scope, receive, send_with_headers)


def _with_ours(
    headers: Sequence[tuple[bytes, bytes]], path: str, id_: str
) -> list[tuple[bytes, bytes]]:
    """The headers of a response with ours, in place of those of the same names."""
    kept = [(name, value) for name, value in headers if name.lower() not in _OURS]
    wanted = next((value for name, value in headers if name.lower() == b"cache-control"), b"")
    if path.startswith(STATIC_FOLDER):
        wanted = b"no-cache"  # asked for again by its ETag
    elif b"no-store" not in wanted:
        wanted = b"no-store"
    return [*kept, *_RAW_HEADERS, (b"x-request-id", id_.encode()), (b"cache-control", wanted)]


def request_id(sent: list[bytes]) -> str:
    """The client's own id if it is one and harmless, otherwise a new one."""
    if len(sent) == 1 and SAFE_ID.fullmatch(sent[0]):
        return sent[0].decode()
    return uuid.uuid4().hex


class CheckMiddleware:
    """Middleware that refuses a request with the error that its `check` raises."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def check(self, scope: Scope) -> None:
        """Raise a MemoristError unless the app may answer the request."""
        raise NotImplementedError

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app answer."""
        await self._app(scope, receive, send)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what `check` accepts; what is no request passes."""
        try:
            if scope["type"] in REQUESTS:
                await self.check(scope)
        except MemoristError as error:
            await refuse(error, scope, receive, send)
        else:
            await self.answer(scope, receive, send)


class TrustedHosts(CheckMiddleware):
    """Accepts requests to our own host names, whatever the port: no attacker can choose it."""

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str] = ()) -> None:
        super().__init__(app)
        self._names = set(LOOPBACK)
        for host in hosts:
            if (match := HOST.fullmatch(host.lower())) is None:
                raise ConfigError(
                    f"{host!r} is not a host (MEMORIST_HOSTS, --allow-host); write a name, or a "
                    "name and a port"
                )
            self._names.add(match[1])

    async def check(self, scope: Scope) -> None:
        hosts = header_values(scope, b"host")
        match = HOST.fullmatch(hosts[0].decode("latin-1").lower()) if len(hosts) == 1 else None
        if match is None or match[1] not in self._names:
            text = "this server does not answer to this host name; start it with --allow-host"
            raise HttpError(421, "wrong_host", text)


class TrustedOrigins(CheckMiddleware):
    """Refuses requests that a web page of another site made a browser send."""

    def __init__(self, app: ASGIApp, *, origins: Iterable[str] = ()) -> None:
        self._origins = frozenset(origin.lower() for origin in origins)
        for origin in self._origins:
            if ORIGIN.fullmatch(origin) is None:
                raise ConfigError(
                    f"{origin!r} is not an origin like https://app.example.com "
                    "(MEMORIST_ORIGINS, --allow-origin)"
                )
        super().__init__(CORSMiddleware(app, self._origins, **CORS) if self._origins else app)

    async def check(self, scope: Scope) -> None:
        if sent := header_values(scope, b"origin"):
            origin = sent[0].decode("latin-1").lower() if len(sent) == 1 else ""
            host = b"".join(header_values(scope, b"host")[:1]).decode("latin-1").lower()
            trusted = origin in (f"http://{host}", f"https://{host}", *self._origins)
            if not trusted and not LOOPBACK_PAGE.fullmatch(origin):
                raise ForbiddenError(
                    "pages of this origin may not ask this server; start it with --allow-origin"
                )
            return
        sites = [value.strip().lower() for value in header_values(scope, b"sec-fetch-site")]
        # A link of another site may lead to the page, but not to what is somebody's.
        harmless = scope.get("method") in SAFE_METHODS and is_public(scope)
        if b"cross-site" in sites and not harmless:
            raise ForbiddenError("a page of another site may not ask this server")


class Authenticate(CheckMiddleware):
    """Puts the caller at `scope["state"]["principal"]`, or answers 401; public paths pass."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        super().__init__(app)
        self._guard = guard
        # A pool of its own: authentication must not wait for the slow requests of others.
        self._threads = ThreadPoolExecutor(AUTH_THREADS, "memorist-auth")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app answer known callers; a stream ends when their key is revoked."""
        if scope["type"] == "http" and b" mk_" in b"".join(header_values(scope, b"authorization")):
            send = self._while_known(scope, send)
        await super().__call__(scope, receive, send)

    def _while_known(self, scope: Scope, send: Send) -> Send:
        """A `send` that ends the response where the caller is no longer known."""
        clock, is_over = asyncio.get_running_loop().time, False
        checked_at = clock()

        async def send_on(message: Message) -> None:
            nonlocal checked_at, is_over
            if message.get("more_body") and not is_over and clock() >= checked_at + RECHECK_S:
                checked_at = clock()
                try:
                    await self._authenticate(scope)
                except UnauthorizedError:
                    is_over = True
                    await send({"type": "http.response.body"})
                except MemoristError:  # the store is away, which says nothing of the key
                    log.info("%s: a key could not be looked up again", request_id_of(scope))
            if not is_over:
                await send(message)

        return send_on

    async def check(self, scope: Scope) -> None:
        if scope["type"] == "http" and is_public(scope):
            return
        try:
            principal = await self._authenticate(scope)
        except MemoristError as error:
            # These texts name the kind of failure, never what was sent.
            log.info("%s: authentication failed: %s", request_id_of(scope), error)
            raise
        scope.setdefault("state", {})["principal"] = principal

    async def _authenticate(self, scope: Scope) -> Principal:
        sent = header_values(scope, b"authorization")
        if len(sent) > 1:
            raise UnauthorizedError("there is more than one Authorization header")
        header = sent[0].decode("latin-1") if sent else None
        principal = self._guard.at_once(header)
        if principal is None:
            loop = asyncio.get_running_loop()
            principal = await loop.run_in_executor(self._threads, self._guard.authenticate, header)
        if principal.local and any(header_values(scope, name) for name in PROXY_HEADERS):
            raise ForbiddenError("this server is for one local user; behind a proxy use --auth")
        return principal


def path_of(scope: Scope) -> str:
    """The path as the router will see it."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def is_public(scope: Scope) -> bool:
    """Whether the path needs no key."""
    path = path_of(scope)
    if path.startswith(STATIC_FOLDER):
        return ".." not in path.replace("\\", "/").split("/")
    return path in PUBLIC


class BodyLimit(CheckMiddleware):
    """Refuses bodies that are too large, too slow or not JSON, and any body on public paths.

    Starlette's middleware counts the bytes; this adds what it leaves out. Checking the media type
    is part of the defence against CSRF: forms cannot send `application/json`, nor the
    `application/octet-stream` of files, which have a limit of their own.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_bytes: int = MAX_BYTES,
        max_file_bytes: int = MAX_FILE_BYTES,
        timeout_s: float = BODY_TIMEOUT_S,
    ) -> None:
        super().__init__(app)
        self._limits = max_bytes, max_file_bytes
        self._timeout_s = timeout_s

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app answer; its body is counted, and has to come in time."""
        is_file = takes_file(scope)
        if scope["type"] == "http" and has_body(scope):
            receive = _receive_within(receive, self._timeout_s, renewed=is_file)
        await RequestBodyLimitMiddleware(self._app, self._limits[is_file])(scope, receive, send)

    async def check(self, scope: Scope) -> None:
        if scope["type"] != "http" or not has_body(scope):
            return
        if is_public(scope):
            raise TooLargeError("this address takes no body")
        is_file = takes_file(scope)
        if declared_length(scope) > (most := self._limits[is_file]):
            what = "file" if is_file else "body"
            raise TooLargeError(f"the {what} has over {most:,} bytes; divide it")
        if is_file and not has_type(scope, OCTETS_TYPE):
            raise HttpError(415, "not_a_file", "a file is sent as application/octet-stream")
        if not is_file and not has_type(scope, JSON_TYPE):
            raise HttpError(415, "not_json", "a body must be application/json, as UTF-8")


def has_body(scope: Scope) -> bool:
    """Whether the headers announce a body."""
    return declared_length(scope) > 0 or bool(header_values(scope, b"transfer-encoding"))


def declared_length(scope: Scope) -> int:
    """The Content-Length, 0 if there is none."""
    lengths = [value.strip() for value in header_values(scope, b"content-length")]
    return max((int(length[:18]) for length in lengths if length.isdigit()), default=0)


def takes_file(scope: Scope) -> bool:
    """Whether the body is a file."""
    return scope["type"] == "http" and path_of(scope) in FILES


def has_type(scope: Scope, media_type: re.Pattern[bytes]) -> bool:
    """Whether the headers say that the body is of this type, and not compressed."""
    types = [value.strip().lower() for value in header_values(scope, b"content-type")]
    names = (b"content-encoding", b"transfer-encoding")
    encodings = {value.strip().lower() for name in names for value in header_values(scope, name)}
    is_plain = encodings <= {b"identity", b"chunked"}
    return len(types) == 1 and bool(media_type.fullmatch(types[0])) and is_plain


def _receive_within(receive: Receive, timeout_s: float, *, renewed: bool = False) -> Receive:
    """A `receive` that raises 408 if the body has not arrived in time, or the next part of it."""
    clock = asyncio.get_running_loop().time
    deadline: float | None = clock() + timeout_s

    async def receive_in_time() -> Message:
        nonlocal deadline
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408) from None
        if not message.get("more_body", False):
            deadline = None  # from now on the app waits for the client to disconnect
        elif renewed:
            deadline = clock() + timeout_s
        return message

    return receive_in_time
