"""ConversationMemory, read in the order of the Memory Module document."""

from __future__ import annotations

import base64
import inspect
import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from memorist import (
    BaseMemory,
    ConversationMemory,
    InvalidError,
    Memory,
    Message,
    MessageError,
    ToolCallMsg,
)
from memorist.providers.images import refuse_image

PNG = b"\x89PNG\r\n\x1a\n and some pixels"
PNG_URL = "data:image/png;base64," + base64.b64encode(PNG).decode()
JPEG = b"\xff\xd8\xff and some more"
JPEG_URL = "data:image/jpeg;base64," + base64.b64encode(JPEG).decode()
SYSTEM = {"role": "system", "content": "You are a helpful assistant"}


def said(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


@pytest.fixture
def memory() -> ConversationMemory:
    return ConversationMemory(description="You are a helpful assistant")


# BaseMemory


def test_base_memory_is_a_contract_and_nothing_more() -> None:
    must_have = {"add", "update", "retrieve_all", "retrieve_recent"}
    promised = must_have | {"retrieve_by_id", "retrieve_by_role", "remove", "reset"}

    assert BaseMemory.__abstractmethods__ == must_have
    assert promised <= set(vars(BaseMemory))
    assert inspect.isabstract(BaseMemory)
    with pytest.raises(TypeError):
        BaseMemory()  # type: ignore[abstract]
    assert issubclass(ConversationMemory, BaseMemory)


# Message creation and storage


def test_what_is_added_comes_back_as_dicts_ready_for_a_model(memory: ConversationMemory) -> None:
    memory.add(role="user", content="Hello")

    assert memory.retrieve_all() == [SYSTEM, said("user", "Hello")]


def test_without_a_description_there_is_no_system_message() -> None:
    assert ConversationMemory().retrieve_all() == []


def test_add_returns_the_id_it_made(memory: ConversationMemory) -> None:
    first, second = memory.add(role="user", content="Hi"), memory.add(role="user", content="Hi")

    assert uuid.UUID(first) != uuid.UUID(second)
    assert memory.retrieve_by_id(first) == said("user", "Hi")


def test_a_message_made_before_takes_precedence(memory: ConversationMemory) -> None:
    message = Message("user", "from the message")

    assert memory.add(message, role="assistant", content="ignored") == message.message_id
    assert memory.retrieve_recent() == [said("user", "from the message")]


def test_a_message_added_twice_is_there_once(memory: ConversationMemory) -> None:
    message = Message("user", "once")
    memory.add(message)
    memory.add(message=message)

    assert memory.retrieve_by_role("user") == [said("user", "once")]


def test_neither_a_message_nor_a_role_is_a_message_error(memory: ConversationMemory) -> None:
    for fields in ({}, {"content": "orphan"}, {"role": None, "content": "orphan"}):
        with pytest.raises(MessageError, match="role"):
            memory.add(**fields)
    assert memory.retrieve_all() == [SYSTEM]


@pytest.mark.parametrize("wrong", ["Hello", {"content": "no role"}, [], 5])
def test_what_is_no_message_is_refused_and_not_stored(
    memory: ConversationMemory, wrong: Any
) -> None:
    with pytest.raises(InvalidError):
        memory.add(wrong)
    assert memory.retrieve_all() == [SYSTEM]


def test_dict_content_comes_back_as_json_text(memory: ConversationMemory) -> None:
    memory.add(role="assistant", content={"thought": "Grüße", "next_action": "final_response"})
    (wire,) = memory.retrieve_recent(1)

    assert json.loads(wire["content"])["thought"] == "Grüße"


# Retrieval


def test_messages_are_found_by_recency_role_and_id(memory: ConversationMemory) -> None:
    ids = [
        memory.add(role=role, content=content)
        for role, content in (("user", "one"), ("assistant", "two"), ("user", "three"))
    ]

    assert memory.retrieve_recent() == [said("user", "three")]
    assert memory.retrieve_recent(2) == [said("assistant", "two"), said("user", "three")]
    assert memory.retrieve_recent(0) == []
    assert len(memory.retrieve_recent(100)) == 4
    assert memory.retrieve_by_role("user") == [said("user", "one"), said("user", "three")]
    assert memory.retrieve_by_role("tool") == []
    assert memory.retrieve_by_id(ids[1]) == said("assistant", "two")
    assert memory.retrieve_by_id("unknown_id") is None


def test_a_negative_number_of_messages_is_refused(memory: ConversationMemory) -> None:
    with pytest.raises(InvalidError, match="negative"):
        memory.retrieve_recent(-1)


def test_order_is_the_order_of_adding_whatever_the_clocks_said(memory: ConversationMemory) -> None:
    made_first, made_second = Message("user", "made first"), Message("user", "made second")
    memory.add(made_second)
    memory.add(made_first)

    contents = [wire["content"] for wire in memory.retrieve_by_role("user")]
    assert contents == ["made second", "made first"]


# Multimodal support


@pytest.fixture
def pictures(tmp_path: Path) -> list[str]:
    paths = [tmp_path / "image1.png", tmp_path / "image2.jpg"]
    for path, data in zip(paths, (PNG, JPEG), strict=True):
        path.write_bytes(data)
    return [str(path) for path in paths]


def test_images_are_encoded_on_retrieval(memory: ConversationMemory, pictures: list[str]) -> None:
    message_id = memory.add(role="user", content="What's in these images?", images=pictures)
    expected = [
        {"type": "text", "text": "What's in these images?"},
        {"type": "image_url", "image_url": {"url": PNG_URL}},
        {"type": "image_url", "image_url": {"url": JPEG_URL}},
    ]

    for wire in (memory.retrieve_recent(1)[0], memory.retrieve_all()[-1]):
        assert wire == {"role": "user", "content": expected}
    assert memory.retrieve_by_id(message_id) == memory.retrieve_by_role("user")[0]


def test_the_path_is_stored_and_not_the_picture(tmp_path: Path, pictures: list[str]) -> None:
    with Memory(tmp_path / "m.db") as store:
        ConversationMemory(memory=store).add(role="user", content="look", images=pictures)

        assert store.history(user="me")[0].images == tuple(pictures)


def test_adding_does_not_read_and_a_missing_image_is_named_in_its_place(
    memory: ConversationMemory,
) -> None:
    memory.add(role="user", content="look", images=["no/such/image.png"])

    (wire,) = memory.retrieve_recent(1)
    problem = "[image no/such/image.png: a file cannot be read (No such file or directory)]"
    assert [part["text"] for part in wire["content"]] == ["look", problem]


def test_a_door_to_the_network_can_refuse_paths(pictures: list[str]) -> None:
    memory = ConversationMemory(read_image=refuse_image)
    memory.add(role="user", content="mine", images=[PNG_URL])
    assert memory.retrieve_all()[0]["content"][1]["image_url"]["url"] == PNG_URL

    memory.add(role="user", content="yours", images=pictures)
    _, *refused = memory.retrieve_all()[1]["content"]
    assert len(refused) == len(pictures)
    assert all("paths and URLs are not read" in part["text"] for part in refused)


# Message updates


def test_an_update_changes_what_it_names_and_keeps_the_rest(memory: ConversationMemory) -> None:
    message_id = memory.add(role="user", content="Original content", name="ada")
    memory.add(role="assistant", content="next")
    memory.update(message_id=message_id, content="Updated content")

    updated = {**said("user", "Updated content"), "name": "ada"}
    assert memory.retrieve_all() == [SYSTEM, updated, said("assistant", "next")]


def test_an_update_preserves_what_was_said_before() -> None:
    store = Memory(":memory:")
    memory = ConversationMemory(memory=store)
    message_id = memory.add(role="user", content="Original content")
    memory.update(message_id, content="Updated content")

    earlier = store.store.revisions(store.scope(user="me"), message_id)
    assert [message.content for message in earlier] == ["Original content"]


def test_an_update_of_an_unknown_id_is_a_message_error(memory: ConversationMemory) -> None:
    with pytest.raises(MessageError, match="message_id"):
        memory.update(message_id="unknown_id", content="New")


@pytest.mark.parametrize("fields", [{"role": "nobody"}, {"mood": "good"}, {"content": 3}])
def test_an_update_to_a_wrong_shape_changes_nothing(
    memory: ConversationMemory, fields: dict[str, Any]
) -> None:
    message_id = memory.add(role="user", content="said")
    with pytest.raises(MessageError, match=next(iter(fields))):
        memory.update(message_id, **fields)

    assert memory.retrieve_by_id(message_id) == said("user", "said")


def test_conversations_in_one_store_do_not_reach_each_other() -> None:
    store = Memory(":memory:")
    mine, yours = ConversationMemory(memory=store), ConversationMemory(memory=store)
    message_id = mine.add(role="user", content="mine")

    assert yours.retrieve_by_id(message_id) is None
    assert yours.remove(message_id) is False
    with pytest.raises(MessageError):
        yours.update(message_id, content="stolen")
    assert mine.retrieve_all() == [said("user", "mine")]


# Tool results


def test_a_tool_result_carries_the_id_of_its_call(memory: ConversationMemory) -> None:
    content = '{"tool_call_id": "call_123", "output": "Result data"}'
    memory.add(role="tool", content=content, name="calculator")
    (wire,) = memory.retrieve_recent(1)

    assert wire["tool_call_id"] == "call_123"
    assert (wire["role"], wire["content"], wire["name"]) == ("tool", content, "calculator")


def test_tool_calls_of_a_model_are_stored_and_come_back_in_wire_form(
    memory: ConversationMemory,
) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    response: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
    memory.add(
        role=response["role"],
        content=response["content"],
        tool_calls=response.get("tool_calls"),
        agent_calls=response.get("agent_calls"),
    )
    memory.add(role="assistant", tool_calls=[ToolCallMsg("c2", "c2", "function", "now", "{}")])

    assert memory.retrieve_recent(2)[0] == response
    assert memory.retrieve_recent(1)[0]["tool_calls"][0]["id"] == "c2"


# Removal and reset


def test_remove_says_whether_there_was_something_to_remove(memory: ConversationMemory) -> None:
    message_id = memory.add(role="user", content="forget me")

    assert memory.remove(message_id) is True
    assert memory.remove(message_id) is False
    assert memory.retrieve_all() == [SYSTEM]


@pytest.mark.parametrize("name", ["reset", "reset_memory"])
def test_a_reset_keeps_the_system_message(memory: ConversationMemory, name: str) -> None:
    memory.add(role="user", content="Hello")
    getattr(memory, name)()
    assert memory.retrieve_all() == [SYSTEM]

    memory.add(role="user", content="Hello again")
    getattr(memory, name)()
    assert memory.retrieve_all() == [SYSTEM]


def test_a_reset_leaves_the_rest_in_the_log() -> None:
    store = Memory(":memory:")
    memory = ConversationMemory("Be kind", memory=store)
    memory.add(role="user", content="I moved to Berlin")
    before = memory.session_id
    memory.reset()

    assert memory.session_id != before
    assert memory.retrieve_by_role("user") == []
    assert "I moved to Berlin" in [m.content for m in store.history(user="me", session=before)]
    found = store.recall("Berlin", user="me", deadline_ms=None)
    assert found.hits[0].text == "I moved to Berlin"


# Memory persistence


def test_the_last_messages_can_be_added_again_after_a_reset(
    memory: ConversationMemory, pictures: list[str]
) -> None:
    memory.add(role="user", content="look", images=pictures, name="ada")
    memory.add(role="assistant", tool_calls=[{"id": "c1", "name": "add", "arguments": "{}"}])
    memory.add(role="tool", content={"tool_call_id": "c1", "output": 5})
    memory.add(role="assistant", content={"answer": 5})

    recent_messages = memory.retrieve_recent(100)
    memory.reset_memory()
    for message in recent_messages[-4:]:
        memory.add(message=Message(**message))

    assert memory.retrieve_all() == recent_messages


def test_two_objects_on_one_file_and_session_see_each_other(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    with Memory(path) as here, Memory(path) as there:
        one = ConversationMemory("Be kind", memory=here, session="shared")
        other = ConversationMemory("Be rude", memory=there, session="shared")
        message_id = one.add(role="user", content="from one")
        other.add(role="assistant", content="from the other")
        other.update(message_id, content="corrected by the other")

        expected = [said("system", "Be kind"), said("user", "corrected by the other")]
        assert one.retrieve_all() == [*expected, said("assistant", "from the other")]
        assert other.retrieve_all() == one.retrieve_all()


def test_a_conversation_outlives_the_process_that_held_it(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as store:
        memory = ConversationMemory("Be kind", memory=store, user="ada", agent="tutor")
        memory.add(role="user", content="Hello")
        session, before = memory.session_id, memory.retrieve_all()

    with Memory(tmp_path / "m.db") as store:
        again = ConversationMemory(
            "Be kind", memory=store, user="ada", agent="tutor", session=session
        )
        assert again.retrieve_all() == before
