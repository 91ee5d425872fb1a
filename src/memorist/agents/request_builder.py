"""Filling: one request of an agent, filled to its window with notes, memories and a summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memorist.errors import MissingExtraError

try:
    from langchain.agents.middleware.types import ModelRequest
    from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
except ImportError as error:
    raise MissingExtraError("agents") from error

from memorist.agents.log_lines import (
    UNPLACED,
    Line,
    asked_at,
    covered,
    entry_of,
    join,
    newest_round,
    paired,
)
from memorist.agents.prompt import schemas_of, system_with
from memorist.context.assemble import Assembly, WindowDraft, WindowInput, parts_of
from memorist.context.builder import ContextBuilder
from memorist.context.chat_format import to_chat_message
from memorist.context.compression.compress import DEFAULT, Compression, compress
from memorist.context.compression.summarizer import style_of
from memorist.context.turns import Tail, blocks_of
from memorist.context.window import Part, Receipt, Window
from memorist.errors import ConflictError, StoreError, WindowError
from memorist.records.log import LogEntry
from memorist.records.message import Message
from memorist.records.query import Recall
from memorist.records.summary import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A request ready for the model, or as it was where there is no memory.

    `tight` says that something stays out which no summary stands for; `gone` are the ids of the
    state's messages that a stored summary stands for; `moved` why another model is asked.
    """

    request: ModelRequest[Any]
    receipt: Receipt | None = None
    recall: Recall | None = None
    summary: str = ""
    gone: tuple[str, ...] = ()
    tight: bool = False
    moved: str = ""
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class Filling(ContextBuilder):
    """A request being filled: its messages are the state's, and the log's before them.

    `prior` is the summary that the state keeps for when the store cannot be read.
    """

    recalled: Callable[[], Recall]
    stored_id: Callable[[str], str]
    prior: str = ""
    _log: Tail = field(default_factory=Tail)
    _all: Sequence[Line] = ()
    _found: Recall = field(default_factory=lambda: Recall(hits=()))
    _unkept: bool = False

    def fill(self, asked: ModelRequest[Any]) -> Filled:
        """The request with what is remembered, in no more tokens than the window has."""
        whole, own = self.window, asked.system_message
        rest = self._rest(asked)
        summary, lines = self._lines(asked.messages, rest)
        at = asked_at(lines)
        newest = lines[newest_round(lines, at) :]
        fixed = {lines[at].id, *(line.id for line in newest)}
        material = replace(
            rest,
            summary=summary,
            blocks=self._blocks([line.entry for line in lines], fixed),
            older=self._log.more,
            memories=[quote for quote in rest.memories if quote.id not in fixed],
        )
        entries = Tail([line.entry for line in lines], more=self._log.more)
        draft, compression, fits = self._drafted(material, entries, fixed)
        shown = [line for line in lines[_first(draft, lines) :] if line.id not in fixed]
        kept = _in_order(lines, {line.id for line in shown} | fixed)
        draft, parts = self._within(whole, own, draft, kept, lines[at].entry.message)
        receipt = Receipt(
            window=whole.max_tokens,
            answer=whole.answer_tokens,
            counted_by=self.counter.name,
            exact=self.counter.exact,
            parts=parts,
            compression=compression,
            timings_ms=dict(self._found.timings_ms),
            late=self._found.late,
            failed={**self._found.failed, **self.failed},
        )
        opening = [HumanMessage(wire["content"]) for wire in draft.opening()]
        request = asked.override(
            system_message=system_with(own, draft),
            messages=[*opening, *kept],  # type: ignore[list-item]
        )
        return Filled(
            request=request,
            receipt=receipt,
            recall=self._found,
            summary=draft.summary,
            gone=self._gone(draft, asked.state["messages"]),
            tight=not fits or len(draft.blocks) < len(draft.material.blocks),
        )

    def _rest(self, asked: ModelRequest[Any]) -> WindowInput:
        """All but what was said before; the window shrinks by what the newest calls take."""
        messages, own = asked.messages, asked.system_message
        at = asked_at(messages)
        newest = [entry_of(message) for message in messages[newest_round(messages, at) :]]
        blocks, _ = blocks_of(newest, self.counter, self._read_image)
        self.window = beside(self.window, sum(one.tokens for one in blocks))
        question = entry_of(messages[at]).message
        self._found = self.recall(question.text)
        return WindowInput(
            question=to_chat_message(question, self._read_image) or {"role": "user", "content": ""},
            system=str(own.text) if own is not None else "",
            tools=schemas_of(asked),
            note=self._try("notes", self._note, ""),
            memories=self._quotes(self._found.hits, {question.message_id}),
            articles=self._articles(question.text),
        )

    def _lines(
        self, messages: Sequence[BaseMessage], rest: WindowInput
    ) -> tuple[Summary | None, list[Line]]:
        """The summary, and all messages that it does not stand for."""
        summary, self._log = self._past(self._demand(rest))
        if summary is None and self.prior and self.failed:
            summary = self._told(self.prior)
        known = {entry.message.message_id: entry for entry in self._log.entries}
        ids = [self.stored_id(message.id or "") for message in messages]
        missing, nothing = [id_ for id_ in ids if id_ not in known], list[LogEntry]()
        if missing and self.scope.session is not None:
            more = self._try("history", lambda: self.store.find(self._session, missing), nothing)
            known |= {entry.message.message_id: entry for entry in more}
        before = self._log.entries if self.given.get("restore", True) else ()
        self._all = join(messages, before, known, self.stored_id)
        out = covered(self._all, summary.last_seq) if summary else set()
        return summary, [line for line in self._all if line.id not in out]

    def _demand(self, rest: WindowInput) -> int:
        try:
            return Assembly(self.window, self.counter, rest).demand()
        except WindowError:
            return self.window.budget

    def _drafted(
        self, material: WindowInput, entries: Tail, fixed: set[str]
    ) -> tuple[WindowDraft, Compression | None, bool]:
        """The window filled, or with nothing that could stay out, if even that does not fit."""
        try:
            assembly, compression = self._compressed(material, entries, fixed)
            return assembly.fill(), compression, True
        except WindowError:
            return WindowDraft(material=material), None, False

    def _told(self, text: str) -> Summary:
        tokens = self.counter.text(text)
        return Summary(
            scope=self.scope.within(session=self.scope.session or "unknown"),
            text=text,
            last_seq=UNPLACED,
            messages=0,
            made_by="state",
            tokens_before=tokens,
            tokens=tokens,
        )

    def recall(self, question: str) -> Recall:
        """What was looked for since the run began."""
        return self.recalled() if self.window.memories and question else Recall(hits=())

    def take_in(self, material: WindowInput, tail: Tail, going: int) -> Compression | None:
        """Extend the session's summary; where that cannot be stored, this request has its own."""
        entries, style = tail.entries[:going], style_of(self.window, self.counter)
        upto = max(entry.seq for entry in entries)
        log = [entry for entry in self._log.entries if entry.seq <= upto]
        try:
            if log and all(entry.seq != UNPLACED for entry in entries):
                return self.summarizer().take_in(self._session, log, material.summary, style)
        except (StoreError, ConflictError) as error:
            self.failed["summary"] = str(error)
        self._unkept = True
        done = compress(
            entries,
            scope=self._told("").scope,
            counter=self.counter,
            previous=material.summary,
            settings=replace(DEFAULT, max_tokens=style.max_tokens),
        )
        return done if done.saved > 0 else None

    def _gone(self, draft: WindowDraft, state: Sequence[BaseMessage]) -> tuple[str, ...]:
        """What of the state a stored summary stands for: there nobody needs it any more."""
        summary = draft.material.summary
        if summary is None or self._unkept or not self.given.get("trim_state", True):
            return ()
        out = covered(self._all, summary.last_seq)
        held = {message.id for message in state}
        ids = [line.message.id for line in self._all if line.id in out and not line.restored]
        return tuple(id_ for id_ in ids if id_ and id_ in held)

    def _within(
        self,
        window: Window,
        own: SystemMessage | None,
        draft: WindowDraft,
        kept: Sequence[BaseMessage],
        question: Message,
    ) -> tuple[WindowDraft, tuple[Part, ...]]:
        """The draft and its parts; where the whole is more than its pieces, less is recalled."""
        ours = {line.message.id: line.entry.message for line in self._all}
        said = [ours.get(it.id) or entry_of(it).message for it in kept]
        turns = sum(self.counter.messages(said))
        while True:
            parts = self._parts(own, draft, turns, question)
            if sum(part.tokens for part in parts) <= window.budget:
                return draft, parts
            if draft.articles:
                draft = replace(draft, articles=draft.articles[:-1])
            elif draft.memories:
                draft = replace(draft, memories=draft.memories[:-1])
            else:
                return draft, parts

    def _parts(
        self, own: SystemMessage | None, draft: WindowDraft, turns: int, question: Message
    ) -> tuple[Part, ...]:
        """What each part takes: notes and memories by how much they make the prompt grow."""

        def prompt(**without: Any) -> int:
            made = system_with(own, replace(draft, **without))
            if made is None or not made.content:
                return 0
            return self.counter.chat_message({"role": "system", "content": made.content})

        bare, noted = prompt(note="", memories=(), articles=()), prompt(memories=(), articles=())
        recalled, full = prompt(articles=()), prompt()
        asked = self.counter.messages([question])[0]
        opening = sum(map(self.counter.chat_message, draft.opening()))
        tokens = {
            "system": bare,
            "notes": noted - bare,
            "memories": recalled - noted,
            "articles": full - recalled,
            "question": asked + self.counter.request(()),
            "history": turns - asked + (0 if draft.summary else opening),
        }
        return tuple(
            replace(part, tokens=tokens.get(part.name, part.tokens))
            for part in parts_of(draft, self.counter)
        )


def beside(window: Window, tokens: int) -> Window:
    """The window that is left beside what it must hold in any case."""
    left = max(window.max_tokens - tokens, window.answer_tokens + 1)
    threshold = max(window.threshold - tokens, 0)
    return replace(window, max_tokens=left, compress_at=min(threshold / left, 1.0))


def _first(draft: WindowDraft, lines: Sequence[Line]) -> int:
    """The place of the oldest line that is shown."""
    if not draft.blocks:
        return len(lines)
    return next(at for at, line in enumerate(lines) if line.id == draft.blocks[0].ids[0])


def _in_order(lines: Sequence[Line], shown: set[str]) -> list[BaseMessage]:
    return paired([line.message for line in lines if line.id in shown])
