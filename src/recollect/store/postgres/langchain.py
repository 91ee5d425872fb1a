"""Messages in the form LangChain keeps in `chat_message_history`, and back."""

from __future__ import annotations

import json
from typing import Any

from recollect.errors import MessageError
from recollect.records.ids import from_micros
from recollect.records.message import AgentCallMsg, Message, ToolCallMsg
from recollect.records.text import dump_json
from recollect.store import codec

_TYPES = {"user": "human", "assistant": "ai", "system": "system", "tool": "tool"}
_OURS = "recollect"  # under additional_kwargs: JSON text of what LangChain has no place for


def to_langchain(message: Message) -> dict[str, Any]:
    """What `message_to_dict` would give, with our own form beside it so that nothing is lost."""
    kind = _TYPES[message.role]
    content = message.to_wire()["content"]
    ours = codec.extras(message)
    if content != message.content:
        ours["content"] = message.content
    data: dict[str, Any] = {
        "content": "" if content is None else content,
        "additional_kwargs": {_OURS: dump_json(ours)},
        "response_metadata": {},
        "type": kind,
        "name": message.name,
        "id": message.message_id,
    }
    if kind == "ai":
        data |= _langchain_calls(message.tool_calls)
    elif kind == "tool":
        status = (message.structured_data or {}).get("status")
        data |= {
            "tool_call_id": message.answered_call_id() or "",
            "status": "error" if status == "error" else "success",
        }
    return {"type": kind, "data": data}


def from_langchain(stored: dict[str, Any], message_id: str, role: str, created_at: int) -> Message:
    """The message in a row, whoever wrote it."""
    try:
        data = stored["data"]
        ours = json.loads(data["additional_kwargs"][_OURS])
        message = _ours(ours, data["content"], message_id, role, created_at)
    except (KeyError, TypeError, ValueError):  # not ours, or only made to look like it
        return _foreign(stored, message_id, role, created_at)
    if _said(to_langchain(message)["data"]["content"]) != _said(data["content"]):
        return _foreign(stored, message_id, role, created_at)  # somebody has edited it
    return message


def _said(content: Any) -> Any:
    """The texts of LangChain's content. Its numbers may come back from jsonb in another form."""
    if isinstance(content, str):
        return content
    return [part.get("text") if isinstance(part, dict) else part for part in content]


def _ours(more: dict[str, Any], text: str, message_id: str, role: str, created_at: int) -> Message:
    """Our own form, checked like anything from outside: others can write to this table too."""
    return Message(
        role,
        more.get("content", text),
        message_id,
        name=more.get("name"),
        tool_calls=[ToolCallMsg(*call) for call in more.get("tool_calls", ())],
        agent_calls=[AgentCallMsg(*call) for call in more.get("agent_calls", ())],
        structured_data=more.get("structured_data"),
        images=more.get("images", ()),
        tool_call_id=more.get("tool_call_id"),
        created_at=from_micros(created_at),
        unfinished=more.get("unfinished", False),
    )


def _foreign(stored: Any, message_id: str, role: str, created_at: int) -> Message:
    fields: dict[str, Any] = {"message_id": message_id, "created_at": from_micros(created_at)}
    try:
        return Message.from_response_dict(stored, role=role, **fields)
    except MessageError:  # a kind of message we do not know is still kept and shown
        return Message(role, {"message": stored}, **fields)


def _langchain_calls(calls: Any) -> dict[str, Any]:
    good: list[dict[str, Any]] = []
    bad: list[dict[str, Any]] = []
    for call in calls:
        arguments = _arguments(call)
        if arguments is None:
            bad.append({
                "name": call.name, "args": call.arguments, "id": call.call_id,
                "error": None, "type": "invalid_tool_call",
            })  # fmt: skip
        else:
            good.append({
                "name": call.name, "args": arguments, "id": call.call_id, "type": "tool_call",
            })  # fmt: skip
    return {"tool_calls": good, "invalid_tool_calls": bad, "usage_metadata": None}


def _arguments(call: ToolCallMsg) -> dict[str, Any] | None:
    try:
        arguments = json.loads(call.arguments or "{}")
        dump_json(arguments).encode()
    except (ValueError, RecursionError):  # ValueError: also NaN and lone surrogates
        return None
    if not isinstance(arguments, dict) or "\\u0000" in call.arguments:
        return None  # PostgreSQL's jsonb refuses NUL
    return arguments
