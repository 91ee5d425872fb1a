"""Compression: older turns become a summary in eight parts, by a model or from their own words."""

import logging
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files

from memorist import defaults, errors, metrics
from memorist.context.compression.extractive import extract, read, thinned
from memorist.context.compression.parts import SummaryLine, Topic, parse
from memorist.context.tokens import TokenCounter
from memorist.context.window import Window
from memorist.language.patterns import Pattern
from memorist.providers.chat_model import ChatModel, Reply
from memorist.records.documents import Compression, Summary
from memorist.records.json_values import UNSEEN, json_line
from memorist.records.log import Job, LogEntry
from memorist.records.scope import Scope
from memorist.records.values import now, shorten
from memorist.store.base import Store
from memorist.store.runner import JobRunner

log = logging.getLogger("memorist")

EXTRACTIVE = "extractive"
SHORT_TOKENS = 200  # that a summary may have even if it stands for little
MAX_MESSAGE_CHARS = 8_000
MAX_ANSWER_CHARS = 200_000
LEAST_ROOM = 500  # tokens of messages in a step, however long the rest of the prompt is
LEAST_PARTS = 2
ROOM_TO_ANSWER = 2  # an answer that is too long is thinned; one that was cut off is lost
GROUNDED = 0.15  # of the answer's longer words must come from what it summarises
LETTERS = 4
ECHO_CHARS = 60
_FENCE = Pattern(r"(?s)\s*```\w*\n(.*?)\n?```\s*\z")
_QUOTED = re.compile(r"\{\s*\"at\"\s*:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How summaries are made, and who counts their tokens.

    `input_tokens` is the most that a model is sent in one call. `prompt` stands in the place of
    the first lines of ours; the form of the summary stays.
    """

    counter: TokenCounter
    max_tokens: int = defaults.COMPRESSION_TARGET_TOKENS
    prompt: str = ""
    input_tokens: int = 12_000
    timeout_s: float = 60.0


def compress(
    entries: Sequence[LogEntry],
    *,
    scope: Scope,
    style: Style,
    previous: Summary | None = None,
    model: ChatModel | None = None,
) -> Compression:
    """Summarise messages, together with what the previous summary stands for.

    A model writes the summary where there is one. If it fails, the summary is extracted from the
    messages, and `fell_back` says why. Only a mistake of the caller raises.
    """
    began = now()
    if not entries:
        raise errors.InvalidError("there is nothing to compress; give at least one message")
    counter = style.counter
    before = sum(counter.messages([entry.message for entry in entries]))
    total = before + (previous.tokens_before if previous else 0)
    max_tokens = min(style.max_tokens, max(SHORT_TOKENS, total // 2))
    known, text, made_by, fell_back = previous.text if previous else "", "", EXTRACTIVE, ""
    if model is not None:
        try:
            text = _ask(model, entries, known, replace(style, max_tokens=max_tokens))
            made_by = model.name
        except errors.ProviderError as error:
            fell_back = str(error)
    if made_by == EXTRACTIVE:
        text = extract(entries, counter, max_tokens, known)
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


def _ask(model: ChatModel, turns: Sequence[LogEntry], known: str, style: Style) -> str:
    """The model's summary, made in as many steps as the messages need, each extending the last.

    Raises `ProviderError` if the model does not answer, and its subclass `BadAnswerError` if the
    answer cannot be used.
    """
    counter, max_tokens, system = style.counter, style.max_tokens, _instructions(style.prompt)
    fixed = counter.text(system) + max_tokens + counter.text(known)
    for step in _steps(turns, counter, max(LEAST_ROOM, style.input_tokens - fixed)):
        prompt = [{"role": "system", "content": system}, _prompt(step, known, max_tokens)]
        room = max_tokens * ROOM_TO_ANSWER
        reply = model.complete(prompt, max_tokens=room, timeout_s=style.timeout_s)
        lines = _read(reply, system, "\n".join([known, *step]), model.name)
        if all(line.part is not Topic.REQUEST for line in lines):  # left out by the model
            lines[:0] = [line for line in parse(known) if line.part is Topic.REQUEST]
        known = thinned(lines, counter, max_tokens)
    return known


def _prompt(step: Sequence[str], previous: str, max_tokens: int) -> dict[str, str]:
    """What a step asks. Messages are lines of JSON, so that no text can pose as the prompt."""
    limit = f"LIMIT\n{max_tokens} tokens, about {max_tokens * 2 // 3} English words"
    rows = [limit, "PREVIOUS", *map(json_line, previous.splitlines()), "MESSAGES", *step]
    return {"role": "user", "content": "\n".join(rows)}


def _steps(entries: Sequence[LogEntry], counter: TokenCounter, room: int) -> Iterator[list[str]]:
    """The messages as lines of JSON, in groups that fit into `room` tokens."""
    step: list[str] = []
    left = room
    rows = [json_line(_described(entry)) for entry in entries]
    for entry, row, cost in zip(entries, rows, counter.texts(rows), strict=True):
        longest = MAX_MESSAGE_CHARS
        while cost > room and longest >= 100:  # too long for any step: cut it until it fits
            longest //= 2
            row = json_line(_described(entry, longest))
            cost = counter.text(row)
        if step and cost >= left:
            yield step
            step, left = [], room
        step.append(row)
        left -= cost + 1  # for the line break
    if step:
        yield step


def _described(entry: LogEntry, longest: int = MAX_MESSAGE_CHARS) -> dict[str, object]:
    message = entry.message
    name = {"name": message.name[:100]} if message.name else {}
    source = {"source": entry.source} if entry.source != message.role else {}
    at, text = f"{message.created_at:%Y-%m-%d %H:%M %A}", shorten(message.text, longest)
    return {"at": at, "role": message.role, **name, **source, "text": text}


@lru_cache(maxsize=16)
def _instructions(prompt: str) -> str:
    """The system prompt: what it is about, as `prompt` or else we say it, and the form."""
    ours = (files(__package__) / "prompts" / "summary.md").read_text("utf-8")
    about, _, form = ours.partition("\n\n")
    return f"{prompt.strip() or about}\n\n{form}"


def _read(reply: Reply, system: str, source: str, model: str) -> list[SummaryLine]:
    """The lines of the model's answer, if it is a summary of `source`."""
    fenced = _FENCE.match(reply.text)
    whole = (fenced[1] if fenced else reply.text).encode(errors="replace").decode()
    text = "\n".join(UNSEEN.sub(" ", row) for row in whole.split("\n"))  # what cannot be printed
    lines = parse(text) if len(text) <= MAX_ANSWER_CHARS else []
    if problem := _problem(text, lines, system, source):
        raise errors.BadAnswerError(f"{model} answered badly: {problem}", tokens=reply.tokens)
    return lines


def _problem(text: str, lines: Sequence[SummaryLine], system: str, source: str) -> str:
    """Why an answer cannot be used, without quoting it; empty if it can."""
    if not text.strip():
        return "it is empty"
    if len(text) > MAX_ANSWER_CHARS:
        return f"it has {len(text):,} characters"
    rows = [row for row in system.splitlines() if len(row) > ECHO_CHARS]
    if _QUOTED.search(text) or any(row in text for row in rows):
        return "it repeats the question"
    if (count := len({line.part for line in lines})) < LEAST_PARTS:
        return f"it has {count} of the eight parts"
    words = {term for line in lines for term in read(line.text).terms if len(term) >= LETTERS}
    if words and len(words & read(source).terms) < GROUNDED * len(words):
        return "it says what no message said"
    return ""


CHUNK = 400  # messages that are summarised at once
CHUNK_BYTES = 8 * 1024 * 1024  # of them
MOST_STYLES = 1_000  # sessions whose style is known here; others have the process's own


def style_of(window: Window, counter: TokenCounter) -> Style:
    """The style of summaries for a window: at most a quarter of it, unless that is tiny."""
    most = min(window.summary_tokens, max(window.max_tokens // 4, 100))
    return Style(counter=counter, max_tokens=most, prompt=window.summary_prompt)


class Summarizer(JobRunner):
    """Extends the summaries of sessions, and has a model improve them where there is one.

    Summaries asked for wait in the queue: they survive a crash, and any process may make them.
    """

    name = "summaries"
    batch_size = 1
    lease_seconds = 300.0  # a model may take long, and is paid for

    def __init__(self, store: Store, style: Style, model: ChatModel | None = None) -> None:
        super().__init__(store, ("summarize",))
        self._style = style
        self._model = model
        self._styles: OrderedDict[tuple[str, str | None], Style] = OrderedDict()  # of sessions

    def take_in(
        self, scope: Scope, entries: Sequence[LogEntry], previous: Summary | None, style: Style
    ) -> Compression | None:
        """Extend the summary by these messages without a model; None if that saves no tokens."""
        done = compress(entries, scope=scope, style=style, previous=previous)
        if done.saved <= 0:
            return None
        self._write(scope, done, entries)
        if self._model is not None:
            self._styles[scope.owner, scope.session] = style
            if len(self._styles) > MOST_STYLES:
                self._styles.popitem(last=False)
            self.ask_for(scope, done.summary.last_seq)
        return done

    def ask_for(self, scope: Scope, last_seq: int) -> None:
        """Queue a summary of all messages up to a place in the log, or its improvement."""
        self._store.queue_summary(scope, last_seq)
        self.wake()

    def extend(
        self, scope: Scope, last_seq: int, style: Style | None = None, *, asked: bool = False
    ) -> Compression | None:
        """Extend the summary up to a seq, the last step by the model; None if it is there."""
        before, done, style = 0, None, self._style_for(scope, style)
        ids: list[str] = []
        while True:
            previous = self._store.summary(scope)
            after = previous.last_seq if previous else 0
            newer = self._store.following(scope, after=after, limit=CHUNK, max_bytes=CHUNK_BYTES)
            entries = [entry for entry in newer if entry.seq <= last_seq]
            if not entries:
                break
            is_last = len(entries) < len(newer) or entries[-1].seq == last_seq
            model = self._model if is_last else None
            done = compress(entries, scope=scope, style=style, previous=previous, model=model)
            done = self._write(scope, done, entries, asked=asked)
            before += done.tokens_before - (previous.tokens if previous and ids else 0)
            ids += done.message_ids
        return done and replace(done, message_ids=tuple(ids), tokens_before=before)

    def improve(self, scope: Scope) -> Compression | None:
        """Have the model write the newest summary anew, if that was made without it."""
        summaries = self._store.summaries(scope, limit=2)
        if not summaries or self._model is None or summaries[0].made_by != EXTRACTIVE:
            return None
        newest, previous = summaries[0], summaries[1] if len(summaries) > 1 else None
        after = previous.last_seq if previous else 0
        limit = newest.messages - (previous.messages if previous else 0)
        entries = self._store.following(scope, after=after, limit=limit)
        if not entries or entries[-1].seq != newest.last_seq:
            raise errors.ConflictError("a summary's messages have changed meanwhile; try again")
        style, model = self._style_for(scope), self._model
        done = compress(entries, scope=scope, style=style, previous=previous, model=model)
        return self._write(scope, done, entries, asked=newest.asked)

    def do(self, jobs: Sequence[Job]) -> None:
        """Extend or improve the summary of a job's session."""
        for job in jobs:
            try:
                if self.extend(job.scope, job.last_seq) is None:
                    self.improve(job.scope)
                self._store.apply(job.scope, [], done=job)
            except errors.LeaseLostError:
                continue  # another process has it
            except errors.StoreError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the job is tried again later
                self.fail(job, error)

    def _style_for(self, scope: Scope, style: Style | None = None) -> Style:
        """A style, or else that of the session's last window, with our own time limit."""
        style = style or self._styles.get((scope.owner, scope.session), self._style)
        return replace(style, timeout_s=self._style.timeout_s)

    def _write(
        self, scope: Scope, done: Compression, entries: Sequence[LogEntry], *, asked: bool = False
    ) -> Compression:
        done = replace(done, summary=replace(done.summary, asked=asked))
        self._store.write_summary(scope, done.summary, of=entries)
        made_by = "extractive" if done.made_by == EXTRACTIVE else "model"
        metrics.count("memorist.compressions", made_by=made_by)
        metrics.count("memorist.compression.saved", done.saved, made_by=made_by)
        if done.fell_back:
            metrics.count("memorist.compression.fallbacks")
            log.warning("a summary was extracted, as the model failed: %s", done.fell_back)
        return done
