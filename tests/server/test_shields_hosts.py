"""Hosts and origins: what is ours, what is forged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send

from memorist.errors import ConfigError
from memorist.server.http.hosts import Authority, Hosts, parse_authority
from tests.support.shields import LOCAL, Answer, call, hello, raw, request, serving, status_of

APP = "https://app.example.com"
OURS = Hosts(hello, hosts=["memory.example.com", "one.example.com:8443"], origins=[APP])
PREFLIGHT = (b"access-control-request-method", b"POST")


def origin(text: str) -> tuple[bytes, bytes]:
    return b"origin", text.encode()


def status(*headers: tuple[bytes, bytes], method: str = "POST") -> int:
    return call(OURS, request(*headers, method=method)).status


@pytest.mark.parametrize(
    "host",
    "localhost LOCALHOST localhost:8000 127.0.0.1 127.0.0.1:65535 [::1] [::1]:8000 "
    "[0:0:0:0:0:0:0:1]:80 memory.example.com Memory.Example.com:443 one.example.com:8443".split(),
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
        "localhost:65536",
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
        "one.example.com",
        "one.example.com:8444",
        "x.memory.example.com",
        "*",
    ],
)
def test_every_other_name_is_misdirected(host: str) -> None:
    assert status((b"host", host.encode())) == 421


def test_letters_that_only_become_ascii_are_not_ours() -> None:
    assert parse_authority("\u212aelvin") is None  # a sign whose lower case is a plain k


def test_no_host_and_two_hosts_are_misdirected() -> None:
    assert status() == 421
    assert status(LOCAL, LOCAL) == 421
    assert status(LOCAL, (b"Host", b"evil.com")) == 421


@given(st.text(max_size=40))
def test_a_host_that_is_read_is_one_name_and_one_port(text: str) -> None:
    found = parse_authority(text)
    if found is not None:
        again = found.name if found.port is None else f"{found.name}:{found.port}"
        assert parse_authority(again) == found
        assert not set(found.name) & set("@/\\?# ,%")


@given(st.text(max_size=20), st.text(max_size=20))
def test_nothing_around_localhost_makes_it_ours(before: str, after: str) -> None:
    found = parse_authority(f"{before}localhost{after}")
    if found is not None and (before or not after.startswith(":")):
        assert (found.name == "localhost") == (not before and not after)


@given(st.ip_addresses(v=6), st.integers(0, 65535))
def test_an_address_is_the_same_however_it_is_written(address: object, port: int) -> None:
    short, long = str(address), address.exploded  # type: ignore[attr-defined]
    assert parse_authority(f"[{short}]:{port}") == parse_authority(f"[{long}]:{port}".upper())
    assert parse_authority(f"[{short}]:{port}") == Authority(f"[{short}]", port)


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


def test_without_loopback_neither_its_names_nor_its_pages_are_known() -> None:
    app = Hosts(hello, hosts=["memory.example.com"], loopback=False)
    assert call(app, request(LOCAL)).status == 421
    page = origin("http://localhost:3000")
    assert call(app, request((b"host", b"memory.example.com"), page)).status == 403


def test_the_page_of_a_public_name_may_ask_its_own_server() -> None:
    app = Hosts(hello, hosts=["memory.example.com"], loopback=False)
    own = origin("https://memory.example.com")
    assert call(app, request((b"host", b"memory.example.com"), own)).status == 200


def test_what_a_browser_calls_cross_site_may_only_read() -> None:
    cross = (b"sec-fetch-site", b"cross-site")
    assert status(LOCAL, cross, method="GET") == 200
    assert status(LOCAL, cross, method="POST") == 403
    assert status(LOCAL, cross, method="DELETE") == 403
    assert status(LOCAL, cross, origin(APP), method="POST") == 200
    assert status(LOCAL, (b"sec-fetch-site", b"same-origin"), method="POST") == 200


def listed(answer: Answer, name: bytes) -> set[str]:
    return set(answer.all(name)[0].decode().split(", "))


def test_a_preflight_of_a_configured_origin_is_answered_narrowly() -> None:
    answer = call(OURS, request(LOCAL, origin(APP), PREFLIGHT, method="OPTIONS"))
    assert answer.status == 204
    assert answer.all(b"access-control-allow-origin") == [APP.encode()]
    assert b"*" not in b"".join(value for _, value in answer.sent[0]["headers"])
    assert answer.all(b"access-control-allow-credentials") == []
    assert answer.all(b"vary") == [b"Origin"]
    assert {"Authorization", "Content-Type", "If-Match", "Last-Event-ID"} <= listed(
        answer, b"access-control-allow-headers"
    )


def test_only_a_configured_origin_may_read_the_answer() -> None:
    answer = call(OURS, request(LOCAL, origin(APP)))
    assert answer.all(b"access-control-allow-origin") == [APP.encode()]
    assert {"ETag", "Retry-After", "X-Request-Id"} <= listed(
        answer, b"access-control-expose-headers"
    )
    for headers in ([LOCAL], [LOCAL, origin("http://localhost:3000")]):
        answer = call(OURS, request(*headers, PREFLIGHT, method="OPTIONS"))
        assert answer.body == b"hello"  # the app's own answer, without a grant
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
    with serving(Hosts(app), ws="websockets-sansio") as port:
        good = f"http://localhost:{port}"
        assert status_of(raw(port, shake.format("localhost", "https://evil.com").encode())) == 403
        assert status_of(raw(port, shake.format("evil.com", good).encode())) == 421


@pytest.mark.parametrize("hosts", [["*"], [""], ["http://x"], ["a b"], ["x:y"]])
def test_a_host_that_cannot_be_one_is_a_wrong_setting(hosts: list[str]) -> None:
    with pytest.raises(ConfigError, match="is not a host"):
        Hosts(hello, hosts=hosts)


@pytest.mark.parametrize("origins", [["*"], ["null"], ["example.com"], ["https://x/"]])
def test_an_origin_that_cannot_be_one_is_a_wrong_setting(origins: list[str]) -> None:
    with pytest.raises(ConfigError, match="is not an origin"):
        Hosts(hello, origins=origins)


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
    with serving(Hosts(hello)) as port:
        head = b"GET / HTTP/" + version + b"\r\n" + lines + b"\r\nConnection: close\r\n\r\n"
        assert status_of(raw(port, head)) in (400, 421)
