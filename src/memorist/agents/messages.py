"""LangChain messages as ours and back, with their ids; results of tools as they are stored."""

import base64
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import date, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from memorist.context.tokens import TokenCounter
from memorist.errors import MessageError, needs_extra
from memorist.records.documents import Summary
from memorist.records.json_values import map_json
from memorist.records.langchain import from_stored, to_dict
from memorist.records.log import LogEntry
from memorist.records.message import Message, extras
from memorist.records.scope import Scope
from memorist.records.values import UNSTORABLE, new_id

with needs_extra("langchain"):
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        HumanMessage,
        RemoveMessage,
        SystemMessage,
        ToolMessage,
    )
    from langchain_core.messages.base import BaseMessageChunk, message_to_dict
    from langchain_core.messages.utils import message_chunk_to_message, messages_from_dict
    from pydantic import ValidationError

UNPLACED = 0  # the sequence number of what is not in the log, which begins with 1
ERROR_CHARS = 200
_KINDS: dict[str, type[BaseMessage]] = {"user": HumanMessage, "assistant": AIMessage}
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_WRITTEN = (date, time, Decimal, UUID, PurePath)  # stored as what `str` makes of them
_TOO_DEEP = 128

log = logging.getLogger("memorist")


def to_langchain(message: Message, encode_image: Callable[[str], str] | None = None) -> BaseMessage:
    """The LangChain message of a stored one; an encoder makes images visible to a model."""
    kind, content = _KINDS.get(message.role), message.content
    if kind and type(content) is str and not extras(message) and not UNSTORABLE.search(content):
        return kind(content=content, id=message.message_id)  # as most are, at every turn
    try:
        return messages_from_dict([to_dict(message, encode_image)])[0]
    except ValidationError:  # its stored extra fields do not fit LangChain's class
        return messages_from_dict([to_dict(message, encode_image, usual=True)])[0]


def from_langchain(message: BaseMessage) -> Message:
    """The message to store; one without an id gets a new one. What is not JSON is left out."""
    if not isinstance(message, BaseMessage):
        raise MessageError(f"message must be a LangChain message, got {type(message).__name__}")
    if isinstance(message, RemoveMessage):
        raise MessageError("a RemoveMessage has nothing to store; forget the message instead")
    if isinstance(message, BaseMessageChunk):
        message = message_chunk_to_message(message)
    return from_stored(_json(message_to_dict(message)))


def _json(value: Any) -> Any:
    """The value as JSON; what JSON cannot hold is left out, with a warning in the log.

    Not pydantic's converter, which would read a generator to its end.
    """
    too_deep = MessageError(f"message is nested more than {_TOO_DEEP} levels deep")
    return map_json(value, _json_value, str, depth=_TOO_DEEP, too_deep=too_deep)


def _json_value(value: Any) -> Any:
    if isinstance(value, Enum):
        value = value.value
    if hasattr(value, "model_dump") and not isinstance(value, type):
        value = value.model_dump()
    if value is None or isinstance(value, str | int | float | Mapping | list | tuple):
        return value
    if isinstance(value, set | frozenset):
        return list(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, _WRITTEN):
        return str(value)
    log.warning("a %s in a message is not JSON and was not stored with it", type(value).__name__)
    return None


def is_stored_kind(message: BaseMessage) -> bool:
    """Whether a message of the agent's state belongs into the log."""
    return not (isinstance(message, RemoveMessage | SystemMessage) or is_others_summary(message))


def is_others_summary(message: BaseMessage) -> bool:
    """Whether another middleware's summary, put in the place of messages."""
    return message.additional_kwargs.get("lc_source") == "summarization"


def entry_of(message: BaseMessage, seq: int = UNPLACED) -> LogEntry:
    """The message as the log would hold it; only its text if the log could not store it."""
    try:
        ours = from_langchain(message)
    except MessageError:
        ours = Message(_ROLES.get(message.type, "user"), str(message.text))
    return LogEntry(seq, "", ours.role, ours)


def unstored_summary(text: str, scope: Scope, counter: TokenCounter) -> Summary:
    """A text as the summary of messages that are not in the log."""
    tokens = counter.text(text)
    return Summary(
        scope=scope,
        text=text,
        last_seq=UNPLACED,
        messages=0,
        made_by="state",
        tokens_before=tokens,
        tokens=tokens,
    )


def tool_results(
    call: Mapping[str, Any], messages: list[ToolMessage], took_ms: float
) -> Iterator[Message]:
    """The results of a tool call as they are stored: with arguments, success and duration."""
    for message in messages:
        message.id = message.id or new_id()  # the same in the state and the log
        error = str(message.text)[:ERROR_CHARS] if message.status == "error" else None
        yield _with_call(from_langchain(message), call, took_ms, error)


def tool_failure(call: Mapping[str, Any], error: Exception, took_ms: float) -> Message:
    """The stored result of a tool that raised and so ended the run."""
    reason = f"{type(error).__name__}: {error}"[:ERROR_CHARS]
    message = Message("tool", reason, name=call["name"], tool_call_id=call["id"] or "")
    return _with_call(message, call, took_ms, reason)


def _with_call(message: Message, call: Mapping[str, Any], ms: float, error: str | None) -> Message:
    use = {"arguments": call["args"], "success": error is None, "duration_ms": round(ms, 3)}
    data = {**(message.structured_data or {}), **use}
    if error is not None:
        data["error"] = error
    return message.changed(structured_data=data, name=message.name or call["name"])


def tool_messages(result: Any) -> list[ToolMessage]:
    """The messages that a tool answered with; a Command may hold none."""
    if isinstance(result, ToolMessage):
        return [result]
    update = getattr(result, "update", None)  # of LangGraph's Command
    messages = update.get("messages") or () if isinstance(update, Mapping) else ()
    return [message for message in messages if isinstance(message, ToolMessage)]


def field_of(place: Any, name: str) -> Any:
    """A field of a mapping or of an object: LangGraph's contexts and states may be either."""
    return place.get(name) if isinstance(place, Mapping) else getattr(place, name, None)
