"""The model's server of our tests, asked over real HTTP."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.support.model_server import FAILURES, ModelServer

LINES = "\n".join(
    [
        "MESSAGES",
        '{"n": 1, "role": "user", "text": "I moved to Berlin."}',
        '{"n": 2, "role": "assistant", "text": "How is it?"}',
        '{"n": 3, "role": "user", "text": "Cold.\\nVery cold."}',
    ]
)


def ask(server: ModelServer, content: str = LINES, **more: Any) -> dict[str, Any]:
    body = {"model": "any", "messages": [{"role": "user", "content": content}], **more}
    request = urllib.request.Request(
        f"{server.url}/chat/completions", json.dumps(body).encode(), {"Authorization": "Bearer k"}
    )
    with urllib.request.urlopen(request, timeout=2) as reply:
        answer: dict[str, Any] = json.loads(reply.read())
    return answer


def text_of(answer: dict[str, Any]) -> str:
    text: str = answer["choices"][0]["message"]["content"]
    return text


def test_it_quotes_each_message_of_the_user() -> None:
    with ModelServer() as server:
        answer = ask(server)
        memories = json.loads(text_of(answer))["memories"]
    assert [(one["text"], one["messages"]) for one in memories] == [
        ("I moved to Berlin.", [1]),
        ("Cold. Very cold.", [3]),
    ]
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["total_tokens"] > 0


def test_it_finds_nothing_in_a_prompt_without_messages() -> None:
    with ModelServer() as server:
        assert json.loads(text_of(ask(server, "Hello\n7\n[]\n{}"))) == {"memories": []}


def test_requests_are_kept_as_they_came() -> None:
    with ModelServer() as server:
        ask(server, temperature=0)
        server.mode = "empty"
        ask(server)
    first, second = server.requests
    assert first.body["temperature"] == 0
    assert first.authorization == "Bearer k"
    assert server.modes == ["ok", "empty"]
    assert first.at < second.at


def test_a_list_of_answers_is_given_in_order_and_then_the_mode_holds() -> None:
    with ModelServer(["one", {"two": 2}, ""]) as server:
        assert [text_of(ask(server)) for _ in range(3)] == ["one", '{"two": 2}', ""]
        assert "Berlin" in text_of(ask(server))


def test_a_function_answers_what_it_is_asked() -> None:
    with ModelServer(lambda body: body["messages"][0]["content"].upper()) as server:
        assert text_of(ask(server, "loud")) == "LOUD"


def test_bytes_are_the_whole_body() -> None:
    with ModelServer([b'{"raw": true}']) as server:
        assert ask(server) == {"raw": True}


@pytest.mark.parametrize(("mode", "status"), [("500", 500), ("429", 429)])
def test_an_error_has_its_status(mode: Any, status: int) -> None:
    with ModelServer(mode=mode, retry_after_s=7) as server:
        with pytest.raises(urllib.error.HTTPError) as caught:
            ask(server)
        with caught.value as error:
            assert error.code == status
            assert error.headers.get("Retry-After") == ("7" if status == 429 else None)


def test_a_server_that_takes_no_schema_refuses_one() -> None:
    with ModelServer(takes_schema=False) as server:
        with pytest.raises(urllib.error.HTTPError) as caught:
            ask(server, response_format={})
        with caught.value as error:
            assert error.code == 400
        assert ask(server)["object"] == "chat.completion"


def test_it_recovers_when_its_mode_is_set_back() -> None:
    with ModelServer(mode="wrong_shape") as server:
        assert "memories" not in json.loads(text_of(ask(server)))
        server.mode = "ok"
        assert "memories" in json.loads(text_of(ask(server)))


def test_an_unknown_mode_is_refused() -> None:
    wrong: Any = "tired"
    with pytest.raises(ValueError, match="mode must be one of"):
        ModelServer(mode=wrong)


def test_there_are_thirteen_ways_to_fail() -> None:
    assert len(FAILURES) == len(set(FAILURES)) == 13


def test_closing_waits_for_nobody_who_hangs() -> None:
    with ModelServer(mode="hang") as server:
        host, port = server.url.split("/")[2].split(":")
        body = b'{"messages": []}'
        with socket.create_connection((host, int(port))) as line:
            head = f"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n"
            line.sendall(head.encode() + body)
            while not server.requests:
                time.sleep(0.01)
    started = time.monotonic()
    server.__exit__(None, None, None)
    assert time.monotonic() - started < 1
