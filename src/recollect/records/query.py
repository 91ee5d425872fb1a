"""Questions and answers: what recall is asked, finds and confesses."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

HitKind = Literal["message", "memory", "fact", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """What one channel of a store found: a passage of a record, and how well it fits."""

    passage: int
    kind: HitKind
    id: str
    text: str
    score: float
    created_at: datetime
    session_id: str | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why something was recalled: its rank and score in each channel that found it."""

    ranks: dict[str, int]
    scores: dict[str, float]
    age: timedelta

    def __str__(self) -> str:
        found = ", ".join(f"{channel} #{rank}" for channel, rank in self.ranks.items())
        return f"{found}; {_age(self.age)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One thing recalled, with the id of the record it comes from and its reason."""

    kind: HitKind
    id: str
    text: str
    score: float
    created_at: datetime
    why: Why
    session_id: str | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What was found, how long each channel took, and which were late."""

    hits: tuple[Hit, ...]
    timings_ms: dict[str, float] = field(default_factory=dict)
    late: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What a `forget` removed, counted by kind.

    `residue` is empty when no byte of it is left in the database's files, or when they were
    not scrubbed. Otherwise it says where copies may remain and what removes them.
    """

    counts: dict[str, int]
    residue: str = ""

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def _age(age: timedelta) -> str:
    seconds = max(age.total_seconds(), 0)
    for name, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"
