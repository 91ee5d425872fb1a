"""Candidates: extracted statements, before they are reconciled with what is known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memorist.language.text import is_single_valued
from memorist.records.memories import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A triple of subject, predicate and object, as a message states it.

    `single` if one object holds at a time (a home), not several (a liking); None leaves that to
    the predicate. `ends` if the message says that it holds no longer.
    """

    subject: str
    predicate: str
    object: str
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    single: bool | None = None
    ends: bool = False

    @property
    def replaces(self) -> bool:
        """Whether its object takes the place of another one."""
        return is_single_valued(self.predicate) if self.single is None else self.single


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A statement that may become a memory, and the claims it makes.

    Without an `importance` it has that of its category. `corrects` if it says that an earlier
    statement was wrong, not that something has changed; `instead` is what is right and what was
    wrong, where it names only these.
    """

    text: str
    sources: tuple[str, ...]
    said_at: datetime
    kind: Kind = "fact"
    category: str = "knowledge"
    importance: float | None = None
    tags: tuple[str, ...] = ()
    source: str = "user"
    claims: tuple[Claim, ...] = ()
    corrects: bool = False
    instead: tuple[str, str] | None = None
    expires_at: datetime | None = None
