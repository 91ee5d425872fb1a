"""Compression: older turns become a summary in eight parts, by a model or from their own words.

The log keeps every turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from memorist.context.compression.candidates import read
from memorist.context.compression.extractive import extract, thinned
from memorist.context.compression.parts import SummaryLine, Topic, parse, parts_of
from memorist.context.tokens import TokenCounter
from memorist.errors import BadAnswerError, InvalidError, ProviderError
from memorist.providers.chat_model import ChatModel, Reply
from memorist.records.ids import now
from memorist.records.log import LogEntry
from memorist.records.scope import Scope
from memorist.records.summary import Summary
from memorist.records.text import UNSEEN, json_line, shorten

EXTRACTIVE = "extractive"
SHORT_TOKENS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Compress:
    """The numbers of compression; `input_tokens` is the most a model is given in one call."""

    max_tokens: int = 1_000
    input_tokens: int = 12_000
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if self.max_tokens < 1 or self.input_tokens < 1_000 or self.timeout_s <= 0:
            raise InvalidError(
                "compression needs max_tokens of at least 1, input_tokens of at least 1,000 and a "
                f"timeout_s above 0, not {self.max_tokens}, {self.input_tokens} and "
                f"{self.timeout_s:g}"
            )


DEFAULT = Compress()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compression:
    """A summary to be written, and what it spares the window.

    `tokens_before` counts what it replaces there: the previous summary and the new messages.
    `fell_back` says why no model made it although there is one; it quotes nothing.
    """

    summary: Summary
    message_ids: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    fell_back: str = ""

    @property
    def saved(self) -> int:
        """How many tokens the window is spared by this step."""
        return self.tokens_before - self.tokens_after

    @property
    def made_by(self) -> str:
        """The model's name, or "extractive"."""
        return self.summary.made_by


def compress(
    entries: Sequence[LogEntry],
    *,
    scope: Scope,
    counter: TokenCounter,
    previous: Summary | None = None,
    model: ChatModel | None = None,
    settings: Compress = DEFAULT,
) -> Compression:
    """The summary that stands for these messages and for all that the previous one stood for.

    A model writes it where there is one; if it fails, the messages' own words do, and the result
    says so. Only what the caller gets wrong raises.
    """
    began = now()
    if not entries:
        raise InvalidError("there is nothing to compress; give at least one message")
    before = sum(counter.messages([entry.message for entry in entries]))
    known = previous.text if previous else ""
    total = before + (previous.tokens_before if previous else 0)
    settings = replace(settings, max_tokens=min(settings.max_tokens, _most(total)))
    text, made_by, fell_back = _written(entries, counter, known, model, settings)
    tokens = counter.text(text)
    summary = Summary(
        scope=scope,
        text=text,
        last_seq=entries[-1].seq,
        messages=len(entries) + (previous.messages if previous else 0),
        made_by=made_by,
        tokens_before=total,
        tokens=tokens,
        previous=previous.id if previous else None,
        created_at=began,
    )
    return Compression(
        summary=summary,
        message_ids=tuple(entry.message.message_id for entry in entries),
        tokens_before=before + (previous.tokens if previous else 0),
        tokens_after=tokens,
        fell_back=fell_back,
    )


def _most(tokens: int) -> int:
    """How long a summary may be beside all that it stands for, if that is little."""
    return max(SHORT_TOKENS, tokens // 2)


def _written(
    entries: Sequence[LogEntry],
    counter: TokenCounter,
    previous: str,
    model: ChatModel | None,
    settings: Compress,
) -> tuple[str, str, str]:
    """The text, who made it, and why no model did."""
    fell_back = ""
    if model is not None:
        sizes = (settings.max_tokens, settings.input_tokens)
        try:
            text = summarise(
                model,
                entries,
                counter,
                previous=previous,
                sizes=sizes,
                timeout_s=settings.timeout_s,
            )
            return text, model.name, ""
        except ProviderError as error:
            fell_back = str(error)
    return extract(entries, counter, settings.max_tokens, previous), EXTRACTIVE, fell_back


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
    counter: TokenCounter,
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


def _steps(entries: Sequence[LogEntry], counter: TokenCounter, room: int) -> Iterator[list[str]]:
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


def _shorter(entry: LogEntry, counter: TokenCounter, room: int) -> tuple[str, int]:
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


def _read(reply: Reply, given: str, name: str) -> list[SummaryLine]:
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


def _is_grounded(lines: Sequence[SummaryLine], given: str) -> bool:
    """Whether the answer shares its words with what was given; a summary may use others too."""
    told = {term for line in lines for term in read(line.text).terms if len(term) >= LETTERS}
    return not told or len(told & read(given).terms) >= GROUNDED * len(told)


def _with_request(lines: Sequence[SummaryLine], previous: str) -> list[SummaryLine]:
    """The lines with the request of the summary before, should the model have forgotten it."""
    if Topic.REQUEST in parts_of(lines):
        return list(lines)
    return [*(line for line in parse(previous) if line.part is Topic.REQUEST), *lines]
