"""Articles: documents an agent may quote from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from memorist.errors import RecordError
from memorist.records.ids import new_id, now
from memorist.records.memory_item import check_moments
from memorist.records.scope import Scope
from memorist.records.text import check_key, check_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """A document, known by where it came from and by what it says."""

    scope: Scope
    title: str
    text: str
    uri: str = ""
    id: str = field(default_factory=new_id)
    created_at: datetime = field(default_factory=now)

    def __post_init__(self) -> None:
        if self.scope.session is not None:
            raise RecordError("an article is a user's or an agent's, and of no session")
        check_text(self.title, "title")
        check_text(self.text, "text")
        check_text(self.uri, "uri")
        check_key(self.id, "id")
        check_moments(self, "created_at")

    @property
    def owner(self) -> str:
        """The key of its user's rows."""
        return self.scope.owner

    @property
    def digest(self) -> str:
        """Equal for equal text, so that an unchanged file need not be read in again."""
        return hashlib.sha256(self.text.encode()).hexdigest()


class Chunk(NamedTuple):
    """A span of an article that is found by itself, and the headings it stands under."""

    start: int
    stop: int
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """An article as a list of them shows it: without its text."""

    id: str
    title: str
    uri: str
    digest: str
    chars: int
    created_at: datetime


class Shelved(NamedTuple):
    """What came of an article that was to be stored, and the id of the one that holds its text.

    A `duplicate` says what another article says already, and was not stored beside it.
    """

    id: str
    change: Literal["added", "changed", "unchanged", "duplicate"]
