"""The parts of a memory's flow as views of `Memory`: two tiers, a controller, a compressor."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from memorist.context.quote import near_the_best
from memorist.context.window import Window
from memorist.lifecycle import policy as rules
from memorist.lifecycle.settings import DEFAULT_POLICY, Policy, should_promote
from memorist.memory import Memory
from memorist.records.documents import Compression
from memorist.records.memories import Candidate, MemoryItem, Tier
from memorist.records.message import UNSET, Message
from memorist.records.query import MIN_SCORE, Hit, Recall
from memorist.records.values import check_type, now

MOST_HITS = 100  # that are looked through for those of one tier


class _TierMemory:
    """The current memories of a user that are in one tier."""

    tier: Tier

    def __init__(
        self,
        memory: Memory,
        *,
        user: str,
        agent: str | None = None,
        policy: Policy = DEFAULT_POLICY,
    ) -> None:
        check_type(memory, Memory, "memory")
        check_type(policy, Policy, "policy")
        self._memory, self._policy = memory, policy
        self._names: dict[str, Any] = {"user": user, "agent": agent}

    def items(self) -> list[MemoryItem]:
        """All of them, oldest first."""
        return self._memory.memories.list(**self._names, tier=self.tier)

    def search(
        self, query: str, *, limit: int = 10, deadline_ms: float | None = UNSET
    ) -> list[Hit]:
        """Those that bear on the query, best first."""
        recall = self._memory.recall(
            query, **self._names, kind="memory", limit=MOST_HITS, deadline_ms=deadline_ms
        )
        get = partial(self._memory.memories.get, user=self._names["user"])
        fitting = (it for it in recall.hits if get(it.id).tier == self.tier and not it.over)
        return list(islice(fitting, limit))

    def remove(self, id: str) -> None:
        """Take a memory back; it stays visible as once believed."""
        self._memory.memories.retract(id, user=self._names["user"], reason="removed")


class ShortTermMemory(_TierMemory):
    """Memories that still have to prove themselves; the least recently used give way.

    One that is important enough is long-term as soon as it is stored.
    """

    tier = "short"

    def store(self, text: str, **fields: Any) -> str:
        """Keep a memory and return its id; the fields are those of `memories.add`."""
        return self._memory.memories.add(text, **self._names, **fields)

    def cleanup(self) -> rules.Maintained:
        """Promote what has earned it, and remove what is over or too much."""
        return self._memory.memories.maintain(**self._names)


class LongTermMemory(_TierMemory):
    """Memories that stay: they were important, or used again on another day."""

    tier = "long"

    def store(self, text: str, *, importance: float = 0.0, **fields: Any) -> str:
        """Keep a memory here: it is at least as important as what is promoted."""
        memories, user = self._memory.memories, self._names["user"]
        importance = max(importance, self._policy.promote_importance)
        id_ = memories.add(text, **self._names, importance=importance, **fields)
        if memories.get(id_, user=user).tier != self.tier:  # it was short-term until now
            id_ = memories.change(id_, user=user, importance=importance)
            memories.maintain(**self._names)
        return id_


class Classification(NamedTuple):
    """What a text is about, how important it is, and what it names."""

    category: str
    importance: float
    tags: tuple[str, ...]


class MemoryController:
    """The decisions of the engine: what becomes a memory, stays one, and is recalled."""

    def __init__(self, policy: Policy = DEFAULT_POLICY) -> None:
        check_type(policy, Policy, "policy")
        self.policy = policy

    def should_create(self, message: Message, *, place: int = 1, made: int = 0) -> bool:
        """Whether a message may become a memory: by its place in the session, length and text.

        `made` memories came of the last messages, of which no more than a share may.
        """
        may_become = rules.may_become_memory(message, place=place, policy=self.policy)
        return may_become and rules.has_room(made, self.policy)

    def classify(self, message: Message) -> Classification:
        """The category, importance and tags of what a message says."""
        candidate = Candidate(text=message.text, said_at=message.created_at, sources=())
        has_tools = bool(message.tool_calls)
        made = rules.classified(candidate, has_tools=has_tools, policy=self.policy)
        return Classification(made.category, made.importance or 0.0, made.tags)

    def should_promote(self, item: MemoryItem, at: datetime | None = None) -> bool:
        """Whether a memory becomes long-term: by importance, or by use over time."""
        return should_promote(item, at or now(), self.policy)

    def filter_memories_for_recall(
        self, found: Recall | Sequence[Hit], *, limit: int = 10, min_score: float = MIN_SCORE
    ) -> list[Hit]:
        """The hits that are worth a place in the window, best first."""
        hits = found.hits if isinstance(found, Recall) else found
        return near_the_best([hit for hit in hits if hit.score >= min_score])[:limit]


class ContextCompressor:
    """Summarises the older messages of a user's sessions; the log keeps them."""

    def __init__(self, memory: Memory, *, user: str, window: Window | None = None) -> None:
        self._memory, self._user, self._window = memory, user, window

    def compress(self, session_id: str, messages: Sequence[Message] = ()) -> Compression | None:
        """Summarise all but the last messages now; those that the log lacks are stored before."""
        if messages:
            self._memory.remember(list(messages), user=self._user, session=session_id)
        return self._memory.compress(user=self._user, session=session_id, window=self._window)
