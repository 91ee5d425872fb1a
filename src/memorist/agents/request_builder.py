"""RequestBuilder: one request of an agent, filled with notes, memories and a summary."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from memorist.agents.messages import (
    UNPLACED,
    entry_of,
    is_others_summary,
    to_langchain,
    unstored_summary,
)
from memorist.context.assemble import NOTES, NOTES_INTRO, Assembly, WindowDraft, parts_of
from memorist.context.builder import ContextBuilder, Tail
from memorist.context.chat_format import NO_RESULT
from memorist.context.compression.compress import compress, style_of
from memorist.context.quote import quoted
from memorist.context.window import Part, Receipt
from memorist.errors import ConflictError, StoreError, WindowError
from memorist.records.documents import Compression, Summary
from memorist.records.log import LogEntry
from memorist.records.query import Recall

Request = ModelRequest[Any]
ModelReply = ModelResponse[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltRequest:
    """A request ready for the model; unchanged if there is no memory.

    `tight`: the window is nearly full, or something is left out that no summary covers. `gone`:
    the ids of the state's messages that a stored summary covers. `moved`: why another model is
    asked.
    """

    request: Request
    receipt: Receipt | None = None
    recall: Recall | None = None
    summary: str = ""
    gone: tuple[str, ...] = ()
    tight: bool = False
    moved: str = ""
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogLine:
    """A message of the log, or as the log would hold it, with its LangChain form."""

    entry: LogEntry
    message: BaseMessage
    restored: bool = False

    @property
    def id(self) -> str:
        return self.entry.message.message_id


@dataclass(kw_only=True)
class RequestBuilder(ContextBuilder):
    """Builds one request: the log's older messages, the state's, notes, memories and articles.

    `recalled` gives the recall that began with the run, `stored_id` the id that a message of the
    state has in the log. `prior` is the summary in the state, for when the store cannot be read.
    `restore` adds messages that only the log has; `trim_state` lets the state drop what a summary
    covers.
    """

    recalled: Callable[[], Recall]
    stored_id: Callable[[str], str]
    prior: str = ""
    restore: bool = True
    trim_state: bool = True
    _log: Tail = field(default_factory=Tail)
    _all: Sequence[LogLine] = ()
    _recall: Recall = field(default_factory=lambda: Recall(hits=()))
    _unstored: bool = False
    _newest_tokens: int = 0  # of the newest round of calls, which is sent in any case

    def build(self, request: Request) -> BuiltRequest:
        """The request with what is remembered, in no more tokens than the window holds."""
        window, own = self.window, request.system_message
        assembly = self._gathered(request)
        summary, lines = self._lines(request.messages, assembly)
        messages = [line.message for line in lines]
        at = asked_at(messages)
        newest = lines[newest_round(messages, at) :]
        fixed = {lines[at].id, *(line.id for line in newest)}
        tail = Tail([line.entry for line in lines], more=self._log.more)
        blocks = self.blocks(tail.entries, fixed)
        assembly.add_history(blocks, summary, older=tail.more, known=fixed)
        try:
            compression, fits = self.compress(assembly, tail, fixed), True
            draft = assembly.fill()
        except WindowError:  # not even the system prompt, the tools and the question fit
            draft, compression, fits = WindowDraft(inputs=assembly.inputs), None, False
        if not isinstance(messages[at], HumanMessage):  # only a user's question has quotes above it
            draft = replace(draft, memories=(), articles=())
        shown = fixed.union(*(block.ids for block in draft.blocks))
        kept = paired([line.message for line in lines if line.id in shown])
        parts = self._parts(draft)
        receipt = self.receipt(window, parts, self._recall, compression)
        asked = messages[at]
        question = asked.model_copy(update={"content": draft.below_quotes(asked.content)})
        sent: list[Any] = [HumanMessage(it["content"]) for it in draft.opening()]
        sent += [question if it is asked else it for it in kept]
        filled = request.override(system_message=system_with(own, draft), messages=sent)
        needed = sum(it.tokens for it in parts if it.name not in ("memories", "articles"))
        near = needed > window.max_tokens * window.move_at
        return BuiltRequest(
            request=filled,
            receipt=receipt,
            recall=self._recall,
            summary=draft.summary,
            gone=self._gone(draft, request.state["messages"]),
            tight=near or not fits or len(draft.blocks) < len(draft.inputs.blocks),
        )

    def _gathered(self, request: Request) -> Assembly:
        """Everything but the earlier messages; the window shrinks by the newest round of calls."""
        messages, own = request.messages, request.system_message
        at = asked_at(messages)
        newest = [_as_sent(entry_of(it)) for it in messages[newest_round(messages, at) :]]
        tokens = self._newest_tokens = sum(block.tokens for block in self.blocks(newest, ()))
        left = max(self.window.max_tokens - tokens, (self.window.answer_tokens or 0) + 1)
        compress_at = min(max(self.window.threshold - tokens, 0) / left, 1.0)
        self.window = replace(self.window, max_tokens=left, compress_at=compress_at)
        question, system = entry_of(messages[at]).message, str(own.text) if own is not None else ""
        known = {question.message_id}
        assembly, self._recall = self.gather(question, system, schemas_of(request), known)
        return assembly

    def _lines(
        self, messages: Sequence[BaseMessage], assembly: Assembly
    ) -> tuple[Summary | None, list[LogLine]]:
        """The summary, and all messages that it does not cover."""

        def demand() -> int:
            try:
                return assembly.demand()
            except WindowError:
                return self.window.budget

        summary, self._log = self.read_history(demand)
        if summary is None and self.prior and self.failed:
            summary = self._summary_of(self.prior)
        known = {entry.message.message_id: entry for entry in self._log.entries}
        ids = [self.stored_id(message.id or "") for message in messages]
        missing = [id_ for id_ in ids if id_ not in known]
        if missing and self.scope.session is not None:
            more = self.entries("history", self.scope, missing)
            known |= {entry.message.message_id: entry for entry in more}
        before = self._log.entries if self.restore else ()
        self._all = join(messages, before, known, self.stored_id)
        out = covered(self._all, summary.last_seq) if summary else set()
        return summary, [line for line in self._all if line.id not in out]

    def _summary_of(self, text: str) -> Summary:
        scope = self.scope.within(session=self.scope.session or "unknown")
        return unstored_summary(text, scope, self.counter)

    def recall(self, question: str) -> Recall:
        """The recall that began with the run."""
        return self.recalled() if self.window.memories and question else Recall(hits=())

    def take_in(self, entries: Sequence[LogEntry], previous: Summary | None) -> Compression | None:
        """Extend the session's summary; one that cannot be stored serves this request only."""
        style = style_of(self.window, self.counter)
        upto = max(entry.seq for entry in entries)
        log = [entry for entry in self._log.entries if entry.seq <= upto]
        try:
            if log and all(entry.seq != UNPLACED for entry in entries):
                return self.summarizer().take_in(self.scope, log, previous, style)
        except (StoreError, ConflictError) as error:
            self.failed["summary"] = str(error)
        self._unstored = True
        scope = self._summary_of("").scope
        done = compress(entries, scope=scope, style=style, previous=previous)
        return done if done.saved > 0 else None

    def _gone(self, draft: WindowDraft, state: Sequence[BaseMessage]) -> tuple[str, ...]:
        """The ids of the state's messages that a stored summary covers: the state may drop them."""
        summary = draft.inputs.summary
        if summary is None or self._unstored or not self.trim_state:
            return ()
        out = covered(self._all, summary.last_seq)
        held = {message.id for message in state}
        ids = [line.message.id for line in self._all if line.id in out and not line.restored]
        return tuple(id_ for id_ in ids if id_ and id_ in held)

    def _parts(self, draft: WindowDraft) -> tuple[Part, ...]:
        """The tokens of each part; the newest round of calls is history, too."""
        return tuple(
            replace(part, tokens=part.tokens + self._newest_tokens * (part.name == "history"))
            for part in parts_of(draft, self.counter)
        )


def system_with(own: SystemMessage | None, draft: WindowDraft) -> SystemMessage | None:
    """The agent's own system message with the notes in their place, or at its end."""
    if own is not None and not isinstance(own.content, str):
        return own.model_copy(update={"content": _parts_with(own.content, draft.note)})
    prompt = "".join(message["content"] for message in draft.system())
    if own is None:
        return SystemMessage(prompt) if prompt else None
    return own.model_copy(update={"content": prompt})


def _parts_with(content: list[Any], note: str) -> list[Any]:
    """`system_with` for content that is a list of parts, which keep their other fields."""
    note = f"{NOTES_INTRO}\n{quoted(note)}" if note else ""
    placed = []
    for part in content:
        if isinstance(part, str):
            part = part.replace(NOTES, note)
        elif isinstance(part.get("text"), str):
            part = {**part, "text": part["text"].replace(NOTES, note)}
        placed.append(part)
    has_place = any(NOTES in str(part) for part in content)
    return placed if has_place or not note else [*placed, {"type": "text", "text": note}]


def schemas_of(request: Request) -> list[dict[str, Any]]:
    """The schemas that are sent with a request: of its tools and of its response format."""
    response_format = request.response_format
    specs = getattr(response_format, "schema_specs", None)
    formats = [
        {"name": spec.name, "description": spec.description, "parameters": spec.json_schema}
        for spec in specs or [getattr(response_format, "schema_spec", None)]
        if spec is not None
    ]
    tools = [it if isinstance(it, dict) else convert_to_openai_tool(it) for it in request.tools]
    return [*tools, *formats]


def join(
    messages: Sequence[BaseMessage],
    log: Sequence[LogEntry],
    known: Mapping[str, LogEntry],
    stored_id: Callable[[str], str],
) -> list[LogLine]:
    """The log's messages before those of the state, and the state's, with their `known` entries."""
    ids = [stored_id(message.id or "") for message in messages]
    index = {entry.message.message_id: number for number, entry in enumerate(log)}
    first = min((index[id_] for id_ in ids if id_ in index), default=len(log))
    earlier = [] if any(map(is_others_summary, messages)) else log[:first]
    lines = [
        LogLine(_as_sent(entry), to_langchain(entry.message), restored=True)
        for entry in earlier
        if entry.message.role != "system"
    ]
    return lines + [
        LogLine(_as_sent(known[id_] if id_ in known else entry_of(message)), message)
        for id_, message in zip(ids, messages, strict=True)
    ]


def _as_sent(entry: LogEntry) -> LogEntry:
    """The entry with tool calls as LangChain writes them: with spaces, which take tokens."""
    message = entry.message
    if not message.tool_calls:
        return entry
    calls = [replace(call, arguments=_spaced(call.arguments)) for call in message.tool_calls]
    return entry._replace(message=replace(message, tool_calls=calls))


def _spaced(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments


def asked_at(messages: Sequence[BaseMessage]) -> int:
    """The index of the question: the user's last message, or else the last of all."""
    asked = [at for at, message in enumerate(messages) if isinstance(message, HumanMessage)]
    return asked[-1] if asked else len(messages) - 1


def newest_round(messages: Sequence[BaseMessage], asked: int) -> int:
    """The index of the newest calls of tools after the question, or else the end."""
    later = range(asked + 1, len(messages))
    calls = [at for at in later if isinstance(messages[at], AIMessage)]
    return calls[-1] if calls else len(messages)


def paired(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Each tool call with its result, as APIs need it: orphans go, a lost result is replaced."""
    results: dict[str, list[ToolMessage]] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            results.setdefault(message.tool_call_id, []).append(message)
    made: list[BaseMessage] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            continue
        made.append(message)
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                id_ = call["id"] or ""
                missing = ToolMessage(NO_RESULT, tool_call_id=id_)
                made.append(results[id_].pop(0) if results.get(id_) else missing)
            bad = [call["id"] or "" for call in message.invalid_tool_calls]
            made += [results[id_].pop(0) for id_ in bad if results.get(id_)]
    return made


def covered(lines: Sequence[LogLine], last_seq: int) -> set[str]:
    """The ids of lines that a summary up to `last_seq` covers, except the running turn."""
    running = {line.id for line in lines[asked_at([line.message for line in lines]) :]}
    return {line.id for line in lines if 0 < line.entry.seq <= last_seq} - running
