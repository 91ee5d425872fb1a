"""Messages as columns: plain text apart, all the rest as one JSON object."""

from __future__ import annotations

from typing import Any

from memorist.records.ids import from_micros
from memorist.records.message import AgentCallMsg, Message, ToolCallMsg
from memorist.records.parts import extras

__all__ = ["extras", "join"]


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
