"""Search: run the channels side by side until the deadline, and rank what they found."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from recollect.errors import RecollectError
from recollect.providers.embedder import Embedder
from recollect.providers.reranker import Reranker
from recollect.recall.crew import Crew, Task
from recollect.recall.fusion import DEFAULT_RANKING, Candidate, Ranking, fuse
from recollect.recall.graph import find_links
from recollect.recall.lexical import find_words
from recollect.recall.names import asked_about
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

    def search(self, query: Query) -> Recall:
        """The best hits that are found in time, each with its reason."""
        if query.limit <= 0:
            return Recall(hits=())
        clock = Clock(query.deadline_ms)
        names = self.crew.start(lambda: asked_about(query.question, self._speakers(query)))
        tasks = self._start(query, names)
        for task in tasks.values():
            task.wait(clock.left(keep=FINISH_SECONDS))
        found, outcome = _sort_out(tasks)
        finish = self.crew.start(lambda: self._finish(query, found, _known(names), clock, outcome))
        if not finish.wait(clock.left(keep=-GRACE_SECONDS)):
            outcome.late.append("store")
            hits: tuple[Hit, ...] = ()
        elif finish.error is not None:
            outcome.failed["store"] = _reason(finish.error)
            hits = ()
        else:
            hits = finish.result()
        outcome.timings["total"] = clock.elapsed_ms()
        return outcome.report(hits)

    def _speakers(self, query: Query) -> list[str]:
        return self.store.speakers(query.scope)

    def _start(self, query: Query, names: Task[frozenset[str]]) -> dict[str, Task[list[Found]]]:
        store, embedder, depth = self.store, self.embedder, max(DEPTH, query.limit)
        channels: dict[str, Callable[[], list[Found]]] = {
            "words": lambda: find_words(store, query, depth),
            "links": lambda: find_links(store, query, depth),
            "recency": lambda: find_recent(store, query),
        }
        if embedder is not None:

            def meaning() -> list[Found]:
                names.wait(None)
                return find_meaning(store, embedder, query, names.result(), depth)

            channels["meaning"] = meaning
        return {name: self.crew.start(work) for name, work in channels.items()}

    def _finish(
        self,
        query: Query,
        found: dict[str, list[Found]],
        names: frozenset[str],
        clock: Clock,
        outcome: Outcome,
    ) -> tuple[Hit, ...]:
        ids = {find.passage for finds in found.values() for find in finds}
        if not ids:
            return ()
        passages = {it.id: it for it in self.store.passages(query.scope, sorted(ids))}
        ranked = fuse(found, passages, self.ranking, names=names, now=query.now)
        chosen = ranked[: max(query.limit, 2 * query.limit if self.reranker else 0)]
        texts = self.store.read(query.scope, [it.passage.id for it in chosen])
        by_passage = {match.passage: match for match in texts}
        hits = [
            _hit(candidate, by_passage[candidate.passage.id], query)
            for candidate in chosen
            if candidate.passage.id in by_passage
        ]
        return tuple(self._rerank(query, hits, clock, outcome)[: query.limit])

    def _rerank(
        self, query: Query, hits: Sequence[Hit], clock: Clock, outcome: Outcome
    ) -> Sequence[Hit]:
        """The hits in the reranker's order, if it gives one in the time that is left."""
        reranker = self.reranker
        if reranker is None or not hits:
            return hits
        task = self.crew.start(lambda: reranker.score(query.question, [hit.text for hit in hits]))
        done = task.wait(clock.left())
        outcome.timings["rerank"] = task.took_ms or task.elapsed_ms()
        if not done:
            outcome.late.append("rerank")
            return hits
        if task.error is not None or len(task.result()) != len(hits):
            outcome.failed["rerank"] = _reason(task.error) if task.error else "wrong length"
            return hits
        order = sorted(zip(task.result(), range(len(hits)), strict=True), key=lambda it: -it[0])
        return [hits[place] for _, place in order]


class Clock:
    """The time of one search."""

    def __init__(self, deadline_ms: float | None) -> None:
        self._started = time.perf_counter()
        self._deadline = None if deadline_ms is None else self._started + deadline_ms / 1_000

    def left(self, keep: float = 0.0) -> float | None:
        """Seconds until the deadline, less those to keep; None where there is no deadline."""
        if self._deadline is None:
            return None
        return max(self._deadline - keep - time.perf_counter(), 0.0)

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
