"""Middleware by itself: request ids, security headers, hosts, origins, bodies."""

from __future__ import annotations

import asyncio
import json
import logging
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send

from memorist.errors import ConfigError
from memorist.server.http.middleware import (
    JSON_TYPE,
    BodyLimit,
    RequestIdMiddleware,
    TrustedHosts,
    TrustedOrigins,
    has_type,
    request_id,
)
from tests.support.asgi import (
    LOCAL,
    Answer,
    call,
    echo,
    head,
    hello,
    part,
    raw,
    request,
    serving,
    status_of,
)

CANARY = "the-canary-sang"
ALLOWED = string.ascii_letters + string.digits + "._-"


async def failing(scope: Scope, receive: Receive, send: Send) -> None:
    raise ValueError(CANARY)


async def failing_late(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"half", "more_body": True})
    raise ValueError(CANARY)


async def failing_done(scope: Scope, receive: Receive, send: Send) -> None:
    await hello(scope, receive, send)
    raise ValueError(CANARY)


def test_a_request_gets_an_id_that_the_app_and_the_caller_see() -> None:
    scope = request()
    answer = call(RequestIdMiddleware(hello), scope)
    assert answer.all(b"x-request-id") == [scope["state"]["request_id"].encode()]


def test_two_requests_have_two_ids() -> None:
    assert (
        call(RequestIdMiddleware(hello), request()).sent[0]
        != call(RequestIdMiddleware(hello), request()).sent[0]
    )


@given(st.text(ALLOWED, min_size=1, max_size=64))
def test_a_harmless_id_of_the_caller_is_kept(text: str) -> None:
    assert request_id([text.encode()]) == text


@given(st.binary(max_size=100))
def test_whatever_the_caller_sends_the_id_is_harmless(sent: bytes) -> None:
    found = request_id([sent])
    assert 1 <= len(found) <= 64
    assert set(found) <= set(ALLOWED)


@pytest.mark.parametrize("sent", [[b""], [b"a" * 65], [b"a b"], [b"a\n"], [b"a", b"b"], []])
def test_other_ids_are_replaced(sent: list[bytes]) -> None:
    assert len(request_id(sent)) == 32


def test_every_answer_is_hardened() -> None:
    answer = call(RequestIdMiddleware(hello), request())
    policy = answer.all(b"content-security-policy")[0]
    assert policy.startswith(b"default-src 'self';")
    assert b"frame-ancestors 'none'" in policy
    assert b"unsafe" not in policy
    assert answer.all(b"x-content-type-options") == [b"nosniff"]
    assert answer.all(b"referrer-policy") == [b"no-referrer"]
    assert answer.all(b"cross-origin-opener-policy") == [b"same-origin"]
    assert answer.all(b"cross-origin-resource-policy") == [b"same-origin"]


def test_only_the_files_of_the_page_may_be_kept() -> None:
    assert call(RequestIdMiddleware(hello), request()).all(b"cache-control") == [b"no-store"]
    again = [b"no-cache"]  # by its ETag
    assert (
        call(RequestIdMiddleware(hello), request(path="/web/x.js")).all(b"cache-control") == again
    )


def test_the_apps_own_headers_stay_but_never_ours_twice() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"server", b"x"), (b"x-request-id", b"x"), (b"etag", b"y")]
        headers += [(b"cache-control", b"no-store, no-transform")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    answer = call(RequestIdMiddleware(app), request((b"x-request-id", b"mine")))
    assert answer.all(b"server") == []
    assert answer.all(b"x-request-id") == [b"mine"]
    assert answer.all(b"etag") == [b"y"]
    assert answer.all(b"cache-control") == [b"no-store, no-transform"]


def test_an_exception_becomes_a_problem_that_tells_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = call(RequestIdMiddleware(failing), request((b"x-request-id", b"mine")))
    assert answer.status == 500
    assert answer.all(b"content-type") == [b"application/problem+json"]
    assert answer.problem["request_id"] == "mine"
    assert answer.all(b"x-content-type-options") == [b"nosniff"]
    assert CANARY not in str(answer.sent)
    assert caplog.messages == ["mine: ValueError"]
    assert caplog.records[0].exc_info is None


def test_cancelling_goes_on() -> None:
    async def cancelled(scope: Scope, receive: Receive, send: Send) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        call(RequestIdMiddleware(cancelled), request())


def test_a_websocket_that_fails_is_closed() -> None:
    answer = call(RequestIdMiddleware(failing), request(type="websocket"))
    assert [message["type"] for message in answer.sent] == ["websocket.close"]


def test_the_lifespan_passes_untouched() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope == {"type": "lifespan"}

    call(RequestIdMiddleware(app), {"type": "lifespan"})


def test_an_answer_that_began_is_cut_and_the_connection_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG), serving(RequestIdMiddleware(failing_late)) as port:
        received = raw(port, b"GET /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert status_of(received) == 200
    assert received.endswith(b"4\r\nhalf\r\n")  # and no last chunk: the caller sees it is not whole
    assert CANARY not in caplog.text


def test_an_error_after_the_answer_spoils_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with serving(RequestIdMiddleware(failing_done)) as port:
        received = raw(port, head("GET"))
    assert received.endswith(b"5\r\nhello\r\n0\r\n\r\n")
    assert CANARY not in caplog.text


def test_over_a_socket_too_nothing_names_the_server() -> None:
    with serving(RequestIdMiddleware(failing)) as port:
        received = raw(port, head("GET", "X-Request-Id: a1"))
    top, _, body = received.partition(b"\r\n\r\n")
    assert b"\r\nserver:" not in top.lower()
    assert top.lower().count(b"x-request-id: a1") == 1
    assert json.loads(body)["status"] == 500


# Hosts and origins

APP = "https://app.example.com"
ORIGINS = TrustedOrigins(hello, origins=[APP])
OURS = TrustedHosts(ORIGINS, hosts=["memory.example.com", "one.example.com:8443"])
PREFLIGHT = (b"access-control-request-method", b"POST")


def origin(text: str) -> tuple[bytes, bytes]:
    return b"origin", text.encode()


def status(*headers: tuple[bytes, bytes], method: str = "POST", **where: str) -> int:
    return call(OURS, request(*headers, method=method, **where)).status


@pytest.mark.parametrize(
    "host",
    "localhost LOCALHOST localhost:8000 127.0.0.1 127.0.0.1:65535 [::1] [::1]:8000 "
    "memory.example.com Memory.Example.com:443 one.example.com:8443".split(),
)
def test_our_own_names_are_answered(host: str) -> None:
    assert status((b"host", host.encode())) == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        " ",
        "evil.com",
        "evil@localhost",
        "localhost@evil.com",
        "user:pw@localhost",
        "localhost.evil.com",
        "evil.localhost",
        "localhost.",
        "localhost:",
        "localhost:x",
        "localhost:-1",
        "localhost:80:80",
        "localhost:8000@evil.com",
        "localhost/evil",
        "localhost\\evil",
        "localhost#",
        "localhost?x",
        "localhost,evil.com",
        "localhost evil.com",
        "localhost\t",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "127.0.0.1.nip.io",
        "[::1",
        "::1",
        "[::1].evil.com",
        "[::1]evil",
        "[::ffff:127.0.0.1]",
        "[::1%25eth0]",
        "[::]",
        "[]",
        "l\u00f6calhost",
        "\u24d1ocalhost",
        "localhost\x00",
        "x.memory.example.com",
        "*",
    ],
)
def test_every_other_name_is_misdirected(host: str) -> None:
    assert status((b"host", host.encode())) == 421


def test_no_host_is_misdirected() -> None:
    assert status() == 421


@given(st.text(max_size=20), st.text(max_size=20))
def test_nothing_around_localhost_makes_it_ours(before: str, after: str) -> None:
    if before or not after.startswith(":"):
        host = f"{before}localhost{after}".encode("utf-8", "replace")
        assert (status((b"host", host)) == 200) == (not before and not after)


@pytest.mark.parametrize(
    "text",
    [
        APP,
        APP.upper(),
        "http://localhost",
        "http://localhost:3000",
        "http://[::1]:9",
        "https://127.0.0.1",
        "http://memory.example.com:81",
    ],
)
def test_known_origins_may_ask(text: str) -> None:
    assert status((b"host", b"memory.example.com:81"), origin(text)) == 200


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "https://evil.com",
        "http://localhost.evil.com",
        "http://evil@localhost",
        "http://localhost/",
        "http://app.example.com",
        APP + ":444",
        APP + ".evil.com",
        "file://",
        "localhost",
        "//localhost",
        "ftp://localhost",
        "http://memory.example.com",
        "http://localhost http://evil.com",
        "javascript://localhost",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_other_origins_may_not(text: str, method: str) -> None:
    answer = call(OURS, request(LOCAL, origin(text), PREFLIGHT, method=method))
    assert answer.status == 403
    assert answer.problem["code"] == "forbidden"
    assert not [name for name, _ in answer.sent[0]["headers"] if name.startswith(b"access-")]


def test_two_origins_are_none() -> None:
    assert status(LOCAL, origin(APP), origin(APP)) == 403


def test_the_page_of_a_public_name_may_ask_its_own_server() -> None:
    app = TrustedOrigins(hello)
    own = origin("https://memory.example.com")
    assert call(app, request((b"host", b"memory.example.com"), own)).status == 200


def test_what_a_browser_calls_cross_site_reaches_the_page_only() -> None:
    cross = (b"sec-fetch-site", b"cross-site")
    assert status(LOCAL, cross, method="GET") == 403
    assert status(LOCAL, cross, method="GET", path="/") == 200
    assert status(LOCAL, cross, method="POST", path="/") == 403
    assert status(LOCAL, cross, origin(APP), method="GET") == 200
    assert status(LOCAL, cross, method="POST") == 403
    assert status(LOCAL, cross, method="DELETE") == 403
    assert status(LOCAL, cross, origin(APP), method="POST") == 200
    assert status(LOCAL, (b"sec-fetch-site", b"same-origin"), method="POST") == 200


def listed(answer: Answer, name: bytes) -> set[str]:
    return set(answer.all(name)[0].decode().split(", "))


def test_a_preflight_of_a_configured_origin_is_answered_narrowly() -> None:
    answer = call(OURS, request(LOCAL, origin(APP), PREFLIGHT, method="OPTIONS"))
    assert answer.status == 200
    assert answer.all(b"access-control-allow-origin") == [APP.encode()]
    assert b"*" not in b"".join(value for _, value in answer.sent[0]["headers"])
    assert answer.all(b"access-control-allow-credentials") == []
    assert b"Origin" in answer.all(b"vary")[0]
    assert {"Authorization", "Content-Type", "Last-Event-ID"} <= listed(
        answer, b"access-control-allow-headers"
    )


def test_only_a_configured_origin_may_read_the_answer() -> None:
    answer = call(OURS, request(LOCAL, origin(APP)))
    assert answer.all(b"access-control-allow-origin") == [APP.encode()]
    assert {"Retry-After", "X-Request-Id"} <= listed(answer, b"access-control-expose-headers")
    for headers in ([LOCAL], [LOCAL, origin("http://localhost:3000")]):
        answer = call(OURS, request(*headers, PREFLIGHT, method="OPTIONS"))
        assert answer.all(b"access-control-allow-origin") == []


@pytest.mark.parametrize("path", ["/mcp", "/", "/health", "/web/x.js"])
def test_every_path_is_guarded(path: str) -> None:
    assert call(OURS, request((b"host", b"evil.com"), path=path)).status == 421


def test_a_forged_websocket_is_refused_before_it_opens() -> None:
    forged = request(LOCAL, origin("https://evil.com"), type="websocket")
    assert [it["type"] for it in call(OURS, forged).sent] == ["websocket.close"]
    forged["extensions"] = {"websocket.http.response": {}}
    answer = call(OURS, forged)
    assert answer.sent[0]["type"] == "websocket.http.response.start"
    assert answer.status == 403
    del forged["method"]
    forged["headers"] = [LOCAL, (b"sec-fetch-site", b"cross-site")]
    assert call(OURS, forged).status == 403


def test_a_websocket_to_a_real_server_is_refused_with_the_status() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close"})

    shake = (
        "GET /mcp HTTP/1.1\r\nHost: {}\r\nOrigin: {}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    with serving(TrustedHosts(TrustedOrigins(app)), ws="websockets-sansio") as port:
        good = f"http://localhost:{port}"
        assert status_of(raw(port, shake.format("localhost", "https://evil.com").encode())) == 403
        assert status_of(raw(port, shake.format("evil.com", good).encode())) == 421


@pytest.mark.parametrize("hosts", [["*"], [""], ["http://x"], ["a b"], ["x:y"]])
def test_a_host_that_cannot_be_one_is_a_wrong_setting(hosts: list[str]) -> None:
    with pytest.raises(ConfigError, match="is not a host"):
        TrustedHosts(hello, hosts=hosts)


@pytest.mark.parametrize("origins", [["*"], ["null"], ["example.com"], ["https://x/"]])
def test_an_origin_that_cannot_be_one_is_a_wrong_setting(origins: list[str]) -> None:
    with pytest.raises(ConfigError, match="is not an origin"):
        TrustedOrigins(hello, origins=origins)


@pytest.mark.parametrize(
    "lines",
    [
        b"Host: localhost\r\nHost: evil.com",
        b"X: y",
        b"Host: evil.com",
        b"Host: localhost\r\n evil.com",
        b"Host : localhost",
        b"Host: evil.com\r\nX-Forwarded-Host: localhost",
    ],
)
@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_raw_heads_with_odd_hosts_never_reach_the_app(lines: bytes, version: bytes) -> None:
    with serving(TrustedHosts(hello)) as port:
        head = b"GET / HTTP/" + version + b"\r\n" + lines + b"\r\nConnection: close\r\n\r\n"
        assert status_of(raw(port, head)) in (400, 421)


# Bodies

JSON = (b"content-type", b"application/json")
LIMITED = BodyLimit(echo, max_bytes=1_000)


def post(body: bytes, *headers: tuple[bytes, bytes]) -> Answer:
    length = (b"content-length", str(len(body)).encode())
    return call(LIMITED, request(*(headers or (JSON,)), length, method="POST"), part(body))


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
    answer = call(
        LIMITED,
        request((b"content-type", kind.encode()), (b"content-length", b"2"), method=method),
        part(b"{}"),
    )
    assert (answer.status, answer.problem["code"]) == (415, "not_json")


def test_a_body_of_no_kind_of_two_kinds_or_packed_is_refused() -> None:
    assert post(b"{}", (b"x", b"y")).status == 415
    assert post(b"{}", JSON, JSON).status == 415
    assert post(b"{}", JSON, (b"content-encoding", b"gzip")).status == 415
    assert post(b"{}", JSON, (b"transfer-encoding", b"gzip, chunked")).status == 415
    assert has_type(request(JSON, (b"transfer-encoding", b"Chunked")), JSON_TYPE)
    assert has_type(request(JSON, (b"content-encoding", b"identity")), JSON_TYPE)


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_no_body_needs_no_kind(method: str) -> None:
    assert call(LIMITED, request(method=method), part(b"")).status == 200
    empty = request((b"content-length", b"0"), method=method)
    assert call(LIMITED, empty, part(b"")).status == 200


def test_a_body_that_says_it_is_too_large_is_not_read() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError

    scope = request(JSON, (b"content-length", b"1001"), method="POST")
    answer = call(BodyLimit(app, max_bytes=1_000), scope)
    assert (answer.status, answer.problem["code"]) == (413, "too_large")
    assert "divide it" in answer.problem["detail"]


@pytest.mark.parametrize("length", [b"9" * 400, b"0" * 400 + b"9" * 10, b"-5", b"x", b""])
def test_odd_lengths_do_no_harm(length: bytes) -> None:
    scope = request(JSON, (b"content-length", length), method="POST")
    assert call(LIMITED, scope, part(b"1" * 1_001)).status == 413


def test_the_largest_body_that_is_allowed_passes() -> None:
    assert post(b"1" * 1_000).status == 200
    assert post(b"1" * 1_001).status == 413


@pytest.mark.parametrize(
    "path", ["/", "/health", "/ready", "/docs", "/openapi.json", "/web/page.css"]
)
@pytest.mark.parametrize("header", [(b"content-length", b"1"), (b"transfer-encoding", b"chunked")])
def test_public_paths_take_no_body(path: str, header: tuple[bytes, bytes]) -> None:
    assert call(LIMITED, request(JSON, header, method="POST", path=path)).status == 413
    assert call(LIMITED, request(path=path), part(b"")).status == 200


def test_after_the_body_the_app_still_learns_that_the_client_left() -> None:
    received: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        received.extend([(await receive())["type"], (await receive())["type"]])

    scope = request(JSON, (b"content-length", b"2"), method="POST")
    call(BodyLimit(app), scope, part(b"{}"))
    assert received == ["http.request", "http.disconnect"]


def test_other_scopes_pass() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["type"] == "websocket.connect"

    call(BodyLimit(app), {"type": "websocket"}, {"type": "websocket.connect"})
