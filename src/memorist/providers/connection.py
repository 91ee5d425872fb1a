"""Connections to a server: JSON there and back, kept open, tried again where nothing doubles."""

from __future__ import annotations

import http.client
import json
import selectors
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from memorist.error_codes import error_of
from memorist.errors import (
    ConfigError,
    InvalidError,
    MemoristError,
    MissingExtraError,
    RateLimitedError,
    StoreUnavailableError,
    UnauthorizedError,
)
from memorist.records.text import check_text

ATTEMPTS = 4
FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 5.0
MOST_IDLE = 32  # connections that are kept
MAX_BYTES = 256_000_000
PAGE = 500
_SAFE = {"GET", "PUT", "DELETE"}
# POSTs that may be sent twice: they read, or find again what they made.
_READING = {"/api/recall", "/api/context", "/api/articles/retrieve", "/api/sessions/resolve"}
_BUSY = {429, 503}
_AWAY = {502, 503, 504}  # as a proxy says it, whose answer is no problem of ours
_NO_JSON = object()


class NotHereError(ConfigError, AttributeError):
    """What was asked for is not to be had over HTTP."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} needs the database itself; give its path or postgresql:// URL instead of "
            "the server's address"
        )


class Connection:
    """A server by its address; the key never shows. Any thread may use it."""

    def __init__(self, url: str, key: str = "", timeout_s: float = 30.0) -> None:
        parts = _address(url)
        if not (key.isascii() and key.isprintable()):
            raise ConfigError("the key holds characters that no HTTP header can carry")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._base = parts.path.rstrip("/")
        self._host = parts.hostname or ""
        self._port = parts.port
        self._secure = ssl.create_default_context() if parts.scheme == "https" else None
        self._timeout_s = timeout_s
        self._headers = {"User-Agent": "memorist", "Accept": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return self.url

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        once: str = "",
        timeout_s: float | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """The server's answer; what failed on the way is tried again where nothing doubles.

        `once` makes that so for a request that adds: the server does it once for each such key.
        """
        target = self._base + path + _query(query or {})
        data = None if body is None else _bytes(body)
        headers = dict(self._headers)
        if data is not None:
            headers["Content-Type"] = "application/json"
        if once:
            headers["Idempotency-Key"] = once
        again = bool(once) or method in _SAFE or path in _READING
        ends_at = time.monotonic() + (timeout_s or self._timeout_s)
        wait_s = FIRST_WAIT_S
        for left in reversed(range(ATTEMPTS)):
            try:
                status, told, retry_after = self._ask(method, target, data, headers, ends_at)
            except (OSError, http.client.HTTPException) as error:
                if not (left and again) or time.monotonic() + wait_s > ends_at:
                    raise StoreUnavailableError(
                        f"{self} does not answer ({type(error).__name__}); is it running?"
                    ) from None
            else:
                if status < 300 and told is not _NO_JSON:
                    return told
                wait_s = max(wait_s, retry_after)
                late = time.monotonic() + wait_s > ends_at
                busy = status in _BUSY or _is_away(status, told)
                if not busy or not left or late or not (again or status == 429):
                    raise _error(status, told, retry_after)
            time.sleep(min(wait_s, LONGEST_WAIT_S))
            wait_s *= 2
        raise AssertionError("the last attempt returns or raises")

    def pages(self, path: str, query: Mapping[str, Any]) -> Iterator[Any]:
        """Every item of a list, page by page."""
        cursor = None
        while True:
            page = self.call("GET", path, query={**query, "cursor": cursor, "limit": PAGE})
            yield from page["items"]
            if (cursor := page["next"]) is None:
                return

    def close(self) -> None:
        """Let go of the connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _ask(
        self, method: str, target: str, data: bytes | None, headers: dict[str, str], ends_at: float
    ) -> tuple[int, Any, float]:
        connection, kept = self._take()
        connection.timeout = max(ends_at - time.monotonic(), 0.001)
        if connection.sock is not None:
            connection.sock.settimeout(connection.timeout)
        try:
            connection.request(method, target, data, headers)
            reply = connection.getresponse()
            raw = reply.read(MAX_BYTES + 1)
        except (OSError, http.client.HTTPException):
            connection.close()
            if kept:
                self.close()  # the server may have closed the others with it
            raise
        except BaseException:  # an interrupt: what is left to be read would answer the next one
            connection.close()
            raise
        self._give(connection, reply)
        return reply.status, _json(raw), _seconds(reply.headers.get("Retry-After"))

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        while self._idle:
            with suppress(IndexError):  # another thread took the last one
                connection = self._idle.pop()
                if not _has_ended(connection):
                    return connection, True
                connection.close()
        if self._secure is not None:
            return http.client.HTTPSConnection(self._host, self._port, context=self._secure), False
        return http.client.HTTPConnection(self._host, self._port), False

    def _give(
        self, connection: http.client.HTTPConnection, reply: http.client.HTTPResponse
    ) -> None:
        with self._lock:
            if not reply.will_close and len(self._idle) < MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()


def _has_ended(connection: http.client.HTTPConnection) -> bool:
    """Whether the server has closed it: then there is an end to be read, and else nothing yet.

    It does so after half a minute; what may not be sent twice would then not be sent at all.
    """
    with selectors.DefaultSelector() as looking:
        looking.register(connection.sock, selectors.EVENT_READ)
        return bool(looking.select(0))


def _address(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.port != 0 and parts.scheme in ("http", "https")
    except ValueError:  # of a port that is none, or half of an IPv6 address
        raise ConfigError("the address of the server cannot be read") from None
    if not usable or not parts.hostname or "@" in parts.netloc:
        raise ConfigError("a server is http:// or https:// and a host, without a user")
    return parts


def part(id_: str) -> str:
    """An id as a part of a path, whatever it holds."""
    return quote(check_text(id_, "id"), safe="")


def _bytes(body: Mapping[str, Any]) -> bytes:
    """JSON; half of a character, which UTF-8 has not, is escaped, and refused by the server."""
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _query(query: Mapping[str, Any]) -> str:
    given = {name: value for name, value in query.items() if value is not None}
    told = {name: check_text(_told(value), name, InvalidError) for name, value in given.items()}
    return f"?{urlencode(told)}" if told else ""


def _told(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return _NO_JSON


def _seconds(told: str | None) -> float:
    return float(told) if told and told.isdigit() else 0.0


def _error(status: int, told: Any, retry_after_s: float) -> MemoristError:
    """The error that the server raised, with its words."""
    if status < 400:
        return ConfigError(
            f"there is no Memorist at this address, or it sends one elsewhere (HTTP {status})"
        )
    if _is_away(status, told):
        return StoreUnavailableError(f"the server is away (HTTP {status})")
    problem = told if isinstance(told, dict) else {}
    kind = error_of(str(problem.get("code", "")))
    detail = str(problem.get("detail") or f"the server answered with HTTP {status}")
    if kind is RateLimitedError:
        return RateLimitedError(detail, retry_after_s=retry_after_s or 1.0)
    if kind is UnauthorizedError:
        detail += "; in Python set MEMORIST_KEY, or use memorist.Client(url, key=…)"
    return MemoristError(detail) if kind is MissingExtraError else kind(detail)


def _is_away(status: int, told: Any) -> bool:
    """Whether somebody on the way says that the server cannot be reached."""
    return status in _AWAY and not (isinstance(told, dict) and "code" in told)
