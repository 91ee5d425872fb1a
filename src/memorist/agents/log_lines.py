"""LogLine: a conversation as the agent's state has it, joined with what the log has before it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from memorist.agents.messages import entry_of, is_others_summary, to_langchain
from memorist.context.chat_format import NO_RESULT
from memorist.records.message import LogEntry


@dataclass(frozen=True, slots=True)
class LogLine:
    """A message of the log, or as the log would hold it, with its LangChain form."""

    entry: LogEntry
    message: BaseMessage
    restored: bool = False

    @property
    def id(self) -> str:
        return self.entry.message.message_id


def join(
    messages: Sequence[BaseMessage],
    log: Sequence[LogEntry],
    known: Mapping[str, LogEntry],
    stored_id: Callable[[str], str],
) -> list[LogLine]:
    """The log's messages before the first one of the state, and then the state's.

    `known` are the log's entries of the state's messages, by the ids they are stored under.
    """
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
    """Each call of a tool followed by its result, as every API wants it.

    A result without a call is dropped; a call without a result, as after a crash, gets one.
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
