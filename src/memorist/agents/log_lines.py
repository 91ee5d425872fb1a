"""Lines: a conversation as the agent's state has it, joined with what the log has before it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from memorist.errors import MissingExtraError

try:
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        HumanMessage,
        RemoveMessage,
        SystemMessage,
        ToolMessage,
    )
except ImportError as error:
    raise MissingExtraError("agents") from error

from memorist.agents.messages import from_langchain, to_langchain
from memorist.context.turns import NO_RESULT
from memorist.errors import MessageError
from memorist.records.log import LogEntry
from memorist.records.message import Message

UNPLACED = 0  # the log begins with 1
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


@dataclass(frozen=True, slots=True)
class Line:
    """A message as the log has it, or would, and as the agent has it."""

    entry: LogEntry
    message: BaseMessage
    restored: bool = False

    @property
    def id(self) -> str:
        return self.entry.message.message_id


def is_said(message: BaseMessage) -> bool:
    """Whether a message is part of what was said, and so to be stored."""
    return not (isinstance(message, RemoveMessage | SystemMessage) or is_others_summary(message))


def is_others_summary(message: BaseMessage) -> bool:
    """Whether another middleware put it in the place of what was said."""
    return message.additional_kwargs.get("lc_source") == "summarization"


def entry_of(message: BaseMessage, seq: int = UNPLACED) -> LogEntry:
    """The message as the log would have it; of what it cannot hold, the text."""
    try:
        ours = from_langchain(message)
    except MessageError:
        ours = Message(_ROLES.get(message.type, "user"), str(message.text))
    return LogEntry(seq, "", ours.role, ours)


def join(
    messages: Sequence[BaseMessage],
    log: Sequence[LogEntry],
    found: Mapping[str, LogEntry],
    stored_id: Callable[[str], str],
) -> list[Line]:
    """The log's messages before the first that the state holds, and then the state's.

    `found` are those of the state that the log has, by the ids they are stored under.
    """
    ids = [stored_id(message.id or "") for message in messages]
    places = {entry.message.message_id: place for place, entry in enumerate(log)}
    first = min((places[id_] for id_ in ids if id_ in places), default=len(log))
    earlier = [] if any(map(is_others_summary, messages)) else log[:first]
    lines = [
        Line(_as_sent(entry), to_langchain(entry.message), restored=True)
        for entry in earlier
        if entry.message.role != "system"
    ]
    return lines + [
        Line(_as_sent(found[id_] if id_ in found else entry_of(message)), message)
        for id_, message in zip(ids, messages, strict=True)
    ]


def _as_sent(entry: LogEntry) -> LogEntry:
    """The entry with calls written as LangChain writes them: with spaces, which are counted."""
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


def asked_at(said: Sequence[Line | BaseMessage]) -> int:
    """The place of the question: the last that a user said, or else the last of all."""
    places = [at for at, one in enumerate(said) if isinstance(_theirs(one), HumanMessage)]
    return places[-1] if places else len(said) - 1


def newest_round(said: Sequence[Line | BaseMessage], asked: int) -> int:
    """Where, after the question, the newest calls of tools begin, or else the end."""
    calls = [at for at in range(asked + 1, len(said)) if isinstance(_theirs(said[at]), AIMessage)]
    return calls[-1] if calls else len(said)


def _theirs(one: Line | BaseMessage) -> BaseMessage:
    return one.message if isinstance(one, Line) else one


def paired(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Each call of a tool followed by its result, as every API wants it.

    A result without a call goes; a call without a result, as a crash leaves it, gets one.
    """
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
            made += [_result(call["id"] or "", results) for call in message.tool_calls]
            bad = [call["id"] or "" for call in message.invalid_tool_calls]
            made += [results[id_].pop(0) for id_ in bad if results.get(id_)]
    return made


def _result(call_id: str, results: Mapping[str, list[ToolMessage]]) -> ToolMessage:
    waiting = results.get(call_id)
    return waiting.pop(0) if waiting else ToolMessage(NO_RESULT, tool_call_id=call_id)


def covered(lines: Sequence[Line], last_seq: int) -> set[str]:
    """The ids of lines that a summary up to a place stands for, but for the running turn."""
    turn = {line.id for line in lines[asked_at(lines) :]}
    return {line.id for line in lines if 0 < line.entry.seq <= last_seq} - turn
