"""LlamaIndex's own agents, chat engines and query engines work on Memorist."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.chat_engine import ContextChatEngine, SimpleChatEngine
from llama_index.core.llms.mock import MockFunctionCallingLLM, MockLLMWithChatMemoryOfLastCall
from llama_index.core.memory import ChatMemoryBuffer

from memorist import Memory, StoreError, Window
from memorist_adapters.llama_index import MemoristMemory, MemoristRetriever


def talk(memory: Memory, session: str = "talk", **named: Any) -> MemoristMemory:
    options = {"user": "ada", "deadline_ms": None, **named}
    return MemoristMemory(memory=memory, session=session, **options)


def said(role: str, text: str) -> ChatMessage:
    return ChatMessage(role=MessageRole(role), content=text)


def contents(messages: Sequence[ChatMessage]) -> list[str | None]:
    return [message.content for message in messages]


RICH = [
    said("system", "Be kind."),
    ChatMessage(role="user", content="Weather in Zürich?", additional_kwargs={"name": "Ada"}),
    ChatMessage(
        role="assistant",
        blocks=[
            ThinkingBlock(content="Hm", additional_information={"signature": "s"}),
            TextBlock(text="Let me look."),
            ToolCallBlock(tool_call_id="c1", tool_name="weather", tool_kwargs={"city": "Zürich"}),
        ],
    ),
    ChatMessage(
        role="tool", content="rain\x00", additional_kwargs={"tool_call_id": "c1", "n": 1.5}
    ),
    ChatMessage(
        role="assistant",
        content="One more.",
        additional_kwargs={
            "tool_calls": [
                {"id": "c2", "type": "function", "function": {"name": "time", "arguments": "{}"}}
            ]
        },
    ),
    ChatMessage(role="function", content="noon", additional_kwargs={"tool_call_id": "c2"}),
    ChatMessage(role="user", blocks=[ImageBlock(image=b"\x89PNG\r\n\x1a\n", detail="low")]),
    said("assistant", "Take an umbrella."),
]


def test_every_message_comes_back_as_it_was_and_can_be_recalled(
    memory: Memory, tmp_path: Path
) -> None:
    talk(memory).put_messages(RICH)
    with Memory(tmp_path / "memory.db", embedder=None) as other:
        assert talk(other).get_all() == RICH
    kept = memory.history(user="ada", session="talk")
    assert [message.role for message in kept] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "user",
        "assistant",
    ]
    assert [[call.name for call in it.tool_calls] for it in kept[2:5:2]] == [["weather"], ["time"]]
    assert (kept[3].tool_call_id, kept[7].structured_data) == ("c1", None)
    assert kept[6].images[0].startswith("data:image/png;base64,")
    found = memory.recall("umbrella", user="ada", deadline_ms=None)
    assert found.hits[0].text == "Take an umbrella."


def test_another_user_sees_nothing_and_another_session_is_another(memory: Memory) -> None:
    talk(memory).put_messages(RICH)
    assert talk(memory, user="bob").get_all() == talk(memory, "new").get_all() == []
    assert "umbrella" not in str(talk(memory, user="bob").get("umbrella?"))


def test_without_a_session_it_is_the_active_one(memory: Memory) -> None:
    first = MemoristMemory.from_defaults(memory=memory, user="ada", agent="tutor")
    first.put(said("user", "Hi"))
    assert contents(MemoristMemory(memory=memory, user="ada", agent="tutor").get_all()) == ["Hi"]
    assert MemoristMemory(memory=memory, user="ada", agent="cook").get_all() == []


def test_setting_a_history_keeps_what_it_begins_with_and_forgets_the_rest(memory: Memory) -> None:
    history = talk(memory)
    history.put_messages([said("user", "one"), said("assistant", "two"), said("user", "three")])
    first = memory.history(user="ada")[0].message_id
    history.set([said("user", "one"), said("assistant", "zwei")])
    assert contents(history.get_all()) == ["one", "zwei"]
    assert memory.history(user="ada")[0].message_id == first
    history.reset()
    assert (history.get_all(), memory.history(user="ada")) == ([], [])


# The agent's workflow looks through all attributes of Pydantic's models, old ones too.
@pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20")
@pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince211")
def test_a_function_agent_answers_from_what_another_conversation_said(memory: Memory) -> None:
    seen: list[list[str | None]] = []

    def answer(messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
        seen.append(contents(messages))
        if messages[-1].role == MessageRole.TOOL:
            return said("assistant", f"It is {messages[-1].content}.")
        if "bike" not in str(messages[-1].content):
            return said("assistant", "Noted.")
        call = ToolCallBlock(tool_call_id="c1", tool_name="shout", tool_kwargs={"word": "red"})
        return ChatMessage(role="assistant", blocks=[call])

    def shout(word: str) -> str:
        """Say it loudly."""
        return word.upper()

    async def run(session: str, text: str) -> str:
        llm = MockFunctionCallingLLM(response_generator=answer, is_chat_model=True)
        agent = FunctionAgent(llm=llm, tools=[shout], streaming=False)
        return str(await agent.run(text, memory=talk(memory, session)))

    assert asyncio.run(run("monday", "Mine is a red Colnago.")) == "Noted."
    assert asyncio.run(run("tuesday", "Which bike is mine?")) == "It is RED."
    assert "red Colnago" in str(seen[-1][0])
    assert "red Colnago" not in str(talk(memory, "tuesday").get_all())
    kept = memory.history(user="ada", session="tuesday")
    assert [message.role for message in kept] == ["user", "assistant", "tool", "assistant"]
    assert asyncio.run(run("tuesday", "Thank you.")) == "Noted."
    assert len(seen[-1]) == 5


def test_a_chat_engine_goes_on_with_the_conversation_in_another_process(
    memory: Memory, tmp_path: Path
) -> None:
    llm = MockLLMWithChatMemoryOfLastCall(max_tokens=None, is_chat_model=True)
    engine = SimpleChatEngine.from_defaults(llm=llm, memory=talk(memory))
    engine.chat("I am Ada.")
    with Memory(tmp_path / "memory.db", embedder=None) as other:
        again = SimpleChatEngine.from_defaults(llm=llm, memory=talk(other))
        asyncio.run(again.achat("Who am I?"))
    assert contents(llm.last_chat_messages or [])[0] == "I am Ada."
    assert [it.role for it in engine.chat_history] == ["user", "assistant"] * 2
    assert llm.last_chat_messages is not None
    assert llm.last_chat_messages[-1].content == "Who am I?"


def test_an_engine_that_asks_before_it_puts_gets_no_question_but_what_bears_on_it(
    memory: Memory,
) -> None:
    talk(memory, "monday").put(said("user", "My bike is a red Colnago."))
    tuesday = talk(memory, "tuesday")
    tuesday.put_messages([said("user", "Hi"), said("assistant", "Hello")])
    *past, recalled = tuesday.get("Which bike is mine?")
    assert contents(past) == ["Hi", "Hello"]
    assert "red Colnago" in (recalled.content or "")
    assert "Which bike" not in (recalled.content or "")
    llm = MockLLMWithChatMemoryOfLastCall(max_tokens=None, is_chat_model=True)
    retriever = MemoristRetriever(memory, user="ada", deadline_ms=None, role="user")
    engine = ContextChatEngine.from_defaults(retriever=retriever, llm=llm, memory=tuesday)
    answer = engine.chat("Which bike is mine?")
    assert answer.source_nodes[0].node.metadata["session"] == "monday"
    assert str(llm.last_chat_messages).count("Which bike is mine?") == 1
    assert contents(tuesday.get_all())[:3] == ["Hi", "Hello", "Which bike is mine?"]


def test_no_more_is_shown_than_the_window_takes_and_all_is_kept(memory: Memory) -> None:
    window = Window(max_tokens=300, memories=0)
    long = talk(memory, window=window)
    for number in range(40):
        long.put_messages([said("user", f"Question {number}?"), said("assistant", "Yes. " * 9)])
    long.put(said("user", "And now?"))
    whole, less = long.get(), long.get(initial_token_count=200)
    assert contents(whole)[-1] == contents(less)[-1] == "And now?"
    shown = [sum(len(text or "") for text in contents(seen)) for seen in (less, whole)]
    assert shown[0] < shown[1] < 1_000
    assert len(long.get_all()) == 81


def test_where_nothing_is_asked_the_newest_messages_are_given_as_they_were(memory: Memory) -> None:
    history = talk(memory)
    history.put_messages(RICH)
    assert history.get() == RICH
    assert talk(memory, "new").get() == []


def test_what_is_said_while_the_store_fails_is_stored_with_what_comes_next(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    history = talk(memory)
    with monkeypatch.context() as broken:

        def fail(*arguments: Any, **named: Any) -> Any:
            raise StoreError("gone for a moment")

        for name in ("append", "history"):
            broken.setattr(memory.store, name, fail)
        history.put(said("user", "Still there?"))
        assert contents(history.get())[-1] == "Still there?"
    assert history.failed == "gone for a moment"
    assert "1 messages wait to be stored: gone for a moment" in caplog.text
    history.put(said("assistant", "Yes"))
    assert history.failed == ""
    assert contents(history.get_all()) == ["Still there?", "Yes"]
    assert len(memory.history(user="ada", session="talk")) == 2


def test_the_retriever_gives_nodes_with_their_sources(memory: Memory) -> None:
    talk(memory).put_messages(RICH)
    retriever = MemoristRetriever(memory, user="ada", k=2, deadline_ms=None)
    found = retriever.retrieve("umbrella")
    best = found[0]
    assert best.node.get_content() == "Take an umbrella."
    assert (best.node.metadata["session"], best.node.metadata["role"]) == ("talk", "assistant")
    assert best.score is not None
    assert all(best.score >= (it.score or 0) for it in found)
    assert 0 < best.score < 1
    assert [it.node_id for it in asyncio.run(retriever.aretrieve("umbrella"))] == [
        it.node_id for it in found
    ]
    bobs = MemoristRetriever(memory, user="bob", deadline_ms=None)
    assert bobs.retrieve("umbrella") == []
    with pytest.raises(TypeError, match="colour"):
        MemoristRetriever(memory, user="ada", colour="red")


def test_it_does_what_llama_indexs_own_buffer_does(memory: Memory) -> None:
    for history in (talk(memory), ChatMemoryBuffer.from_defaults(token_limit=9_999)):
        history.put(said("user", "Hi"))
        assert contents(history.get()) == ["Hi"]
        asyncio.run(history.aput_messages([said("assistant", "Hello"), said("user", "Bye")]))
        assert contents(asyncio.run(history.aget())) == ["Hi", "Hello", "Bye"]
        history.set([said("user", "Hi"), said("assistant", "Hm")])
        assert contents(history.get_all()) == ["Hi", "Hm"]
        history.reset()
        assert history.get_all() == []
