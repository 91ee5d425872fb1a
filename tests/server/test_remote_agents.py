"""Agents on `memorist.connect("http://…")`: middleware, tools, stores and an adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage

import memorist
from memorist import Memory, Window, client
from memorist.agents import toolbox
from memorist.agents.langchain import MemoristChatMessageHistory
from memorist.agents.langgraph import MemoristStore
from memorist.agents.middleware import MemoristMiddleware
from memorist.agents.react import ReactAgent
from memorist.agents.toolbox import Toolbox
from memorist.server.auth import Guard
from memorist.server.http.app import Limits, build_app
from memorist.testing.scripted import ScriptedChatModel
from memorist_adapters.openai_agents import MemoristSession
from tests.support.http_server import serving


@pytest.fixture
def at_hand(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "a.db", embedder=None, extraction=None) as memory:
        yield memory


@pytest.fixture
def remote(at_hand: Memory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """A server's memory, for which agents wait as long as a busy machine takes."""
    monkeypatch.setattr(client, "GRACE_S", 60)
    monkeypatch.setattr(toolbox, "DEADLINE_MS", 60_000)
    app = build_app(at_hand, Guard.local("default", "ada"), Limits(requests_per_s=0))
    with serving(app) as url, memorist.connect(url) as memory:
        yield memory


def texts(memory: Memory, session: str) -> list[str]:
    return [message.text for message in memory.history(user="ada", session=session)]


def test_the_middleware_stores_recalls_and_goes_on(at_hand: Memory, remote: Memory) -> None:
    at_hand.remember("My boat is called Swan.", user="ada", session="before")
    at_hand.notes(user="ada").append("- likes short answers")
    model = ScriptedChatModel(["Swan.", "As I said, Swan."])
    ours = MemoristMiddleware(remote, user="ada", session="talk", deadline_ms=None, patience_s=60)
    agent: Any = create_agent(model, middleware=[ours])
    for question in ("What is my boat called?", "Again?"):
        result = agent.invoke({"messages": [HumanMessage(question)]})
        assert result["memorist"]["failed"] == {}
    said = texts(at_hand, "talk")
    assert said == ["What is my boat called?", "Swan.", "Again?", "As I said, Swan."]
    first, second = ("\n".join(str(it.text) for it in sent.messages) for sent in model.prompts)
    assert "My boat is called Swan." in first
    assert "- likes short answers" in first
    assert "What is my boat called?" in second


def test_a_long_conversation_is_summarised_on_the_server(at_hand: Memory, remote: Memory) -> None:
    model = ScriptedChatModel(lambda _: "Well, well. " * 10)
    window = Window(max_tokens=700)
    ours = MemoristMiddleware(
        remote, user="ada", session="talk", window=window, deadline_ms=None, patience_s=60
    )
    agent: Any = create_agent(model, middleware=[ours])
    for day in range(12):
        said = HumanMessage(f"On day {day} I saw {day + 3} ships.")
        result = agent.invoke({"messages": [said]})
        assert result["memorist"]["failed"] == {}
    assert len(texts(at_hand, "talk")) == 24
    assert at_hand.summaries(user="ada", session="talk")
    assert "Previous conversation:" in str(model.prompts[-1].messages)


def test_an_agent_streams_its_reply_into_the_log(at_hand: Memory, remote: Memory) -> None:
    model = ScriptedChatModel(["It is a fine day."])
    agent = ReactAgent(
        model, remote, user="ada", store_partial_replies=True, deadline_ms=None, patience_s=60
    )
    *_, response = agent.stream("How is it?", "talk", asked_id="q", next_reply=0)
    assert response.warnings == ()  # type: ignore[union-attr]
    assert texts(at_hand, "talk") == ["How is it?", "It is a fine day."]


def test_the_toolbox_and_the_history(at_hand: Memory, remote: Memory) -> None:
    box = Toolbox(remote, user="ada", session="talk")
    assert box.remember("I moved to Berlin in March.")["stored"]
    assert box.recall("Berlin")[0]["text"] == "I moved to Berlin in March."
    assert box.store_fact("Ada speaks German.")["id"]
    assert "German" in box.manage_long_term_memory("append", "Speaks German.") + str(
        box.manage_long_term_memory()
    )
    history = MemoristChatMessageHistory(remote, "s1", user="ada", k=5)
    history.add_messages([HumanMessage("Hi", id="h1"), AIMessage("Hello")])
    history.add_messages([HumanMessage("Hi!", id="h1")])
    assert [message.text for message in history.messages] == ["Hi!", "Hello"]


def test_langgraphs_store(at_hand: Memory, remote: Memory) -> None:
    for memory in (remote, at_hand):
        store = MemoristStore(memory, user="ada", deadline_ms=None)
        if memory is remote:
            store.put(("tastes", "ada"), "tea", {"text": "Ada drinks oolong"})
        assert store.get(("tastes", "ada"), "tea").value["text"] == "Ada drinks oolong"  # type: ignore[union-attr]
        [item] = store.search(("tastes",), query="which tea?")
        assert item.key == "tea"
        assert store.list_namespaces() == [("tastes", "ada")]


def test_an_adapter(at_hand: Memory, remote: Memory) -> None:
    async def talk() -> list[Any]:
        session = MemoristSession(remote, user="ada", session="talk")
        await session.add_items([{"role": "user", "content": "I live in Berlin."}])
        return list(await session.get_items())

    [item] = asyncio.run(talk())
    assert item["content"] == "I live in Berlin."
    assert texts(at_hand, "talk") == ["I live in Berlin."]
