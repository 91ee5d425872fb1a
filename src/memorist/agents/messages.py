"""LangChain's messages as ours, and back: ids kept, and nothing lost on the way."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Mapping
from datetime import date, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from memorist.errors import MessageError, MissingExtraError
from memorist.records.langchain import from_stored, to_dict
from memorist.records.message import Message

try:
    from langchain_core.messages import (
        BaseMessage,
        BaseMessageChunk,
        RemoveMessage,
        message_chunk_to_message,
        message_to_dict,
        messages_from_dict,
    )
    from pydantic import ValidationError
except ImportError as error:
    raise MissingExtraError("langchain") from error

_WRITTEN = (date, time, Decimal, UUID, PurePath)  # known by what `str` makes of them
_TOO_DEEP = 128

log = logging.getLogger("memorist")


def to_langchain(message: Message, encode_image: Callable[[str], str] | None = None) -> BaseMessage:
    """The LangChain message that says the same, or the very one that this was made of.

    Images stay as given unless an encoder is passed.
    """
    try:
        return messages_from_dict([to_dict(message, encode_image)])[0]
    except ValidationError:  # what was kept beside it is not what LangChain would have kept
        return messages_from_dict([to_dict(message, encode_image, usual=True)])[0]


def from_langchain(message: BaseMessage) -> Message:
    """The message to store. One without an id gets one of ours; it is not changed itself."""
    if not isinstance(message, BaseMessage):
        raise MessageError(f"message must be a LangChain message, got {type(message).__name__}")
    if isinstance(message, RemoveMessage):
        raise MessageError("a RemoveMessage says nothing that could be stored; forget the message")
    if isinstance(message, BaseMessageChunk):
        message = message_chunk_to_message(message)
    return from_stored(_json(message_to_dict(message)))


def _json(value: Any, depth: int = 0) -> Any:
    """The value as JSON has it; what it cannot have is left out, and that is said."""
    if depth > _TOO_DEEP:
        raise MessageError(f"message is nested more than {_TOO_DEEP} levels deep")
    if isinstance(value, Enum):
        value = value.value
    if hasattr(value, "model_dump") and not isinstance(value, type):
        value = value.model_dump()
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_json(item, depth + 1) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, _WRITTEN):
        return str(value)
    log.warning("a %s in a message is not JSON and was not stored with it", type(value).__name__)
    return None
