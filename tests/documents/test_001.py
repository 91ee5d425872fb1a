"""Document 001, the memory module: its names and its examples."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memorist import (
    AgentCallMsg,
    BaseMemory,
    ConversationMemory,
    Extraction,
    KGMemory,
    Memory,
    MemoryManager,
    Message,
    MessageContent,
    MessageError,
    Retention,
    ToolCallMsg,
    extract_action_from_message,
)
from tests.documents.names import uses

COOK: Any = {"agent_name": "cook", "request": {"dish": "soup"}}
PNG = b"\x89PNG\r\n\x1a\n picture"
PARIS = {"subject": "Paris", "predicate": "is capital of", "object": "France"}
CALL: Any = {"id": "call_123", "call_id": "call_123", "type": "function"}
CALL |= {"name": "calculator", "arguments": '{"a": 1}'}


def triple(fact: dict[str, Any]) -> dict[str, Any]:
    return {name: fact[name] for name in PARIS}


# Data classes


@uses("Message", "Message.role", "Message.content", "Message.message_id", "Message.name")
@uses("Message.tool_calls", "Message.agent_calls", "Message.structured_data", "Message.images")
@uses("Message.__post_init__", "ToolCallMsg", "ToolCallMsg.id", "ToolCallMsg.call_id")
@uses("ToolCallMsg.type", "ToolCallMsg.name", "ToolCallMsg.arguments", "ToolCallMsg.to_dict")
@uses("AgentCallMsg", "AgentCallMsg.agent_name", "AgentCallMsg.request")
def test_a_message_has_the_documents_fields_and_makes_calls_of_dicts() -> None:
    message = Message(
        role="assistant",
        content={"thought": "add"},
        name="tutor",
        tool_calls=[CALL],
        agent_calls=[COOK],
        structured_data={"mood": "good"},
        images=["local/path/image.png"],
    )
    named = ["role", "content", "message_id", "name", "tool_calls", "agent_calls"]
    assert [it.name for it in dataclasses.fields(message)][:8] == [
        *named,
        "structured_data",
        "images",
    ]
    assert uuid.UUID(message.message_id) != uuid.UUID(Message("user").message_id)
    assert Message("user").content is None
    assert message.tool_calls == (ToolCallMsg(**CALL),)
    assert message.tool_calls[0].to_dict() == {
        "id": "call_123",
        "type": "function",
        "function": {"name": "calculator", "arguments": '{"a": 1}'},
    }
    assert message.agent_calls == (AgentCallMsg(agent_name="cook", request={"dish": "soup"}),)
    with pytest.raises(MessageError, match="role"):
        Message(role="robot")
    with pytest.raises(MessageError, match="tool_calls"):
        Message(role="assistant", tool_calls=[CALL | {"name": 5}])


def test_a_message_that_is_assigned_to_names_the_cure() -> None:
    message = Message("assistant", "Let me see")
    with pytest.raises(AttributeError, match=r"message\.changed\(tool_calls=…\)"):
        message.tool_calls = [CALL]  # type: ignore[misc]
    assert message.changed(tool_calls=[CALL]).tool_calls[0].name == "calculator"


def test_a_moment_may_be_iso_text() -> None:
    made = Message("user", "Hello", created_at="2026-03-04T05:06:07+01:00")  # type: ignore[arg-type]
    assert made.created_at.isoformat() == "2026-03-04T04:06:07+00:00"
    for wrong in ("yesterday", "2026-03-04T05:06:07"):
        with pytest.raises(MessageError, match="created_at"):
            Message("user", "Hello", created_at=wrong)  # type: ignore[arg-type]


@uses("Message.from_response_dict")
def test_a_reply_keeps_its_calls_of_tools_and_agents() -> None:
    calls = {"tool_calls": [CALL], "agent_calls": [{"agent_name": "cook", "request": "soup"}]}
    message = Message.from_response_dict({"role": "assistant", "content": None, **calls})
    assert (message.tool_calls[0].name, message.agent_calls[0].agent_name) == ("calculator", "cook")
    assert message.structured_data is None


@uses("MessageContent", "MessageContent.thought", "MessageContent.next_action")
@uses("MessageContent.action_input", "extract_action_from_message")
@uses("call_tool", "invoke_agent", "final_response", "to_action_dict")
def test_the_validation_module_finds_the_action_of_a_message() -> None:
    with pytest.warns(DeprecationWarning, match="pass a dict"):
        content = MessageContent(
            thought="done", next_action="final_response", action_input={"response": 5}
        )
    said = [
        Message("assistant", tool_calls=[CALL]),
        Message("assistant", agent_calls=[AgentCallMsg("cook", "soup")]),
        Message("assistant", content.to_dict()),
    ]
    actions = [extract_action_from_message(message) or {} for message in said]
    assert [it["next_action"] for it in actions] == ["call_tool", "invoke_agent", "final_response"]
    assert actions[0]["action_input"] == {"tool_calls": [said[0].tool_calls[0].to_dict()]}
    assert actions[2]["action_input"] == {"response": 5}


# Conversations


@uses("BaseMemory", "BaseMemory.add", "BaseMemory.update")
@uses("BaseMemory.retrieve_all", "BaseMemory.retrieve_recent")
def test_the_four_methods_of_the_contract_make_a_memory() -> None:
    class Listed(BaseMemory):
        def __init__(self) -> None:
            self.messages: list[dict[str, Any]] = []

        def add(self, message: Message | None = None, **kwargs: Any) -> str:
            self.messages.append(kwargs)
            return str(len(self.messages) - 1)

        def update(self, message_id: str, **kwargs: Any) -> None:
            self.messages[int(message_id)] |= kwargs

        def retrieve_all(self) -> list[dict[str, Any]]:
            return self.messages

        def retrieve_recent(self, n: int = 1) -> list[dict[str, Any]]:
            return self.messages[-n:]

    memory = Listed()
    memory.update(memory.add(role="user", content="Hello"), content="Hi")
    assert memory.retrieve_recent() == memory.retrieve_all() == memory.retrieve_by_role("user")
    with pytest.raises(TypeError, match="abstract"):
        BaseMemory()  # type: ignore[abstract]


@uses("ConversationMemory", "ConversationMemory.description", "ConversationMemory.add")
@uses("ConversationMemory.update", "ConversationMemory.retrieve_recent", "MessageError")
@uses("ConversationMemory.reset_memory", "ConversationMemory.retrieve_all")
@uses("ConversationMemory.retrieve_by_id", "ConversationMemory.retrieve_by_role")
def test_a_message_is_updated_by_the_id_that_add_returned(memory: Memory) -> None:
    conversation = ConversationMemory(description="You are a helpful assistant", memory=memory)
    msg_id = conversation.add(role="user", content="Original content")
    conversation.update(message_id=msg_id, content="Updated content")
    assert [it["content"] for it in conversation.retrieve_recent(1)] == ["Updated content"]
    assert conversation.retrieve_by_role("user") == [conversation.retrieve_by_id(msg_id)]
    with pytest.raises(MessageError):
        conversation.update(message_id="unknown_id", content="New")
    with pytest.raises(MessageError):
        conversation.add(content="neither message nor role")
    conversation.reset_memory()
    assert [it["role"] for it in conversation.retrieve_all()] == ["system"]


@uses("ConversationMemory._message_to_dict", "tool_call_id", "to_llm_dict", "to_llm_format")
def test_what_is_read_is_what_a_model_takes_and_nothing_is_lost(memory: Memory) -> None:
    conversation = ConversationMemory(memory=memory)
    conversation.add(
        role="assistant", content="Wait", agent_calls=[{"agent_name": "cook", "request": "soup"}]
    )
    conversation.add(
        role="tool",
        content='{"tool_call_id": "call_123", "output": "Result data"}',
        name="calculator",
    )
    asked, answered = conversation.retrieve_all()
    assert asked["agent_calls"] == [{"agent_name": "cook", "request": "soup"}]
    assert Message(**asked).agent_calls == (AgentCallMsg("cook", "soup"),)
    assert (answered["tool_call_id"], answered["name"]) == ("call_123", "calculator")
    assert not hasattr(Message, "to_llm_dict")


@uses("Message._encode_image_to_base64", "image_url")
def test_images_are_encoded_when_read_and_one_that_vanished_is_named(
    memory: Memory, tmp_path: Path
) -> None:
    kept, gone = tmp_path / "image1.png", tmp_path / "image2.jpg"
    kept.write_bytes(PNG)
    gone.write_bytes(PNG)
    conversation = ConversationMemory(memory=memory)
    conversation.add(role="user", content="What's in these images?", images=[str(kept), str(gone)])
    gone.unlink()
    conversation.add(role="user", content="And now?")
    text, image, missing = conversation.retrieve_all()[0]["content"]
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert text == {"type": "text", "text": "What's in these images?"}
    assert image == {"type": "image_url", "image_url": {"url": url}}
    assert missing["type"] == "text"
    assert str(gone) in missing["text"]
    assert "No such file" in missing["text"]
    assert conversation.retrieve_recent(1)[0]["content"] == "And now?"


def test_the_periodic_clean_up_keeps_one_system_message(memory: Memory) -> None:
    conversation = ConversationMemory(description="You are a tutor", memory=memory)
    for number in range(60):
        conversation.add(role="user", content=f"Question {number}")
    for kept in (50, 100):
        recent_messages = conversation.retrieve_recent(100)
        conversation.reset_memory()
        for msg in recent_messages[-kept:]:
            conversation.add(message=Message(**msg))
    left = conversation.retrieve_all()
    assert [it["role"] for it in left] == ["system"] + 50 * ["user"]
    assert (left[1]["content"], left[-1]["content"]) == ("Question 10", "Question 59")


# Facts


class Model:
    """The document's model: it answers messages, here always with the same."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.asked = answer, list[Any]()

    def run(self, messages: list[dict[str, Any]]) -> Any:
        self.asked.append(messages)
        return self.answer() if callable(self.answer) else self.answer


@uses("KGMemory", "KGMemory.model", "KGMemory.description", "BaseAPIModel.run")
@uses("KGMemory.extract_and_update_from_text", "KGMemory.retrieve_all")
@uses("KGMemory._fact_to_dict", "KGMemory.add")
def test_a_model_with_run_finds_the_facts_of_a_text() -> None:
    text = "Paris is the capital of France"
    listed = json.dumps([PARIS])

    async def later() -> str:
        return listed

    message = {"role": "assistant", "content": f"```json\n{listed}\n```"}
    for answer in (listed, [PARIS], message, later):
        model = Model(answer)
        with KGMemory(model=model, description="Initial system context") as memory:
            message_id = memory.add(role="user", content=text)
            [fact] = memory.extract_and_update_from_text(text)
            assert triple(fact) == PARIS
            assert memory.retrieve_all()[0]["content"] == "Initial system context"
            assert memory.retrieve_by_id(message_id) == {"role": "user", "content": text}
        assert text in model.asked[0][-1]["content"]


def test_a_model_may_name_many_facts_or_none() -> None:
    cities = ["Berlin", "Rome", "Oslo", "Madrid", "Vienna"]
    facts = [{"subject": city, "predicate": "is", "object": "city"} for city in cities]
    with KGMemory(model=Model(facts)) as memory:
        found = memory.extract_and_update_from_text(f"Each is a city: {', '.join(cities)}.")
        assert [fact["subject"] for fact in found] == cities
    with KGMemory(model=Model("[]")) as memory:
        assert memory.extract_and_update_from_text("Hello there, nice to meet you") == []


@uses("KGMemory.add_fact", "KGMemory.retrieve_recent", "KGMemory.retrieve_by_role")
def test_rules_find_the_documents_own_fact_without_a_model() -> None:
    with KGMemory() as memory:
        [fact] = memory.extract_and_update_from_text("Paris is the capital of France")
        assert triple(fact) == PARIS
        memory.extract_and_update_from_text("Belgium borders France, Germany and Luxembourg.")
        bordered = {it["object"] for it in memory.retrieve_recent(3)}
        assert bordered == {"France", "Germany", "Luxembourg"}
        assert memory.extract_and_update_from_text("What is the capital of Norway?") == []
        memory.add_fact("the flight", "leaves at", "noon", role="tool")
        assert [it["content"] for it in memory.retrieve_by_role("tool")] == [
            "the flight leaves at noon"
        ]


def test_general_facts_are_no_part_of_a_users_profile() -> None:
    with Memory(":memory:", embedder=None) as memory:
        memory.remember("Paris is the capital of France", user="ada")
        memory.jobs.catch_up(300)
        assert memory.facts.list(user="ada") == []
        graph = KGMemory(memory=memory, user="ada")
        [fact] = graph.extract_and_update_from_text("Paris is the capital of France")
        assert triple(fact) == PARIS


# The manager


@uses("MemoryManager", "MemoryManager.memory_type", "conversation_history", "kg", "update_memory")
@uses("MemoryManager.add", "MemoryManager.update", "MemoryManager.retrieve_all")
@uses("MemoryManager.retrieve_recent", "MemoryManager.reset_memory")
def test_an_agent_holds_either_memory_behind_one_interface() -> None:
    class MyAgent:
        def __init__(self) -> None:
            self.model = Model({"role": "assistant", "content": "Hello!"})
            self.memory = MemoryManager(
                memory_type="conversation_history", description="Agent system prompt"
            )

        async def process_request(self, request: str) -> None:
            request_id = self.memory.add(role="user", content=request)
            response = self.model.run(self.memory.retrieve_all())
            response_id = self.memory.add(role="assistant", content=response["content"])
            assert uuid.UUID(request_id) != uuid.UUID(response_id)
            self.memory.update(request_id, content="Hi")

    agent = MyAgent()
    asyncio.run(agent.process_request("Hello"))
    assert agent.model.asked[0][0] == {"role": "system", "content": "Agent system prompt"}
    assert [it["content"] for it in agent.memory.retrieve_recent(2)] == ["Hi", "Hello!"]
    agent.memory.reset_memory()
    assert len(agent.memory.retrieve_all()) == 1
    assert not hasattr(agent.memory, "update_memory")
    agent.memory.close()
    with MemoryManager(memory_type="kg", model=Model([PARIS]), description="System") as manager:
        manager.add(role="user", content="Hello")
        assert isinstance(manager.memory_module, KGMemory)
        assert manager.retrieve_all()[0] == {"role": "system", "content": "System"}


# What the document lists as future


@uses("Persistence Backend", "Distributed Memory", "Streaming Support")
def test_one_file_is_shared_by_agents_and_shows_a_message_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    with Memory(path, embedder=None) as here, Memory(path, embedder=None) as there:
        one = ConversationMemory("Be kind", memory=here, session="shared")
        other = ConversationMemory("Be kind", memory=there, session="shared")
        one.add(role="user", content="from one")
        with here.session(user="me", id="shared").stream("assistant", flush_s=0) as stream:
            stream.write("Hel")
            stream.flush()
            assert other.retrieve_recent(1)[0]["content"] == "Hel"
            stream.write("lo")
        assert other.retrieve_recent(1)[0]["content"] == "Hello"
        assert len(other.retrieve_by_role("system")) == 1


@uses("Memory Compression", "Vector Search", "Memory Policies")
def test_long_conversations_are_compressed_facts_found_by_meaning_and_memories_expire() -> None:
    short = Extraction(retention=(Retention(max_age=timedelta(days=30)),))
    with Memory(":memory:", extraction=short) as memory:
        graph = KGMemory(memory=memory, user="ada")
        graph.extract_and_update_from_text("I moved to Berlin.")
        for number in range(12):
            graph.add(role="user", content=f"Step {number} of the plan is ready. " * 20)
        memory.jobs.catch_up(300)
        compressed = memory.compress(user="ada", session=graph.session_id)
        assert compressed is not None
        assert compressed.saved > 0
        found = graph.recall("Which town is home?", deadline_ms=None)
        assert found.hits[0].text == "user lives in Berlin"
        assert memory.memories.maintain(user="ada").expired == 0
