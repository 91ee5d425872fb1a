"""Sending over HTTP as healthy and as failing servers do: whole, in a stream, slowly, in part."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

from memorist.testing.openai_errors import ErrorAnswer


class Replies(BaseHTTPRequestHandler):
    """One connection; `mode` "slow" drips and "drop" ends in the midst."""

    protocol_version = "HTTP/1.1"  # so that a stream that breaks off is seen to

    def pause(self) -> bool:
        """Wait for as long as a byte takes; False if there is no use in going on."""
        raise NotImplementedError

    def send_fault(self, error: ErrorAnswer) -> None:
        """An error with its status."""
        self._send_head(error.status, "application/json", error.headers)
        self._send_body(to_json(error.body), "ok")

    def send_whole(self, data: bytes, mode: str) -> None:
        """A body whose length is told before."""
        self._send_head(200, "application/json", {})
        self._send_body(data, mode)

    def send_stream(self, events: Iterable[bytes], mode: str) -> None:
        """Events one by one, each a chunk of its own; the empty one says that it was the last."""
        self._send_head(200, "text/event-stream", {"Transfer-Encoding": "chunked"})
        self.end_headers()
        parts = [b"%x\r\n%s\r\n" % (len(event), event) for event in (*events, b"")]
        for part in parts[: len(parts) // 2] if mode == "drop" else parts:
            self._write(part, mode)

    def _send_head(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name, value)

    def _send_body(self, data: bytes, mode: str) -> None:
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self._write(data[: len(data) // 2] if mode == "drop" else data, mode)

    def _write(self, data: bytes, mode: str) -> None:
        if mode != "slow":
            self.wfile.write(data)
            return
        for place in range(len(data)):
            if not self.pause():
                return
            self.wfile.write(data[place : place + 1])

    def log_message(self, format: str, *args: object) -> None:
        """Quietly."""


def to_json(data: Mapping[str, Any]) -> bytes:
    """A body."""
    return json.dumps(data).encode()


def from_json(raw: bytes) -> dict[str, Any] | None:
    """The JSON object that a body is, if it is one."""
    try:
        body = json.loads(raw)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
