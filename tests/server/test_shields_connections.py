"""Connections: who never asks is let go, and no address has them all."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest
from starlette.types import Receive, Scope, Send

from memorist.config import Settings
from memorist.errors import ConfigError
from memorist.server.run import MOST_CONNECTIONS, MOST_OF_ONE, Prompt, configured, make_app
from tests.support.http_server import Served
from tests.support.shields import echo, head, hello, raw, read_all, serving, status_of, wait_until

OPEN = head("GET").replace(b"Connection: close\r\n", b"")


class Hasty(Prompt):
    """The same, for those who cannot wait."""

    head_s = 0.3


class Crowded(Prompt):
    """The same, where loopback is an address like any other, of which there are few."""

    most_of_one = 3
    spared = ()


@contextlib.contextmanager
def connected(port: int, times: int = 1) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as open_:
        yield [
            open_.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
            for _ in range(times)
        ]


def seconds_until_closed(connection: socket.socket) -> float:
    began = time.monotonic()
    read_all(connection)
    return time.monotonic() - began


def answer(connection: socket.socket) -> bytes:
    """One answer of an app that says hello."""
    received = b""
    while not received.endswith(b"hello\r\n0\r\n\r\n"):
        block = connection.recv(65536)
        assert block, received
        received += block
    return received


@pytest.mark.parametrize("said", [b"", b"GET", b"GET / HTTP/1.1\r\nHost: local"])
def test_a_connection_that_does_not_ask_is_closed(said: bytes) -> None:
    with serving(hello, http=Hasty) as port, connected(port) as [connection]:
        connection.sendall(said)
        assert 0.1 < seconds_until_closed(connection) < 3


def test_a_head_that_trickles_is_closed_though_it_never_stops() -> None:
    with serving(hello, http=Hasty) as port:
        assert raw(port, *[b"GET"], *[b"x"] * 40, pause_s=0.05) == b""


def test_silent_connections_give_way_to_others() -> None:
    with serving(hello, http=Hasty, limit_concurrency=20) as port, connected(port, 20) as silent:
        assert status_of(raw(port, head("GET"))) == 503
        for connection in silent:
            read_all(connection)
        assert status_of(raw(port, head("GET"))) == 200


def test_an_answer_may_take_longer_than_a_head() -> None:
    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["more_body"]:
            pass
        await hello(scope, receive, send)

    with serving(slow, http=Hasty) as port:
        said = head("POST", "Content-Length: 12")
        assert status_of(raw(port, said, *[b"1"] * 12, pause_s=0.08)) == 200


def test_a_connection_that_is_kept_waits_for_the_next_request_but_not_for_half_of_one() -> None:
    with serving(hello, http=Hasty, timeout_keep_alive=30) as port, connected(port) as [connection]:
        connection.sendall(OPEN)
        answer(connection)
        time.sleep(0.6)  # longer than a head may take
        connection.sendall(OPEN)
        answer(connection)
        connection.sendall(OPEN[:9])
        assert seconds_until_closed(connection) < 3


def test_the_rest_of_a_body_that_was_answered_already_is_not_awaited() -> None:
    with serving(hello, http=Hasty, timeout_keep_alive=30) as port, connected(port) as [connection]:
        connection.sendall(OPEN.replace(b"GET", b"POST")[:-2] + b"Content-Length: 900\r\n\r\n")
        answer(connection)
        connection.sendall(b"1")
        assert seconds_until_closed(connection) < 3


def test_pipelined_requests_are_all_answered() -> None:
    with serving(echo, http=Hasty) as port:
        received = raw(port, OPEN + OPEN + head("GET"))
        assert received.count(b"HTTP/1.1 200") == 3


def test_one_address_has_only_so_many_connections() -> None:
    with serving(hello, http=Crowded) as port, connected(port, 3) as others:
        with connected(port) as [one_more]:
            assert seconds_until_closed(one_more) < 3
        for connection in others:
            connection.sendall(OPEN)
            answer(connection)
        others[0].close()
        wait_until(lambda: b"200" in raw(port, head("GET")))


def test_a_proxy_on_this_machine_has_as_many_as_it_likes() -> None:
    class Few(Prompt):
        most_of_one = 3

    with serving(hello, http=Few) as port, connected(port, 10) as many:
        for connection in many:
            connection.sendall(OPEN)
            answer(connection)


def test_a_server_is_served_so() -> None:
    config = configured(hello)
    assert config.http is Prompt
    assert Prompt.head_s <= 10
    assert MOST_OF_ONE * 4 <= MOST_CONNECTIONS == config.limit_concurrency


@pytest.mark.parametrize("rate", ["nan", "inf", "-inf", "-1", "many", ""])
def test_a_rate_that_is_no_number_is_said_at_once(rate: str) -> None:
    with pytest.raises(ConfigError, match="MEMORIST_RATE"):
        make_app(Settings(url=":memory:", rate=rate))


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_monitors_may_ask_for_the_head_alone(served: Served, path: str) -> None:
    client = served.with_key(None)
    full, short = client.get(path), client.head(path)
    assert (full.status_code, short.status_code, short.content) == (200, 200, b"")
    assert short.headers["content-length"] == str(len(full.content))
    assert short.headers["content-type"] == full.headers["content-type"]
