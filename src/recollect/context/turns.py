"""Turns: messages as they may stand in a window, calls of tools always beside their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from recollect.context.tokens import Counter
from recollect.context.wires import ReadImage, Wire, wire_of
from recollect.records.log import LogEntry

NO_RESULT = "(no result was recorded)"


@dataclass(frozen=True, slots=True)
class Block:
    """What cannot be parted: one message, or calls of tools and their results."""

    wires: tuple[Wire, ...]
    tokens: int
    ids: tuple[str, ...]

    @property
    def role(self) -> str:
        return str(self.wires[0]["role"])


@dataclass(slots=True)
class _Open:
    """A block while its results come in, each under the id of the call it answers."""

    entry: LogEntry
    wire: Wire
    results: dict[str, tuple[LogEntry, Wire] | None] = field(default_factory=dict)


def blocks_of(
    entries: Sequence[LogEntry], counter: Counter, read_image: ReadImage | None = None
) -> tuple[list[Block], list[str]]:
    """The blocks that the messages make, oldest first, and the ids of those that make none.

    A result without its call, and a message that says nothing, cannot be sent to a model; a call
    without a result gets one that says so.
    """
    made: list[_Open] = []
    waiting: dict[str, _Open] = {}
    odd: list[str] = []
    for entry in entries:
        message = entry.message
        wire = wire_of(message, read_image)
        answers = message.answered_call_id() if message.role == "tool" else None
        if wire is not None and message.role == "tool" and answers in waiting:
            waiting.pop(answers).results[answers] = (entry, wire)
        elif wire is None or message.role == "tool":
            odd.append(message.message_id)
        else:
            block = _Open(entry, wire)
            made.append(block)
            for call in wire.get("tool_calls", ()):
                block.results[call["id"]] = None
                waiting[call["id"]] = block
    return [_closed(block, counter) for block in made], odd


def _closed(block: _Open, counter: Counter) -> Block:
    wires, ids = [block.wire], [block.entry.message.message_id]
    plain = not (block.results or block.entry.message.images)
    for call_id, result in block.results.items():
        if result is not None:
            ids.append(result[0].message.message_id)
        wires.append(result[1] if result is not None else _missing(call_id))
    if plain and block.wire == block.entry.message.to_wire():
        tokens = counter.message(block.entry.message)
    else:
        tokens = sum(map(counter.wire, wires))
    return Block(tuple(wires), tokens, tuple(ids))


def _missing(call_id: str) -> Wire:
    return {"role": "tool", "tool_call_id": call_id, "content": NO_RESULT}
