"""Chat models behind a real HTTP server with every kind of luck."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from memorist.errors import BadAnswerError, ConfigError
from memorist.providers.chat_model import estimate_tokens_of
from memorist.providers.openai_chat import OpenAIChat
from tests.support.chats import KEY, MESSAGES, SCHEMA, SECRET, complete, failure
from tests.support.model_server import ModelServer


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def chat(server: ModelServer) -> OpenAIChat:
    return OpenAIChat("test", url=server.url, key=KEY)


def wire(content: object, **more: Any) -> bytes:
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice | more.pop("choice", {})], **more}).encode()


def test_an_openai_server_is_asked_in_its_format(server: ModelServer, chat: OpenAIChat) -> None:
    reply = complete(chat)

    assert json.loads(reply.text) == {"memories": []}
    assert not reply.estimated
    assert reply.input_tokens == len("Be brief.") // 4 + len(SECRET) // 4
    assert chat.name == "openai/test"
    [request] = server.requests
    assert request.body == {"model": "test", "messages": MESSAGES, "max_tokens": 50}
    assert request.authorization == f"Bearer {KEY}"


def test_what_else_the_model_needs_goes_with_every_request(server: ModelServer) -> None:
    complete(OpenAIChat("test", url=server.url, extra={"temperature": 0}))

    assert server.requests[0].body["temperature"] == 0
    assert server.requests[0].authorization is None


def test_a_schema_is_sent_strictly(server: ModelServer, chat: OpenAIChat) -> None:
    complete(chat, schema=SCHEMA)

    sent = server.requests[0].body["response_format"]
    assert sent["type"] == "json_schema"
    assert sent["json_schema"] == {"name": "answer", "strict": True, "schema": SCHEMA}


def test_a_server_that_knows_no_schemas_is_asked_without_and_remembered() -> None:
    with ModelServer(takes_schema=False) as server:
        chat = OpenAIChat("test", url=server.url)
        complete(chat, schema=SCHEMA)
        complete(chat, schema=SCHEMA)
    assert ["response_format" in one.body for one in server.requests] == [True, False, False]


def test_a_server_that_is_ill_is_not_taken_for_one_without_schemas(
    server: ModelServer, chat: OpenAIChat
) -> None:
    server.mode = "500"
    assert failure(chat, schema=SCHEMA).status == 500
    server.mode = "ok"
    complete(chat, schema=SCHEMA)

    assert ["response_format" in one.body for one in server.requests] == [True, True]


def test_a_limited_rate_tells_when_to_come_back(server: ModelServer, chat: OpenAIChat) -> None:
    server.mode, server.retry_after_s = "429", 12
    error = failure(chat)

    assert (error.status, error.retry_after_s) == (429, 12)
    assert "HTTP 429 (rate_limit_exceeded)" in str(error)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("500", "HTTP 500"),
        ("429", "HTTP 429"),
        ("hang", "no answer in 0.3 s"),
        ("slow", "no answer in 0.3 s"),
        ("drop", "cut off"),
        ("huge", "more than 4,000,000 bytes"),
    ],
)
def test_no_answer_is_an_error_in_time(
    server: ModelServer, chat: OpenAIChat, mode: Any, reason: str
) -> None:
    server.mode = mode
    error = failure(chat, timeout_s=5 if mode == "huge" else 0.3)

    assert reason in str(error)
    assert not isinstance(error, BadAnswerError)


@pytest.mark.parametrize(("mode", "reason"), [("empty", "nothing"), ("truncated", "max_tokens")])
def test_an_answer_without_use_is_a_bad_one(
    server: ModelServer, chat: OpenAIChat, mode: Any, reason: str
) -> None:
    server.mode = mode
    error = failure(chat)

    assert isinstance(error, BadAnswerError)
    assert reason in str(error)
    assert error.tokens > 0


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"null",
        b'"choices"',
        b"{}",
        b'{"choices": []}',
        b'{"choices": {}}',
        b'{"choices": [null]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {}}]}',
        wire(None),
        wire(7),
        wire({"text": SECRET}),
        wire([{"type": "image", "text": SECRET}, 5]),
        wire(" \n"),
        wire(SECRET, choice={"finish_reason": "length"}),
    ],
)
def test_an_answer_of_another_shape_is_a_bad_one(body: bytes) -> None:
    with ModelServer([body]) as server:
        assert isinstance(failure(OpenAIChat("test", url=server.url)), BadAnswerError)


@pytest.mark.parametrize("body", [b"<html>", b"\xff\xfe", b"[" * 100_000])
def test_a_body_that_is_no_json_is_an_error(body: bytes) -> None:
    with ModelServer([body]) as server:
        assert "no JSON" in str(failure(OpenAIChat("test", url=server.url)))


@pytest.mark.parametrize(
    "usage",
    [None, [], "much", {"prompt_tokens": -1, "completion_tokens": 5}, {"prompt_tokens": 3.5}],
)
def test_nonsense_about_tokens_is_replaced_by_an_estimate(usage: object) -> None:
    with ModelServer([wire("fine", usage=usage)]) as server:
        reply = complete(OpenAIChat("test", url=server.url))
    assert reply.estimated
    assert reply.output_tokens == 1
    assert reply.input_tokens == 3 + 5


def test_content_in_parts_is_joined_and_thoughts_are_left_out() -> None:
    parts = [
        {"type": "thinking", "thinking": "hm", "text": "hm"},
        {"type": "text", "text": "a"},
        "b",
    ]
    with ModelServer([wire(parts)]) as server:
        assert complete(OpenAIChat("test", url=server.url)).text == "ab"


def test_a_server_that_drips_its_headers_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        closed = threading.Event()

        def drip() -> None:
            line, _ = listening.accept()
            with line:
                while not closed.wait(0.02):
                    line.sendall(b"H")

        threading.Thread(target=drip, daemon=True).start()
        port = listening.getsockname()[1]
        error = failure(OpenAIChat("test", url=f"http://127.0.0.1:{port}"), timeout_s=0.3)
        closed.set()
    assert "no answer in 0.3 s" in str(error)


def test_nobody_listening_is_an_error() -> None:
    with ModelServer() as server:
        url = server.url
    assert "is it running?" in str(failure(OpenAIChat("test", url=url)))


@pytest.mark.parametrize(
    ("url", "field"),
    [
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://ada.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("http://localhost:11434/v1", "max_tokens"),
        ("https://openai.com.evil.example/v1", "max_tokens"),
    ],
)
def test_the_limit_is_named_as_the_server_knows_it(url: str, field: str) -> None:
    from memorist.providers.openai_chat import _limit_field

    assert _limit_field(url) == field


@pytest.mark.parametrize("url", ["", "localhost", "file:///etc/passwd", f"http://a:{KEY}@host"])
def test_an_address_that_cannot_be_one_is_refused_unquoted(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIChat("test", url=url)
    assert KEY not in str(caught.value)


def test_tokens_are_estimated_by_bytes() -> None:
    assert [estimate_tokens_of(text) for text in ("", "a", "four", "fives", "柏林")] == [
        0,
        1,
        1,
        2,
        2,
    ]


def test_a_call_that_breaks_is_an_error_at_once(server: ModelServer) -> None:
    model = OpenAIChat("test", url=server.url, extra={"not": object()})

    assert "failed unexpectedly (TypeError)" in str(failure(model))
