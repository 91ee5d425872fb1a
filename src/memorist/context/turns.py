"""A session's turns: its newest messages, with tool calls always beside their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from memorist.context.chat_format import ChatMessage, ReadImage, to_chat_message
from memorist.context.quote import quoted
from memorist.context.tokens import TokenCounter
from memorist.records.log import LogEntry
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store.base import Store

FIRST_PAGE = 32
MANY = 400  # messages


@dataclass(frozen=True, slots=True)
class Tail:
    """Messages in order, what they take, and whether older ones are left unread."""

    entries: Sequence[LogEntry] = ()
    tokens: int = 0
    more: bool = False


def read_tail(
    store: Store, scope: Scope, counter: TokenCounter, room: int, *, after: int | None = None
) -> Tail:
    """The newest messages after a place, until they take more than `room`, and are many.

    It costs the same in a long session as in a short one: each page is twice the last. Few are
    read to their beginning, so that they can be summarised at once.
    """
    entries: list[LogEntry] = []
    tokens, page, before = 0, FIRST_PAGE, None
    while tokens <= room or len(entries) <= MANY:
        older = store.history(scope, last=page, before=before, after=after)
        tokens += sum(counter.messages([entry.message for entry in older]))
        entries[:0] = older
        if len(older) < page:
            return Tail(entries, tokens)
        before, page = older[0].seq, page * 2
    return Tail(entries, tokens, more=True)


def split(entries: Sequence[LogEntry], keep_last: int) -> int:
    """How many of the messages may go, such that the last stay and no call loses its result."""
    latest = max(len(entries) - keep_last, 0)
    open_calls: set[str] = set()
    going = 0
    answered = {
        entry.message.answered_call_id() for entry in entries if entry.message.role == "tool"
    }
    for place, entry in enumerate(entries[:latest], start=1):
        message = entry.message
        if message.role == "tool":
            open_calls.discard(message.answered_call_id() or "")
        open_calls.update(call.call_id for call in message.tool_calls if call.call_id in answered)
        if not open_calls:
            going = place
    return going


NO_RESULT = "(no result was recorded)"
LATE_RESULT = "A tool's result, quoted:"


@dataclass(frozen=True, slots=True)
class Block:
    """What cannot be parted: one message, or calls of tools and their results."""

    role: str
    messages: tuple[ChatMessage, ...]
    tokens: int
    ids: tuple[str, ...]


@dataclass(slots=True)
class _Open:
    """A block while its results come in, each under the id of the call it answers."""

    entry: LogEntry
    wire: ChatMessage
    tokens: int | None
    results: dict[str, tuple[LogEntry, ChatMessage] | None] = field(default_factory=dict)


def blocks_of(
    entries: Sequence[LogEntry], counter: TokenCounter, read_image: ReadImage | None = None
) -> tuple[list[Block], list[str]]:
    """The blocks that the messages make, oldest first, and the ids of those that make none.

    A message that says nothing cannot be sent to a model, and a result without its call only as a
    quotation; a call without a result gets one that says so.
    """
    made: list[_Open] = []
    waiting: dict[str, _Open] = {}
    odd: list[str] = []
    counts = counter.messages([entry.message for entry in entries])  # in one go
    for entry, count in zip(entries, counts, strict=True):
        message = entry.message
        if _is_plain(message):  # as most are: thousands may go into a large window
            made.append(_Open(entry, {"role": message.role, "content": message.content}, count))
            continue
        wire = to_chat_message(message, read_image)
        answers = message.answered_call_id() if message.role == "tool" else None
        if wire is not None and message.role == "tool" and answers in waiting:
            waiting.pop(answers).results[answers] = (entry, wire)
        elif wire is not None and message.role == "tool" and message.text.strip():
            # Its call is not there: it came late, or the call is in a summary.
            quotation = f"{LATE_RESULT}\n{quoted(message.text)}"
            made.append(_Open(entry, {"role": "user", "content": quotation}, None))
        elif wire is None or message.role == "tool":
            odd.append(message.message_id)
        else:
            block = _Open(entry, wire, None)
            made.append(block)
            for call in wire.get("tool_calls", ()):
                block.results[call["id"]] = None
                waiting[call["id"]] = block
    return [_closed(block, counter) for block in made], odd


def _is_plain(message: Message) -> bool:
    content = message.content
    return (
        type(content) is str
        and not (message.tool_calls or message.images or message.agent_calls or message.name)
        and message.role != "tool"
        and bool(content)
        and not content.isspace()
    )


def _closed(block: _Open, counter: TokenCounter) -> Block:
    first, role = block.entry.message, str(block.wire["role"])
    if block.tokens is not None:
        return Block(role, (block.wire,), block.tokens, (first.message_id,))
    wires, ids = [block.wire], [first.message_id]
    for call_id, result in block.results.items():
        if result is not None:
            ids.append(result[0].message.message_id)
        wires.append(result[1] if result is not None else _missing(call_id))
    return Block(role, tuple(wires), sum(map(counter.chat_message, wires)), tuple(ids))


def _missing(call_id: str) -> ChatMessage:
    return {"role": "tool", "tool_call_id": call_id, "content": NO_RESULT}
