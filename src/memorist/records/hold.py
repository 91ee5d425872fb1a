"""Holds: what nobody may clear away, for the law's sake or the user's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from memorist.errors import RecordError
from memorist.records.fact import Fact
from memorist.records.ids import new_id, now
from memorist.records.memory_item import MemoryItem, check_moments, check_texts
from memorist.records.scope import Scope
from memorist.records.text import check_key

HoldKind = Literal["legal", "user"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Keeps all in its scope, or the one message or memory it names, from being cleared away.

    Maintenance touches nothing under a hold. A legal one also refuses to forget.
    """

    scope: Scope
    kind: HoldKind = "user"
    target: str | None = None
    reason: str = ""
    id: str = field(default_factory=new_id)
    created_at: datetime = field(default_factory=now)

    def __post_init__(self) -> None:
        if self.kind not in get_args(HoldKind):
            raise RecordError(f"kind must be one of {', '.join(get_args(HoldKind))}")
        check_key(self.id, "id")
        check_texts(self, "target", "reason")
        check_moments(self, "created_at")

    def reaches(self, scope: Scope) -> bool:
        """Whether some of what it keeps may lie in the scope."""
        pairs = ((self.scope.agent, scope.agent), (self.scope.session, scope.session))
        return all(None in pair or pair[0] == pair[1] for pair in pairs)

    def keeps(self, item: MemoryItem | Fact) -> bool:
        """Whether a memory or a fact is under it."""
        if self.target is not None:
            return self.target == item.id or self.target in item.sources
        return (self.scope.agent in (None, item.scope.agent)) and (
            self.scope.session in (None, item.scope.session)
        )
