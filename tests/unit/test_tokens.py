"""Counting requests: published examples, images by their bytes, and a cache that never lies."""

from __future__ import annotations

import base64
import json
import struct
import threading
import time
import zlib
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorist import Message
from memorist.context.tokens import TokenCounter, data_url_size, image_size, tile_tokens
from memorist.providers.tokenizer import tokenizer_for
from tests.support.examples import examples

GPT_4O, GPT_4, CLAUDE = (
    TokenCounter(tokenizer_for(name)) for name in ("gpt-4o", "gpt-4", "claude-3")
)
COOKBOOK = [
    {
        "role": "system",
        "content": "You are a helpful, pattern-following assistant that translates corporate "
        "jargon into plain English.",
    },
    {
        "role": "system",
        "name": "example_user",
        "content": "New synergies will help drive top-line growth.",
    },
    {
        "role": "system",
        "name": "example_assistant",
        "content": "Things working well together will increase revenue.",
    },
    {
        "role": "system",
        "name": "example_user",
        "content": "Let's circle back when we have more bandwidth to touch base on opportunities "
        "for increased leverage.",
    },
    {
        "role": "system",
        "name": "example_assistant",
        "content": "Let's talk later when we're less busy about how to do better.",
    },
    {
        "role": "user",
        "content": "This late pivot means we don't have time to boil the ocean for the client "
        "deliverable.",
    },
]
WEATHER = {
    "name": "get_current_weather",
    "description": "Get the current weather in a given location",
    "parameters": {
        "type": "object",
        "properties": {
            "location": {
                "type": "string",
                "description": "The city and state, e.g. San Francisco, CA",
            },
            "unit": {
                "type": "string",
                "description": "The unit of temperature to return",
                "enum": ["celsius", "fahrenheit"],
            },
        },
        "required": ["location"],
    },
}
ASKED = [
    {
        "role": "system",
        "content": "You are a helpful assistant that can answer to questions about the weather.",
    },
    {"role": "user", "content": "What's the weather like in Pittsburg?"},
]


def test_messages_cost_what_openai_s_cookbook_was_billed() -> None:
    assert GPT_4O.request(COOKBOOK) == 124
    assert GPT_4.request(COOKBOOK) == 129


def test_tools_cost_what_openai_s_cookbook_was_billed() -> None:
    tool = {"type": "function", "function": WEATHER}
    assert GPT_4O.request(ASKED) + GPT_4O.tools([tool]) == 101
    assert GPT_4.request(ASKED) + GPT_4.tools([tool]) == 105


def test_tools_cost_the_same_in_every_form() -> None:
    schema = WEATHER["parameters"]
    bare = {key: WEATHER[key] for key in ("name", "description")}
    forms: list[dict[str, Any]] = [
        {"type": "function", "function": WEATHER},
        {"type": "function", **WEATHER},
        {**bare, "input_schema": schema},
        {**bare, "inputSchema": schema},
    ]
    assert len({GPT_4O.tools([form]) for form in forms}) == 1
    assert GPT_4O.tools([]) == 0


@pytest.mark.parametrize(
    "properties",
    [
        {"where": {"type": "object", "properties": {"city": {"type": "string"}}}},
        {"days": {"type": "array", "items": {"type": "integer"}}},
        {"unit": {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "A long title"}},
        {"level": {"type": "integer", "enum": [1, 2, 3], "default": 2}},
        {"odd": "not a schema", "none": None, "enum": {"enum": "abc"}},
    ],
)
def test_an_odd_schema_costs_at_least_its_json(properties: dict[str, Any]) -> None:
    tool = {"name": "look", "input_schema": {"type": "object", "properties": properties}}
    for counter in (GPT_4O, GPT_4, CLAUDE):
        text = json.dumps(tool, separators=(",", ":"))
        assert counter.tools([tool]) > counter.text(text)


def test_a_schema_that_is_none_at_all_is_counted_as_its_json() -> None:
    for tool in ({"type": "web_search"}, {"name": "x", "parameters": 3}, {"function": "f"}):
        text = json.dumps(tool, separators=(",", ":"))
        assert GPT_4O.tools([tool]) > GPT_4O.text(text) - 5


def test_models_of_others_are_framed_by_more() -> None:
    wire = [{"role": "user", "content": ""}]
    assert CLAUDE.request(wire) > GPT_4O.request(wire)
    assert not CLAUDE.tokenizer.exact
    assert CLAUDE.tokenizer.name.startswith("estimate")
    assert (GPT_4O.tokenizer.name, GPT_4O.tokenizer.exact) == ("o200k_base", True)


def test_a_tool_call_costs_its_name_its_arguments_and_a_frame_but_not_its_id() -> None:
    def call(call_id: str, arguments: str) -> dict[str, Any]:
        inner = {"name": "look", "arguments": arguments}
        calls = [{"id": call_id, "type": "function", "function": inner}]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    short, long = '{"q":1}', '{"q":"where does Ada live now?"}'
    grown = GPT_4O.text(long) - GPT_4O.text(short)
    assert GPT_4O.chat_message(call("a", long)) - GPT_4O.chat_message(call("a", short)) == grown
    assert GPT_4O.chat_message(call("a", short)) == GPT_4O.chat_message(
        call("call_" + "x" * 90, short)
    )
    assert GPT_4O.chat_message(call("a", short)) > GPT_4O.text("look") + GPT_4O.text(short) + 4


def test_anthropic_s_parts_cost_what_the_same_calls_cost_in_openai_s_form() -> None:
    used = {"type": "tool_use", "id": "t", "name": "look", "input": {"q": 1}}
    inner = {"name": "look", "arguments": '{"q":1}'}
    wire = {"role": "assistant", "content": None, "tool_calls": [{"id": "t", "function": inner}]}
    assert GPT_4O.chat_message({"role": "assistant", "content": [used]}) == GPT_4O.chat_message(
        wire
    )
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "4"}]}
    answer = {"role": "tool", "tool_call_id": "t", "content": "4"}
    assert GPT_4O.chat_message({"role": "user", "content": [result]}) == GPT_4O.chat_message(answer)


@pytest.mark.parametrize(
    "wire",
    [
        {},
        {"role": "user", "content": 7},
        {"role": "user", "content": {"a": [1, None]}},
        {"role": "user", "content": ["plain", {"type": "text"}, {"type": "text", "text": None}]},
        {"role": "user", "content": [{"type": "image"}, {"type": "image_url", "image_url": 3}]},
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA"}}]},
        {"role": "assistant", "content": "x", "tool_calls": ["odd", {"function": "f"}]},
        {"role": "assistant", "content": {"not json": {1, 2}}},
    ],
)
def test_odd_messages_are_counted_and_never_crash(wire: dict[str, Any]) -> None:
    assert GPT_4O.chat_message(wire) >= 3


def test_what_else_a_message_carries_is_counted_too() -> None:
    thought = {"role": "assistant", "content": "yes", "reasoning_content": "long thoughts " * 50}
    assert GPT_4O.chat_message(thought) > 90


# Images.


def png(width: int, height: int) -> bytes:
    head = struct.pack(">4sIIBBBBB", b"IHDR", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0d" + head + struct.pack(">I", zlib.crc32(head))


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x00\x00\x00"


def jpeg(width: int, height: int) -> bytes:
    thumbnail = b"\xff\xc0\x00\x11\x08\x00\x10\x00\x10"  # a frame header inside a segment
    exif = b"\xff\xe1" + struct.pack(">H", 2 + len(thumbnail) + 60_000) + thumbnail + bytes(60_000)
    frame = b"\xff\xff\xc2" + struct.pack(">HBHH", 17, 8, height, width) + bytes(10)
    return b"\xff\xd8" + exif + b"\xff\xd0" + frame


def webp(kind: bytes, width: int, height: int) -> bytes:
    if kind == b"VP8X":
        sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        body = bytes(4) + sizes
    elif kind == b"VP8L":
        body = b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little") + bytes(5)
    else:
        body = b"\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", width, height)
    return b"RIFF" + bytes(4) + b"WEBP" + kind + struct.pack("<I", len(body)) + body


def data_url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(1, 16_383), st.integers(1, 16_383))
def test_the_size_of_an_image_is_read_from_its_first_bytes(width: int, height: int) -> None:
    images = [png(width, height), gif(width, height), jpeg(width, height)]
    images += [webp(kind, width, height) for kind in (b"VP8X", b"VP8L", b"VP8 ")]
    for image in images:
        assert data_url_size(data_url(image)) == (width, height), image[:16]


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from([png(9, 9), gif(9, 9), jpeg(9, 9), webp(b"VP8X", 9, 9)]), st.data())
def test_a_broken_image_has_no_size_and_breaks_nothing(image: bytes, data: Any) -> None:
    cut = image[: data.draw(st.integers(0, min(len(image), 80)))]
    size = image_size(cut + data.draw(st.binary(max_size=20)))
    assert size is None or all(side > 0 for side in size)


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        ((1024, 1024), 765),  # OpenAI's own examples: four tiles, six tiles
        ((2048, 4096), 1105),
        ((1, 1), 255),
        ((512, 512), 255),
        ((513, 512), 425),
        ((100_000, 1), 85 + 4 * 170),
        ((768, 2048), 1445),
    ],
)
def test_an_image_costs_its_tiles(size: tuple[int, int], tokens: int) -> None:
    assert tile_tokens(size) == tokens


@given(st.integers(1, 100_000), st.integers(1, 100_000))
def test_no_image_costs_more_than_the_largest(width: int, height: int) -> None:
    assert 255 <= tile_tokens((width, height)) <= 1445


def image_cost(url: str, **more: Any) -> int:
    part = {"type": "image_url", "image_url": {"url": url, **more}}
    return GPT_4O.chat_message({"role": "user", "content": [part]}) - GPT_4O.chat_message(
        {"role": "user"}
    )


def test_an_image_of_unknown_size_costs_the_most() -> None:
    unknown = ["https://example.org/a.png", "a.png", "", "data:image/png;base64,!!!!"]
    for url in (*unknown, data_url(b"BM not one of ours"), data_url(png(0, 5))):
        assert image_cost(url) == 1445
    assert image_cost("a.png", detail="low") == 85
    assert image_cost(data_url(png(1024, 1024))) == 765


def test_images_cost_the_same_in_every_form() -> None:
    data = png(1024, 1024)
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(data).decode()}
    for part in (
        {"type": "input_image", "image_url": data_url(data)},
        {"type": "image", "source": source},
    ):
        wire = {"role": "user", "content": [part]}
        assert GPT_4O.chat_message(wire) - GPT_4O.chat_message({"role": "user"}) == 765


def test_an_image_is_not_counted_as_the_text_of_its_bytes() -> None:
    message = Message("user", "look", images=[data_url(png(64, 64) + bytes(500_000))])
    assert GPT_4O.messages([message])[0] < 300
    assert 255 <= CLAUDE.messages([message])[0] < 300  # a token for 750 pixels is less than a tile


# The cache.

CALLS = st.builds(
    lambda name, arguments: {"id": "c1", "name": name, "arguments": arguments},
    st.sampled_from(["look", "recall"]),
    st.sampled_from(["{}", '{"q": "Ada"}']),
)
CONTENTS = st.one_of(
    st.none(),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30),
    st.dictionaries(st.sampled_from("ab"), st.integers(), max_size=2),
    st.lists(st.builds(lambda text: {"type": "text", "text": text}, st.just("hi")), max_size=2),
)
MESSAGES = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "tool", "system"]),
    CONTENTS,
    message_id=st.sampled_from("abcdef"),  # few ids: most are revisions of one another
    name=st.sampled_from([None, "ada", "bob"]),
    tool_calls=st.lists(CALLS, max_size=2),
    images=st.sampled_from([(), ("a.png",)]),
)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.lists(MESSAGES, max_size=6), max_size=4))
def test_a_looked_up_count_is_the_count(batches: Sequence[Sequence[Message]]) -> None:
    counter = TokenCounter(tokenizer_for(), cached=4)
    for batch in batches:
        fresh = [GPT_4O.chat_message(message.to_wire()) for message in batch]
        assert counter.messages(batch) == fresh
        assert [counter.messages([message])[0] for message in batch] == fresh


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(MESSAGES, max_size=5), st.lists(MESSAGES, max_size=5))
def test_two_halves_of_a_request_add_up(left: list[Message], right: list[Message]) -> None:
    first, second = ([message.to_wire() for message in half] for half in (left, right))
    for counter in (GPT_4O, CLAUDE):
        both = counter.request(first) + counter.request(second) - counter.request([])
        assert counter.request(first + second) == both
        assert both - counter.request([]) == sum(counter.messages(left + right))


class Telling:
    """A tokenizer that tells how often it was asked, and for how much."""

    name, exact = "words", True

    def __init__(self) -> None:
        self.asked: list[int] = []

    def count(self, texts: Sequence[str]) -> list[int]:
        self.asked.append(len(texts))
        return [len(text.split()) for text in texts]

    def truncate(self, text: str, max_tokens: int) -> str:
        return " ".join(text.split()[:max_tokens])


def test_a_message_is_counted_once_and_all_new_ones_in_one_go() -> None:
    tokenizer = Telling()
    counter = TokenCounter(tokenizer)
    messages = [Message("user", f"word {at}") for at in range(50)]
    counter.messages(messages)
    counter.messages(messages)
    counter.messages([messages[7]])
    assert tokenizer.asked == [100]
    counter.messages([*messages, messages[0].changed(content="another text")])
    assert tokenizer.asked == [100, 2]


def test_the_cache_keeps_what_was_used_last() -> None:
    tokenizer = Telling()
    counter = TokenCounter(tokenizer, cached=2)
    first, second, third = (Message("user", text) for text in ("one", "two", "three"))
    for message in (first, second, first, third, first):
        counter.messages([message])
    assert len(tokenizer.asked) == 3
    counter.messages([second])
    assert len(tokenizer.asked) == 4


def test_threads_share_the_cache() -> None:
    counter = TokenCounter(tokenizer_for(), cached=40)
    messages = [Message("user", "word " * at) for at in range(80)]
    right = [GPT_4O.chat_message(message.to_wire()) for message in messages]
    wrong: list[int] = []

    def work(shift: int) -> None:
        turned = messages[shift:] + messages[:shift]
        for _ in range(10):
            if counter.messages(turned) != right[shift:] + right[:shift]:
                wrong.append(shift)

    threads = [threading.Thread(target=work, args=(shift,)) for shift in (0, 20, 40, 60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_looking_a_count_up_is_far_cheaper_than_counting() -> None:
    counter = TokenCounter(tokenizer_for())
    messages = [
        Message("user", f"I moved to Berlin in March, {at} times. " * 20) for at in range(2_000)
    ]
    counter.messages(messages)
    begun = time.thread_time()
    for message in messages:
        counter.messages([message])
    assert (time.thread_time() - begun) / len(messages) < 20e-6  # 1.5 µs on an idle machine


def test_texts_and_cuts_go_to_the_tokenizer() -> None:
    assert GPT_4O.text("") == 0
    assert GPT_4O.texts([]) == []
    assert GPT_4O.texts(["hello world", ""]) == [2, 0]
    assert GPT_4O.truncate("hello world", 1) == "hello"
