"""JSON over HTTP to a model's server, with patience and without telling secrets."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from memorist.errors import ConfigError, ProviderError

if TYPE_CHECKING:
    from email.message import Message
    from http.client import HTTPResponse
    from urllib.error import HTTPError
    from urllib.request import BaseHandler

MAX_BYTES = 64_000_000
CHUNK_BYTES = 65_536
ATTEMPTS = 4
FIRST_WAIT_S = 0.5  # doubled by each attempt
LONGEST_WAIT_S = 30.0
_PASSING = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_HOPELESS = {"insufficient_quota"}  # comes as a 429, but waiting does not pay the bill
_CURES = {
    400: "it may not know this model or these dimensions, or find a text too long",
    401: "check the API key",
    403: "check the API key",
    404: "check base_url and the model's name",
    413: "send shorter texts",
}


class _Passing(Exception):
    """Worth another attempt, perhaps after so many seconds."""

    def __init__(
        self, reason: str, *, wait_s: float | None = None, status: int | None = None
    ) -> None:
        super().__init__(reason)
        self.wait_s = wait_s
        self.status = status


class Endpoint:
    """An address that takes and gives JSON; the key never shows."""

    def __init__(
        self, url: str, *, api_key: str = "", timeout_s: float = 30.0, max_bytes: int | None = None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise ConfigError("base_url must be http:// or https:// and a host, without a user")
        if not (api_key.isascii() and api_key.isprintable()):
            raise ConfigError("api_key holds characters that no HTTP header can carry")
        self._url = url
        self._who = f"{parts.scheme}://{parts.netloc}"
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._headers = {"Content-Type": "application/json", "User-Agent": "memorist"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"

    def __repr__(self) -> str:
        return self._who

    def post(
        self,
        body: Mapping[str, object],
        *,
        attempts: int = ATTEMPTS,
        timeout_s: float | None = None,
    ) -> object:
        """The server's answer; errors that pass are waited for, others are raised."""
        wait_s = FIRST_WAIT_S
        for left in reversed(range(attempts)):
            try:
                sent = json.dumps(body).encode()
                return self._parse(self._send(sent, timeout_s or self._timeout_s))
            except _Passing as error:
                if not left:
                    times = f"{attempts} times" if attempts > 1 else "once"
                    raise ProviderError(
                        f"{self} failed, asked {times}: {error}",
                        status=error.status,
                        retry_after_s=error.wait_s,
                    ) from None
                asked = wait_s if error.wait_s is None else error.wait_s
                time.sleep(min(asked, LONGEST_WAIT_S))
                wait_s *= 2
        raise ValueError("attempts must be at least 1")

    def _send(self, body: bytes, timeout_s: float) -> bytes:
        import http.client
        import urllib.error
        import urllib.request  # here, so that `import memorist` stays light

        request = urllib.request.Request(self._url, body, self._headers, method="POST")
        opener = urllib.request.build_opener(_no_redirects())
        ends_at = time.monotonic() + timeout_s
        try:
            with opener.open(request, timeout=timeout_s) as reply:
                return self._read(reply, ends_at)
        except urllib.error.HTTPError as error:
            with error:  # it is also the reply, with its connection
                raise self._explain(error) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise _Passing(f"{type(reason).__name__}; is it running?") from None

    def _read(self, reply: HTTPResponse, ends_at: float) -> bytes:
        """All of the answer; the socket's own patience would begin anew with every byte."""
        data = bytearray()
        most = self._max_bytes or MAX_BYTES
        while part := reply.read1(CHUNK_BYTES):
            data += part
            if len(data) > most:
                raise ProviderError(f"{self} answered with more than {most:,} bytes")
            if time.monotonic() > ends_at:
                raise _Passing("the answer came too slowly")
        if reply.length:
            raise _Passing("the answer was cut off")
        return bytes(data)

    def _explain(self, error: HTTPError) -> Exception:
        code = _error_code(error)
        said = f"HTTP {error.code}" + (f" ({code})" if code else "")
        if error.code in _PASSING and code not in _HOPELESS:
            return _Passing(said, wait_s=retry_after(error.headers), status=error.code)
        cure = _CURES.get(error.code, "see the server's log")
        if 300 <= error.code < 400:
            cure = "it points elsewhere; give base_url the final address"
        return ProviderError(f"{self} refused with {said}: {cure}", status=error.code)

    def _parse(self, data: bytes) -> object:
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise ProviderError(f"{self} answered with no JSON: check base_url") from None


def _no_redirects() -> BaseHandler:
    from urllib.request import HTTPRedirectHandler

    class NoRedirects(HTTPRedirectHandler):
        """Following one would hand the key and the texts to a host nobody named."""

        def redirect_request(self, *_: object) -> None:
            return None

    return NoRedirects()


def _error_code(error: HTTPError) -> str:
    """The provider's own word for the error, unless it could be a sentence that quotes."""
    try:
        told = json.loads(error.read(CHUNK_BYTES))["error"]
        code = str(told.get("code") or told.get("type") or "")
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ""
    return code if re.fullmatch(r"[a-zA-Z_]{1,40}", code) else ""


def retry_after(headers: Message | Mapping[str, str]) -> float | None:
    """Seconds to wait, told as a number or as a date."""
    from email.utils import parsedate_to_datetime

    told = headers.get("Retry-After")
    if told is None:
        return None
    if re.fullmatch(r"\d{1,9}(\.\d*)?", told.strip()):
        return float(told)
    try:
        return max(0.0, parsedate_to_datetime(told).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
