"""Known attacks on a real server, each answered by a standard limit; named after the attack."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from memorist.config import Settings
from memorist.errors import ConfigError
from memorist.server.auth import Guard
from memorist.server.http.app import build_app
from memorist.server.http.limits import MAX_CONCURRENT
from memorist.server.http.middleware import FILES, BodyLimit
from memorist.server.http.run import MAX_CONNECTIONS, uvicorn_config
from memorist.server.http.tokens import JwtTokens
from tests.server.conftest import UNLIMITED
from tests.server.test_refusals import WITH_BODY
from tests.support.asgi import hello, raw, read_all, status_of
from tests.support.http_server import Served, serving
from tests.support.tokens import signed

MIB = 1024 * 1024
JSON = {"Content-Type": "application/json"}
OCTETS = {"Content-Type": "application/octet-stream", "Accept": "application/json"}


def opened(served: Served, *lines: str, path: str = "/api/recall") -> socket.socket:
    """A connection on which a request has begun."""
    address = httpx.URL(served.url)
    connection = socket.create_connection((address.host, address.port or 0), timeout=20)
    first = (f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json")
    connection.sendall("\r\n".join([*first, *lines, "", ""]).encode())
    return connection


def seconds_of(client: httpx.Client, path: str) -> float:
    began = time.monotonic()
    assert client.get(path).status_code == 200
    return time.monotonic() - began


@contextlib.contextmanager
def holding(connections: list[socket.socket]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for connection in connections:
            stack.enter_context(connection)
        yield


def test_slow_bodies_hold_only_the_slots_of_their_own_user(served: Served) -> None:
    """Slow POST: each request declares a body and never sends it."""
    ada, key = served.client(user="ada"), served.key(user="mallory")
    lines = (f"Authorization: Bearer {key}", "Content-Length: 5000000")
    with holding([opened(served, *lines) for _ in range(2 * MAX_CONCURRENT)]):
        assert seconds_of(ada, "/api/sessions") < 3
        assert seconds_of(ada, "/health") < 3


def test_a_slow_body_times_out(served: Served) -> None:
    app = BodyLimit(build_app(served.memory, Guard.local("default", "ada")), timeout_s=0.5)
    with serving(app) as url:
        slow = Served(url, served.memory)
        with opened(slow, "Content-Length: 500", "Connection: close") as connection:
            connection.sendall(b"{")
            answer = read_all(connection)
    assert status_of(answer) == 408
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "too_slow"


def test_slow_headers_and_silent_connections_leave_the_server_to_others(served: Served) -> None:
    """Slowloris: a proxy ends them; here they cost a connection each, of a thousand."""
    address = httpx.URL(served.url)
    silent = [socket.create_connection((address.host, address.port or 0)) for _ in range(200)]
    with holding(silent):
        for connection in silent[::2]:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: local")
        assert seconds_of(served.client(), "/api/sessions") < 3
        assert seconds_of(served.client(), "/health") < 3
    assert uvicorn_config(hello).limit_concurrency == MAX_CONNECTIONS >= 1_000


def test_nested_brackets_are_refused_by_every_operation(served: Served) -> None:
    """JSON bomb: deeper than parsers recurse, or just not so deep."""
    client = served.client()
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        for depth in (100, 900, 100_000):
            body = opening * depth + b"1" + closing * depth
            for method, path in WITH_BODY:
                headers = OCTETS if path in FILES else JSON
                answer = client.request(method, path, content=body, headers=headers)
                assert answer.status_code in (400, 422), (path, depth, answer.status_code)
                assert answer.headers["content-type"] == "application/problem+json"
    assert client.get("/health").status_code == 200


def test_nested_brackets_inside_of_fields_are_refused(served: Served) -> None:
    client = served.client()
    for depth in (100, 900):
        nested = b"[" * depth + b"]" * depth
        for field in (b"content", b"tool_calls", b"structured_data", b"agent_calls"):
            body = b'{"role": "user", "%b": %b}' % (field, nested.replace(b"[]", b'[{"a": 1}]'))
            answer = client.post("/api/messages", content=body, headers=JSON)
            assert answer.status_code == 422, (field, depth, answer.text)
        body = b'{"question": "q", "tools": [{"a": %b}]}' % nested
        assert client.post("/api/context", content=body, headers=JSON).status_code == 422


@pytest.mark.parametrize("chunked", [False, True])
def test_bodies_beyond_8_mib_are_refused_while_they_are_sent(served: Served, chunked: bool) -> None:
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {64 * MIB}"
    with opened(served, f"Authorization: Bearer {served.key()}", framing) as connection:
        piece = b"1" * MIB
        with contextlib.suppress(OSError):
            for _ in range(64):
                connection.sendall(b"%x\r\n%b\r\n" % (MIB, piece) if chunked else piece)
                if connection in _readable(connection):
                    break
        answer = connection.recv(65536)
        while b"too_large" not in answer:
            answer += connection.recv(65536)
    assert status_of(answer) == 413


def _readable(connection: socket.socket) -> list[socket.socket]:
    return list(select.select([connection], [], [], 0)[0])


def test_many_large_bodies_at_once_are_bounded_by_the_concurrency_limit(served: Served) -> None:
    client = served.client(user="hoarder")
    body = json.dumps({"question": "x" * (7 * MIB)}).encode()
    statuses: Counter[int] = Counter()

    def send() -> None:
        statuses[client.post("/api/recall", content=body, headers=JSON).status_code] += 1

    threads = [threading.Thread(target=send) for _ in range(24)]
    for thread in threads:
        thread.start()
    assert seconds_of(served.client(), "/health") < 5
    for thread in threads:
        thread.join()
    assert set(statuses) <= {422, 429}, statuses  # too long a question, or too many at once
    assert statuses[422] >= MAX_CONCURRENT


def test_a_cross_site_form_cannot_write(served: Served) -> None:
    """CSRF: a form sends text/plain or a foreign Origin; a page without CORS nothing else."""
    client = served.client()
    form = {"Content-Type": "text/plain", "Origin": "null"}
    assert client.post("/api/messages", content=b"{}", headers=form).status_code == 403
    assert client.post("/api/messages", content=b"{}", headers=form | JSON).status_code == 403
    plain = {"Content-Type": "text/plain"}
    assert client.post("/api/messages", content=b"{}", headers=plain).status_code == 415


def test_dns_rebinding_is_misdirected(served: Served) -> None:
    for host in ("attacker.example", "localhost.attacker.example", "127.0.0.1.nip.io"):
        assert served.client().get("/api/sessions", headers={"Host": host}).status_code == 421


def test_request_smuggling_is_refused(served: Served) -> None:
    """Two lengths, or a length beside chunks: the server must not read a second request."""
    port, key = httpx.URL(served.url).port or 0, served.key()
    start = f"POST /api/recall HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
    hidden = "GET /api/sessions HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for framing in (
        f"Content-Length: 2\r\nContent-Length: {len(hidden)}\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Content-Length: +2\r\n",
    ):
        answer = raw(port, (start + framing + "\r\n" + hidden).encode())
        assert answer.count(b"HTTP/1.1 ") == 1
        assert status_of(answer) == 400


def test_guessed_keys_are_throttled_while_valid_ones_pass(served: Served) -> None:
    with serving(build_app(served.memory, Guard(served.memory.keys))) as url:
        here = Served(url, served.memory)
        with here.clients:
            guess, ada = here.with_key("x"), here.client()
            statuses = Counter(guess.get("/api/sessions").status_code for _ in range(120))
            assert statuses[429] > 0
            assert statuses[401] + statuses[429] == 120
            assert ada.get("/api/sessions").status_code == 200


def test_a_local_server_behind_a_proxy_refuses_everybody(served: Served) -> None:
    app = build_app(served.memory, Guard.local("default", "ada"), UNLIMITED)
    with serving(app) as url, httpx.Client(base_url=url) as client:
        assert client.get("/api/sessions").status_code == 200
        for name in ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP"):
            assert client.get("/api/sessions", headers={name: "x"}).status_code == 403


def test_an_unsigned_token_is_refused(served: Served) -> None:
    tokens = JwtTokens.of(Settings(url="", jwt_key="k" * 64))
    with serving(build_app(served.memory, Guard(served.memory.keys, tokens), UNLIMITED)) as url:
        for token in ("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.", signed("another" * 10)):
            headers = {"Authorization": f"Bearer {token}"}
            assert httpx.get(f"{url}/api/sessions", headers=headers).status_code == 401


@pytest.mark.parametrize("rate", ["nan", "inf", "-inf", "-1", "many", " "])
def test_a_rate_that_is_no_number_is_refused_at_the_start(rate: str) -> None:
    with pytest.raises(ConfigError, match="MEMORIST_RATE"):
        Settings.from_environment({"MEMORIST_RATE": rate})


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_monitors_may_use_head(served: Served, path: str) -> None:
    client = served.with_key(None)
    full, short = client.get(path), client.head(path)
    assert (full.status_code, short.status_code, short.content) == (200, 200, b"")
    assert short.headers["content-length"] == str(len(full.content))


def test_files_outside_of_the_web_folder_are_not_served(served: Served, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    port = httpx.URL(served.url).port or 0
    for path in ("/web/../auth.py", "/web/%2e%2e/auth.py", f"/web/{tmp_path}/secret"):
        line = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        assert status_of(raw(port, line.encode())) in (401, 404)
