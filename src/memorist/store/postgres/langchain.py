"""Messages in the form LangChain keeps in `chat_message_history`, and back."""

from __future__ import annotations

from typing import Any

from memorist.errors import MessageError
from memorist.records.ids import from_micros
from memorist.records.langchain import from_stored
from memorist.records.langchain import to_stored as to_langchain
from memorist.records.message import Message

__all__ = ["from_langchain", "to_langchain"]


def from_langchain(stored: Any, message_id: str, role: str, created_at: int) -> Message:
    """The message in a row, whoever wrote it."""
    known: dict[str, Any] = {"message_id": message_id, "created_at": from_micros(created_at)}
    try:
        return from_stored(stored, role=role, **known)
    except MessageError:  # a kind of message we do not know is still kept and shown
        return Message(role, {"message": stored}, **known)
