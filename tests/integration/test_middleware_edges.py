"""MemoristMiddleware with what callers really send: bad names, half histories, changed words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from memorist import InvalidError, Memory
from memorist.agents.langchain import MemoristChatMessageHistory
from memorist.agents.langgraph import MemoristStore
from memorist.agents.middleware import MemoristMiddleware
from memorist.testing.scripted import ScriptedChatModel

THREAD: Any = {"configurable": {"thread_id": "talk"}}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        yield memory


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def talker(memory: Memory, model: Any, **made: Any) -> Any:
    remembering = MemoristMiddleware(memory, user="ada", deadline_ms=None)
    return create_agent(model, [add], middleware=[remembering], **made)


def texts(memory: Memory) -> list[str]:
    return [message.text for message in memory.history(user="ada", session="talk")]


@pytest.mark.parametrize("named", [{"user_id": "a\x00b"}, {"user_id": "a" * 70_000}])
def test_a_name_that_is_none_leaves_the_agent_answering(
    memory: Memory, named: dict[str, str]
) -> None:
    nameless = MemoristMiddleware(memory)
    agent: Any = create_agent(ScriptedChatModel(["Hm."]), middleware=[nameless])
    result = agent.invoke({"messages": "Hello"}, {"configurable": named})
    assert result["messages"][-1].text == "Hm."
    assert result["memorist"]["failed"]["store"].startswith("ScopeError: user ")


@pytest.mark.parametrize(
    "made",
    [
        lambda memory: MemoristMiddleware(memory, user="ada"),
        lambda memory: MemoristChatMessageHistory(memory, "s", user="ada"),
        MemoristStore,
    ],
)
def test_what_is_no_memory_is_refused_by_its_type(made: Callable[[Any], object]) -> None:
    with pytest.raises(InvalidError, match=r"memory must be (a )?Memory, got str"):
        made("agent.db")


@pytest.mark.parametrize("name", ["user", "agent", "session", "window", "patience_s"])
def test_what_no_run_could_use_is_refused_when_the_middleware_is_made(
    memory: Memory, name: str
) -> None:
    wrong = "5" if name == "patience_s" else 42
    with pytest.raises(InvalidError, match=f"^{name} must be "):
        MemoristMiddleware(memory, **{"user": "ada", name: wrong})  # type: ignore[arg-type]


def test_a_caller_who_keeps_no_tools_has_the_conversation_stored_once(memory: Memory) -> None:
    call = {"name": "add", "args": {"a": 1, "b": 2}}
    model = ScriptedChatModel([call, "One.", call, call, "Two.", "Three."])
    agent, said = talker(memory, model), list[dict[str, str]]()
    for text, answer in (("a", "One."), ("b", "Two."), ("c", "Three.")):
        said.append({"role": "user", "content": text})
        agent.invoke({"messages": said}, THREAD)
        said.append({"role": "assistant", "content": answer})
    words = [text for text in texts(memory) if text[:3] not in ("add", "3")]
    assert words == ["a", "One.", "b", "Two.", "c", "Three."]
    sent = [message.text for message in model.prompts[-1].messages[-5:]]
    assert sent[:-1] == ["a", "One.", "b", "Two."]
    assert sent[-1].endswith("The message to answer:\nc")


def test_a_caller_who_drops_a_question_that_failed_has_the_rest_stored_once(memory: Memory) -> None:
    agent = talker(memory, ScriptedChatModel(["One.", RuntimeError("no"), "Three."]))
    before = [("user", "a"), ("assistant", "One.")]
    agent.invoke({"messages": before[:1]}, THREAD)
    with pytest.raises(RuntimeError):
        agent.invoke({"messages": [*before, ("user", "b")]}, THREAD)
    agent.invoke({"messages": [*before, ("user", "c")]}, THREAD)
    assert texts(memory) == ["a", "One.", "b", "c", "Three."]


def test_a_question_that_was_changed_is_stored_and_searched_anew(memory: Memory) -> None:
    memory.remember("The blue boat lies in Kiel.", user="ada", session="before")
    memory.remember("The red bike stands in Bonn.", user="ada", session="before")
    model = ScriptedChatModel(["In Kiel.", "In Bonn."])
    agent = talker(memory, model, checkpointer=InMemorySaver())
    agent.invoke({"messages": [HumanMessage("Where is the blue boat?", id="q")]}, THREAD)
    agent.invoke({"messages": [HumanMessage("Where is the red bike?", id="q")]}, THREAD)
    assert texts(memory) == ["Where is the red bike?", "In Kiel.", "In Bonn."]
    scope = memory.scope(user="ada", session="talk")
    old = [message.text for message in memory.store.revisions(scope, "q")]
    assert "Where is the blue boat?" in old
    prompt = model.prompts[-1].messages[0].text
    assert "> The red bike stands in Bonn." in prompt


def test_what_others_hid_in_an_older_message_stays_in_the_log(memory: Memory) -> None:
    agent = talker(memory, ScriptedChatModel(["One.", "Two."]))
    asked, answer = HumanMessage("My number is 42.", id="q"), AIMessage("One.", id="a")
    agent.invoke({"messages": [asked]}, THREAD)
    hidden = HumanMessage("My number is [hidden].", id="q")
    agent.invoke({"messages": [hidden, answer, HumanMessage("And?", id="q2")]}, THREAD)
    assert texts(memory)[0] == "My number is 42."
