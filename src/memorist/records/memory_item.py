"""Memory items: what was derived from messages and is worth keeping."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from memorist.errors import RecordError
from memorist.records.ids import check_moment, new_id, now
from memorist.records.scope import Scope
from memorist.records.text import check_key, check_text

Kind = Literal["concept", "episode", "fact", "procedure", "working"]
Tier = Literal["short", "long"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem:
    """A memory, with the ids of the messages it came from."""

    scope: Scope
    text: str
    kind: Kind = "fact"
    category: str = "knowledge"
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    tier: Tier = "short"
    source: str = "user"
    sources: tuple[str, ...] = ()
    id: str = field(default_factory=new_id)
    created_at: datetime = field(default_factory=now)
    uses: int = 0
    used_at: datetime | None = None
    expires_at: datetime | None = None
    ended_at: datetime | None = None
    superseded_by: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        check_text(self.text, "text")
        check_key(self.id, "id")
        check_key(self.category, "category")
        if self.kind not in get_args(Kind):
            raise RecordError(f"kind must be one of {', '.join(get_args(Kind))}")
        if self.tier not in get_args(Tier):
            raise RecordError(f"tier must be one of {', '.join(get_args(Tier))}")
        check_share(self.importance, "importance")
        check_keys(self, "tags", "sources")
        check_texts(self, "source", "superseded_by", "reason")
        check_moments(self, "created_at", "used_at", "expires_at", "ended_at")


def check_share(value: float, field_name: str) -> None:
    """Raise unless `value` lies between 0 and 1."""
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise RecordError(f"{field_name} must be a number from 0 to 1")


def check_keys(record: object, *names: str) -> None:
    """Turn the named fields of a frozen record into tuples of keys."""
    for name in names:
        values = getattr(record, name)
        if not isinstance(values, list | tuple):
            raise RecordError(f"{name} must be a list, got {type(values).__name__}")
        object.__setattr__(record, name, tuple(check_key(value, name) for value in values))


def check_texts(record: object, *names: str) -> None:
    """Raise unless the named fields are text that every store keeps, or None."""
    for name in names:
        if (value := getattr(record, name)) is not None:
            check_text(value, name)


def check_moments(record: object, *names: str) -> None:
    """Turn the named fields of a frozen record into UTC; None stays None."""
    for name in names:
        if (value := getattr(record, name)) is not None:
            object.__setattr__(record, name, check_moment(value, name))
