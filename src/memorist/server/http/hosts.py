"""Which names we answer to, and which pages may ask: against DNS rebinding and forged requests.

A Host that is not ours is refused (421), as is an Origin that is neither the page's own, nor
loopback, nor configured (403). Only configured origins are told, by CORS, that they may read.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memorist.errors import ConfigError, ForbiddenError
from memorist.server.http.asgi import REQUESTS, refuse, values
from memorist.server.http.problems import HttpError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
AUTHORITY = re.compile(r"(?P<name>[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")
MOST_PORT = 65_535
READS = ("GET", "HEAD", "OPTIONS")
MAY_ASK = (
    (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
    (
        b"access-control-allow-headers",
        b"Authorization, Content-Type, If-Match, Last-Event-ID, "
        b"Mcp-Protocol-Version, Mcp-Session-Id, X-Request-Id",
    ),
    (b"access-control-max-age", b"600"),
)
MAY_READ = ((b"access-control-expose-headers", b"ETag, Mcp-Session-Id, Retry-After, X-Request-Id"),)


@dataclass(frozen=True, slots=True)
class Authority:
    """A host by its name in lower case, and a port if one was said."""

    name: str
    port: int | None = None


def parse_authority(text: str) -> Authority | None:
    """What a Host header names, or nothing if it is not plainly a host and a port."""
    match = AUTHORITY.fullmatch(text.lower()) if text.isascii() else None
    if match is None or int(match["port"] or 0) > MOST_PORT:
        return None
    name = _plain(match["name"])
    return Authority(name, int(match["port"]) if match["port"] else None) if name else None


def _plain(name: str) -> str | None:
    """The one way to write a name; IPv6 has many."""
    if not name.startswith("["):
        return name
    try:
        return f"[{ipaddress.IPv6Address(name[1:-1]).compressed}]"
    except ValueError:
        return None


def parse_origin(text: str) -> Authority | None:
    """The host that a page of the web came from; `null` and other schemes are none."""
    scheme, found, rest = text.lower().partition("://")
    return parse_authority(rest) if found and scheme in ("http", "https") else None


def is_ours(host: Authority, allowed: frozenset[Authority]) -> bool:
    """Whether a name is on the list; a name there without a port stands for every port."""
    return host in allowed or Authority(host.name) in allowed


class Hosts:
    """Lets through what was sent to us by name, from nowhere or from a page we know."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        loopback: bool = True,
    ) -> None:
        self._app = app
        self._local = frozenset(map(_host, LOOPBACK if loopback else ()))
        self._hosts = frozenset(map(_host, hosts)) | self._local
        self._origins = frozenset(map(_origin, origins))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a foreign Host or Origin; answer a preflight; let the rest through."""
        if scope["type"] not in REQUESTS:
            await self._app(scope, receive, send)
            return
        try:
            origin = self._checked(scope)
        except (HttpError, ForbiddenError) as error:
            await refuse(error, scope, receive, send)
            return
        readable = origin if origin in self._origins else None
        if readable and _is_preflight(scope):
            await _allow(readable, send)
        else:
            await self._app(scope, receive, _sharing(send, readable) if readable else send)

    def _checked(self, scope: Scope) -> str | None:
        """The origin, if any; raises if it or the host is not one of ours."""
        host = _only(scope, b"host")
        named = parse_authority(host) if host is not None else None
        if named is None or not is_ours(named, self._hosts):
            raise HttpError(
                421,
                "wrong_host",
                "this server does not answer to this host name; start it with --allow-host",
            )
        origin = _only(scope, b"origin")
        if values(scope, b"origin") and not self._is_known(origin, named):
            raise ForbiddenError(
                "pages of this origin may not ask this server; start it with --allow-origin"
            )
        if origin is None and _is_forged(scope):
            raise ForbiddenError("a page of another site may not do this")
        return origin.lower() if origin is not None else None

    def _is_known(self, origin: str | None, host: Authority) -> bool:
        page = parse_origin(origin or "null")
        same = page is not None and (page == host or is_ours(page, self._local))
        return same or (origin is not None and origin.lower() in self._origins)


def _only(scope: Scope, name: bytes) -> str | None:
    """The value of a header that is there once; two of them are as good as none."""
    found = values(scope, name)
    return found[0].decode("latin-1") if len(found) == 1 else None


def _is_forged(scope: Scope) -> bool:
    """Whether a browser says that a page elsewhere made it send something that changes things."""
    site = [value.strip().lower() for value in values(scope, b"sec-fetch-site")]
    return b"cross-site" in site and scope.get("method") not in READS


def _is_preflight(scope: Scope) -> bool:
    asks = values(scope, b"access-control-request-method")
    return scope.get("method") == "OPTIONS" and bool(asks)


async def _allow(origin: str, send: Send) -> None:
    """Answer a preflight: what may be sent, and no credentials."""
    headers = [*_shared(origin), *MAY_ASK]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _sharing(send: Send, origin: str) -> Send:
    """A send that tells the browser that this origin may read the answer."""

    async def tell(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), *_shared(origin), *MAY_READ]
            message = {**message, "headers": headers}
        await send(message)

    return tell


def _shared(origin: str) -> tuple[tuple[bytes, bytes], ...]:
    return (b"access-control-allow-origin", origin.encode()), (b"vary", b"Origin")


def _host(text: str) -> Authority:
    found = parse_authority(text)
    if found is None:
        raise ConfigError(f"{text!r} is not a host; write a name, or a name and a port")
    return found


def _origin(text: str) -> str:
    scheme, found, rest = text.lower().partition("://")
    if not (found and scheme.isascii() and parse_authority(rest)):
        raise ConfigError(f"{text!r} is not an origin; write it like https://app.example.com")
    return text.lower()
