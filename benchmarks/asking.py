"""Fill a memory with a question set through the public door, ask, and time the answers."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from rich.progress import track

from benchmarks.dataset import Dataset, Question
from memorist import Memory, Recall

DEPTH = 50
PATIENCE_S = 20.0
Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A hit, as much of it as scoring and the per-question file need."""

    id: str
    session: str
    role: str
    why: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for a question, how long it took, and which channels were late or failed."""

    question: Question
    found: tuple[Retrieved, ...]
    took_ms: float
    timings_ms: Mapping[str, float]
    late: tuple[str, ...]
    failed: tuple[str, ...]


class Clock:
    """The time of the question being asked; before that, the time it is."""

    def __init__(self) -> None:
        self.at: datetime | None = None

    def __call__(self) -> datetime:
        return self.at or datetime.now(UTC)


def told(things: Sequence[Thing], label: str) -> Iterable[Thing]:
    """The things, with a bar of progress where somebody looks at it."""
    return track(things, label, transient=True, disable=not sys.stdout.isatty())


def fill(memory: Memory, dataset: Dataset, questions: Sequence[Question]) -> int:
    """Remember all that the questions are about; what is there already is not stored twice."""
    users = list(dict.fromkeys(question.user for question in questions))
    stored = 0
    for user in told(users, f"{dataset.name}: remembering"):
        for session, messages in dataset.history(user):
            stored += memory.remember(messages, user=user, session=session).added
    return stored


def catch_up(memory: Memory, tell: Callable[[int], None]) -> float:
    """Wait until everything has its vector, telling how many wait; the seconds it took."""
    started = time.perf_counter()
    while waiting := memory.jobs.catch_up(timeout_s=PATIENCE_S):
        tell(waiting)
    return time.perf_counter() - started


def ask_all(
    memory: Memory, clock: Clock, questions: Sequence[Question], **asked: Any
) -> list[Answer]:
    """The answers to the questions, in their order."""
    return [ask(memory, clock, question, **asked) for question in told(questions, "asking")]


def ask_shuffled(
    memory: Memory, clock: Clock, questions: Sequence[Question], **asked: Any
) -> list[Answer]:
    """The same in an order in which neighbours share no user's pages, given back in theirs."""
    order = random.Random(1).sample(list(questions), len(questions))
    answers = {one.question.id: one for one in ask_all(memory, clock, order, **asked)}
    return [answers[question.id] for question in questions]


def ask(memory: Memory, clock: Clock, question: Question, **asked: Any) -> Answer:
    """One question at its time."""
    clock.at = question.asked_at
    started = time.perf_counter()
    # The whole ranking is measured; what a floor leaves out of it: `benchmarks.calibrate`.
    recall = memory.recall(question.text, user=question.user, limit=DEPTH, min_score=0.0, **asked)
    took_ms = (time.perf_counter() - started) * 1_000
    return Answer(
        question, found_in(recall), took_ms, recall.timings_ms, recall.late, tuple(recall.failed)
    )


def found_in(recall: Recall) -> tuple[Retrieved, ...]:
    """What was found, each where it first came. What was derived is no turn, but takes a place."""
    found: dict[str, Retrieved] = {}
    for hit in recall.hits:
        one = Retrieved(hit.id, hit.session_id or "", hit.role or "", str(hit.why))
        found.setdefault(hit.id, one)
    return tuple(found.values())
