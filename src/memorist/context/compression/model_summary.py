"""Summaries by a model: messages quoted as data, in as many steps as they need; one distrusted
answer for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

from memorist.context.compression.extractive import thinned
from memorist.context.compression.parts import Line, Part, parse, parts_of
from memorist.context.compression.weigh import read
from memorist.context.tokens import Counter
from memorist.errors import BadAnswerError
from memorist.providers.chat_model import ChatModel, Reply
from memorist.records.log import LogEntry
from memorist.records.text import UNSEEN, json_line, shorten

MAX_MESSAGE_CHARS = 8_000
MAX_ANSWER_CHARS = 200_000
LEAST_ROOM = 500  # tokens of messages in a step, however large the rest
LEAST_PARTS = 2
ROOM_TO_ANSWER = 2  # an answer that is too long is thinned; one that was cut off is lost
GROUNDED = 0.15  # of the answer's longer words must be in what it was made of
LETTERS = 4
ECHO_CHARS = 60

_FENCE = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)
_QUOTED = re.compile(r"\{\s*\"at\"\s*:")


def summarise(
    model: ChatModel,
    entries: Sequence[LogEntry],
    counter: Counter,
    *,
    previous: str = "",
    sizes: tuple[int, int],
    timeout_s: float,
) -> str:
    """What the model makes of the messages, a step at a time, each extending the one before.

    `sizes` are the tokens of the answer and those of a step's question at most. Raises
    `ProviderError` for a model that does not answer, and the `BadAnswerError` among them for an
    answer that cannot be used.
    """
    max_tokens, input_tokens = sizes
    fixed = counter.text(_instructions()) + max_tokens + counter.text(previous)
    for step in _steps(entries, counter, max(LEAST_ROOM, input_tokens - fixed)):
        asked = question(step, previous, max_tokens)
        limit = max_tokens * ROOM_TO_ANSWER
        reply = model.complete(asked, max_tokens=limit, timeout_s=timeout_s)
        lines = _read(reply, "\n".join([previous, *step]), model.name)
        previous = thinned(_with_request(lines, previous), counter, max_tokens)
    return previous


def question(step: Sequence[str], previous: str, max_tokens: int) -> list[dict[str, str]]:
    """What the model is asked: all that was said is in lines of JSON, which no text can leave."""
    rows = [
        "LIMIT",
        f"{max_tokens} tokens, about {max_tokens * 2 // 3} English words",
        "PREVIOUS",
        *map(json_line, previous.splitlines()),
        "MESSAGES",
        *step,
    ]
    return [
        {"role": "system", "content": _instructions()},
        {"role": "user", "content": "\n".join(rows)},
    ]


def _steps(entries: Sequence[LogEntry], counter: Counter, room: int) -> Iterator[list[str]]:
    """The messages as lines, so many at a time as there is room for; never none."""
    step: list[str] = []
    left = room
    rows = [json_line(_described(entry)) for entry in entries]
    for entry, row, cost in zip(entries, rows, counter.texts(rows), strict=True):
        if cost > room:
            row, cost = _shorter(entry, counter, room)
        if step and cost >= left:
            yield step
            step, left = [], room
        step.append(row)
        left -= cost + 1  # and the end of the line
    if step:
        yield step


def _shorter(entry: LogEntry, counter: Counter, room: int) -> tuple[str, int]:
    """A message that fills a step alone, cut until it fits."""
    longest = MAX_MESSAGE_CHARS
    while True:
        longest //= 2
        row = json_line(_described(entry, longest))
        if (cost := counter.text(row)) <= room or longest < 100:
            return row, cost


def _described(entry: LogEntry, longest: int = MAX_MESSAGE_CHARS) -> dict[str, object]:
    said = entry.message
    line: dict[str, object] = {"at": f"{said.created_at:%Y-%m-%d %H:%M %A}", "role": said.role}
    if said.name:
        line["name"] = said.name[:100]
    if entry.source != said.role:
        line["source"] = entry.source
    return {**line, "text": shorten(said.text, longest)}


@cache
def _instructions() -> str:
    return (files(__package__) / "prompts" / "summary.md").read_text("utf-8")


def _read(reply: Reply, given: str, name: str) -> list[Line]:
    """The answer's lines, if it is a summary of what was given."""
    text = _clean(reply.text)
    if problem := _problem(text, given):
        tokens = reply.input_tokens + reply.output_tokens
        raise BadAnswerError(f"{name} answered badly: {problem}", tokens=tokens)
    return parse(text)


def _clean(text: str) -> str:
    """An answer as text that can be kept, out of its fence."""
    fenced = _FENCE.fullmatch(text)
    whole = (fenced[1] if fenced else text).encode(errors="replace").decode()
    return "\n".join(UNSEEN.sub(" ", row) for row in whole.split("\n"))


def _problem(text: str, given: str) -> str:
    """Why an answer cannot be used; nothing of it is quoted."""
    if not text.strip():
        return "it is empty"
    if len(text) > MAX_ANSWER_CHARS:
        return f"it has {len(text):,} characters"
    if _is_echo(text):
        return "it repeats the question"
    lines = parse(text)
    if (found := len(parts_of(lines))) < LEAST_PARTS:
        return f"it has {found} of the eight parts"
    if not _is_grounded(lines, given):
        return "it says what no message said"
    return ""


def _is_echo(text: str) -> bool:
    rows = [row for row in _instructions().splitlines() if len(row) > ECHO_CHARS]
    return bool(_QUOTED.search(text)) or any(row in text for row in rows)


def _is_grounded(lines: Sequence[Line], given: str) -> bool:
    """Whether the answer shares its words with what was given; a summary may use others too."""
    told = {term for line in lines for term in read(line.text).terms if len(term) >= LETTERS}
    return not told or len(told & read(given).terms) >= GROUNDED * len(told)


def _with_request(lines: Sequence[Line], previous: str) -> list[Line]:
    """The lines with the request of the summary before, should the model have forgotten it."""
    if Part.REQUEST in parts_of(lines):
        return list(lines)
    return [*(line for line in parse(previous) if line.part is Part.REQUEST), *lines]
