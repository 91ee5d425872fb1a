"""How chat talks: its window, its prompt, and what its tools find."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorist import Memory
from memorist.config import Settings
from memorist.context.window import Window
from memorist.errors import ConfigError
from memorist.server.auth import Guard
from memorist.server.chat import SYSTEM, ChatRuntime
from memorist.server.http.app import build_app
from tests.server.test_chat import JSON, events, say
from tests.server.test_chat_model import answers, talking
from tests.support.http_server import serving
from tests.support.model_server import Limit, ModelServer

PAGE = (Path(__file__).parents[2] / "docs" / "server.md").read_text("utf-8")


def chats(**given: str) -> ChatRuntime:
    environment = {f"MEMORIST_{name.upper()}": value for name, value in given.items()}
    return ChatRuntime.of(Settings.from_environment({"MEMORIST_URL": ":memory:", **environment}))


def test_the_window_and_the_prompt_can_be_set() -> None:
    made = chats(model_window="128000", system="You are a pirate.").settings
    assert (made.window.max_tokens, made.window.answer_tokens) == (128_000, 1_000)
    assert made.system == "You are a pirate."
    assert chats(model_window="4000").settings.window.budget == 3_000


def test_else_they_are_what_the_page_says() -> None:
    usual = chats().settings
    assert f"{usual.window.max_tokens} by default, at least 4000" in PAGE
    assert usual.system == SYSTEM


@pytest.mark.parametrize("value", ["many", "-1", "0", "3999", "16k", "1e5", "१६०००", "9" * 5_000])
def test_a_window_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="MEMORIST_MODEL_WINDOW"):
        chats(model_window=value)


@pytest.mark.parametrize("value", ["a\ud800b", "a\x00b", "word " * 9_000])
def test_a_prompt_that_cannot_be_sent_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="MEMORIST_SYSTEM") as told:
        chats(system=value)
    assert len(str(told.value)) < 200


def test_a_model_is_sent_the_prompt_that_was_set(memory: Memory) -> None:
    with ModelServer(["Arr."]) as server:
        made = chats(model="stub", model_url=server.url, system="You are a pirate.")
        app = build_app(memory, Guard.local("default", "ada"), chats=made)
        with serving(app) as url, httpx.Client(base_url=url, timeout=30) as client:
            assert say(client, "Hello")["message"] == "Arr."
    first = server.requests[0].body["messages"][0]
    assert first["role"] == "system"
    assert first["content"].startswith("You are a pirate.")


def test_a_message_that_does_not_fit_the_window_names_the_setting(memory: Memory) -> None:
    app = build_app(memory, Guard.local("default", "ada"), chats=chats())
    with serving(app) as url:
        body = {"message": "word " * 20_000}
        told = httpx.post(f"{url}/api/chat", json=body, headers=JSON, timeout=30)
    assert (told.status_code, told.json()["code"]) == (422, "window")
    assert "MEMORIST_MODEL_WINDOW" in told.json()["detail"]
    assert told.json()["asked_id"] == memory.history(user="ada")[0].message_id


def test_a_model_that_takes_in_less_names_the_setting(memory: Memory) -> None:
    with ModelServer(limit=Limit(50)) as server:
        window = Window(max_tokens=16_000, answer_tokens=1_000)
        with talking(memory, server, tools=(), window=window) as client:
            name, problem = events(client, "word " * 500)[-1]
    assert (name, problem["code"]) == ("error", "window")
    assert "MEMORIST_MODEL_WINDOW" in problem["detail"]


def test_the_tool_that_recalls_does_not_find_the_question_itself(memory: Memory) -> None:
    memory.remember("My bike is in the cellar.", user="ada", session="before")
    with ModelServer() as server:
        call = [{"name": "recall", "args": {"query": "Where is my bike?", "limit": 1}}]
        answers(server, call, "In the cellar.", call, "As I said.")
        with talking(memory, server) as client:
            found = [_found(events(client, "Where is my bike?")) for _ in range(2)]
    assert found[0] == ["My bike is in the cellar."]
    assert found[1] == ["Where is my bike?"]  # which was asked the time before


def _found(told: list[tuple[str, Any]]) -> list[str]:
    return [one["text"] for one in json.loads(dict(told)["tool_result"]["result"])]
