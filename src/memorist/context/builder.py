"""One request for a context: what is read for it, and how it becomes messages and a receipt."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from memorist import metrics
from memorist.context.assemble import Assembly, WindowInput, parts_of
from memorist.context.chat_format import ReadImage, to_chat_message
from memorist.context.compression.compress import Compression
from memorist.context.compression.summarizer import Summarizer, style_of
from memorist.context.quote import Quote, may_be_a_part, quote_of
from memorist.context.tokens import TokenCounter
from memorist.context.turns import MANY, Block, Tail, blocks_of, read_tail, split
from memorist.context.window import Context, Receipt, Window
from memorist.errors import ConflictError, InvalidError, MemoristError
from memorist.providers.images import encode_image
from memorist.records.log import LogEntry
from memorist.records.message import Message
from memorist.records.query import Hit, Recall
from memorist.records.scope import Scope
from memorist.records.summary import Summary
from memorist.store.base import Store

DEADLINE_MS = 50.0
LEAST_GAIN = 0.1  # of the window, that a summary must take the place of
AMPLE = 0.8  # of the threshold: beyond, a window would soon be summarised again
LONG_MS = 100.0  # a deadline that is no hurry
LEAST_HITS = 10
HITS_IN_TIME = 100  # more are looked for only where there is no hurry
TOKENS_PER_HIT = 20  # the least a quotation takes: more hits could not be shown

T = TypeVar("T")
log = logging.getLogger("memorist.context")


class ArticleSource(Protocol):
    """Where articles come from: a `Library`, or whatever quotes what fits so many tokens."""

    def quotes(self, question: str, max_tokens: int, counter: TokenCounter) -> Sequence[Quote]: ...


@dataclass(slots=True, kw_only=True)
class ContextBuilder:
    """A context being made; what fails on the way is noted, and the rest goes on."""

    store: Store
    search: Callable[..., Recall]
    summarizer: Callable[[], Summarizer]
    scope: Scope
    window: Window
    counter: TokenCounter
    given: Mapping[str, Any]
    failed: dict[str, str] = field(default_factory=dict)

    def answer(self, question: Message) -> Context:
        """The messages and the receipt, which is logged."""
        began = time.perf_counter()
        with metrics.span("memorist.context"):
            context = self._answer(question)
        took = time.perf_counter() - began
        context.receipt.timings_ms["context"] = took * 1_000
        metrics.record("memorist.context.duration", took)
        log.info("%s", context.receipt)
        return context

    def _answer(self, question: Message) -> Context:
        wire = to_chat_message(question, self._read_image)
        if wire is None or question.role != "user":
            raise InvalidError("the question must be a user's, and say something")
        found = self.recall(question.text)
        system = self._system()
        known = {question.message_id} | ({system.message_id} if system is not None else set())
        material = WindowInput(
            question=wire,
            system=self._prompt(system),
            tools=self.given.get("tools") or (),
            note=self._try("notes", self._note, ""),
            memories=self._quotes(found.hits, known),
            articles=self._articles(question.text),
        )
        summary, tail = self._past(Assembly(self.window, self.counter, material).demand())
        known |= self._known(tail, question)
        material = replace(
            material,
            summary=summary,
            blocks=self._blocks(tail.entries, known),
            older=tail.more,
            memories=[quote for quote in material.memories if quote.id not in known],
        )
        assembly, compression = self._compressed(material, tail, known)
        draft = assembly.fill()
        receipt = Receipt(
            window=self.window.max_tokens,
            answer=self.window.answer_tokens,
            counted_by=self.counter.name,
            exact=self.counter.exact,
            parts=parts_of(draft, self.counter),
            compression=compression,
            timings_ms=dict(found.timings_ms),
            late=found.late,
            failed={**found.failed, **self.failed},
        )
        messages = draft.messages()
        return Context(messages=messages, receipt=receipt, tools=material.tools, recall=found)

    def recall(self, question: str) -> Recall:
        """What is remembered of the user with this agent, in all their sessions.

        For subclasses: one may have been looking for it already.
        """
        scope = Scope(user=self.scope.user, tenant=self.scope.tenant, agent=self.scope.agent)
        if not self.window.memories:
            return Recall(hits=())
        deadline_ms = self.given.get("deadline_ms", DEADLINE_MS)
        has_time = deadline_ms is None or deadline_ms >= LONG_MS
        could = max(self.window.budget // TOKENS_PER_HIT, LEAST_HITS)
        limit = min(could, self.window.most_memories, could if has_time else HITS_IN_TIME)
        return self._try(
            "recall",
            lambda: self.search(scope, question, limit=limit, deadline_ms=deadline_ms),
            Recall(hits=()),
        )

    def _quotes(self, hits: Sequence[Hit], known: set[str]) -> list[Quote]:
        """What was recalled, messages in whole; the notes are there already."""
        wanted = [hit for hit in hits if hit.kind != "note" and hit.id not in known]
        cut = [hit.id for hit in wanted if hit.kind == "message" and may_be_a_part(hit)]
        user, nothing = self.scope.whole_user(), list[LogEntry]()
        whole = self._try("memories", lambda: self.store.find(user, cut), nothing)
        # Several sessions may know one id, each with words of its own.
        texts: dict[tuple[str | None, str], str] = {
            (it.session_id, it.message.message_id): it.message.text for it in whole
        }
        return [quote_of(hit, texts.get((hit.session_id, hit.id))) for hit in wanted]

    def _note(self) -> str:
        note = self.store.note(self.scope)
        return note.text if note else ""

    def _past(self, beside: int) -> tuple[Summary | None, Tail]:
        """The summary of the session and the messages after it.

        A summary that was made for a smaller window stands for more than it need: then an older
        one does, or none, and more is shown as it was said: what fits `beside` the rest without
        being summarised again.
        """
        if self.scope.session is None:
            return None, Tail()
        session = self._session
        newest = self._try("summary", lambda: self.store.summary(session), None)
        tail = self._read_tail(newest)
        if newest is None or newest.asked or tail.more:
            return newest, tail
        room = int((self.window.threshold - beside) * AMPLE) - newest.tokens
        least = newest.tokens_before + tail.tokens - room
        older: Summary | None = None
        if least > 0:
            older = (
                self._try("summary", lambda: self.store.summary(session, least=least), None)
                or newest
            )
        if older is not None and older.last_seq >= newest.last_seq:
            return newest, tail
        return older, self._read_tail(older)

    def _read_tail(self, summary: Summary | None) -> Tail:
        after, room = summary.last_seq if summary else None, self.window.budget
        return self._try(
            "history",
            lambda: read_tail(self.store, self._session, self.counter, room, after=after),
            Tail(),
        )

    def _known(self, tail: Tail, question: Message) -> set[str]:
        """The ids under which the question may have been stored before."""
        newest = tail.entries[-1].message if tail.entries else question
        is_asked = newest.role == "user" and _content(newest) == _content(question)
        return {question.message_id, newest.message_id} if is_asked else {question.message_id}

    def _system(self) -> Message | None:
        """The prompt that the session begins with."""
        if self.scope.session is None:
            return None
        nothing = list[LogEntry]()
        first = self._try(
            "system", lambda: self.store.following(self._session, after=0, limit=1), nothing
        )
        return first[0].message if first and first[0].message.role == "system" else None

    def _prompt(self, own: Message | None) -> str:
        """The prompt given, or else the session's own."""
        given: str | None = self.given.get("system")
        return given if given is not None else own.text if own is not None else ""

    def _blocks(self, entries: Sequence[LogEntry], known: set[str]) -> list[Block]:
        rest = [entry for entry in entries if entry.message.message_id not in known]
        return blocks_of(rest, self.counter, self._read_image)[0]

    def _articles(self, question: str) -> Callable[[int], Sequence[Quote]] | None:
        shelf: ArticleSource | None = self.given.get("library")
        if shelf is None or not self.window.articles:
            return None
        return lambda room: self._try(
            "articles", lambda: shelf.quotes(question, room, self.counter), ()
        )

    def _compressed(
        self, material: WindowInput, tail: Tail, known: set[str]
    ) -> tuple[Assembly, Compression | None]:
        """A window to fill, with older turns as a summary if they are too much for it.

        Many are left to the background: this time they are cut, the next time they are there.
        """
        assembly = Assembly(self.window, self.counter, material)
        is_asked = bool(tail.entries) and tail.entries[-1].message.message_id in known
        going = split(tail.entries, self.window.keep_last + is_asked)
        if not going or not (tail.more or self._is_worth_it(assembly, tail.entries[:going])):
            return assembly, None
        if tail.more or going > MANY:
            last_seq = tail.entries[going - 1].seq
            ask_for = self.summarizer().ask_for
            self._try("summary", lambda: ask_for(self._session, last_seq), None)
            return assembly, None
        done = self._try("summary", lambda: self.take_in(material, tail, going), None)
        if done is None:
            return assembly, None
        blocks = self._blocks(tail.entries[going:], known)
        material = replace(material, summary=done.summary, blocks=blocks)
        return Assembly(self.window, self.counter, material), done

    def _is_worth_it(self, assembly: Assembly, going: Sequence[LogEntry]) -> bool:
        """Whether the window is too full, and would be less so by more than a turn or two."""
        if assembly.demand() <= self.window.threshold:
            return False
        tokens = sum(self.counter.messages([entry.message for entry in going]))
        return tokens >= self.window.max_tokens * LEAST_GAIN

    def take_in(self, material: WindowInput, tail: Tail, going: int) -> Compression | None:
        """Extend the summary by so many messages. For subclasses: it may be kept elsewhere."""
        return self.summarizer().take_in(
            self._session,
            tail.entries[:going],
            material.summary,
            style_of(self.window, self.counter),
        )

    @property
    def _session(self) -> Scope:
        """The session with this agent: another's is as good as none."""
        return self.scope

    @property
    def _read_image(self) -> ReadImage | None:
        read: ReadImage | None = self.given.get("read_image", encode_image)
        return read

    def _try(self, what: str, read: Callable[[], T], otherwise: T) -> T:
        """What is read, or else note why not: a conversation goes on without its memory."""
        try:
            return read()
        except InvalidError:
            raise  # the caller's mistake
        except ConflictError:
            return otherwise  # somebody changed it just now; the next request will see
        except MemoristError as error:
            self.failed[what] = str(error)
            log.warning("a context was made without its %s: %s", what, error)
            return otherwise


def _content(message: Message) -> Any:
    """What a message says and shows, whatever it is called by."""
    wire = to_chat_message(message, str)  # images stay what they are named: they need not be read
    return wire and wire["content"]
