"""What the formats of other programs give: turns, memories, facts, entries and documents."""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memorist.errors import RecordError
from memorist.records.entry import Put
from memorist.records.memories import Fact, MemoryItem
from memorist.records.message import Message
from memorist.records.scope import Scope

IMPORTER = Scope(user="")  # of a memory or fact of an export that names no user
_MILLISECONDS = 10**11  # as seconds: the year 5138


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a conversation in an export.

    `session` is the conversation's own id, or one made of its place. Without a `user`, it is of
    the user that the import is for. `title` is the conversation's.
    """

    session: str
    message: Message
    agent: str | None = None
    user: str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A text to quote from: becomes an article."""

    uri: str
    title: str
    text: str
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """What an import does not take; `place` finds it in the export, `reason` quotes nothing."""

    place: str
    reason: str


Item = Turn | MemoryItem | Fact | Put | Document | Skipped


def stable_id(*parts: str) -> str:
    """The same id for the same parts, for what has no id in its export."""
    return hashlib.sha256("\x00".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def moment(value: Any, field: str) -> datetime | None:
    """A moment as ISO text, or in seconds or milliseconds since 1970; without a zone it is UTC."""
    if value is None or value == "":
        return None
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1_000 if abs(value) > _MILLISECONDS else value
            return datetime.fromtimestamp(seconds, UTC)
        at = datetime.fromisoformat(value)
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise RecordError(f"`{field}` must be a date in ISO 8601 or seconds since 1970") from None
