"""Settings by which memories are made and kept: extraction, policy and retention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memorist.arguments import CheckedSettings
from memorist.errors import InvalidError
from memorist.providers.chat_model import ChatModel
from memorist.records.memories import MemoryItem

BOOSTS: Mapping[str, float] = {
    "error_patterns": 0.3,
    "code_context": 0.2,
    "solutions": 0.3,
    "user_preferences": 0.1,
    "task_history": 0.1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy(CheckedSettings):
    """The numbers by which memories are made, weighed, promoted and expired.

    At most `share` of the last `window` messages of a session become memories; those by which a
    user states facts always do. Texts at least `alike` say the same; an assistant's statement is an
    echo if `echo` of its words were said before. `shared` memories are seen by all agents of a
    user, others only by their own agent.
    """

    min_messages: int = 1
    min_chars: int = 4
    max_chars: int = 6_000
    window: int = 20
    share: float = 0.25
    alike: float = 0.85
    echo: float = 0.8
    base_importance: float = 0.5
    boosts: Mapping[str, float] = field(default_factory=lambda: BOOSTS)
    shared: bool = False
    short_term: int = 200
    promote_importance: float = 0.7
    promote_uses: int = 2
    promote_age: timedelta = timedelta(days=1)
    working_for: timedelta = timedelta(days=1)
    max_sources: int = 20


DEFAULT_POLICY = Policy()


def should_promote(item: MemoryItem, now: datetime, policy: Policy = DEFAULT_POLICY) -> bool:
    """Whether a short-term memory becomes long-term: by importance, or by use over time."""
    if item.tier == "long" or item.kind == "working" or item.ended_at is not None:
        return False
    proven = item.uses >= policy.promote_uses and now - item.created_at >= policy.promote_age
    return item.importance >= policy.promote_importance or proven


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention(CheckedSettings):
    """A rule by which memories of a category, kind or tier, or all of them, expire.

    A memory expires when it is older than `max_age`, when there are `max_count` more important or
    newer ones, or when its importance, halved every `half_life`, falls below `min_importance`.
    """

    category: str | None = None
    kind: str | None = None
    tier: str | None = None
    max_age: timedelta | None = None
    max_count: int | None = None
    min_importance: float | None = None
    half_life: timedelta | None = None

    def __post_init__(self) -> None:
        CheckedSettings.__post_init__(self)
        if self.max_age is None and self.max_count is None and self.min_importance is None:
            raise InvalidError("a retention needs max_age, max_count or min_importance")
        for name in ("max_age", "half_life"):
            if (span := getattr(self, name)) is not None and span <= timedelta(0):
                raise InvalidError(f"{name} must be a positive timedelta")

    def concerns(self, item: MemoryItem) -> bool:
        """Whether the rule applies to this memory."""
        names = ("category", "kind", "tier")
        return all(getattr(self, name) in (None, getattr(item, name)) for name in names)

    def weight(self, item: MemoryItem, now: datetime) -> float:
        """The memory's importance, halved for every half-life that it was not used."""
        if self.half_life is None:
            return item.importance
        idle = now - max(item.created_at, item.used_at or item.created_at)
        return float(item.importance * 0.5 ** max(idle / self.half_life, 0.0))

    def over(self, items: Sequence[MemoryItem], now: datetime) -> dict[str, str]:
        """The ids of the memories that expire by this rule, each with the reason."""
        mine = [item for item in items if self.concerns(item)]
        expired: dict[str, str] = {}
        for item in mine:
            if self.max_age is not None and now - item.created_at > self.max_age:
                expired[item.id] = "older than it may be kept"
            elif self.min_importance is not None and self.weight(item, now) < self.min_importance:
                expired[item.id] = "no longer important enough"
        if self.max_count is not None:
            left = [item for item in mine if item.id not in expired]
            left.sort(key=lambda item: (self.weight(item, now), item.created_at), reverse=True)
            expired |= {item.id: "more than may be kept" for item in left[self.max_count :]}
        return expired


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction(CheckedSettings):
    """How memories are extracted from the log: by rules, or by a model within an hourly budget.

    All workers of a store share the budget; None is no limit. A message that takes more than
    `seconds_per_message` of processor time, waiting for the model aside, is set aside. After
    `maintain_every` changes a user's memories are maintained; 0 leaves that to `maintain`.
    """

    model: ChatModel | None = None
    policy: Policy = DEFAULT_POLICY
    retention: Sequence[Retention] = ()
    calls_per_hour: int | None = 300
    tokens_per_hour: int | None = 500_000
    max_tokens: int = 2_000
    timeout_s: float = 60.0
    seconds_per_message: float = 10.0
    maintain_every: int = 50


DEFAULT_EXTRACTION = Extraction()
