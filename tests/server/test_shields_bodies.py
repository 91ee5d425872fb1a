"""Bodies: JSON, not too much, not too deep, not too slowly, and not too many at once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import threading
import time

import pytest
from starlette.types import Message, Receive, Scope, Send

from memorist.server.http.asgi import values
from memorist.server.http.body_limit import SMALL, STEP, Bodies, Pace, is_json
from memorist.server.http.request_id import Identify
from memorist.server.http.room import Room
from memorist.server.principal import Principal
from tests.support.shields import (
    Answer,
    call,
    echo,
    head,
    part,
    raw,
    read_all,
    request,
    serving,
    status_of,
    wait_until,
)

JSON = (b"content-type", b"application/json")
TYPE = "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"
APP = Bodies(echo, most_bytes=1_000)
QUICK = Pace(least_bytes=100, window_s=0.3, total_s=1.0)


def post(body: bytes, *headers: tuple[bytes, bytes], app: Bodies = APP) -> Answer:
    length = (b"content-length", str(len(body)).encode())
    return call(app, request(*(headers or (JSON,)), length, method="POST"), part(body))


def chunk(body: bytes) -> bytes:
    return f"{len(body):x}\r\n".encode() + body + b"\r\n"


def code_of(received: bytes) -> str:
    found: str = json.loads(received.partition(b"\r\n\r\n")[2])["code"]
    return found


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/merge-patch+json",
        "application/json ;",
    ],
)
def test_json_is_taken(kind: str) -> None:
    answer = post(b"{}", (b"content-type", kind.encode()))
    assert (answer.status, answer.body) == (200, b"{}")


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/jsonx",
        "application/json; charset=utf-16",
        "application/json, text/plain",
        "text/plain; a=application/json",
        "application/+json",
        "application/json; charset=utf-8; x=y",
        "application/xml+json+x",
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "GET"])
def test_other_kinds_of_body_are_refused(kind: str, method: str) -> None:
    scope = request((b"content-type", kind.encode()), method=method)
    answer = call(APP, scope, part(b"{", more=True), part(b"}"))
    assert (answer.status, answer.problem["code"]) == (415, "not_json")


def test_a_body_of_no_kind_of_two_kinds_or_packed_is_refused() -> None:
    assert post(b"{}", (b"x", b"y")).status == 415
    assert post(b"{}", JSON, JSON).status == 415
    assert post(b"{}", JSON, (b"content-encoding", b"gzip")).status == 415
    assert is_json(request(JSON, (b"content-encoding", b"identity")))


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_no_body_needs_no_kind(method: str) -> None:
    assert call(APP, request(method=method), part(b"")).status == 200
    empty = request((b"content-length", b"0"), method=method)
    assert call(APP, empty, part(b"")).status == 200


def test_a_body_of_many_parts_comes_as_one() -> None:
    parts = [part(b"[1", more=True), part(b"", more=True), part(b",2", more=True), part(b"]")]
    assert call(APP, request(JSON, method="POST"), *parts).body == b"[1,2]"


def test_a_body_that_says_it_is_too_large_is_not_read() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError

    said = request(JSON, (b"content-length", b"1001"), method="POST")
    answer = call(Bodies(app, most_bytes=1_000), said)
    assert (answer.status, answer.problem["code"]) == (413, "too_large")
    assert answer.all(b"connection") == [b"close"]


@pytest.mark.parametrize("said", [b"9" * 400, b"0" * 400 + b"9" * 10, b"-5", b"x", b""])
def test_odd_lengths_do_no_harm(said: bytes) -> None:
    scope = request(JSON, (b"content-length", said), method="POST")
    assert call(APP, scope, part(b"1" * 1_001)).status == 413


def test_the_largest_body_that_is_allowed_passes() -> None:
    assert post(b"1" * 1_000).status == 200
    assert post(b"1" * 1_001).status == 413


def test_deep_json_is_refused() -> None:
    app = Bodies(echo)
    assert post(b"[" * 64 + b"]" * 64, app=app).status == 200
    answer = post(b"[" * 65 + b"]" * 65, app=app)
    assert (answer.status, answer.problem["code"]) == (422, "invalid")
    assert post(b'"' + b"[" * 1_000_000 + b'"', app=app).status == 200
    assert post(b"[" * 1_000_000, app=app).status == 422


def test_who_leaves_amid_the_body_is_let_go_and_the_room_is_free_again() -> None:
    app = Bodies(echo, room=Room(10 * SMALL))
    scope = request(JSON, (b"content-length", b"200000"), method="POST")
    assert call(app, scope, part(b"1" * 100_000, more=True)).sent == []
    assert app.room.free == 10 * SMALL


def test_other_scopes_pass() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["type"] == "websocket.connect"

    call(Bodies(app), {"type": "websocket"}, {"type": "websocket.connect"})


def test_after_the_body_the_app_learns_that_the_client_left() -> None:
    heard: list[Message] = []

    async def streaming(scope: Scope, receive: Receive, send: Send) -> None:
        heard.append(await receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"data: x\n\n", "more_body": True})
        heard.append(await receive())

    with serving(Bodies(streaming)) as port:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(head("POST", TYPE, CHUNKED) + chunk(b"[1,") + chunk(b"2]"))
            connection.sendall(b"0\r\n\r\n")
            while b"data: x" not in connection.recv(65536):
                pass
            assert len(heard) == 1  # it waits
        wait_until(lambda: len(heard) == 2)
    assert heard[0]["body"] == b"[1,2]"
    assert heard[1] == {"type": "http.disconnect"}


def test_chunks_are_counted_as_they_come() -> None:
    with serving(APP) as port:
        assert (
            status_of(raw(port, head("POST", TYPE, CHUNKED), chunk(b"1" * 9), b"0\r\n\r\n")) == 200
        )
        endless = [chunk(b"1" * 600)] * 50
        received = raw(port, head("POST", TYPE, CHUNKED), *endless)
        assert (status_of(received), code_of(received)) == (413, "too_large")


def test_a_sender_of_far_too_much_still_reads_why_it_was_refused() -> None:
    said = f"Content-Length: {64 * 1024 * 1024}"
    with serving(Bodies(echo)) as port:
        received = raw(port, head("POST", TYPE, said), *[b"1" * 1_000_000] * 64)
        assert (status_of(received), code_of(received)) == (413, "too_large")


def test_who_asks_before_sending_is_refused_before_sending() -> None:
    lines = [TYPE, "Content-Length: 5000", "Expect: 100-continue"]
    with serving(APP) as port:
        assert raw(port, head("POST", *lines)).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("lines", [[TYPE, "Content-Length: 500"], [TYPE, CHUNKED]])
def test_a_body_that_stops_coming_times_out(lines: list[str]) -> None:
    began = time.monotonic()
    with serving(Bodies(echo, pace=QUICK)) as port:
        received = raw(port, head("POST", *lines), b"5\r\n")
    assert (status_of(received), code_of(received)) == (408, "too_slow")
    assert time.monotonic() - began < 5


def test_a_body_that_trickles_times_out_though_it_never_stops() -> None:
    with serving(Bodies(echo, pace=QUICK)) as port:
        lines = [TYPE, "Content-Length: 500"]
        received = raw(port, head("POST", *lines), *[b"1"] * 40, pause_s=0.05)
    assert status_of(received) == 408


def test_a_body_that_keeps_the_pace_still_has_an_end() -> None:
    sent: list[Message] = []

    async def endless() -> Message:
        await asyncio.sleep(0.01)
        return {"type": "http.disconnect"} if sent else part(b"1" * 1_000, more=True)

    async def send(message: Message) -> None:
        sent.append(message)

    app = Bodies(echo, most_bytes=1_000_000, pace=Pace(least_bytes=100, total_s=0.3))
    asyncio.run(app(request(JSON, method="POST"), endless, send))
    assert sent[0]["status"] == 408


def test_a_body_that_takes_longer_than_the_window_but_keeps_the_pace_is_taken() -> None:
    with serving(Bodies(echo, pace=Pace(least_bytes=100, window_s=1.0))) as port:
        lines = [TYPE, "Content-Length: 1500"]
        received = raw(port, head("POST", *lines), *[b"1" * 100] * 15, pause_s=0.1)
    assert status_of(received) == 200


def test_who_leaves_amid_the_body_makes_no_noise(caplog: pytest.LogCaptureFixture) -> None:
    gone = threading.Event()

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        await Identify(Bodies(echo))(scope, receive, send)
        gone.set()

    with caplog.at_level(logging.INFO), serving(watched) as port:
        caplog.clear()
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(head("POST", TYPE, "Content-Length: 500") + b"[")
            time.sleep(0.1)
        assert gone.wait(5)
        assert [it.message for it in caplog.records if it.levelno > logging.INFO] == []


def test_a_refused_body_that_was_read_leaves_the_connection_open() -> None:
    deep = b"[" * 100
    one = head("POST", TYPE, "Content-Length: 100").replace(b"Connection: close\r\n", b"") + deep
    with (
        serving(Bodies(echo)) as port,
        socket.create_connection(("127.0.0.1", port), timeout=5) as connection,
    ):
        connection.sendall(one)
        refused = b""
        while not refused.endswith(b"}"):
            refused += connection.recv(65536)
        assert status_of(refused) == 422
        connection.sendall(head("GET"))
        assert status_of(read_all(connection)) == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_large_bodies_beyond_the_room_wait_and_then_are_told_to_retry(chunked: bool) -> None:
    size = 4 * 3 * SMALL  # of which one caller gets a quarter
    app = Bodies(echo, room=Room(size, patience_s=0.2), most_bytes=3 * SMALL)
    body = b"1" * (2 * SMALL)
    said = CHUNKED if chunked else f"Content-Length: {len(body)}"
    with serving(app) as port, socket.create_connection(("127.0.0.1", port), timeout=5) as holder:
        holder.sendall(head("POST", TYPE, f"Content-Length: {len(body)}") + body[:-1])
        wait_until(lambda: app.room.free < size)
        rest = chunk(body) + b"0\r\n\r\n" if chunked else body
        refused = raw(port, head("POST", TYPE, said), rest)
        assert status_of(refused) == 503
        assert b"\r\nretry-after: " in refused.lower()
        assert status_of(raw(port, head("POST", TYPE, "Content-Length: 2"), b"[]")) == 200  # small
        holder.sendall(body[-1:])
        assert status_of(read_all(holder)) == 200
        assert status_of(raw(port, head("POST", TYPE, said), rest)) == 200
    assert app.room.free == size


def test_a_body_that_is_declared_but_does_not_come_takes_no_room() -> None:
    app = Bodies(echo, most_bytes=8 * STEP, room=Room(32 * STEP, patience_s=0.2))
    large = b"1" * (8 * STEP)
    said = f"Content-Length: {len(large)}"
    with serving(app) as port, contextlib.ExitStack() as open_:
        for _ in range(8):
            trickle = socket.create_connection(("127.0.0.1", port), timeout=5)
            open_.enter_context(trickle)
            trickle.sendall(head("POST", TYPE, said) + b"[")
        assert status_of(raw(port, head("POST", TYPE, said), large)) == 200
        assert app.room.free == 32 * STEP


def test_one_caller_leaves_room_for_the_others() -> None:
    async def known(scope: Scope, receive: Receive, send: Send) -> None:
        [name] = values(scope, b"name")
        scope["state"]["principal"] = Principal(tenant="t", user=name.decode())
        await app(scope, receive, send)

    app = Bodies(echo, most_bytes=8 * STEP, room=Room(32 * STEP, patience_s=0.2))
    large = b"1" * (8 * STEP)
    said = f"Content-Length: {len(large)}"
    with serving(known) as port, socket.create_connection(("127.0.0.1", port), timeout=5) as holder:
        holder.sendall(head("POST", TYPE, said, "Name: eve") + large[:-1])
        wait_until(lambda: app.room.free == 24 * STEP)
        assert status_of(raw(port, head("POST", TYPE, said, "Name: eve"), large)) == 503
        assert status_of(raw(port, head("POST", TYPE, said, "Name: ada"), large)) == 200


@pytest.mark.parametrize("path", ["/", "/health", "/ready", "/openapi.json", "/web/page.css"])
@pytest.mark.parametrize("said", [f"Content-Length: {8 << 20}", "Content-Length: 1", CHUNKED])
def test_where_no_key_is_asked_for_no_body_is_taken_nor_waited_for(path: str, said: str) -> None:
    app = Bodies(echo)
    asked = head("POST", TYPE, said).replace(b"/api/x", path.encode())
    with (
        serving(app) as port,
        socket.create_connection(("127.0.0.1", port), timeout=5) as connection,
    ):
        connection.sendall(asked)  # and nothing of the body
        first = connection.recv(65536)
    assert status_of(first) == 413
    with serving(app) as port:
        assert status_of(raw(port, head("GET").replace(b"/api/x", path.encode()))) == 200


def test_a_body_of_unknown_length_keeps_only_the_room_it_needs() -> None:
    seen: list[int] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(layer.room.free)
        await echo(scope, receive, send)

    layer = Bodies(app, most_bytes=5 * SMALL, room=Room(20 * SMALL))
    parts = [part(b"1" * SMALL, more=True), part(b"1" * SMALL)]
    assert call(layer, request(JSON, method="POST"), *parts).status == 200
    assert seen == [18 * SMALL]
    assert layer.room.free == 20 * SMALL


def test_room_is_free_again_when_the_app_fails() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError

    layer = Bodies(app, room=Room(10 * SMALL))
    assert call(Identify(layer), request(JSON, method="POST"), part(b"1" * 2 * SMALL)).status == 500
    assert layer.room.free == 10 * SMALL
