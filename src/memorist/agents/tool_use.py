"""Tool use as it is stored: with its arguments, whether it did its work, and how long it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memorist.errors import MissingExtraError

try:
    from langchain_core.messages import ToolMessage
    from langgraph.types import Command
except ImportError as error:
    raise MissingExtraError("agents") from error

from memorist.agents.messages import from_langchain
from memorist.records.ids import new_id
from memorist.records.message import Message

ERROR_CHARS = 200


def results_of(call: Mapping[str, Any], result: Any, took_ms: float) -> Iterator[Message]:
    """The messages that a tool answered with, each as it is to be stored.

    One without an id gets it here, so that the state's and the log's are the same.
    """
    for message in _messages(result):
        message.id = message.id or new_id()
        failed = message.status == "error"
        error = str(message.text)[:ERROR_CHARS] if failed else None
        yield _told(from_langchain(message), call, took_ms, error)


def failure(call: Mapping[str, Any], error: Exception, took_ms: float) -> Message:
    """What stands in the log for a tool that raised, and with that ended the run."""
    why = f"{type(error).__name__}: {error}"[:ERROR_CHARS]
    said = Message("tool", why, name=call["name"], tool_call_id=call["id"] or "")
    return _told(said, call, took_ms, why)


def _told(message: Message, call: Mapping[str, Any], took_ms: float, error: str | None) -> Message:
    about = {"arguments": call["args"], "success": error is None, "duration_ms": round(took_ms, 3)}
    more = {"error": error} if error is not None else {}
    data = {**(message.structured_data or {}), **about, **more}
    return message.changed(structured_data=data, name=message.name or call["name"])


def _messages(result: Any) -> Iterator[ToolMessage]:
    if isinstance(result, ToolMessage):
        yield result
    elif isinstance(result, Command) and isinstance(result.update, Mapping):
        said = result.update.get("messages") or ()
        yield from (one for one in said if isinstance(one, ToolMessage))
