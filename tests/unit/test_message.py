"""Messages: which shapes are taken, which are refused, and what a model's API gets to see."""

from __future__ import annotations

import json
import traceback
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorist import (
    AgentCallMsg,
    Message,
    MessageContent,
    MessageError,
    ToolCallMsg,
    extract_action_from_message,
)
from memorist.records.values import new_id

SECRET = "s3cr3t-of-ada"
NAIVE = datetime(2026, 3, 1)


def make(role: Any = "user", **fields: Any) -> Message:
    """A message of whatever a caller may hand over."""
    return Message(role, **fields)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"end": SECRET}
    for _ in range(depth - 1):
        value = {SECRET: value}
    return value


class Nowhere(tzinfo):
    """A time zone that does not know its distance from UTC: by Python's rules, naive."""

    def utcoffset(self, when: datetime | None) -> None: ...
    def dst(self, when: datetime | None) -> None: ...
    def tzname(self, when: datetime | None) -> None: ...


WRONG_SHAPES: list[tuple[str, Any]] = [
    *[("role", value) for value in (SECRET, "User", "", None, 3, ["user", SECRET])],
    *[("content", value) for value in (3, 2.5, True, SECRET.encode(), (SECRET,), {SECRET}, [3])],
    *[("content", value) for value in ([[SECRET]], [None], {1: SECRET})],
    *[("content", {"a": value}) for value in ({SECRET}, 10**5_000)],
    *[("content", {"a": [SECRET, value]}) for value in (float("nan"), float("inf"), -1e999, NAIVE)],
    ("content", nested(66)),
    *[("message_id", value) for value in ("", None, 7, SECRET * 100, uuid.uuid4())],
    *[("name", value) for value in (7, [SECRET], SECRET.encode())],
    *[("tool_call_id", value) for value in (7, {SECRET: 1})],
    *[("tool_calls", value) for value in (SECRET, {"name": SECRET}, 3, [SECRET], [None])],
    ("tool_calls", [{}]),
    ("tool_calls", [{"function": SECRET}]),
    ("tool_calls", [{"function": {"arguments": SECRET}}]),
    ("tool_calls", [AgentCallMsg(SECRET, None)]),
    *[("tool_calls", [{"name": value}]) for value in (None, 3, [SECRET])],
    *[("tool_calls", [{"name": SECRET, "id": value}]) for value in (5, [SECRET])],
    *[("tool_calls", [{"name": SECRET, "arguments": value}]) for value in ({SECRET}, {1: 2})],
    ("tool_calls", [{"name": SECRET, "arguments": {"x": float("nan")}}]),
    *[("agent_calls", value) for value in (SECRET, {"agent_name": SECRET}, [SECRET])],
    ("agent_calls", [{}]),
    *[("agent_calls", [{"agent_name": value}]) for value in (None, 3, [SECRET])],
    ("agent_calls", [{"agent_name": SECRET, "request": {SECRET}}]),
    *[("structured_data", value) for value in (SECRET, [SECRET], {1: SECRET}, {"a": NAIVE}, 3)],
    ("structured_data", nested(66)),
    *[("images", value) for value in (SECRET, {SECRET: 1}, [3], [None], [SECRET.encode()])],
    *[("created_at", value) for value in (NAIVE, SECRET, None, 0, NAIVE.date())],
    ("created_at", NAIVE.replace(tzinfo=Nowhere())),
    ("created_at", datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))),
]


def test_a_wrong_shape_is_refused_naming_the_field_and_nothing_of_the_content() -> None:
    for field, value in WRONG_SHAPES:
        with pytest.raises(MessageError) as caught:
            make(**{"role": "user", "content": SECRET, field: value})
        assert str(caught.value).startswith(field)
        assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("field", ["tool_calls", "agent_calls", "images"])
def test_an_empty_value_of_the_wrong_type_is_a_wrong_shape_too(field: str) -> None:
    values: list[Any] = [{}, "", 0, False]
    for value in values:
        with pytest.raises(MessageError, match=field):
            make(**{field: value})


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_the_four_roles_need_nothing_else(role: str) -> None:
    for message in (make(role), make(role, tool_calls=None, agent_calls=None, images=None)):
        assert (message.role, message.content, message.name) == (role, None, None)
        assert (message.tool_calls, message.agent_calls, message.images) == ((), (), ())


HOSTILE = {"NUL": "a\x00b", "lone surrogate": "a\ud83db", "last surrogate": "\udfff"}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_text_that_no_store_keeps_is_refused_wherever_it_hides(text: str) -> None:
    places: list[dict[str, Any]] = [
        {"content": text},
        {"content": {"a": [{"b": text}]}},
        {"content": {"a": {text: 1}}},
        {"content": [text]},
        {"content": [{"type": "text", "text": text}]},
        {"message_id": text},
        {"name": text},
        {"tool_call_id": text},
        {"structured_data": {"a": text}},
        {"structured_data": {text: "a"}},
        {"images": [text]},
        {"agent_calls": [{"agent_name": text}]},
        {"agent_calls": [{"agent_name": "a", "request": {"b": text}}]},
        {"tool_calls": [{"name": "a", "arguments": {"b": text}}]},
        {"tool_calls": [{"name": "a", "arguments": {text: "b"}}]},
        *({"tool_calls": [{"name": "a", key: text}]} for key in ("name", "id")),
        *({"tool_calls": [{"name": "a", key: text}]} for key in ("call_id", "arguments")),
    ]
    for fields in places:
        with pytest.raises(MessageError, match=next(iter(fields))):
            make(**fields)


def test_a_dict_that_holds_itself_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless

    with pytest.raises(MessageError, match="nested more than 64 levels"):
        make(content=endless)
    assert make(content=nested(64)).content == nested(64)


def test_a_subclass_of_text_is_kept_as_its_own_characters() -> None:
    class Word(str, Enum):  # noqa: UP042  the older spelling is the one that str() renames
        HELLO = "hello"
        USER = "user"

    message = make(Word.USER, content=Word.HELLO, name=Word.HELLO)

    assert (message.content, message.name) == ("hello", "hello")
    assert {type(part) for part in (message.role, message.content, message.name)} == {str}


def test_dicts_become_tool_calls_and_agent_calls() -> None:
    message = make(
        "assistant",
        tool_calls=[
            {"id": "1", "call_id": "c1", "type": "function", "name": "add", "arguments": "{}"},
            {"id": "c2", "type": "function", "function": {"name": "sub", "arguments": '{"a": 1}'}},
            {"id": "c3", "type": "tool_use", "name": "mul", "input": {"ü": [1, 2]}},
            {"id": "c4", "type": "tool_call", "name": "div", "args": {}},
            ToolCallMsg("5", "c5", "function", "pow", "not JSON"),
        ],
        agent_calls=[{"agent_name": "scout", "request": {"find": "Berlin"}}],
    )

    assert message.tool_calls == (
        ToolCallMsg("1", "c1", "function", "add", "{}"),
        ToolCallMsg("c2", "c2", "function", "sub", '{"a": 1}'),
        ToolCallMsg("c3", "c3", "function", "mul", '{"ü":[1,2]}'),
        ToolCallMsg("c4", "c4", "function", "div", "{}"),
        ToolCallMsg("5", "c5", "function", "pow", "not JSON"),
    )
    assert message.agent_calls == (AgentCallMsg("scout", {"find": "Berlin"}),)


def test_a_tool_call_without_an_id_is_given_one() -> None:
    first, second = make(tool_calls=[{"name": "now"}, {"name": "now"}]).tool_calls

    assert first.call_id != second.call_id


def test_a_message_cannot_be_changed() -> None:
    message = make(content="said", tool_calls=[{"name": "now"}])

    for record, name in ((message, "content"), (message, "role"), (message.tool_calls[0], "name")):
        with pytest.raises(FrozenInstanceError):
            setattr(record, name, "unsaid")
    with pytest.raises(AttributeError):
        message.images.append("later.png")  # type: ignore[attr-defined]


def test_what_the_caller_does_to_its_own_dict_does_not_reach_the_message() -> None:
    plan = ["walk"]
    message = make(content={"plan": plan}, structured_data={"plan": plan})
    plan.append("fly")

    assert message.content == message.structured_data == {"plan": ["walk"]}


def test_what_a_reader_does_to_the_wire_form_does_not_reach_the_message() -> None:
    said = [{"type": "text", "text": "hello"}]
    message = make(content=said)
    message.to_wire()["content"][0]["text"] = "goodbye"
    message.to_wire()["content"].append("more")

    assert message.content == said


def test_changed_makes_a_checked_copy_with_the_same_id() -> None:
    message = make(content="before")

    assert message.changed(content="after").message_id == message.message_id
    assert message.changed(content="after").content == "after"
    for wrong in ({"message_id": "other"}, {"mood": "good"}, {"role": "nobody"}):
        with pytest.raises(MessageError, match=next(iter(wrong))):
            message.changed(**wrong)


def test_moments_are_turned_into_utc() -> None:
    berlin = timezone(timedelta(hours=1))
    message = make(created_at=datetime(2026, 3, 1, 0, 30, tzinfo=berlin))

    assert message.created_at == datetime(2026, 2, 28, 23, 30, tzinfo=UTC)
    assert message.created_at.tzinfo is UTC
    assert abs(make().created_at - datetime.now(UTC)) < timedelta(seconds=5)


def test_ids_are_uuids_that_sort_by_creation() -> None:
    ids = [Message("user").message_id for _ in range(5_000)]

    assert ids == sorted(set(ids))
    assert {uuid.UUID(one).version for one in ids} == {7}


def test_ids_keep_rising_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = new_id()
    monkeypatch.setattr("memorist.records.values.time.time_ns", lambda: 0)

    assert before < new_id() < new_id()


def test_ids_made_by_many_threads_are_all_different() -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: new_id(), range(8_000)))

    assert len(set(made)) == 8_000


def test_the_wire_form_is_role_and_content_where_a_dict_is_its_json() -> None:
    assert make(content="hi").to_wire() == {"role": "user", "content": "hi"}
    assert make(content="hi", name="ada").to_wire()["name"] == "ada"
    assert make(content={"b": "ü", "a": 1}).to_wire()["content"] == '{"b":"ü","a":1}'


def test_tool_calls_go_out_as_a_chat_completions_api_takes_them() -> None:
    ours = {"id": "fc_1", "call_id": "call_1", "type": "function", "name": "add"}
    custom = {"id": "call_2", "type": "custom", "custom": {"name": "run", "input": "print(1)"}}
    wire = make("assistant", tool_calls=[{**ours, "arguments": '{"a": 1}'}, custom]).to_wire()

    function = {"name": "add", "arguments": '{"a": 1}'}
    assert wire["content"] is None
    assert wire["tool_calls"] == [
        {"id": "call_1", "type": "function", "function": function},
        custom,
    ]


@pytest.mark.parametrize(
    ("fields", "call_id"),
    [
        ({"content": '{"tool_call_id": "call_123", "output": "Result data"}'}, "call_123"),
        ({"content": {"tool_call_id": "call_123", "output": 5}}, "call_123"),
        ({"content": '{"tool_call_id": "inner"}', "tool_call_id": "outer"}, "outer"),
        ({"content": "42", "tool_call_id": "call_9"}, "call_9"),
    ],
)
def test_a_tool_result_carries_the_id_of_its_call(fields: dict[str, Any], call_id: str) -> None:
    message = make("tool", **fields)

    assert message.to_wire()["tool_call_id"] == call_id
    assert message.content == fields["content"]


@pytest.mark.parametrize(
    "content",
    [
        *("plain", "{broken", "[1]", None, "{" * 100_000, '{"n": ' + "9" * 5_000 + "}"),
        *('{"tool_call_id": 5}', '{"tool_call_id": "\\ud83d"}', '{"tool_call_id": "a\\u0000b"}'),
    ],
    ids=lambda content: str(content)[:30],
)
def test_content_without_a_usable_call_id_gives_none_nor_does_another_role(
    content: str | None,
) -> None:
    assert "tool_call_id" not in make("tool", content=content).to_wire()
    assert "tool_call_id" not in make("user", content='{"tool_call_id": "call_123"}').to_wire()


def test_images_become_image_url_parts_after_the_text() -> None:
    message = make(content="What is this?", images=["a.png", "http://b.org/c.jpg"])
    wire = message.to_wire(lambda source: f"data:{source}")

    assert message.images == ("a.png", "http://b.org/c.jpg")
    assert wire["content"] == [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:a.png"}},
        {"type": "image_url", "image_url": {"url": "data:http://b.org/c.jpg"}},
    ]


def test_images_need_no_text_and_join_content_parts() -> None:
    image = {"type": "image_url", "image_url": {"url": "a.png"}}

    assert make(images=["a.png"]).to_wire()["content"] == [image]
    assert make(content=["part"], images=["a.png"]).to_wire()["content"] == ["part", image]


def test_the_text_of_a_message_is_what_a_person_would_read() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

    assert make(content="hello").text == "hello"
    assert make(content={"plan": ["walk", 3, None]}).text == "walk 3"
    assert make(content=[{"type": "text", "text": "look:"}, picture]).text == "look:"
    assert make(content={"note": "data: five apples"}).text == "data: five apples"
    assert make(tool_calls=[{"name": "now", "arguments": {"at": 1}}]).text == 'now {"at":1}'
    assert make(agent_calls=[{"agent_name": "scout", "request": "go"}]).text == "scout go"


words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=10,
)
dicts = st.dictionaries(words, values, max_size=4)
contents = st.none() | words | dicts | st.lists(words | dicts, max_size=4)


@settings(deadline=None)
@given(content=contents, role=st.sampled_from(["user", "assistant", "system", "tool"]))
def test_any_json_content_survives_the_way_out_and_back(content: Any, role: str) -> None:
    wire = Message(role, content).to_wire()
    carried = json.loads(json.dumps(wire))  # over a network and back
    again = Message(**carried)

    assert again.to_wire() == wire == carried
    expected = json.loads(again.content) if isinstance(content, dict) else again.content  # type: ignore[arg-type]
    assert expected == ("" if content is None else content)  # null only beside tool calls


def test_message_content_warns_that_it_is_deprecated_where_it_is_made() -> None:
    with pytest.warns(DeprecationWarning, match=r"pass a dict as Message\.content") as warned:
        content = MessageContent(thought="done", next_action="final_response")

    assert warned[0].filename == __file__
    assert make(content=content).content == {"thought": "done", "next_action": "final_response"}


CALL = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
GO = {"go": "on"}
SCOUT = {"agent_name": "scout", "request": "find Berlin"}


@pytest.mark.parametrize(
    ("fields", "action"),
    [
        ({"tool_calls": [CALL]}, ("call_tool", {"tool_calls": [CALL]})),
        ({"tool_calls": [CALL], "agent_calls": [SCOUT]}, ("call_tool", {"tool_calls": [CALL]})),
        ({"agent_calls": [SCOUT], "content": "hm"}, ("invoke_agent", {"agent_calls": [SCOUT]})),
        ({"content": "Berlin."}, ("final_response", {"response": "Berlin."})),
        ({"content": {"city": "Berlin"}}, ("final_response", {"response": {"city": "Berlin"}})),
        ({"content": {"next_action": "call_tool", "action_input": GO}}, ("call_tool", GO)),
        ({"content": {"next_action": "invoke_agent"}}, ("invoke_agent", {})),
        ({"role": "user", "content": {"next_action": "final_response"}}, ("final_response", {})),
    ],
)
def test_the_action_a_message_asks_for_is_found(
    fields: dict[str, Any], action: tuple[str, Any]
) -> None:
    message = make(**{"role": "assistant", **fields})

    expected = {"next_action": action[0], "action_input": action[1]}
    assert extract_action_from_message(message) == expected


@pytest.mark.parametrize("role", ["user", "system", "tool"])
def test_what_others_say_asks_for_no_action(role: str) -> None:
    assert extract_action_from_message(Message(role, "hello")) is None
    assert extract_action_from_message(Message("assistant")) is None
