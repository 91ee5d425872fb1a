"""Messages as columns: plain text apart, all the rest as one JSON text."""

from __future__ import annotations

import json
from typing import Any

from recollect.records.ids import from_micros
from recollect.records.message import AgentCallMsg, Message, ToolCallMsg
from recollect.records.text import dump_json

_CALL_FIELDS = ("id", "call_id", "type", "name", "arguments")
_NOTHING: dict[str, Any] = {}


def split(message: Message) -> tuple[str | None, str | None]:
    """A message's text, and JSON of what is not plain text (None if there is nothing)."""
    content = message.content
    text = content if isinstance(content, str) else None
    extras: dict[str, Any] = {}
    if content is not None and text is None:
        extras["content"] = content
    for name in ("name", "tool_call_id", "structured_data"):
        if (value := getattr(message, name)) is not None:
            extras[name] = value
    if message.tool_calls:
        extras["tool_calls"] = [
            [getattr(call, name) for name in _CALL_FIELDS] for call in message.tool_calls
        ]
    if message.agent_calls:
        extras["agent_calls"] = [[call.agent_name, call.request] for call in message.agent_calls]
    if message.images:
        extras["images"] = list(message.images)
    return text, dump_json(extras) if extras else None


def join(
    message_id: str, role: str, created_at: int, text: str | None, extras: str | None
) -> Message:
    """The message that was split. It was validated on its way in and is not checked again."""
    more: dict[str, Any] = json.loads(extras) if extras else _NOTHING
    message = object.__new__(Message)
    message.__dict__.update(
        role=role,
        content=more.get("content") if text is None else text,
        message_id=message_id,
        name=None,
        tool_calls=(),
        agent_calls=(),
        structured_data=None,
        images=(),
        tool_call_id=None,
        created_at=from_micros(created_at),
    )
    if more:
        message.__dict__.update(
            name=more.get("name"),
            tool_calls=tuple(ToolCallMsg(*call) for call in more.get("tool_calls", ())),
            agent_calls=tuple(AgentCallMsg(*call) for call in more.get("agent_calls", ())),
            structured_data=more.get("structured_data"),
            images=tuple(more.get("images", ())),
            tool_call_id=more.get("tool_call_id"),
        )
    return message
