"""Search: run the channels side by side until the deadline, and rank what they found."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from dataclasses import dataclass, field
from typing import NamedTuple

from recollect.errors import ProviderError, RecollectError
from recollect.providers.embedder import Embedder
from recollect.providers.reranker import Reranker
from recollect.recall.crew import Crew, Task
from recollect.recall.fusion import DEFAULT_RANKING, Asked, Candidate, Ranking, fuse
from recollect.recall.graph import find_links
from recollect.recall.lexical import find_words
from recollect.recall.names import asked_about, role_asked_about
from recollect.recall.recent import find_recent
from recollect.recall.vector import find_meaning
from recollect.records.query import Found, Hit, Match, Query, Recall, Why
from recollect.store.base import Store

DEPTH = 100  # how many each channel may find
FINISH_SECONDS = 0.008  # kept back from the channels, for ranking and reading
GRACE_SECONDS = 0.015  # beyond the deadline, for what was found to be read

log = logging.getLogger("recollect")


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """What a search works with."""

    store: Store
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    ranking: Ranking = DEFAULT_RANKING
    crew: Crew = field(default_factory=Crew)
    models: Crew = field(default_factory=Crew)  # apart: when one hangs, the store still answers

    def search(self, query: Query) -> Recall:
        """The best hits that are found in time, each with its reason."""
        if query.limit <= 0:
            return Recall(hits=())
        self._load()
        clock = Clock(query.deadline_ms)
        names = Task(lambda: asked_about(query.question, self.store.speakers(query.scope)))
        tasks = self._channels(query, names, clock)
        quick = [task for name, task in tasks.items() if name != "meaning"]
        # Two lanes: what only asks the store would spend its time on waiting for each other.
        self.crew.start(names, *quick)
        if "meaning" in tasks:
            self.models.start(tasks["meaning"])
        early = None
        if not _done(tasks, clock.left(share=0.5)):  # something is slow: have an answer at hand
            early = self._answer(query, _results(tasks), names)
            _done(tasks, clock.left(keep=FINISH_SECONDS))
        names.drop()
        for task in tasks.values():
            task.drop()
        found, outcome = _sort_out(tasks)
        answer = early
        if answer is None or answer.channels < found.keys():
            answer = self._answer(query, found, names)
        hits = _first_done(answer, early, clock, outcome)
        hits = self._rerank(query, hits, clock, outcome)
        outcome.timings["total"] = clock.elapsed_ms()
        return outcome.report(tuple(hits[: query.limit]))

    def _load(self) -> None:
        """Once in a process, before its time is counted: what is read from this machine."""
        import numpy  # noqa: F401

        if self.embedder is not None and (load := getattr(self.embedder, "load", None)):
            with contextlib.suppress(ProviderError):  # the channel will tell
                load()

    def _answer(
        self, query: Query, found: dict[str, list[Found]], names: Task[frozenset[str]]
    ) -> Answer:
        task = Task(lambda: self._finish(query, found, _known(names)))
        self.crew.start(task)
        return Answer(frozenset(found), task)

    def _channels(
        self, query: Query, names: Task[frozenset[str]], clock: Clock
    ) -> dict[str, Task[list[Found]]]:
        store, embedder, depth = self.store, self.embedder, max(DEPTH, query.limit)
        channels = {
            "recency": Task(lambda: find_recent(store, query)),
            "words": Task(lambda: find_words(store, query, depth)),
            "links": Task(lambda: find_links(store, query, depth)),
        }
        if embedder is not None:

            def meaning() -> list[Found]:
                names.wait(clock.left())
                return find_meaning(store, embedder, query, _known(names), depth)

            channels["meaning"] = Task(meaning)
        return channels

    def _finish(
        self, query: Query, found: dict[str, list[Found]], names: frozenset[str]
    ) -> list[Hit]:
        ids = {find.passage for finds in found.values() for find in finds}
        if not ids:
            return []
        passages = {it.id: it for it in self.store.passages(query.scope, sorted(ids))}
        asked = Asked(names, role_asked_about(query.question))
        ranked = fuse(found, passages, self.ranking, asked=asked, now=query.now)
        chosen = ranked[: max(query.limit, 2 * query.limit if self.reranker else 0)]
        texts = self.store.read(query.scope, [it.passage.id for it in chosen])
        by_passage = {match.passage: match for match in texts}
        return [
            _hit(candidate, by_passage[candidate.passage.id], query)
            for candidate in chosen
            if candidate.passage.id in by_passage
        ]

    def _rerank(self, query: Query, hits: list[Hit], clock: Clock, outcome: Outcome) -> list[Hit]:
        """The hits in the reranker's order, if it gives one in the time that is left."""
        reranker = self.reranker
        if reranker is None or not hits:
            return hits
        texts = [hit.text for hit in hits]
        task = Task(lambda: [float(score) for score in reranker.score(query.question, texts)])
        self.models.start(task)
        done = task.wait(clock.left())
        task.drop()
        outcome.timings["rerank"] = task.took_ms or task.elapsed_ms()
        if not done:
            outcome.late.append("rerank")
            return hits
        if task.error is not None or len(task.result()) != len(hits):
            outcome.failed["rerank"] = _reason(task.error) if task.error else "wrong length"
            return hits
        order = sorted(zip(task.result(), range(len(hits)), strict=True), key=lambda it: -it[0])
        return [hits[place] for _, place in order]


class Answer(NamedTuple):
    """Hits on their way, and the channels they are from."""

    channels: frozenset[str]
    task: Task[list[Hit]]


class Clock:
    """The time of one search."""

    def __init__(self, deadline_ms: float | None) -> None:
        self._started = time.perf_counter()
        self._seconds = None if deadline_ms is None else deadline_ms / 1_000

    def left(self, *, keep: float = 0.0, share: float = 1.0) -> float | None:
        """Seconds until the deadline, or until a share of it, less those to keep.

        None where there is no deadline.
        """
        if self._seconds is None:
            return None
        left = self._started + share * self._seconds - keep - time.perf_counter()
        return min(max(left, 0.0), threading.TIMEOUT_MAX)

    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self._started) * 1_000


@dataclass(slots=True)
class Outcome:
    """How the channels did."""

    timings: dict[str, float] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def report(self, hits: tuple[Hit, ...]) -> Recall:
        """The answer; a warning is logged if something kept it from being whole."""
        if self.failed or (self.late and not hits):
            log.warning(
                "recall answered with %d hits; late: %s; failed: %s",
                len(hits), ", ".join(self.late) or "none", self.failed or "none",
            )  # fmt: skip
        return Recall(hits=hits, timings_ms=self.timings, late=tuple(self.late), failed=self.failed)


def _done(tasks: dict[str, Task[list[Found]]], seconds: float | None) -> bool:
    """Whether all are done within so many seconds."""
    until = None if seconds is None else time.perf_counter() + seconds
    return all(
        task.wait(None if until is None else max(until - time.perf_counter(), 0.0))
        for task in tasks.values()
    )


def _results(tasks: dict[str, Task[list[Found]]]) -> dict[str, list[Found]]:
    done = {name: task for name, task in tasks.items() if task.took_ms is not None}
    return {name: task.result() for name, task in done.items() if task.error is None}


def _first_done(answer: Answer, early: Answer | None, clock: Clock, outcome: Outcome) -> list[Hit]:
    """The hits of the answer, or of the early one where that is all there is in time."""
    in_time = answer.task.wait(clock.left(keep=-GRACE_SECONDS))
    answer.task.drop()
    if not in_time:
        outcome.late.append("store")
        if early is None or early.task.took_ms is None:
            return []
        answer = early
    if answer.task.error is not None:
        outcome.failed["store"] = _reason(answer.task.error)
        return []
    return answer.task.result()


def _sort_out(tasks: dict[str, Task[list[Found]]]) -> tuple[dict[str, list[Found]], Outcome]:
    found, outcome = {}, Outcome()
    for name, task in tasks.items():
        took = task.took_ms
        outcome.timings[name] = task.elapsed_ms() if took is None else took
        if took is None:
            outcome.late.append(name)
        elif task.error is not None:
            outcome.failed[name] = _reason(task.error)
        else:
            found[name] = task.result()
    return found, outcome


def _known(names: Task[frozenset[str]]) -> frozenset[str]:
    return names.result() if names.took_ms is not None and names.error is None else frozenset()


def _reason(error: Exception) -> str:
    """Why it failed. Our own errors carry no user content; of others the kind must do."""
    if isinstance(error, RecollectError):
        return str(error)
    return type(error).__name__


def _hit(candidate: Candidate, match: Match, query: Query) -> Hit:
    passage = candidate.passage
    why = Why(
        ranks=candidate.ranks, scores=candidate.scores, parts=candidate.parts,
        age=query.now - passage.created_at, start=match.start, stop=match.start + len(match.text),
    )  # fmt: skip
    return Hit(
        kind=match.kind, id=match.id, text=match.text, score=candidate.score, why=why,
        created_at=match.created_at, session_id=match.session_id, role=match.role,
        speaker=match.speaker,
    )  # fmt: skip
