"""LangChain's messages become ours and come back as they were."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.ai import UsageMetadata

from memorist import Message, MessageError
from memorist.agents.messages import from_langchain, to_langchain
from memorist.records.json_values import dump_json
from memorist.records.langchain import dump_stored
from memorist.records.langchain import to_stored as to_row
from memorist.store.postgres.db import from_row
from tests.conformance.worlds import rich_messages
from tests.support.examples import examples

TEXT = st.text(max_size=8)  # NUL too, as tools send it
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=2)
BLOCK = st.one_of(
    TEXT,
    st.builds(lambda text: {"type": "text", "text": text}, TEXT),
    st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "s"}, TEXT),
    st.just({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}),
    st.just({"type": "image", "base64": "QUJD", "mime_type": "image/png"}),
)
CONTENT = TEXT | st.lists(BLOCK, max_size=3)
CALL_ID = st.none() | st.sampled_from(["c1", "c2", ""])
CALLS = st.lists(st.fixed_dictionaries({"name": TEXT, "args": OBJECT, "id": CALL_ID}), max_size=2)
BROKEN = st.fixed_dictionaries(
    {"type": st.just("invalid_tool_call"), "name": TEXT, "args": TEXT, "id": CALL_ID, "error": TEXT}
)
NAMES = ["content", "name", "id", "tool_calls", "function_call", "memorist", "langchain", "refusal"]
COMMON: dict[str, Any] = {
    "content": CONTENT,
    "id": st.none() | st.sampled_from(["run--1", "ä", "m 2"]),
    "name": st.none() | TEXT,
    "additional_kwargs": OBJECT | st.dictionaries(st.sampled_from(NAMES), JSON, max_size=2),
    "response_metadata": OBJECT,
}
USAGE: UsageMetadata = {
    "input_tokens": 3,
    "output_tokens": 4,
    "total_tokens": 7,
    "input_token_details": {"cache_read": 1},
}
ANY_MESSAGE = st.one_of(
    st.builds(HumanMessage, **COMMON),
    st.builds(SystemMessage, **COMMON),
    st.builds(
        AIMessage,
        **COMMON,
        tool_calls=CALLS,
        invalid_tool_calls=st.lists(BROKEN, max_size=1),
        usage_metadata=st.none() | st.just(USAGE),
    ),
    st.builds(
        ToolMessage,
        **COMMON,
        tool_call_id=TEXT,
        artifact=JSON,
        status=st.sampled_from(["success", "error"]),
    ),
    st.builds(
        ChatMessage, **COMMON, role=st.sampled_from(["user", "system", "developer", "judge", ""])
    ),
    st.builds(FunctionMessage, **{**COMMON, "name": TEXT}),
)


def written(message: BaseMessage) -> tuple[type, str]:
    """Everything that a message holds but its id, told apart as JSON tells it."""
    held = {**message.model_dump(), "id": None}
    return type(message), json.dumps(held, sort_keys=True)


@given(ANY_MESSAGE)
@settings(deadline=None, max_examples=examples(300))
def test_whatever_a_langchain_message_holds_comes_back(message: BaseMessage) -> None:
    ours = from_langchain(message)
    back = to_langchain(ours)
    assert written(back) == written(message)
    assert back.id == (message.id or ours.message_id)
    assert from_langchain(back).changed(created_at=ours.created_at) == ours


@given(ANY_MESSAGE)
@settings(deadline=None, max_examples=examples(100))
def test_what_came_from_langchain_is_the_same_out_of_a_table_of_postgresql(
    message: BaseMessage,
) -> None:
    ours = from_langchain(message)
    row = json.loads(json.dumps(to_row(ours)))
    assert "\\u0000" not in json.dumps(row).replace("\\\\", "")
    micros = int(ours.created_at.timestamp() * 1_000_000)
    read = from_row(row, ours.message_id, ours.role, micros)
    assert replace(read, created_at=ours.created_at) == ours


@pytest.mark.parametrize("message", rich_messages(), ids=lambda it: it.role)
def test_whatever_our_own_message_holds_comes_back(message: Message) -> None:
    back = from_langchain(to_langchain(message))
    assert replace(back, created_at=message.created_at) == message


THEIRS = st.one_of(
    TEXT,
    st.dictionaries(
        st.sampled_from(["response_metadata", "usage_metadata", "content"]), JSON, max_size=2
    ).map(json.dumps),
    OBJECT.map(lambda held: json.dumps({"response_metadata": held})),
)


@given(st.sampled_from(["user", "assistant", "system", "tool"]), st.text(max_size=8), THEIRS)
@settings(deadline=None, max_examples=examples(300))
def test_our_words_come_back_whatever_is_said_to_be_langchains(
    role: str, words: str, theirs: str
) -> None:
    for data in (None, {}, {"langchain": theirs}):
        try:
            message = Message(role, words, structured_data=data)
        except MessageError:  # what no store keeps
            return
        back = from_langchain(to_langchain(message))
        assert replace(back, created_at=message.created_at) == message


def test_a_message_without_id_gets_one_and_is_not_changed_itself() -> None:
    said = HumanMessage("Hi")
    first, second = from_langchain(said), from_langchain(said)
    assert said.id is None
    assert first.message_id != second.message_id
    assert to_langchain(first).id == first.message_id


def test_what_is_stored_reads_as_words_not_as_blocks() -> None:
    blocks: list[str | dict[Any, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "xyz"},
        {"type": "text", "text": "It rains."},
        {"type": "tool_use", "id": "c1", "name": "umbrella", "input": {"open": True}},
    ]
    calls = [{"name": "umbrella", "args": {"open": True}, "id": "c1"}]
    ours = from_langchain(AIMessage(blocks, tool_calls=calls))
    assert ours.content == "It rains."
    assert ours.text == 'It rains.\numbrella {"open":true}'


def test_the_status_and_artifact_of_a_tool_are_where_lessons_are_drawn_from_them() -> None:
    failed = ToolMessage("no", tool_call_id="c1", name="weather", status="error", artifact={"n": 1})
    ours = from_langchain(failed)
    assert (ours.role, ours.tool_call_id, ours.name) == ("tool", "c1", "weather")
    assert ours.structured_data == {"status": "error", "artifact": {"n": 1}}


def test_a_character_that_no_store_keeps_is_replaced_for_readers_and_kept_for_langchain() -> None:
    said = ToolMessage("a\x00b\ud800", tool_call_id="c1")
    ours = from_langchain(said)
    assert ours.content == "a\ufffdb\ufffd"
    assert to_langchain(ours).content == said.content


def test_once_a_message_is_changed_its_older_blocks_are_used_no_more() -> None:
    ours = from_langchain(AIMessage([{"type": "text", "text": "old"}], id="a"))
    assert to_langchain(ours).content == [{"type": "text", "text": "old"}]
    assert to_langchain(ours.changed(content="new")).content == "new"


@pytest.mark.parametrize(
    "planted",
    [
        '{"additional_kwargs": [1]}',
        '{"usage_metadata": 5}',
        '{"response_metadata": {}}',
        '{"type": "system"}',
        '{"content": "other"}',
        '{"type": "remove"}',
        "[",
        '"x"',
        "5",
    ],
)
def test_a_note_that_only_looks_like_langchains_cannot_change_what_was_said(planted: str) -> None:
    for role, kind in (("user", HumanMessage), ("assistant", AIMessage)):
        message = Message(role, "hi", structured_data={"langchain": planted})
        back = to_langchain(message)
        assert (type(back), back.content) == (kind, "hi")
        assert replace(from_langchain(back), created_at=message.created_at) == message


def test_a_speaker_langchain_does_not_know_is_a_user_to_us() -> None:
    ours = from_langchain(ChatMessage(content="Order!", role="judge"))
    assert ours.role == "user"
    assert to_langchain(ours) == ChatMessage(content="Order!", role="judge", id=ours.message_id)


def test_a_chunk_is_stored_as_the_message_it_amounts_to() -> None:
    whole = AIMessageChunk(content="Hel", id="a") + AIMessageChunk(content="lo", id="a")
    assert to_langchain(from_langchain(whole)) == AIMessage("Hello", id="a")


def test_a_generator_in_an_artifact_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    numbers = itertools.count()
    from_langchain(ToolMessage("ok", tool_call_id="c1", artifact={"of": numbers}))
    assert next(numbers) == 0
    assert [message.endswith("was not stored with it") for message in caplog.messages] == [True]


def test_an_artifact_comes_back_as_json_and_what_is_none_is_left_out_aloud(
    caplog: pytest.LogCaptureFixture,
) -> None:
    artifact = [Document("secret"), datetime(2026, 1, 2, tzinfo=UTC), b"\xfb\xff\xfe", object()]
    said = ToolMessage("ok", tool_call_id="c1", artifact=artifact)
    back = to_langchain(from_langchain(said))
    assert isinstance(back, ToolMessage)
    document, moment, data, thing = back.artifact
    assert document["page_content"] == "secret"
    assert (moment, data, thing) == ("2026-01-02 00:00:00+00:00", "+//+", None)
    assert caplog.messages == ["a object in a message is not JSON and was not stored with it"]


def test_images_are_shown_to_a_model_as_the_encoder_gives_them() -> None:
    message = Message("user", "Look", images=["cat.png"])
    shown = to_langchain(message, lambda path: f"data:image/png;base64,{path}")
    assert shown.content[1] == {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64,cat.png"},
    }
    assert from_langchain(shown).images == ("cat.png",)


@pytest.mark.parametrize("message", [RemoveMessage(id="a"), "hi", None, Message("user", "hi")])
def test_what_is_no_message_is_refused_without_quoting_it(message: Any) -> None:
    with pytest.raises(MessageError, match=r"RemoveMessage|must be a LangChain message"):
        from_langchain(message)


@pytest.mark.parametrize("module", ["memorist.agents.messages", "memorist.agents.langchain"])
def test_without_langchain_the_import_names_the_cure(module: str) -> None:
    code = (
        "import sys; sys.modules['langchain_core'] = None\n"
        "from memorist import MissingExtraError\n"
        f"try:\n    import {module}\n"
        "except MissingExtraError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert done == 'this needs an optional part: pip install "memorist[langchain]"\n'


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
@pytest.mark.parametrize(
    "content", ["", 'say "hi"\n\ttoo, ünïcode \ufffc 漢字', "{}", None, {"a": [1]}]
)
def test_plain_messages_are_stored_as_all_others_are(role: str, content: Any) -> None:
    plain = Message(role, content, message_id='an "id" \ufffc')
    for message in (plain, plain.changed(name="Ada"), plain.changed(structured_data={"k": "v"})):
        assert dump_stored(message) == dump_json(to_row(message))
