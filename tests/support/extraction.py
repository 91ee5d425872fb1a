"""What the tests of extraction share: a clock, models that quote, and short ways to say things."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from memorist import Memory, Message
from memorist.lifecycle.settings import Extraction, Policy
from memorist.lifecycle.worker import Worker
from memorist.providers.chat_model import Reply
from memorist.records.log import Source
from memorist.records.scope import Scope
from memorist.store.sqlite.store import SqliteStore
from tests.support.model_server import quote_messages

ADA = Scope(user="ada", agent="tutor", session="talk")
HOME = Scope(user="ada", agent="tutor")
ALL = Policy(share=1.0)
KINDS = ("embed", "derive")
MONDAY = datetime(2026, 5, 4, 9, tzinfo=UTC)


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def skip(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Model:
    """Quotes what it reads, after raising the errors it was given, one a call."""

    name = "quoting"

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.asked: list[str] = []

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        timeout_s: float,
        schema: Mapping[str, Any] | None = None,
    ) -> Reply:
        self.asked.append(messages[-1]["content"])
        if self.errors:
            raise self.errors.pop(0)
        return Reply(json.dumps(quote_messages({"messages": messages})), 100, 50)


class Waiting(Model):
    """Answers when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.let_go = threading.Event()

    def complete(self, *arguments: Any, **settings: Any) -> Reply:
        self.reached.set()
        self.let_go.wait(30)
        return super().complete(*arguments, **settings)


def worker_of(store: SqliteStore, model: Model | None = None, **settings: Any) -> Worker:
    extraction = Extraction(model=model, **{"policy": ALL, **settings})
    return Worker(store, extraction, kinds=KINDS, clock=store._clock)


def say(
    store: SqliteStore, *said: str | Message, scope: Scope = ADA, source: Source | None = None
) -> list[str]:
    """Store each by itself, so that each has its own job."""
    messages = [Message("user", one) if isinstance(one, str) else one for one in said]
    for message in messages:
        store.append(scope, [message], source=source)
    return [message.message_id for message in messages]


def finish(worker: Worker) -> None:
    while worker.step():
        pass


def press(worker: Worker) -> None:
    """Let it work without its rests."""
    for _ in range(20):
        worker._paused_until = 0
        worker.step()


def texts(store: SqliteStore, scope: Scope = HOME) -> list[str]:
    return [item.text for item in store.items(scope)]


def about(asked: str) -> list[str]:
    """The messages that a question is about."""
    return [json.loads(line)["text"] for line in asked.splitlines() if line.startswith('{"n"')]


def told(*messages: str, weeks: int = 0) -> tuple[set[str], list[str]]:
    """The facts that hold and the memories, so many weeks after messages told a day apart."""
    said = [
        Message("user", text, created_at=MONDAY + timedelta(days=day))
        for day, text in enumerate(messages)
    ]
    now = said[-1].created_at + timedelta(weeks=weeks, minutes=1)
    with Memory(":memory:", embedder=None, clock=lambda: now) as memory:
        memory.remember(said, user="ada")
        assert memory.jobs.catch_up(300) == 0
        facts = memory.facts.list(user="ada")
        memories = [item.text for item in memory.memories.list(user="ada")]
    return {f"{fact.subject} {fact.predicate} {fact.object}" for fact in facts}, memories


def facts_after(*messages: str, weeks: int = 0) -> set[str]:
    """The facts that hold when messages were told, a day apart, and so many weeks have passed."""
    return told(*messages, weeks=weeks)[0]
