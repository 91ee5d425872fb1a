"""Layers under test: called directly, or behind the real uvicorn and a socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.support.waiting import until

Headers = Iterable[tuple[bytes, bytes]]
LOCAL = (b"host", b"localhost")


@dataclass
class Answer:
    """What came back, and what the app behind the layers got to see."""

    sent: list[Message] = field(default_factory=list)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    @property
    def problem(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    def all(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.sent[0]["headers"] if key.lower() == name]


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    """An app that says hello."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """An app that gives back the body, which must come in one message."""
    message = await receive()
    assert not message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


def request(
    *headers: tuple[bytes, bytes], method: str = "GET", path: str = "/api/x", **more: Any
) -> Scope:
    """A request as a server hands it to an app."""
    client = ("192.0.2.1", 5)
    scope = {"type": "http", "method": method, "path": path, "client": client, "state": {}}
    return {**scope, "headers": list(headers), **more}


def call(app: ASGIApp, scope: Scope, *messages: Message) -> Answer:
    """Call an app with messages, after which the client is gone."""
    answer, waiting = Answer(), [*messages]

    async def receive() -> Message:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        answer.sent.append(message)

    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    return answer


def part(body: bytes, *, more: bool = False) -> Message:
    """A part of a body."""
    return {"type": "http.request", "body": body, "more_body": more}


@contextlib.contextmanager
def serving(app: ASGIApp, **options: Any) -> Iterator[int]:
    """The port on which uvicorn serves the app, in a thread of its own."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, lifespan="off", log_config=None, server_header=False, **{"ws": "none", **options}
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        until(lambda: server.started)
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
        assert not thread.is_alive()


def raw(port: int, *pieces: bytes, pause_s: float = 0.0) -> bytes:
    """Send bytes, with pauses between, and read all that comes until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        for number, piece in enumerate(pieces):
            time.sleep(pause_s if number else 0)
            try:
                connection.sendall(piece)
            except OSError:
                break  # refused already; the answer is there to be read
        return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    """All that comes until the end, be it a proper one or a reset."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while block := connection.recv(65536):
            received += block
    return received


def head(method: str = "POST", *lines: str) -> bytes:
    """The head of a request to the app at localhost, closed after the answer."""
    first = [f"{method} /api/x HTTP/1.1", "Host: localhost", "Connection: close"]
    return "\r\n".join([*first, *lines, "", ""]).encode()


def status_of(received: bytes) -> int:
    """The status in what was received."""
    return int(received.split(b" ", 2)[1])
