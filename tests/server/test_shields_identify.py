"""Request ids, the headers of every answer, and the last boundary."""

from __future__ import annotations

import asyncio
import json
import logging
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send

from memorist.server.http.request_id import Identify, request_id
from tests.support.shields import call, head, hello, raw, request, serving, status_of

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
    answer = call(Identify(hello), scope)
    assert answer.all(b"x-request-id") == [scope["state"]["request_id"].encode()]


def test_two_requests_have_two_ids() -> None:
    assert call(Identify(hello), request()).sent[0] != call(Identify(hello), request()).sent[0]


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
    answer = call(Identify(hello), request())
    policy = answer.all(b"content-security-policy")[0]
    assert policy.startswith(b"default-src 'self';")
    assert b"frame-ancestors 'none'" in policy
    assert b"unsafe" not in policy
    assert answer.all(b"x-content-type-options") == [b"nosniff"]
    assert answer.all(b"referrer-policy") == [b"no-referrer"]
    assert answer.all(b"cross-origin-opener-policy") == [b"same-origin"]
    assert answer.all(b"cross-origin-resource-policy") == [b"same-origin"]


def test_only_the_files_of_the_page_may_be_kept() -> None:
    assert call(Identify(hello), request()).all(b"cache-control") == [b"no-store"]
    assert call(Identify(hello), request(path="/web/x.js")).all(b"cache-control") == []


def test_the_apps_own_headers_stay_but_never_ours_twice() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"Server", b"x"), (b"X-Request-Id", b"x"), (b"etag", b"y")]
        headers += [(b"cache-control", b"no-store, no-transform")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    answer = call(Identify(app), request((b"x-request-id", b"mine")))
    assert answer.all(b"server") == []
    assert answer.all(b"x-request-id") == [b"mine"]
    assert answer.all(b"etag") == [b"y"]
    assert answer.all(b"cache-control") == [b"no-store, no-transform"]


def test_an_exception_becomes_a_problem_that_tells_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = call(Identify(failing), request((b"x-request-id", b"mine")))
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
        call(Identify(cancelled), request())


def test_a_websocket_that_fails_is_closed() -> None:
    answer = call(Identify(failing), request(type="websocket"))
    assert [message["type"] for message in answer.sent] == ["websocket.close"]


def test_the_lifespan_passes_untouched() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope == {"type": "lifespan"}

    call(Identify(app), {"type": "lifespan"})


def test_an_answer_that_began_is_cut_and_the_connection_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG), serving(Identify(failing_late)) as port:
        received = raw(port, b"GET /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert status_of(received) == 200
    assert received.endswith(b"4\r\nhalf\r\n")  # and no last chunk: the caller sees it is not whole
    assert CANARY not in caplog.text


def test_an_error_after_the_answer_spoils_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with serving(Identify(failing_done)) as port:
        received = raw(port, head("GET"))
    assert received.endswith(b"5\r\nhello\r\n0\r\n\r\n")
    assert CANARY not in caplog.text


def test_over_a_socket_too_nothing_names_the_server() -> None:
    with serving(Identify(failing)) as port:
        received = raw(port, head("GET", "X-Request-Id: a1"))
    top, _, body = received.partition(b"\r\n\r\n")
    assert b"\r\nserver:" not in top.lower()
    assert top.lower().count(b"x-request-id: a1") == 1
    assert json.loads(body)["status"] == 500
