"""Whatever was said and however small the window: a context fits it, is legal, and is full."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memorist.context.assemble import Assembly, WindowDraft, WindowInput, parts_of
from memorist.context.chat_format import blocks_of, to_chat_message
from memorist.context.quote import Quote
from memorist.context.tokens import TokenCounter
from memorist.context.window import Context, Receipt, Window
from memorist.errors import WindowError
from memorist.providers.tokenizer import Encoding, Estimate
from memorist.records.documents import Summary
from memorist.records.log import LogEntry
from memorist.records.message import Message, ToolCallMsg
from memorist.records.scope import Scope
from tests.support.examples import examples
from tests.support.legal import check_anthropic, check_openai

COUNTERS = [
    TokenCounter(Encoding("o200k_base")),
    TokenCounter(Encoding("cl100k_base")),
    TokenCounter(Estimate(Encoding("o200k_base"), 150)),
]
START = datetime(2026, 3, 1, tzinfo=UTC)
PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACw="

words = st.text(
    st.sampled_from("ab cdeéßдж你好🙂\n\t.,:>#`[]{}\"'<|/\\\r\u2028\u2029\x85_-=~*0123456789"),
    max_size=120,
)
long_words = st.builds(lambda text, times: text * times, words, st.integers(1, 60))
texts = st.one_of(
    words, long_words, st.sampled_from(["", " ", "<|endoftext|>", "> quoted", "[1] me"])
)
names = st.one_of(st.none(), st.sampled_from(["Ada", "Anna Maria", "x\n> y", "", "<|im_start|>"]))
call_ids = st.sampled_from(["c1", "c2", "call 3", "", "ü"])
arguments = st.sampled_from(["{}", '{"a": 1}', "not json", "[1]", '{"a": NaN}', ""])


@st.composite
def calls(draw: st.DrawFn) -> list[dict[str, Any]]:
    ids = draw(st.lists(call_ids, max_size=3))
    return [{"id": id_ or "call", "name": "look_up", "arguments": draw(arguments)} for id_ in ids]


@st.composite
def messages(draw: st.DrawFn) -> Message:
    role = draw(st.sampled_from(["user", "assistant", "assistant", "tool", "system"]))
    fields: dict[str, Any] = {"name": draw(names)}
    if role == "assistant":
        fields["tool_calls"] = draw(calls())
    if role == "tool":
        fields["tool_call_id"] = draw(call_ids)
    content: Any = draw(st.one_of(texts, st.none(), st.just({"a": ["b"]}), st.just(
        [{"type": "extraction", "extraction": "hm"}, {"type": "text", "text": "so"}])))  # fmt: skip
    if draw(st.integers(0, 9)) == 0:
        fields["images"] = [draw(st.sampled_from([PIXEL, "https://example.org/a.png", "no.png"]))]
    return Message(role, content, **fields)


quotes = st.builds(
    Quote,
    st.uuids().map(str),
    st.sampled_from(["user", "Ada", "memory", ""]),
    texts,
    st.one_of(st.none(), st.integers(0, 40).map(lambda days: START + timedelta(days=days))),
)
TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks something up.",
        "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
    },
}


@st.composite
def windows(draw: st.DrawFn) -> Window:
    size = draw(st.one_of(st.integers(1_000, 4_000), st.integers(4_000, 1_000_000)))
    share = st.floats(0, 1)
    return Window(
        max_tokens=size,
        answer_tokens=draw(st.integers(0, size // 3)),
        notes=draw(share),
        memories=draw(share),
        articles=draw(share),
        keep_last=draw(st.integers(0, 6)),
        summary_tokens=draw(st.integers(1, 1_000)),
    )


def summary_of(text: str, counter: TokenCounter) -> Summary:
    return Summary(
        scope=Scope(user="ada", session="s"),
        text=text,
        last_seq=1,
        messages=1,
        made_by="extractive",
        tokens_before=1,
        tokens=counter.text(text),
    )


def quoting(found: Sequence[Quote], counter: TokenCounter) -> Any:
    """A shelf that gives what fits by its own count, which is of the texts alone."""

    def fitting(room: int) -> list[Quote]:
        taken = []
        for quote in found:
            room -= counter.text(quote.text)
            if room >= 0:
                taken.append(quote)
        return taken

    return fitting


@st.composite
def materials(draw: st.DrawFn, counter: TokenCounter) -> WindowInput:
    said = draw(st.lists(messages(), max_size=25))
    entries = [LogEntry(seq, "s", "user", message) for seq, message in enumerate(said, start=1)]
    question = to_chat_message(Message("user", draw(texts.filter(str.strip))))
    assert question is not None
    summary = draw(st.one_of(st.none(), texts.filter(str.strip)))
    shelves = st.lists(quotes, max_size=5).map(lambda found: quoting(found, counter))
    return WindowInput(
        question=question,
        system=draw(st.sampled_from(["", "Be kind.", "A {long_term_memory_notes} b"])),
        tools=[TOOL] * draw(st.integers(0, 3)),
        note=draw(texts),
        summary=summary_of(summary, counter) if summary else None,
        blocks=blocks_of(entries, counter),
        older=draw(st.booleans()),
        memories=draw(st.lists(quotes, max_size=30)),
        articles=draw(st.one_of(st.none(), shelves)),
    )


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_context_fits_is_legal_and_holds_all_that_it_can(data: st.DataObject) -> None:
    counter = data.draw(st.sampled_from(COUNTERS))
    window = data.draw(windows())
    material = data.draw(materials(counter))
    try:
        draft = Assembly(window, counter, material).fill()
    except WindowError:
        bare = WindowDraft(inputs=material).messages()
        assert counter.request(bare) + counter.tools(material.tools) > window.budget
        return
    context = context_of(draft, window, counter)

    # Not a token more than the window has, and the receipt's parts are the whole.
    total = counter.request(context.messages) + counter.tools(context.tools)
    assert total <= window.budget
    assert context.receipt.used == total

    check_openai(context.messages)
    check_anthropic(context.for_anthropic())

    # The prompt and the question are there; the turns are the newest ones, without a gap.
    assert says(context.messages[-1]).endswith(says(material.question))
    for words_of_it in material.system.split("{long_term_memory_notes}"):
        assert words_of_it.strip() in says(context.messages[0])
    shown = list(draft.blocks)
    assert shown == list(material.blocks)[len(material.blocks) - len(shown) :]
    if len(shown) < len(material.blocks):
        next_one = material.blocks[-len(shown) - 1]
        opened = WindowDraft(inputs=material, blocks=[next_one, *shown], summary=draft.summary)
        opening = counter.request(opened.opening()) if not draft.summary else 0
        assert next_one.tokens + opening > window.budget - total


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_last_messages_go_before_memories_and_articles(data: st.DataObject) -> None:
    counter = COUNTERS[0]
    window = data.draw(windows())
    material = data.draw(materials(counter))
    try:
        draft = Assembly(window, counter, material).fill()
    except WindowError:
        return
    alone = WindowDraft(inputs=material, note=draft.note, summary=draft.summary)
    alone.prefix = draft.prefix
    needed, count = counter.request(alone.frame()) + counter.tools(material.tools) + 20, 0
    for number, one in enumerate(reversed(material.blocks), start=1):
        needed += one.tokens
        if count >= window.keep_last or needed > window.budget:
            break
        count += len(one.ids)
        assert len(draft.blocks) >= number


def context_of(draft: WindowDraft, window: Window, counter: TokenCounter) -> Context:
    receipt = Receipt(
        window=window.max_tokens,
        answer=window.reserved,
        counted_by=counter.tokenizer.name,
        exact=counter.tokenizer.exact,
        parts=parts_of(draft, counter),
    )
    return Context(messages=draft.messages(), receipt=receipt, tools=draft.inputs.tools)


def says(message: dict[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or ())


def call(id_: str) -> ToolCallMsg:
    return ToolCallMsg(id=id_, call_id=id_, type="function", name="look_up", arguments="{}")


def test_blocks_keep_calls_beside_their_results_wherever_these_came() -> None:
    counter = COUNTERS[0]
    said = [
        Message("user", "find it"),
        Message("assistant", None, tool_calls=[call("1"), call("2")]),
        Message("tool", "second", tool_call_id="2"),
        Message("user", "hurry"),
        Message("tool", "first", tool_call_id="1"),
        Message("tool", "nobody asked", tool_call_id="3"),
        Message("assistant", ""),
    ]
    entries = [LogEntry(seq, "s", "user", one) for seq, one in enumerate(said, start=1)]
    blocks = blocks_of(entries, counter)
    assert [[says(wire) for wire in block.messages] for block in blocks] == [
        ["find it"],
        ["", "first", "second"],
        ["hurry"],
        ["A tool's result, quoted:\n> nobody asked"],
    ]
    assert blocks[-1].role == "user"
    assert said[6].message_id not in {id_ for block in blocks for id_ in block.ids}
