"""What happens in a memory: events, counts, and the receipts of past turns of a chat."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from memorist.records.values import Checked, Key, Tally, new_id, now


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """That something changed, by its id: a message, memory, fact or job.

    A message is `stored` or `revised`, a job `failed` or `done`; the changes of memories and facts
    have the names of `Change`, and `forget`. `place` is where to go on after it.
    """

    kind: Literal["message", "memory", "fact", "job"]
    id: str
    change: str
    at: datetime
    session: str | None = None
    agent: str | None = None
    place: str = ""

    def concerns(self, agent: str | None) -> bool:
        """Whether it is about something that this agent sees; with None, any."""
        everyones = ("",) if self.kind in ("memory", "fact") else ()
        return agent is None or self.agent in (agent, *everyones)


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Events in their order, and the place after them."""

    items: tuple[Event, ...]
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much a user has of each; of what is current, as far as all was counted."""

    messages: Tally
    sessions: Tally
    articles: Tally
    memories: Tally
    memories_current: Tally
    facts: Tally
    facts_current: Tally
    waiting: Tally
    dead: Tally


@dataclass(frozen=True, slots=True)
class RecalledId:
    """Something that was recalled, and its score."""

    kind: str
    id: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReceipt(Checked):
    """What went into the window of one turn of a chat, and what was recalled for it.

    `asked_id` is the question's message, `message_id` the answer's; it is None where there was no
    model. `receipt` is the window's `Receipt` as JSON, without texts.
    """

    session_id: str
    asked_id: Key
    message_id: Key | None = None
    receipt: Mapping[str, Any]
    recalled: tuple[RecalledId, ...] = ()
    id: Key = field(default_factory=new_id)
    created_at: datetime = field(default_factory=now)

    @property
    def cites(self) -> list[str]:
        """The ids of all that it names."""
        named = [id_ for part in self.receipt.get("parts", ()) for id_ in part["ids"]]
        answer = [] if self.message_id is None else [self.message_id]
        return list(
            dict.fromkeys([self.asked_id, *answer, *(it.id for it in self.recalled), *named])
        )
