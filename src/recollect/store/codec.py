"""Messages as columns: plain text apart, all the rest as one JSON object."""

from __future__ import annotations

from typing import Any

from recollect.records.ids import from_micros
from recollect.records.message import AgentCallMsg, Message, ToolCallMsg

_CALL_FIELDS = ("id", "call_id", "type", "name", "arguments")


def extras(message: Message) -> dict[str, Any]:
    """What a message holds besides its role, its id, its moment and plain text."""
    more: dict[str, Any] = {}
    if not isinstance(message.content, str):
        more["content"] = message.content
    for name in ("name", "tool_call_id", "structured_data"):
        if (value := getattr(message, name)) is not None:
            more[name] = value
    if message.tool_calls:
        more["tool_calls"] = [
            [getattr(call, name) for name in _CALL_FIELDS] for call in message.tool_calls
        ]
    if message.agent_calls:
        more["agent_calls"] = [[call.agent_name, call.request] for call in message.agent_calls]
    if message.images:
        more["images"] = list(message.images)
    if message.unfinished:
        more["unfinished"] = True
    return more


def join(
    message_id: str, role: str, created_at: int, text: Any, more: dict[str, Any] | None
) -> Message:
    """The message with these parts. It was validated on its way in and is not checked again."""
    message = object.__new__(Message)
    fields = message.__dict__  # those left out have their defaults, which the class holds
    fields["role"] = role
    fields["content"] = text
    fields["message_id"] = message_id
    fields["created_at"] = from_micros(created_at)
    if more:
        fields.update(more)
        fields["tool_calls"] = tuple(ToolCallMsg(*call) for call in more.get("tool_calls", ()))
        fields["agent_calls"] = tuple(AgentCallMsg(*call) for call in more.get("agent_calls", ()))
        fields["images"] = tuple(more.get("images", ()))
    return message
