"""Changes: everything that can happen to memories and facts, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from memorist.records.fact import Fact
from memorist.records.memory_item import MemoryItem
from memorist.records.values import check_keys, check_moments, check_share, check_texts, now


@dataclass(frozen=True, slots=True)
class Add:
    """A new memory or fact."""

    record: MemoryItem | Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Reinforce:
    """It was said or used again: count that, add the messages that say so, raise its importance."""

    id: str
    sources: tuple[str, ...] = ()
    importance: float | None = None
    at: datetime = field(default_factory=now)

    def __post_init__(self) -> None:
        check_keys(self, "sources")
        if self.importance is not None:
            check_share(self.importance, "importance")
        check_moments(self, "at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersede:
    """A newer record supersedes an older one, which is ended and linked to it."""

    old_id: str
    record: MemoryItem | Fact
    reason: str = ""
    at: datetime = field(default_factory=now)

    def __post_init__(self) -> None:
        check_texts(self, "reason")
        check_moments(self, "at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Promote:
    """From the short-term tier to the long-term one."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire:
    """It has expired; it stays visible in the past."""

    id: str
    reason: str = ""
    at: datetime = field(default_factory=now)

    def __post_init__(self) -> None:
        check_texts(self, "reason")
        check_moments(self, "at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retract:
    """It was wrong; it stays visible as once believed. `by` is the id of what is right instead."""

    id: str
    reason: str = ""
    at: datetime = field(default_factory=now)
    by: str | None = None

    def __post_init__(self) -> None:
        check_texts(self, "reason", "by")
        check_moments(self, "at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """What ended or was retracted holds again."""

    id: str
    reason: str = ""

    def __post_init__(self) -> None:
        check_texts(self, "reason")


Change = Add | Reinforce | Supersede | Promote | Expire | Retract | Restore
