"""Messages in parts: plain text apart, all the rest as one JSON object."""

from __future__ import annotations

from typing import Any

from memorist.records.message import AgentCallMsg, Message, ToolCallMsg

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


def checked(role: str, text: Any, more: dict[str, Any], **known: Any) -> Message:
    """The message with these parts, checked like anything from outside."""
    return Message(
        role,
        more.get("content", text),
        name=more.get("name"),
        tool_calls=[ToolCallMsg(*call) for call in more.get("tool_calls", ())],
        agent_calls=[AgentCallMsg(*call) for call in more.get("agent_calls", ())],
        structured_data=more.get("structured_data"),
        images=more.get("images", ()),
        tool_call_id=more.get("tool_call_id"),
        unfinished=more.get("unfinished", False),
        **known,
    )
