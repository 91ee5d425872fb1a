"""POST /api/chat with a model: a real client, a real agent, a stub of the model's server."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from langchain_openai import ChatOpenAI

from memorist import Memory
from memorist.agents.react import Token
from memorist.config import Settings
from memorist.errors import ConfigError, MissingExtraError
from memorist.records.message import Message
from memorist.server.auth import Guard
from memorist.server.chat import ChatQuestion, ChatRuntime, ChatSettings, open_chat_model
from memorist.server.http.app import build_app
from tests.server.test_chat import JSON, events, read_events, say
from tests.support.http_server import serving
from tests.support.model_server import Dropped, ModelServer
from tests.support.waiting import until

SECRET = "the blue whale"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(retry_after_s=0.05) as server:
        yield server


def chat_of(server: ModelServer, timeout_s: float = 2) -> ChatOpenAI:
    return ChatOpenAI(
        model="stub",
        base_url=server.url,
        api_key="x",  # type: ignore
        timeout=timeout_s,
        max_retries=0,
        use_responses_api=False,
    )


@contextmanager
def talking(memory: Memory, server: ModelServer, **how: Any) -> Iterator[httpx.Client]:
    chats = ChatRuntime(chat_of(server), ChatSettings(deadline_ms=None, **how))
    app = build_app(memory, Guard.local("default", "ada"), chats=chats)
    with serving(app) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


def answers(server: ModelServer, *given: Any) -> None:
    server._script = iter(given)


def log(memory: Memory) -> list[Message]:
    return memory.history(user="ada")


def test_an_answer_comes_piece_by_piece_with_what_was_recalled_and_its_receipt(
    memory: Memory, server: ModelServer
) -> None:
    memory.remember("My bike is in the cellar.", user="ada", session="before")
    answers(server, "In the cellar, you said.")
    with talking(memory, server) as client:
        told = events(client, "Where is my bike?")
    names = [name for name, _ in told]
    assert names == ["session", "memory", *["token"] * 5, "receipt", "done"]
    assert told[1][1]["hits"][0]["text"] == "My bike is in the cellar."
    assert "".join(data["text"] for name, data in told if name == "token") == (
        "In the cellar, you said."
    )
    receipt, done = told[-2][1], told[-1][1]
    assert receipt["used"] > 0
    assert done["warnings"] == []
    asked, answer = memory.history(user="ada", session=done["session_id"])
    assert (answer.role, answer.text) == ("assistant", "In the cellar, you said.")
    assert not answer.unfinished
    assert (asked.message_id, answer.message_id) == (done["asked_id"], done["message_id"])
    [kept] = memory.receipts(user="ada", session=done["session_id"])
    assert (kept.asked_id, kept.message_id) == (asked.message_id, answer.message_id)
    assert kept.receipt["used"] == receipt["used"]
    assert [it.id for it in kept.recalled] == [hit["id"] for hit in told[1][1]["hits"]]
    sent = server.requests[0].body
    assert "My bike is in the cellar." in str(sent["messages"])
    assert {tool["function"]["name"] for tool in sent["tools"]} >= {"recall", "store_fact"}


def test_the_agent_looks_things_up_and_the_conversation_goes_on(
    memory: Memory, server: ModelServer
) -> None:
    call = [{"name": "recall", "args": {"query": "bike"}}]
    answers(server, call, "No idea.", "Still none.")
    with talking(memory, server) as client:
        told = events(client, "Where is my bike?")
        names = [name for name, _ in told]
        assert names == [
            "session",
            "memory",
            "tool_started",
            "tool_result",
            "token",
            "token",
            "receipt",
            "done",
        ]
        assert dict(told)["tool_result"]["name"] == "recall"
        assert dict(told)["tool_result"]["success"]
        whole = say(client, "And now?", session_id=dict(told)["session"]["session_id"])
    assert (whole["message"], whole["confirmed"]) == ("Still none.", True)
    assert [it.role for it in log(memory)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    said = [one["content"] for one in server.requests[-1].body["messages"]]
    assert said[-2:] == ["No idea.", "And now?"]


def test_tools_can_be_left_out(memory: Memory, server: ModelServer) -> None:
    answers(server, "Hello.")
    with talking(memory, server, tools=()) as client:
        assert say(client, "Hello")["message"] == "Hello."
    assert "tools" not in server.requests[0].body


@pytest.mark.parametrize("mode", ["500", "429", "garbage", "drop", "hang", "empty", "wrong_shape"])
def test_a_model_that_fails_leaves_the_message_stored_and_the_server_alive(
    mode: Any, memory: Memory, server: ModelServer
) -> None:
    server.mode = mode
    answers(server, SECRET)
    with talking(memory, server, tools=()) as client:
        told = events(client, SECRET)
        if mode in ("empty", "wrong_shape", "garbage"):  # these are texts, if odd ones
            assert told[-1][0] == "done"
        else:
            assert told[-1][0] == "error"
            problem = told[-1][1]
            assert (problem["code"], problem["status"]) == ("provider", 502)
            assert problem["request_id"]
            assert SECRET not in str(problem)
            alone = client.post("/api/chat", json={"message": SECRET}, headers=JSON)
            assert (alone.status_code, alone.json()["code"]) == (502, "provider")
        assert log(memory)[0].text == SECRET
        assert client.get("/health").status_code == 200
        server.mode = "ok"
        answers(server, "Well again.")
        assert say(client, "Better?")["message"] == "Well again."


def test_a_stream_that_breaks_off_leaves_what_had_come_and_goes_on_with_it(
    memory: Memory, server: ModelServer
) -> None:
    answers(server, Dropped("one two three four five six"), "seven")
    with talking(memory, server, tools=()) as client:
        told = events(client, "Count")
        heard = "".join(data["text"] for name, data in told if name == "token")
        assert heard
        assert told[-1][0] == "error"
        assert (log(memory)[1].text, log(memory)[1].unfinished) == (heard, True)
        assert say(client, "Go on")["message"] == "seven"
    said = [one["content"] for one in server.requests[-1].body["messages"]]
    assert said[-3:] == ["Count", heard, "Go on"]


def test_a_client_that_leaves_ends_the_work_and_what_was_said_is_stored(
    memory: Memory, server: ModelServer
) -> None:
    answers(server, " ".join(f"word{number}" for number in range(500)))
    server.mode, server.byte_every_s = "slow", 0.0005
    with talking(memory, server, tools=()) as client:
        text = ""
        with client.stream("POST", "/api/chat", json={"message": "Count"}) as answer:
            for piece in answer.iter_text():
                text += piece
                if "word3" in text:
                    break
        heard = "".join(
            data["text"]
            for name, data in read_events(text.rpartition("\n\n")[0])
            if name == "token"
        )
        until(lambda: len(log(memory)) == 2 and log(memory)[1].text.startswith(heard))
        time.sleep(0.5)
        left = log(memory)[1]
        time.sleep(0.5)
        assert log(memory)[1] == left  # nobody works on it any more
        assert left.unfinished
        assert len(left.text) < 500
        server.mode = "ok"
        answers(server, "Well.")
        assert say(client, "Still there?")["message"] == "Well."


def test_a_client_that_hangs_up_on_a_whole_answer_ends_the_work(
    memory: Memory, server: ModelServer
) -> None:
    server.mode = "hang"
    chats = ChatRuntime(chat_of(server, 60), ChatSettings(deadline_ms=None, tools=()))
    app = build_app(memory, Guard.local("default", "ada"), chats=chats)
    with serving(app) as url:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/api/chat", json={"message": "Count"}, headers=JSON, timeout=2)
        until(lambda: not chats._running)
        assert [message.text for message in log(memory)] == ["Count"]


def test_a_turn_that_takes_too_long_is_ended_and_shows_until_then_that_it_lives(
    memory: Memory, server: ModelServer
) -> None:
    server.mode = "hang"
    with talking(memory, server, longest_s=1, heartbeat_s=0.1) as client:
        answer = client.post("/api/chat", json={"message": "Count"})
    assert answer.text.count("\n: ") >= 2
    name, problem = read_events(answer.text)[-1]
    assert (name, problem["detail"]) == ("error", "the model took too long to answer")


def test_a_server_that_ends_stores_what_had_been_said(memory: Memory, server: ModelServer) -> None:
    answers(server, " ".join(f"word{number}" for number in range(500)))
    server.mode, server.byte_every_s = "slow", 0.0005
    chats = ChatRuntime(chat_of(server), ChatSettings(tools=()))

    async def end() -> None:
        asked = ChatQuestion(memory.session(user="ada"), Message("user", "Count"))
        said = chats.answer(memory, asked)
        async for event in said:
            if isinstance(event, Token) and event.text == "word2 ":
                break
        await chats.close()
        await said.aclose()

    asyncio.run(end())
    asked, part = log(memory)
    assert (asked.text, part.unfinished) == ("Count", True)
    assert part.text.startswith("word0 word1 word2 ")


def test_a_model_is_opened_by_its_name_or_at_its_url() -> None:
    local = Settings(url=":memory:", model="qwen:7b", model_url="http://127.0.0.1:1/v1")
    made = open_chat_model(local)
    assert isinstance(made, ChatOpenAI)
    assert (made.model_name, made.openai_api_base) == ("qwen:7b", "http://127.0.0.1:1/v1")
    named = Settings(url=":memory:", model="openai:gpt-5", model_key="k1")
    assert open_chat_model(named).model_name == "gpt-5"  # type: ignore[union-attr]
    assert open_chat_model(Settings(url=":memory:")) is None


@pytest.mark.parametrize("name", ["openai:gpt-5", "mistralai:large"])
def test_a_model_whose_package_is_missing_names_the_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("langchain_openai", "langchain.chat_models"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"memorist\[chat\]"):
        open_chat_model(Settings(url=":memory:", model=name))


@pytest.mark.parametrize("name", ["gpt-5", "nobody:gpt-5", "mistralai:large", "openai:gpt-5"])
def test_a_model_that_cannot_be_opened_says_how_it_could_be(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError) as told:
        open_chat_model(Settings(url=":memory:", model=name))
    cures = {
        "gpt-5": "MEMORIST_MODEL_URL",
        "nobody:gpt-5": "nobody",
        "mistralai:large": "langchain-mistralai",
        "openai:gpt-5": "MEMORIST_MODEL_KEY",
    }
    assert cures[name] in str(told.value)
