"""The context builder: gathers the parts, fits them to a window, and compresses older turns."""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from memorist import metrics
from memorist.context.assemble import Assembly, WindowInput, parts_of
from memorist.context.chat_format import Block, blocks_of, to_chat_message
from memorist.context.compression.compress import CHUNK, Style, style_of
from memorist.context.quote import Quote, may_be_a_part, near_the_best, quote_of
from memorist.context.tokens import TokenCounter
from memorist.context.window import Context, Part, Receipt, Window
from memorist.errors import ConflictError, InvalidError, MemoristError
from memorist.providers.images import ReadImage, encode_image, stored_reader
from memorist.records.documents import Compression, Summary
from memorist.records.log import LogEntry
from memorist.records.message import Message
from memorist.records.query import RECALL_DEADLINE_MS, Hit, Recall
from memorist.records.scope import Scope
from memorist.store.base import Store

FIRST_PAGE = CHUNK + 1  # messages, which are read in any case
PAGE_BYTES = 8 * 1024 * 1024  # of messages that are read at once
MAX_READ_BYTES = 16 * 1024 * 1024  # of messages, to tell which of them to summarise
TOOL_RESULT_REACH = 1_000  # messages searched for calls whose results must stay with them
LEAST_GAIN = 0.1  # of the window, that a summary must replace
AMPLE = 0.8  # of the threshold: a fuller window would soon be summarised again
LONG_MS = 100.0  # a deadline that leaves time for more hits
LEAST_HITS = 10
HITS_IN_TIME = 100  # the most for a shorter deadline
TOKENS_PER_HIT = 20  # that a quotation takes at least

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger("memorist.context")


class Compressor(Protocol):
    """Extends the summary of a session: at once, or in the background."""

    def take_in(
        self, scope: Scope, entries: Sequence[LogEntry], previous: Summary | None, style: Style
    ) -> Compression | None: ...
    def ask_for(self, scope: Scope, last_seq: int) -> None: ...


class ArticleSource(Protocol):
    """Where articles come from: a `Library`, or anything that quotes what fits."""

    def quotes(
        self, question: str, max_tokens: int, counter: TokenCounter, *, deadline_ms: float | None
    ) -> Sequence[Quote]: ...


@dataclass(frozen=True, slots=True)
class Tail:
    """The newest messages in order, and whether older ones were left unread.

    `counts` are the tokens of each, where they were counted.
    """

    entries: Sequence[LogEntry] = ()
    counts: Sequence[int] | None = None
    more: bool = False

    @property
    def tokens(self) -> int:
        return sum(self.counts or ())


def split(entries: Sequence[LogEntry], keep_last: int) -> int:
    """How many of the first messages may be summarised.

    The last `keep_last` stay, and so does a tool call whose result stays.
    """
    if not any(entry.message.tool_calls for entry in entries):
        return max(len(entries) - keep_last, 0)
    answered = {it.message.answered_call_id() for it in entries if it.message.role == "tool"}
    open_calls: set[str] = set()
    count = 0
    for place, entry in enumerate(entries[: max(len(entries) - keep_last, 0)], start=1):
        message = entry.message
        if message.role == "tool":
            open_calls.discard(message.answered_call_id() or "")
        open_calls.update(call.call_id for call in message.tool_calls if call.call_id in answered)
        if not open_calls:
            count = place
    return count


def last_to_summarise(store: Store, scope: Scope, keep_last: int) -> int | None:
    """The seq up to which a session may be summarised; None if nothing is left to summarise."""
    newest = store.summary(scope)
    read = partial(
        store.history, scope, after=newest.last_seq if newest else None, max_bytes=MAX_READ_BYTES
    )
    entries = read(last=keep_last + TOOL_RESULT_REACH)
    ended = entries[: split(entries, keep_last)][-1:]
    if entries and not ended:  # there may be older ones, where these are long
        ended = read(last=1, before=entries[0].seq)
    return ended[0].seq if ended else None


@dataclass(slots=True, kw_only=True)
class ContextBuilder:
    """Builds one context. What cannot be read is left out and noted in `failed`."""

    store: Store  # here, or that of a remote memory
    search: Callable[..., Recall]
    summarizer: Callable[[], Compressor]
    scope: Scope
    window: Window
    counter: TokenCounter
    system: str | None = None  # instead of the session's own prompt
    tools: Sequence[Mapping[str, Any]] = ()
    library: ArticleSource | None = None
    deadline_ms: float | None = RECALL_DEADLINE_MS
    read_image: ReadImage | None = encode_image
    failed: dict[str, str] = field(default_factory=dict)

    def context(self, question: Message) -> Context:
        """The messages for a model, and the receipt, which is logged."""
        began = time.perf_counter()
        with metrics.span("memorist.context"):
            context = self._context(question)
        took = time.perf_counter() - began
        context.receipt.timings_ms["context"] = took * 1_000
        metrics.record("memorist.context.duration", took)
        log.info("%s", context.receipt)
        return context

    def _context(self, question: Message) -> Context:
        if question.role != "user" or _content(question) is None:
            raise InvalidError("the question must be a user's message, and must not be empty")
        own = self._session_prompt()
        system = self.system if self.system is not None else own.text if own is not None else ""
        known = {question.message_id, *([own.message_id] if own is not None else ())}
        assembly, recall = self.gather(question, system, self.tools, known)
        summary, tail = self.read_history(assembly.demand)
        newest = tail.entries[-1].message if tail.entries else question
        if newest.role == "user" and _content(newest) == _content(question):  # already stored
            known.add(newest.message_id)
        blocks = self.blocks(tail.entries, known, tail.counts)
        assembly.add_history(blocks, summary, older=tail.more, known=known)
        compression = self.compress(assembly, tail, known)
        draft = assembly.fill()
        receipt = self.receipt(self.window, parts_of(draft, self.counter), recall, compression)
        messages = draft.messages()
        return Context(messages=messages, receipt=receipt, tools=self.tools, recall=recall)

    def gather(
        self,
        question: Message,
        system: str,
        tools: Sequence[Mapping[str, Any]],
        known: Collection[str],
    ) -> tuple[Assembly, Recall]:
        """An assembly with all but the session's history, and what was recalled.

        Messages whose ids are `known` are not quoted.
        """
        recall = self.recall(question.text)
        note = self.attempt("notes", None, self.store.note, self.scope)
        asked = to_chat_message(question, self.read_image) or {"role": "user", "content": ""}
        inputs = WindowInput(
            question=asked,
            system=system,
            tools=tools,
            note=note.text if note else "",
            memories=self._quotes(recall.hits, known),
            articles=self._articles(question.text),
        )
        return Assembly(self.window, self.counter, inputs), recall

    def recall(self, question: str) -> Recall:
        """What is remembered of this user and agent, in all sessions.

        A subclass may have begun to look for it already.
        """
        if not self.window.memories:
            return Recall(hits=())
        scope = Scope(user=self.scope.user, tenant=self.scope.tenant, agent=self.scope.agent)
        most = max(self.window.budget // TOKENS_PER_HIT, LEAST_HITS)
        limit = min(most, self.window.most_memories)
        if self.deadline_ms is not None and self.deadline_ms < LONG_MS:
            limit = min(limit, HITS_IN_TIME)
        options = {
            "limit": limit,
            "min_score": self.window.min_score,
            "deadline_ms": self.deadline_ms,
        }
        return self.attempt("recall", Recall(hits=()), self.search, scope, question, **options)

    def _quotes(self, hits: Sequence[Hit], known: Collection[str]) -> list[Quote]:
        """The hits as quotations, messages in whole; notes have a part of their own."""
        wanted = [hit for hit in hits if hit.kind != "note" and hit.id not in known]
        if self.window.min_score:
            wanted = near_the_best(wanted)
        cut = [hit.id for hit in wanted if hit.kind == "message" and may_be_a_part(hit)]
        entries = self.entries("memories", self.scope.whole_user(), cut)
        # Several sessions may have a message of one id.
        texts = {(it.session_id or "", it.message.message_id): it.message.text for it in entries}
        return [quote_of(hit, texts.get((hit.session_id or "", hit.id))) for hit in wanted]

    def entries(self, what: str, scope: Scope, ids: Sequence[str]) -> Sequence[LogEntry]:
        """The messages with these ids; none, and a note in `failed`, if they cannot be read."""
        return self.attempt(what, [], self.store.find, scope, ids) if ids else []

    def _articles(self, question: str) -> Callable[[int], Sequence[Quote]] | None:
        if self.library is None or not self.window.articles:
            return None
        find = partial(self.library.quotes, deadline_ms=self.deadline_ms)
        return lambda room: self.attempt("articles", (), find, question, room, self.counter)

    def _session_prompt(self) -> Message | None:
        """The system message that the session begins with, if it does."""
        if self.scope.session is None:
            return None
        first = self.attempt("system", [], self.store.following, self.scope, after=0, limit=1)
        return first[0].message if first and first[0].message.role == "system" else None

    def read_history(self, demand: Callable[[], int]) -> tuple[Summary | None, Tail]:
        """The summary of the session and the messages after it; `demand` tells what the rest takes.

        A summary that was made for a smaller window covers more than it must. Then an older one
        is used, or none, if the messages after that fit without being summarised again.
        """
        if self.scope.session is None:
            return None, Tail()
        newest = self.attempt("summary", None, self.store.summary, self.scope)
        tail = self._read_tail(newest)
        if newest is None or newest.asked or tail.more:
            return newest, tail
        room = int((self.window.threshold - demand()) * AMPLE) - newest.tokens
        least = newest.tokens_before + tail.tokens - room
        older: Summary | None = None
        if least > 0:
            older = self.attempt("summary", None, self.store.summary, self.scope, least=least)
            older = older or newest
        if older is not None and older.last_seq >= newest.last_seq:
            return newest, tail
        return older, self._read_tail(older)

    def _read_tail(self, summary: Summary | None) -> Tail:
        return self.attempt("history", Tail(), self._tail, summary.last_seq if summary else None)

    def _tail(self, after: int | None) -> Tail:
        """The newest messages after a place in the log, until they take more than the budget.

        Up to `CHUNK` are read in any case, so that they can be summarised at once. Each page is
        twice as long as the last, so a long session costs no more than a short one.
        """
        entries, counts = list[LogEntry](), list[int]()
        page, before = FIRST_PAGE, None
        while sum(counts) <= self.window.budget or len(entries) <= CHUNK:
            older = self.store.history(
                self.scope, last=page, before=before, after=after, max_bytes=PAGE_BYTES
            )
            counts[:0] = self.counter.messages([entry.message for entry in older])
            entries[:0] = older
            if len(older) < page:
                return Tail(entries, counts, more=self._is_cut(older, after))
            before, page = older[0].seq, page * 2
        return Tail(entries, counts, more=True)

    def _is_cut(self, page: Sequence[LogEntry], after: int | None) -> bool:
        """Whether a short page ended at its bytes; of a few plain words, that need not be asked."""
        messages = [entry.message for entry in page]
        plain = all(type(it.content) is str and not it.images for it in messages)
        if plain and sum(len(str(it.content)) for it in messages) < PAGE_BYTES // 16:
            return False
        place = {"before": page[0].seq, "after": after} if page else {"before": 0, "after": 0}
        return bool(self.store.history(self.scope, last=1, **place, max_bytes=1))

    def blocks(
        self,
        entries: Sequence[LogEntry],
        known: Collection[str],
        counts: Sequence[int] | None = None,
    ) -> list[Block]:
        """The messages as blocks, without those whose ids are `known`; `counts`: their tokens."""
        places = [at for at, it in enumerate(entries) if it.message.message_id not in known]
        rest = [entries[at] for at in places]
        kept = None if counts is None else [counts[at] for at in places]
        return blocks_of(rest, self.counter, stored_reader(self.scope, self.read_image), kept)

    def compress(
        self, assembly: Assembly, tail: Tail, known: Collection[str]
    ) -> Compression | None:
        """Replace older turns by a summary if they are too many for the window.

        A great many are left to the background: this time they are cut, later summarised.
        """
        entries = tail.entries
        is_asked = bool(entries) and entries[-1].message.message_id in known
        count = split(entries, self.window.keep_last + is_asked)
        if not count:
            return None
        older = entries[:count]
        counts = tail.counts or self.counter.messages([entry.message for entry in older])
        counted = sum(counts[:count])
        if not tail.more and (
            counted < self.window.max_tokens * LEAST_GAIN
            or assembly.demand() <= self.window.threshold
        ):
            return None  # there is room, or a summary would free only a turn or two
        if tail.more or count > CHUNK:
            last_seq = entries[count - 1].seq
            self.attempt("summary", None, self.summarizer().ask_for, self.scope, last_seq)
            return None
        previous = assembly.inputs.summary
        done = self.attempt("summary", None, self.take_in, older, previous)
        if done is not None:
            assembly.add_history(self.blocks(entries[count:], known), done.summary)
        return done

    def take_in(self, entries: Sequence[LogEntry], previous: Summary | None) -> Compression | None:
        """Extend the summary by these messages. A subclass may keep it elsewhere."""
        style = style_of(self.window, self.counter)
        return self.summarizer().take_in(self.scope, entries, previous, style)

    def receipt(
        self,
        window: Window,
        parts: tuple[Part, ...],
        recall: Recall,
        compression: Compression | None,
    ) -> Receipt:
        """The receipt of a window that was filled with these parts."""
        return Receipt(
            window=window.max_tokens,
            answer=window.reserved,
            counted_by=self.counter.tokenizer.name,
            exact=self.counter.tokenizer.exact,
            parts=parts,
            compression=compression,
            timings_ms=dict(recall.timings_ms),
            late=recall.late,
            failed={**recall.failed, **self.failed},
        )

    def attempt(
        self, what: str, otherwise: T, read: Callable[P, T], *args: P.args, **options: P.kwargs
    ) -> T:
        """The result of `read`, or `otherwise` if that fails, which is noted and logged."""
        try:
            return read(*args, **options)
        except InvalidError:
            raise  # the caller's mistake
        except ConflictError:
            return otherwise  # changed by another just now; the next request will see it
        except MemoristError as error:
            self.failed[what] = str(error)
            log.warning("a context was made without its %s: %s", what, error)
            return otherwise


def _content(message: Message) -> Any:
    """The content of a message, with images by their names: they need not be read."""
    sent = to_chat_message(message, str)
    return sent and sent["content"]
