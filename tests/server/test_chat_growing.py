"""Replies that are stored while the model says them: on a real `create_agent` and a real store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool

from memorist import Memory
from memorist.agents.react import ReactAgent, Recalled, Response, Token
from memorist.errors import StoreUnavailableError
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store.sqlite.store import SqliteStore
from memorist.testing.scripted import Cut, ScriptedChatModel
from tests.support.waiting import until


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        yield memory


class Waiting(ScriptedChatModel):
    """Says its first three words, and the others only when it may go on."""

    def __init__(self, replies: Any) -> None:
        super().__init__(replies)
        self._go_on = threading.Event()

    _go_on: Any = None

    def _stream(self, *args: Any, **options: Any) -> Iterator[ChatGenerationChunk]:
        for place, chunk in enumerate(super()._stream(*args, **options)):
            if place == 3:
                assert self._go_on.wait(30)
            yield chunk


class Renaming(ScriptedChatModel):
    """Says only in its last piece what its reply is called by."""

    def _stream(self, *args: Any, **options: Any) -> Iterator[ChatGenerationChunk]:
        manager = options.get("run_manager")
        for text, id_ in (("All ", None), ("well.", None), ("", "resp_1")):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=text, id=id_))
            if manager is not None:
                manager.on_llm_new_token(text, chunk=chunk)
            yield chunk


class Away(SqliteStore):
    """A store that can be away."""

    away = False

    def append(self, scope: Scope, *args: Any, **named: Any) -> Any:
        if self.away:
            raise StoreUnavailableError("away")
        return super().append(scope, *args, **named)

    def append_text(self, scope: Scope, message: Message) -> None:
        if self.away:
            raise StoreUnavailableError("away")
        super().append_text(scope, message)


@tool
def look() -> str:
    """Look."""
    return "nothing"


def made(memory: Memory, model: Any, **options: Any) -> ReactAgent:
    return ReactAgent(
        model, memory, user="ada", agent="mate", store_partial_replies=True, **options
    )


def log(memory: Memory) -> list[Message]:
    return memory.history(user="ada", session="s")


def test_a_reply_is_stored_while_it_is_said_and_finished_when_it_is_whole(memory: Memory) -> None:
    model = Waiting(["one two three four five"])
    said: list[Any] = []
    agent = made(memory, model)
    run = threading.Thread(target=lambda: said.extend(agent.stream("Count", "s")))
    run.start()
    until(lambda: len(log(memory)) == 2 and log(memory)[1].text == "one two three ")
    begun = log(memory)[1]
    assert begun.unfinished
    model._go_on.set()
    run.join(30)
    asked, answer = log(memory)
    assert (asked.role, asked.text, answer.text) == ("user", "Count", "one two three four five")
    assert not answer.unfinished
    assert (answer.message_id, answer.created_at) == (begun.message_id, begun.created_at)
    assert said[-1].message_id == answer.message_id
    assert said[-1].asked_id == asked.message_id


@pytest.mark.parametrize("what", ["session", "answer"])
def test_an_answer_that_is_forgotten_while_it_is_said_stays_forgotten(
    memory: Memory, what: str
) -> None:
    model = Waiting(["one two three four five", "Six."])
    said: list[Any] = []
    grows = what == "answer"
    agent = ReactAgent(model, memory, user="ada", agent="mate", store_partial_replies=grows)
    run = threading.Thread(target=lambda: said.extend(agent.stream("Count", "s")))
    run.start()
    until(lambda: len(log(memory)) == 1 + grows)
    which: dict[str, Any] = {"message": log(memory)[1].message_id} if grows else {}
    memory.forget(user="ada", session="s", **which)
    model._go_on.set()
    run.join(30)
    assert [message.text for message in log(memory)] == (["Count"] if which else [])
    assert len(memory.sessions(user="ada")) == len(which)
    assert "is not stored" in said[-1].warnings[-1]
    list(agent.stream("Go on", "s"))
    assert [message.text for message in log(memory)][-2:] == ["Go on", "Six."]


def test_a_reply_that_breaks_off_stays_unfinished_and_the_next_turn_shows_it(
    memory: Memory,
) -> None:
    model = ScriptedChatModel([Cut("The first half"), "Whole."])
    agent = made(memory, model)
    with pytest.raises(ConnectionError):
        list(agent.stream("Tell me", "s"))
    assert [(it.text, it.unfinished) for it in log(memory)] == [
        ("Tell me", False),
        ("The first half", True),
    ]
    list(agent.stream("Go on", "s"))
    assert [it.text for it in log(memory)] == ["Tell me", "The first half", "Go on", "Whole."]
    shown = [str(message.text) for message in model.prompts[-1].messages]
    assert shown[-3:] == ["Tell me", "The first half", "Go on"]


def test_a_reply_that_breaks_off_again_and_again_grows_in_its_one_place(memory: Memory) -> None:
    model = Waiting([Cut("one two thr"), Cut("one more"), "one two three four five"])
    model._go_on.set()
    agent = made(memory, model)
    for part in ("one two thr", "one more"):
        with pytest.raises(ConnectionError):
            list(agent.stream("Count", "s", asked_id="q", next_reply=0))
        assert [(it.text, it.unfinished) for it in log(memory)] == [("Count", False), (part, True)]
    model._go_on.clear()
    again = agent.stream("Count", "s", asked_id="q", next_reply=0)
    run = threading.Thread(target=lambda: list(again))
    run.start()
    until(lambda: log(memory)[1].text == "one two three ")
    model._go_on.set()
    run.join(30)
    assert [(it.text, it.unfinished) for it in log(memory)] == [
        ("Count", False),
        ("one two three four five", False),
    ]


def test_a_whole_reply_is_never_begun_anew(memory: Memory) -> None:
    agent = made(memory, ScriptedChatModel(["First.", "Second.", "Third.", "Fourth."]))
    for replied in (0, 0, 1, None):  # the second as if nobody had heard of the first
        list(agent.stream("How is it?", "s", asked_id="q", next_reply=replied))
    assert [it.text for it in log(memory)] == ["How is it?", "First.", "Third.", "Fourth."]


def test_a_reply_with_calls_has_both_and_results_follow(memory: Memory) -> None:
    both = AIMessage("Let me see.", tool_calls=[{"name": "look", "args": {}, "id": "c1"}])
    agent = made(memory, ScriptedChatModel([both, "Nothing there."]), tools=[look])
    list(agent.stream("What is there?", "s"))
    asked, called, result, answer = log(memory)
    assert [it.role for it in (asked, called, result, answer)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert (called.content, called.tool_calls[0].name) == ("Let me see.", "look")
    assert not any(it.unfinished for it in log(memory))
    assert answer.text == "Nothing there."


def test_a_reply_that_is_called_otherwise_at_its_end_is_stored_once(memory: Memory) -> None:
    *events, response = made(memory, Renaming()).stream("How is it?", "s")
    assert "".join(it.text for it in events if isinstance(it, Token)) == "All well."
    assert isinstance(response, Response)
    _, answer = log(memory)
    assert (answer.text, answer.unfinished) == ("All well.", False)
    assert response.message_id == answer.message_id


def test_a_reply_in_one_piece_is_stored_once(memory: Memory) -> None:
    made(memory, ScriptedChatModel(["Well."])).process_message("How is it?", "s")
    assert [it.text for it in log(memory)] == ["How is it?", "Well."]
    assert not log(memory)[1].unfinished


def test_where_the_store_is_away_the_agent_answers_and_all_is_stored_when_it_is_back(
    tmp_path: Path,
) -> None:
    with Away(tmp_path / "memory.db") as store, Memory(store, embedder=None) as memory:
        agent = made(memory, ScriptedChatModel(["First answer.", "Second answer."]))
        memory.session(user="ada", agent="mate", id="s")
        store.away = True
        *_, response = agent.stream("First?", "s")
        assert isinstance(response, Response)
        assert response.message == "First answer."
        assert response.warnings
        store.away = False
        list(agent.stream("Second?", "s"))
        assert [it.text for it in log(memory)] == [
            "First?",
            "First answer.",
            "Second?",
            "Second answer.",
        ]


def test_whoever_stops_listening_leaves_what_had_been_said(memory: Memory) -> None:
    model = Waiting(["one two three four five"])

    async def listen() -> None:
        stream = made(memory, model).astream("Count", "s")
        async for event in stream:
            if isinstance(event, Token) and event.text == "three ":
                break
        closing = asyncio.create_task(stream.aclose())
        await asyncio.sleep(0.05)
        model._go_on.set()  # its thread waits, and cannot be stopped
        await closing

    asyncio.run(listen())
    asked, part = log(memory)
    assert (asked.text, part.text, part.unfinished) == ("Count", "one two three ", True)


def test_what_is_recalled_is_told_before_anything_is_said(memory: Memory) -> None:
    memory.remember("My bike is in the cellar.", user="ada", agent="mate", session="t")
    agent = made(
        memory, ScriptedChatModel(["In the cellar."]), stream_recall=True, deadline_ms=None
    )
    first, *_ = agent.stream("Where is my bike?", "s")
    assert isinstance(first, Recalled)
    assert first.recall.hits[0].text == "My bike is in the cellar."
