"""The HTTP client: a connection pool, bounded answers and retries, on the standard library.

`Endpoint` posts JSON to a model server and raises `ProviderError`. `Connection` calls a Memorist
server and raises the error that the server raised. Neither follows redirects, which would hand
the key and the texts to another host, and no error repeats a key or a text.
"""

import base64
import http.client
import ipaddress
import json
import logging
import math
import re
import selectors
import ssl
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import IO, Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

from memorist import errors
from memorist.forks import ProcessPart
from memorist.records.values import check_text

ATTEMPTS = 4
RESTART_ATTEMPTS = 6  # over more than 3 s, in which a Memorist server restarts
FIRST_WAIT_S = 0.2  # doubled by each attempt, up to
LONGEST_BACKOFF_S = 1.0
LONGEST_WAIT_S = 30.0  # that a server may ask for
MAX_BYTES = 64_000_000
MAX_SERVER_BYTES = 256_000_000
CHUNK_BYTES = 65_536
MAX_IDLE = 32  # connections that are kept open
PAGE = 500
OCTETS = "application/octet-stream"
_NO_JSON = object()
_NETWORK_ERRORS = (OSError, http.client.HTTPException)

# Model servers
_TRANSIENT = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_PERMANENT_CODES = {"insufficient_quota"}  # comes as a 429, but waiting does not pay the bill
_CURES = {
    400: "it may not know this model or these dimensions, or find a text too long",
    401: "check the API key",
    403: "check the API key",
    404: "check base_url and the model's name",
    413: "send shorter texts",
}

# Memorist servers
PLAIN_HTTP = (
    "a key is sent over plain http:// to another machine: whoever is on the way can read it; "
    "use https://"
)
log = logging.getLogger("memorist")
_GATEWAY = {502, 503, 504}  # what a proxy answers when the server behind it is away

T = TypeVar("T")


@dataclass(eq=False)
class TransientError(Exception):
    """Worth another attempt, perhaps after a wait; `error` is raised when none is left."""

    error: errors.MemoristError
    retry_after_s: float | None = None


class BrokenAnswerError(ConnectionError):
    """An answer that began and did not end as it should."""


class NotSentError(ConnectionError):
    """There was no connection, so that the request was not sent."""


class NotHereError(errors.ConfigError, AttributeError):
    """The operation needs the database and is not offered over HTTP."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} needs the database itself; give its path or postgresql:// URL instead of "
            "the server's address"
        )


class HttpAnswer(NamedTuple):
    """A whole answer; its JSON is None where the server sends no content."""

    status: int
    json: Any
    retry_after_s: float | None
    media_type: str = ""


class HttpPool(ProcessPart):
    """Connections to one server, kept open between requests. Any thread may use it.

    The proxy that the environment names (http_proxy, https_proxy, no_proxy) is used, except for
    servers on this machine.
    """

    def __init__(
        self, url: str, key: str = "", *, timeout_s: float = 30.0, max_bytes: int | None = None
    ) -> None:
        self._idle: list[http.client.HTTPConnection] = []
        parts = _split_url(url)
        if not (key.isascii() and key.isprintable()):
            raise errors.ConfigError("the API key holds characters that no HTTP header can carry")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path + (f"?{parts.query}" if parts.query else "")
        self._address = parts.hostname or "", parts.port
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._proxy = _proxy_of(parts)
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._headers = {"User-Agent": "memorist", "Accept": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
            if is_exposed(url):
                log.warning(PLAIN_HTTP)
        self.watch_process()

    def __repr__(self) -> str:
        return self.url

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:  # or it would read its parent's answers
            self.close()

    def send(self, method: str, target: str, body: bytes | None, ends_at: float) -> HttpAnswer:
        """Send one request and read its answer by `ends_at`, a moment of `time.monotonic()`."""
        content = {} if body is None else {"Content-Type": "application/json"}
        connection = self._connection(max(ends_at - time.monotonic(), 0.001))
        try:
            reply = self._ask(connection, method, target, body, content)
            value = _parse(reply, self._read(reply, ends_at))
        except BaseException:  # also an interrupt: the rest would answer the next request
            connection.close()
            self.close()  # the server may have closed the other connections with this one
            raise
        if reply.will_close or len(self._idle) >= MAX_IDLE:
            connection.close()
        else:
            self._idle.append(connection)
        media_type = reply.headers.get("Content-Type", "")
        return HttpAnswer(reply.status, value, retry_after(reply.headers), media_type)

    def _ask(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        body: Any,
        headers: Mapping[str, str],
    ) -> http.client.HTTPResponse:
        """Send a request; its answer, to be read."""
        headers = {**self._headers, **headers}
        if self._proxy is not None and self._tls is None:
            target = self.url + target
            headers |= _proxy_headers(self._proxy)
        if connection.sock is None:
            _connect(connection)
        with suppress(BrokenPipeError, ConnectionResetError):  # it may have refused the body
            connection.request(method, target, body, headers)
        return connection.getresponse()

    def close(self) -> None:
        """Close the idle connections."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    __del__ = close

    def _read(self, reply: http.client.HTTPResponse, ends_at: float) -> bytes:
        """All of the answer; the socket's own timeout begins anew with every byte."""
        data = bytearray()
        most = self._max_bytes or MAX_BYTES
        try:
            while part := reply.read1(CHUNK_BYTES):
                data += part
                if len(data) > most:
                    raise errors.ProviderError(f"{self} answered with more than {most:,} bytes")
                if time.monotonic() > ends_at:
                    raise BrokenAnswerError("the answer came too slowly")
            if reply.length:
                raise BrokenAnswerError("the answer was cut off")
            return bytes(data)
        except http.client.IncompleteRead:
            raise BrokenAnswerError("the answer was cut off") from None
        finally:
            reply.close()  # else Python 3.11 refuses the next request on this connection

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        """An idle connection that is still open, or a new one."""
        with suppress(IndexError):
            while True:
                connection = self._idle.pop()
                if not _is_closed(connection):
                    connection.timeout = timeout_s
                    connection.sock.settimeout(timeout_s)
                    return connection
                connection.close()
        host, port = self._address
        if self._proxy is not None:
            host, port = self._proxy.hostname or "", self._proxy.port or 80
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=timeout_s)
        secure = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self._tls)
        if self._proxy is not None:
            secure.set_tunnel(*self._address, headers=_proxy_headers(self._proxy))
        return secure


class Endpoint(HttpPool):
    """One URL of a model server that takes and gives JSON."""

    def post(
        self, body: Mapping[str, Any], *, attempts: int = ATTEMPTS, timeout_s: float | None = None
    ) -> object:
        """The server's answer; transient failures are retried, others raise ProviderError."""
        data = json.dumps(body).encode()
        failed = f"{self} failed, asked {f'{attempts} times' if attempts > 1 else 'once'}"

        def attempt() -> object:
            try:
                ends_at = time.monotonic() + (timeout_s or self._timeout_s)
                status, answer, wait_s, _ = self.send("POST", self._path, data, ends_at)
            except BrokenAnswerError as error:
                raise TransientError(errors.ProviderError(f"{failed}: {error}")) from None
            except _NETWORK_ERRORS as error:
                reason = f"{type(error.__cause__ or error).__name__}; is it running?"
                raise TransientError(errors.ProviderError(f"{failed}: {reason}")) from None
            if 200 <= status < 300:
                if answer is _NO_JSON:
                    raise errors.ProviderError(f"{self} answered with no JSON: check base_url")
                return answer
            code = _provider_code(answer)
            reason = f"HTTP {status}" + (f" ({code})" if code else "")
            if status in _TRANSIENT and code not in _PERMANENT_CODES:
                text = f"{failed}: {reason}"
                failure = errors.ProviderError(text, status=status, retry_after_s=wait_s)
                raise TransientError(failure, wait_s)
            cure = _CURES.get(status, "see the server's log")
            if status < 400:
                cure = "it points elsewhere; give base_url the final address"
            raise errors.ProviderError(f"{self} refused with {reason}: {cure}", status=status)

        return _retry(attempt, attempts)


class Connection(HttpPool):
    """A Memorist server by its address."""

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        idempotent: bool = False,
        timeout_s: float | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """The server's answer; a request is sent again only where it cannot act twice.

        Reads cannot, nor can writes that are `idempotent`, as they name their ids; and a request
        for which there was no connection did not act.
        """
        target = self._target(path, query)
        # A lone surrogate, which UTF-8 cannot hold, is escaped here and refused by the server.
        data = None
        if body is not None:
            data = json.dumps(body, ensure_ascii=False).encode("utf-8", "backslashreplace")
        repeatable = idempotent or method == "GET"
        ends_at = time.monotonic() + (timeout_s or self._timeout_s)

        def attempt() -> Any:
            try:
                answer = self.send(method, target, data, ends_at)
                if answer.json is _NO_JSON and "json" in answer.media_type:
                    raise BrokenAnswerError("the answer was cut off")
            except _NETWORK_ERRORS as error:
                away = self._away(error)
                is_safe = repeatable or isinstance(error, NotSentError)
                raise (TransientError(away) if is_safe else away) from None
            if answer.status < 300 and answer.json is not _NO_JSON:
                return answer.json
            failure, busy = _server_error(answer), answer.status == 503 or _is_gateway(answer)
            if answer.status == 429 or (busy and repeatable):
                raise TransientError(failure, answer.retry_after_s)
            raise failure

        return _retry(attempt, RESTART_ATTEMPTS, ends_at)

    def pieces(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        file: Iterable[bytes] | IO[bytes] | None = None,
        *,
        accept: str,
    ) -> Generator[bytes, None, None]:
        """The answer as it comes, to a request that may have a file as its body."""
        connection = self._connection(self._timeout_s)
        headers = {"Accept": accept} | ({} if file is None else {"Content-Type": OCTETS})
        try:
            reply = self._ask(connection, method, self._target(path, query), file, headers)
            if reply.status >= 300:
                wait_s = retry_after(reply.headers)
                raise _server_error(HttpAnswer(reply.status, _parse(reply, reply.read()), wait_s))
            while piece := reply.read1(CHUNK_BYTES):
                yield piece
        except _NETWORK_ERRORS as error:
            raise self._away(error) from None
        finally:
            connection.close()

    def _target(self, path: str, query: Mapping[str, Any] | None) -> str:
        return self._path.rstrip("/") + path + _query_string(query or {})

    def _away(self, error: Exception) -> errors.StoreUnavailableError:
        reason = type(error.__cause__ or error).__name__
        return errors.StoreUnavailableError(f"{self} does not answer ({reason}); is it running?")


def read_events(pieces: Iterable[bytes]) -> Iterator[tuple[str, Any]]:
    """The server-sent events of an answer: their names and data; that of an error is raised."""
    rest = b""
    for piece in pieces:
        *blocks, rest = (rest + piece).split(b"\n\n")
        for block in blocks:
            fields = dict(line.partition(b": ")[::2] for line in block.split(b"\n"))
            name, data = fields.get(b"event", b"").decode(), json.loads(fields.get(b"data", b"{}"))
            if name == "error":
                raise _server_error(HttpAnswer(data["status"], data, None))
            if name:
                yield name, data


def _retry(attempt: Callable[[], T], attempts: int, ends_at: float = math.inf) -> T:
    """What `attempt` returns; after a TransientError it is made again, while there is time."""
    wait_s = FIRST_WAIT_S
    while True:
        attempts -= 1
        try:
            return attempt()
        except TransientError as failure:
            pause_s = max(wait_s, failure.retry_after_s or 0.0)
            if attempts < 1 or time.monotonic() + pause_s > ends_at:
                raise failure.error from None
        time.sleep(min(pause_s, LONGEST_WAIT_S))
        wait_s = min(wait_s * 2, LONGEST_BACKOFF_S)


def retry_after(headers: Any) -> float | None:
    """The seconds of a Retry-After header, which is a number or a date."""
    value = headers.get("Retry-After")
    if value is None:
        return None
    if re.fullmatch(r"\d{1,9}(\.\d*)?", value.strip()):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def part(id_: str) -> str:
    """An id as one segment of a path, whatever characters it holds."""
    return quote(check_text(id_, "id"), safe="")


def _split_url(url: str) -> SplitResult:
    with suppress(ValueError):  # a port that is none, or half of an IPv6 address
        parts = urlsplit(url)
        usable = parts.port != 0 and parts.scheme in ("http", "https") and parts.hostname
        if usable and "@" not in parts.netloc:
            return parts
    raise errors.ConfigError(
        "a server's address (base_url, MEMORIST_URL, MEMORIST_MODEL_URL) is http:// or https:// "
        "and a host, without a user"
    )


def is_exposed(url: str) -> bool:
    """Whether what is sent there can be read on the way: plain HTTP to another machine."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


def is_loopback(host: str) -> bool:
    """Whether a name or address is this machine's own, which no other can reach."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _proxy_of(parts: SplitResult) -> SplitResult | None:
    from urllib.request import getproxies, proxy_bypass

    host = parts.hostname or ""
    proxy = getproxies().get(parts.scheme)
    if not proxy or is_loopback(host) or proxy_bypass(host):
        return None
    return urlsplit(proxy if "://" in proxy else f"//{proxy}")


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}


def _connect(connection: http.client.HTTPConnection) -> None:
    try:
        connection.connect()
    except OSError as error:
        raise NotSentError("there is no connection") from error


def _parse(reply: http.client.HTTPResponse, data: bytes) -> Any:
    """An answer's JSON, `_NO_JSON` or None; raises BrokenAnswerError if it was cut off.

    One that ends among its headers looks like a whole one without a length.
    """
    try:
        return None if reply.status == 204 else json.loads(data)
    except (ValueError, RecursionError):
        has_length = "Content-Length" in reply.headers or "Transfer-Encoding" in reply.headers
        if has_length or reply.status >= 300:  # of an error the status says enough
            return _NO_JSON
        raise BrokenAnswerError("the answer was cut off") from None


def _is_closed(connection: http.client.HTTPConnection) -> bool:
    """Whether the server has closed it: only then is there something to read between requests.

    Servers close idle connections, and a request that may not be sent twice would be lost.
    """
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def _provider_code(body: Any) -> str:
    """The provider's own code of an error, unless it could be a sentence that quotes a text."""
    try:
        code = str(body["error"].get("code") or body["error"].get("type") or "")
    except (TypeError, KeyError, AttributeError):
        return ""
    return code if re.fullmatch(r"[a-zA-Z_]{1,40}", code) else ""


def _query_string(query: Mapping[str, Any]) -> str:
    fields = {}
    for name, value in query.items():
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value)
            fields[name] = check_text(text, name, errors.InvalidError)
    return f"?{urlencode(fields)}" if fields else ""


def _is_gateway(answer: HttpAnswer) -> bool:
    """Whether a proxy answered in place of the server, which would name the error's code."""
    named = isinstance(answer.json, dict) and "code" in answer.json
    return answer.status in _GATEWAY and not named


def _server_error(answer: HttpAnswer) -> errors.MemoristError:
    """The error that a Memorist server raised."""
    reason = f"HTTP {answer.status}"
    if answer.status < 400:
        text = "there is no Memorist at this address, or it redirects elsewhere"
        return errors.ConfigError(f"{text} ({reason})")
    if _is_gateway(answer):
        return errors.StoreUnavailableError(f"the server is away ({reason})")
    problem = answer.json if isinstance(answer.json, dict) else {}
    error = errors.error_of(str(problem.get("code", "")))
    detail = str(problem.get("detail") or f"the server answered with {reason}")
    if error is errors.RateLimitedError:
        return errors.RateLimitedError(detail, retry_after_s=answer.retry_after_s or 1.0)
    if error is errors.UnauthorizedError:
        detail += "; in Python set MEMORIST_KEY, or use memorist.connect(url, key=…)"
    return errors.MemoristError(detail) if error is errors.MissingExtraError else error(detail)
