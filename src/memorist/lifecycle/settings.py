"""Extraction: every number and choice by which memories are made and kept, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from memorist.lifecycle.retention import Retention
from memorist.providers.chat_model import ChatModel

BOOSTS: Mapping[str, float] = {
    "error_patterns": 0.3,
    "code_context": 0.2,
    "solutions": 0.3,
    "user_preferences": 0.1,
    "task_history": 0.1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The numbers by which memories are made, weighed, promoted and let go.

    At most `share` of the last `window` messages of a session become memories. `alike` is from
    where on two texts say the same, `echo` how much of an assistant's words may be known already.
    `shared` memories are seen by all agents of a user, others by the agent they were told to.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """How the log becomes memory: by rules, or by a model within its hourly budget.

    The budget holds for all workers of a store together; None is no limit. `maintain_every` is
    after how many new memories a user's are tidied; 0 leaves that to `maintain`.
    """

    model: ChatModel | None = None
    policy: Policy = DEFAULT_POLICY
    retention: tuple[Retention, ...] = ()
    calls_per_hour: int | None = 300
    tokens_per_hour: int | None = 500_000
    max_tokens: int = 2_000
    timeout_s: float = 60.0
    maintain_every: int = 50


DEFAULT_EXTRACTION = Extraction()
