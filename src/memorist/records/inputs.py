"""What may be said to a memory, and what it says of having stored it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from memorist.errors import InvalidError
from memorist.records.log import Source
from memorist.records.message import ROLES, Message

UNSET: Any = object()  # where None would be a mistake

Said = str | Message | Mapping[str, Any]
"""A message, the dict of one, or the text of one by the user."""


class What(TypedDict, total=False):
    """What may be forgotten by itself: a message, a memory or fact, or all from one source."""

    message: str
    memory: str
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What `remember` stored: the messages' ids, and the session they are in."""

    session_id: str
    message_ids: tuple[str, ...]
    added: int


def as_messages(said: Said | Iterable[Said]) -> list[Message]:
    """What was said, as messages."""
    if isinstance(said, Message | str | dict):
        said = [said]
    elif not isinstance(said, list | tuple):
        if not isinstance(said, Iterable):
            kind = type(said).__name__
            raise InvalidError(f"give messages, dicts with a role, or text, not {kind}")
        said = [said] if isinstance(said, Mapping) else list(said)
    return [one if isinstance(one, Message) else _message(one) for one in said]


def _message(said: Any) -> Message:
    if isinstance(said, str):
        return Message("user", said)
    if isinstance(said, Mapping) and "role" in said:
        ours = said["role"] in ROLES and not isinstance(said.get("content"), list)
        if ours and said.keys() <= Message.__dataclass_fields__.keys():
            return Message(**said)
        return Message.from_response_dict(dict(said))
    raise InvalidError("give messages, dicts with a role, or text")
