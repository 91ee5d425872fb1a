"""Memory items: what was derived from messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from memorist.errors import RecordError
from memorist.records.scope import Scope
from memorist.records.values import (
    check_key,
    check_keys,
    check_moments,
    check_share,
    check_text,
    check_texts,
    new_id,
    now,
)

Kind = Literal["concept", "episode", "fact", "procedure", "working"]
Tier = Literal["short", "long"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem:
    """A memory; `sources` are the ids of the messages it came from."""

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
