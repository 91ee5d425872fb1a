"""`connect("http://…")` where things are odd: proxies, other servers, texts that are none."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, parse_headers
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

import pytest

from memorist import (
    Client,
    ConfigError,
    InvalidError,
    MemoristError,
    Memory,
    Message,
    RateLimitedError,
    StoreUnavailableError,
)
from memorist.providers import http
from memorist.server.auth import Guard
from memorist.server.http.app import Limits, build_app
from tests.support.http_server import Served, serving

HALF = "half of a character: \ud800"


class Other(BaseHTTPRequestHandler):
    """Somebody on the way, who says what the address asks for: /status/body."""

    def do_GET(self) -> None:
        _, status, body, *_ = self.path.split("/")
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(int(status))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    """The address of one who is no Memorist."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(served.url, key=served.key("ada")) as client:
        yield client


@pytest.mark.parametrize("said", ["301/", "200/<html>"])
def test_an_address_that_is_no_servers_is_named_as_such(elsewhere: str, said: str) -> None:
    with Client(f"{elsewhere}/{said}") as client:
        with pytest.raises(ConfigError, match="no Memorist at this address"):
            client.sessions(user="ada")
        with pytest.raises(ConfigError, match="no Memorist at this address"):
            client.recall("where?", user="ada")


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_proxy_without_its_server_is_a_server_that_is_away(elsewhere: str, status: int) -> None:
    with Client(f"{elsewhere}/{status}/<html>", timeout_s=5.0) as client:
        assert client.recall("where?", user="ada").failed
        with pytest.raises(StoreUnavailableError, match=f"HTTP {status}"):
            client.remember("I moved.", user="ada")


@pytest.mark.parametrize(
    "url", ["http://host:99999", "http://host:x", "http://[::1", "http://:secret@host"]
)
def test_an_address_that_cannot_be_one_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Client(url)
    assert "secret" not in str(caught.value)


def test_half_a_character_is_refused_as_it_is_at_hand(client: Client) -> None:
    assert client.recall(HALF, user="ada").hits == ()
    for ask in (
        lambda: client.session(user="ada", agent=HALF),
        lambda: client.sessions(user="ada", agent=HALF),
        lambda: client.memories.retract(HALF, user="ada"),
        lambda: client.forget(user="ada", message=HALF),
    ):
        with pytest.raises(InvalidError, match="lone surrogate"):
            ask()


@pytest.mark.parametrize("deadline_ms", [20_000, float("inf")])
def test_a_longer_deadline_than_the_servers_waits_for_all(
    client: Client, deadline_ms: float
) -> None:
    client.remember("I moved to Lisbon.", user="ada")
    [hit] = client.recall("Lisbon", user="ada", limit=1, deadline_ms=deadline_ms).hits
    assert hit.text == "I moved to Lisbon."


def test_a_connection_that_was_closed_for_being_idle_is_not_used_again(tmp_path: Path) -> None:
    with (
        Memory(tmp_path / "memory.db", embedder=None) as memory,
        serving(build_app(memory, Guard.local("default", "ada")), timeout_keep_alive=1) as url,
        Client(url) as client,
    ):
        fact = client.facts.add("Ada", "lives in", "Rome", user="ada")
        time.sleep(2.5)
        client.facts.change(fact, user="ada", object="Oslo")  # which may not be sent twice
        [now] = client.facts.list(user="ada")
        assert now.object == "Oslo"


def test_who_asks_too_often_is_told_how_long_to_wait(tmp_path: Path) -> None:
    slow = Limits(requests_per_s=0.1, burst=1)
    with (
        Memory(tmp_path / "memory.db", embedder=None) as memory,
        serving(build_app(memory, Guard.local("default", "ada"), slow)) as url,
        Client(url, timeout_s=1) as client,
    ):
        assert client.sessions(user="ada") == []
        with pytest.raises(RateLimitedError) as caught:
            client.sessions(user="ada")
        assert caught.value.retry_after_s > 5


def test_what_is_wrong_with_a_question_is_told_as_at_hand(client: Client) -> None:
    with pytest.raises(InvalidError, match="deadline_ms"):
        client.recall("where?", user="ada", deadline_ms=float("nan"))
    with pytest.raises(InvalidError, match="last must be"):
        client.history(user="ada", last=-1)
    with pytest.raises(InvalidError, match="must be a user's"):
        client.context(Message("assistant", "who?"), user="ada")


class Cutting:
    """A server that cuts its first answers off, and then answers as it should."""

    BODY = b'{"items": [], "next": null}'

    def __init__(self, *cuts: int, length: bool = True) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(self.BODY)}\r\n".encode() * length
        self._answer = head + b"Connection: close\r\n\r\n" + self.BODY
        self._cuts = cuts
        self.asked: list[bytes] = []

    def __enter__(self) -> Self:
        self._door = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def _serve(self) -> None:
        for cut in (*self._cuts, len(self._answer)):
            try:
                line, _ = self._door.accept()
            except OSError:
                return  # the test is over
            line.settimeout(30)
            with line, line.makefile("rb") as request:
                self.asked.append(request.readline().split(b" ")[0])
                # What is left unread when a connection closes would reset it.
                headers = parse_headers(request)
                request.read(int(headers.get("Content-Length", 0)))
                line.sendall(self._answer[:cut])

    def __exit__(self, *_: object) -> None:
        # A thread still waiting at this number would take the next test's connection.
        with suppress(OSError):  # as some systems say of a socket that only listens
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self._thread.join(60)


@pytest.mark.parametrize("cut", [0, 5, 12, 17, 30, 51, 60, 75, -27, -1])
@pytest.mark.parametrize("length", [True, False])
def test_an_answer_that_is_cut_off_anywhere_is_asked_for_again(cut: int, length: bool) -> None:
    with Cutting(cut, length=length) as server, Client(server.url) as client:
        assert client.facts.list(user="ada") == []
        assert server.asked == [b"GET", b"GET"]


def test_a_write_that_may_act_twice_is_not_sent_again() -> None:
    with Cutting(60) as server, Client(server.url) as client:
        with pytest.raises(StoreUnavailableError, match="BrokenAnswerError"):
            client.facts.add("ada", "likes", "tea", user="ada")
        assert server.asked == [b"POST"]


def test_notes_are_not_written_twice_where_the_answer_is_lost() -> None:
    with Cutting(60) as server, Client(server.url) as client:
        with pytest.raises(StoreUnavailableError, match="BrokenAnswerError"):
            client.note_versions.write(client.scope(user="ada"), "Tea.", base_version=0)
        assert server.asked == [b"PUT"]


def test_an_error_that_ends_with_the_connection_is_no_broken_answer() -> None:
    with Cutting() as server, Client(server.url) as client:
        server._answer = b"HTTP/1.0 401 Unauthorized\r\n\r\ndenied"
        with pytest.raises(MemoristError, match="HTTP 401"):
            client.facts.list(user="ada")
        assert server.asked == [b"GET"]


def test_a_request_waits_for_a_server_that_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    with Cutting() as server, Client(server.url) as client:
        connect = http._connect

        def refuse(connection: HTTPConnection) -> None:
            if sum(waits) < 3:
                raise http.NotSentError("nobody listens")
            connect(connection)

        monkeypatch.setattr(http, "_connect", refuse)
        monkeypatch.setattr("memorist.providers.http.time.sleep", waits.append)
        with pytest.raises(KeyError):  # the answer is that of another operation
            client.facts.add("ada", "likes", "tea", user="ada")
        assert server.asked == [b"POST"], "it was not sent before"
        assert 3 <= sum(waits) < 5


def test_a_forked_child_does_not_read_its_parents_answers() -> None:
    with Cutting() as server, Client(server.url) as client:
        pool = client._runtime.api.connection  # type: ignore[attr-defined]
        idle = HTTPConnection("127.0.0.1", 1)
        pool._idle.append(idle)
        child = os.fork()
        if not child:
            os._exit(len(pool._idle))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert pool._idle == [idle]
