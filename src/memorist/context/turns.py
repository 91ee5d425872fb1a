"""Turns: messages as they may stand in a window, calls of tools always beside their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from memorist.context.chat_format import ReadImage, Wire, wire_of
from memorist.context.quote import quoted
from memorist.context.tokens import Counter
from memorist.records.log import LogEntry
from memorist.records.message import Message

NO_RESULT = "(no result was recorded)"
LATE_RESULT = "A tool's result, quoted:"


@dataclass(frozen=True, slots=True)
class Block:
    """What cannot be parted: one message, or calls of tools and their results."""

    role: str
    wires: tuple[Wire, ...]
    tokens: int
    ids: tuple[str, ...]


@dataclass(slots=True)
class _Open:
    """A block while its results come in, each under the id of the call it answers."""

    entry: LogEntry
    wire: Wire
    tokens: int | None
    results: dict[str, tuple[LogEntry, Wire] | None] = field(default_factory=dict)


def blocks_of(
    entries: Sequence[LogEntry], counter: Counter, read_image: ReadImage | None = None
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
        wire = wire_of(message, read_image)
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


def _closed(block: _Open, counter: Counter) -> Block:
    first, role = block.entry.message, str(block.wire["role"])
    if block.tokens is not None:
        return Block(role, (block.wire,), block.tokens, (first.message_id,))
    wires, ids = [block.wire], [first.message_id]
    for call_id, result in block.results.items():
        if result is not None:
            ids.append(result[0].message.message_id)
        wires.append(result[1] if result is not None else _missing(call_id))
    return Block(role, tuple(wires), sum(map(counter.wire, wires)), tuple(ids))


def _missing(call_id: str) -> Wire:
    return {"role": "tool", "tool_call_id": call_id, "content": NO_RESULT}
