"""Ada's life with an agent, told a day at a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from memorist import Memory, Message
from memorist.lifecycle.settings import Extraction

DAY = timedelta(days=1)
NEW_YEAR = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self, moment: datetime = NEW_YEAR) -> None:
        self.moment = moment

    def __call__(self) -> datetime:
        return self.moment

    def on(self, time: timedelta = DAY) -> None:
        self.moment += time


class Life:
    """Ada's life with an agent: she says something, it is thought about, a day goes by."""

    def __init__(self, store: str, extraction: Extraction | None = None) -> None:
        self.clock = Clock()
        self.memory = Memory(
            store, embedder=None, extraction=extraction or Extraction(), clock=self.clock
        )

    def says(self, text: str, role: str = "user", **where: Any) -> str:
        """What was said becomes what it becomes; tomorrow is another day. Returns its id."""
        at = where.pop("at", self.clock())
        said = Message(role, text, created_at=at, **where.pop("fields", {}))
        stored = self.memory.remember(said, user=where.pop("user", "ada"), **where)
        self.thinks()
        self.clock.on()
        return stored.message_ids[0]

    def thinks(self) -> None:
        assert self.memory.jobs.catch_up(300) == 0  # whatever else the machine does

    def now(self, predicate: str = "lives in", **where: Any) -> list[str]:
        """What holds now."""
        found = self.memory.facts.list(user="ada", predicate=predicate, **where)
        return [fact.object for fact in found]

    def then(
        self, valid: datetime | None = None, known: datetime | None = None, of: str = "lives in"
    ) -> list[str]:
        """What held at a moment, by what was known at another."""
        found = self.memory.facts.as_of(user="ada", valid=valid, known=known)
        return [fact.object for fact in found if fact.predicate == of]

    def id_of(self, thing: str) -> str:
        """The id of the last fact ever known with an object."""
        scope = self.memory.scope(user="ada")
        days = (self.clock() - DAY * past for past in range(40))
        found = (fact for day in days for fact in self.memory.store.facts(scope, known_at=day))
        return next(fact.id for fact in found if fact.object == thing)

    def memories(self, **where: Any) -> list[str]:
        return [item.text for item in self.memory.memories.list(user="ada", **where)]

    def recalls(self, question: str, kind: str = "fact", **where: Any) -> list[str]:
        only: Any = {"kind": kind, "user": "ada", **where}
        found = self.memory.recall(question, deadline_ms=None, **only)
        return [hit.text for hit in found.hits]


Lives = Callable[..., Life]
