"""RecallRun: run the channels until the deadline, and rank what they found."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from memorist import metrics
from memorist.errors import MemoristError
from memorist.language.questions import (
    QUESTION_BYTES,
    role_asked_about,
    shorten_middle,
    speakers_asked_about,
)
from memorist.language.words import stem
from memorist.providers.embedder import Embedder
from memorist.recall.channels import (
    SynonymsOf,
    embed_question,
    find_links,
    find_meaning,
    find_recent,
    find_words,
    no_synonyms,
)
from memorist.recall.daemon_pool import DaemonPool, Task
from memorist.recall.fusion import (
    DEFAULT_RANKING,
    DEPTH,
    Period,
    QuestionFocus,
    RankedRecord,
    Ranking,
    fuse,
)
from memorist.records.query import Found, Hit, Match, Passage, Query, Recall, Why
from memorist.store.base import Store

FINISH_SECONDS = 0.008  # kept back from the channels, for ranking and reading
LATE_HITS = 20  # as many are read when there is no time for more
GRACE_SECONDS = 0.015  # beyond the deadline, for the store to answer at all
FOUND_SECONDS = 0.05  # the same, if there are finds: read late, they are worth more than none
STANDSTILL_SECONDS = 0.01  # that a sleeper wakes up late by: nobody could work meanwhile

log = logging.getLogger("memorist")


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """What a search works with."""

    store: Store
    embedder: Embedder | None = None
    ranking: Ranking = DEFAULT_RANKING
    crew: DaemonPool = field(default_factory=DaemonPool)
    models: DaemonPool = field(
        default_factory=DaemonPool
    )  # apart: when one hangs, the store still answers
    synonyms_of: SynonymsOf = no_synonyms
    time_asked_about: Callable[[str, datetime], Period | None] = lambda question, now: None

    def search(self, query: Query) -> Recall:
        """The best hits that are found in time, each with its reason."""
        if query.limit <= 0:
            return Recall(hits=())
        self._load()
        with metrics.span("memorist.recall"):
            found = RecallRun(self, query).run()
        _measure(found)
        return found

    def close(self) -> None:
        """Let idle threads go."""
        self.crew.close()
        self.models.close()

    def _load(self) -> None:
        """Once in a process, before its time is counted: what is read from this machine."""
        import numpy  # noqa: F401

        stem("loads")
        self.synonyms_of("")
        if self.embedder is not None and (load := getattr(self.embedder, "load", None)):
            with contextlib.suppress(Exception):  # whatever it is, the channel will tell
                load()


class RecallRun:
    """One search.

    A thread asks the store for one channel after the other and then ranks: side by side they
    would spend their time on waiting for each other, since Python runs one at a time. Beside it
    works only what mostly runs outside of Python: the embedder, the look for what is near, and, if
    that is done first, for what is known of it. Whoever asked waits for both, and no longer than
    the deadline.
    """

    def __init__(self, tools: Searcher, query: Query) -> None:
        self._clock = Clock(query.deadline_ms)
        query = replace(query, question=shorten_middle(query.question, QUESTION_BYTES))
        self._tools = tools
        self._query = query
        self._names = Task(
            lambda: speakers_asked_about(query.question, tools.store.speakers(query.scope))
        )
        self._when = Task(lambda: tools.time_asked_about(query.question, query.now))
        self._channels = {name: Task(work) for name, work in self._works().items()}
        self._answer = Task(lambda: self._rank(query.limit))
        self._passages: dict[int, Passage] = {}
        self._looking = threading.Lock()
        self._waiting = False
        self._timings: dict[str, float] = {}
        self._late: list[str] = []
        self._failed: dict[str, str] = {}

    def run(self) -> Recall:
        """Start, wait, and tell what came of it."""
        tools = self._tools
        meaning = self._channels.get("meaning")
        asked = [task for task in self._channels.values() if task is not meaning]
        lane: list[Task[Any]] = [*asked, self._names, self._when, self._answer]
        beside: list[Task[Any]] = []
        if meaning is not None:
            beside = [self._names, meaning, Task(self._look_ahead)]
            tools.models.start(*beside)
            lane[-2:] = [Task(self._look_meanwhile), self._when, Task(self._wait), self._answer]
        tools.crew.start(*lane)
        answer = self._answer
        if not self._wait_for(answer, FINISH_SECONDS):
            if not answer.begun:
                # Something is slow: answer with what is there, beside the thread that waits for it.
                for task in lane:
                    task.drop()
                answer = Task(lambda: self._rank(min(self._query.limit, LATE_HITS)))
                tools.crew.start(answer)
            grace = FOUND_SECONDS if any(self._found().values()) else GRACE_SECONDS
            answer.wait(self._clock.left(keep=-grace))
            answer.drop()
        for task in beside:
            task.drop()  # or their lane would wait for a thread that hangs
        hits = self._rerank(self._sort_out(answer))
        self._timings["total"] = self._clock.elapsed_ms()
        return self._report(tuple(hits[: self._query.limit]))

    def _wait_for(self, task: Task[Any], keep: float) -> bool:
        """Whether it is done in time; what was lost to a standstill is not counted."""
        if task.wait(self._clock.left(keep=keep)):
            return True
        self._clock.forgive(keep)
        return task.wait(self._clock.left(keep=keep))

    def _works(self) -> dict[str, Callable[[], list[Found]]]:
        store, query = self._tools.store, self._query
        depth = max(DEPTH, query.limit)
        synonyms_of, worth = self._tools.synonyms_of, self._tools.ranking.synonyms
        works: dict[str, Callable[[], list[Found]]] = {
            "recency": lambda: find_recent(store, query),
            "words": lambda: find_words(store, query, depth, synonyms_of, worth),
            "links": lambda: find_links(store, query, depth),
        }
        if (embedder := self._tools.embedder) is not None:

            def meaning() -> list[Found]:
                self._names.wait(self._clock.left(keep=2 * FINISH_SECONDS))  # the lane may have it
                vector = embed_question(embedder, query.question, self._asked().names)
                if self._channels["meaning"].dropped:  # too late for anybody to look
                    return []
                return find_meaning(store, embedder.name, vector, query, depth)

            works["meaning"] = meaning
        return works

    def _look_meanwhile(self) -> None:
        """Look up what the others found, while meaning is not."""
        self._waiting = True
        if not self._channels["meaning"].wait(0):
            self._look_up(self._found())

    def _wait(self) -> None:
        self._wait_for(self._channels["meaning"], 2 * FINISH_SECONDS)

    def _look_ahead(self) -> None:
        """Look up what meaning found, unless somebody waits for just that."""
        if not self._waiting:
            self._look_up(self._found())

    def _asked(self) -> QuestionFocus:
        return QuestionFocus(
            self._names.given(frozenset()),
            role_asked_about(self._query.question),
            self._when.given(None),
        )

    def _found(self) -> dict[str, list[Found]]:
        """What the channels that are done have found."""
        return {name: task.result() for name, task in self._channels.items() if task.succeeded}

    def _look_up(self, found: dict[str, list[Found]]) -> dict[int, Passage]:
        """The passages that were found; only those not seen before are asked for."""
        ids = {find.passage for finds in found.values() for find in finds} - self._passages.keys()
        if ids:
            new = self._tools.store.passages(self._query.scope, sorted(ids))
            with self._looking:
                self._passages = self._passages | {it.id: it for it in new}
        return self._passages

    def _rank(self, limit: int) -> tuple[list[Hit], Collection[str]]:
        """The best of what was found in time, and which channels were heard."""
        found = self._found()
        passages = self._look_up(found)
        if not passages:
            return [], found.keys()
        chosen = self._fuse(found, passages, limit)
        texts = self._read([it.passage.id for it in chosen])
        if len(texts) < len(chosen):  # some are blank, or over: others take their places
            texts = self._read(sorted(passages))
            chosen = self._fuse(found, {id_: passages[id_] for id_ in texts}, limit)
        hits = [_hit(it, texts[it.passage.id], self._query) for it in chosen]
        return hits, found.keys()

    def _fuse(
        self, found: dict[str, list[Found]], passages: dict[int, Passage], limit: int
    ) -> list[RankedRecord]:
        """The best of the passages; twice as many, if a reranker will choose among them."""
        ranking = self._tools.ranking
        return fuse(
            found,
            passages,
            ranking,
            asked=self._asked(),
            now=self._query.now,
            limit=limit * (2 if ranking.reranker else 1),
        )

    def _read(self, ids: Sequence[int]) -> dict[int, Match]:
        return {match.passage: match for match in self._tools.store.read(self._query.scope, ids)}

    def _sort_out(self, answer: Task[tuple[list[Hit], Collection[str]]]) -> list[Hit]:
        """Note what was late or failed, and take the hits."""
        hits: list[Hit] = []
        heard: Collection[str] = self._channels.keys()
        if answer.succeeded:
            hits, heard = answer.result()
        for name, task in self._channels.items():
            self._timings[name] = task.elapsed_ms() if task.took_ms is None else task.took_ms
            if task.error is not None:
                self._failed[name] = _reason(task.error)
            elif task.took_ms is None or name not in heard:
                self._late.append(name)
        if answer.took_ms is None:
            self._late.append("store")
        elif answer.error is not None:
            self._failed["store"] = _reason(answer.error)
        return hits

    def _rerank(self, hits: list[Hit]) -> list[Hit]:
        """The hits in the reranker's order, if it gives one in the time that is left."""
        reranker = self._tools.ranking.reranker
        if reranker is None or not hits:
            return hits
        question, texts = self._query.question, [hit.text for hit in hits]
        task = Task(lambda: [float(score) for score in reranker.score(question, texts)])
        self._tools.models.start(task)
        done = task.wait(self._clock.left())
        task.drop()
        self._timings["rerank"] = task.took_ms or task.elapsed_ms()
        if not done:
            self._late.append("rerank")
            return hits
        if task.error is not None or len(task.result()) != len(hits):
            self._failed["rerank"] = _reason(task.error) if task.error else "wrong length"
            return hits
        order = sorted(zip(task.result(), range(len(hits)), strict=True), key=lambda it: -it[0])
        for rank, (score, place) in enumerate(order, start=1):
            hits[place].why.scores["rerank"], hits[place].why.ranks["rerank"] = score, rank
        return [hits[place] for _, place in order]

    def _report(self, hits: tuple[Hit, ...]) -> Recall:
        """The answer; a warning is logged if something kept it from being whole."""
        if self._failed or (self._late and not hits):
            log.warning(
                "recall answered with %d hits; late: %s; failed: %s",
                len(hits),
                ", ".join(self._late) or "none",
                self._failed or "none",
            )
        return Recall(
            hits=hits, timings_ms=self._timings, late=tuple(self._late), failed=self._failed
        )


class Clock:
    """The time of one search."""

    def __init__(self, deadline_ms: float | None) -> None:
        self._started = time.perf_counter()
        self._deadline = None if deadline_ms is None else self._started + deadline_ms / 1_000

    def left(self, *, keep: float = 0.0) -> float | None:
        """Seconds until the deadline, less those to keep; None where there is no deadline."""
        if self._deadline is None:
            return None
        left = self._deadline - keep - time.perf_counter()
        return min(max(left, 0.0), threading.TIMEOUT_MAX)

    def forgive(self, keep: float) -> None:
        """Of who slept until `keep` seconds before the deadline: give back what it overslept.

        Then this process stood still, as it does while Python collects garbage, and whoever it
        waits for had that time no more than itself.
        """
        if self._deadline is not None:
            now = time.perf_counter()
            overslept = now - (self._deadline - keep)
            if overslept > STANDSTILL_SECONDS:
                self._deadline = now + min(overslept, self._deadline - self._started)

    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self._started) * 1_000


def _measure(found: Recall) -> None:
    metrics.record("memorist.recall.duration", found.timings_ms["total"] / 1_000)
    metrics.record("memorist.recall.hits", len(found.hits))
    for channel in found.late:
        metrics.count("memorist.recall.late", channel=channel)
    for channel in found.failed:
        metrics.count("memorist.recall.failed", channel=channel)


def _reason(error: BaseException) -> str:
    """Why it failed. Our own errors carry no user content; of others the kind must do."""
    if isinstance(error, MemoristError):
        return str(error)
    return type(error).__name__


def _hit(candidate: RankedRecord, match: Match, query: Query) -> Hit:
    why = Why(
        ranks=candidate.ranks,
        scores=candidate.scores,
        parts=candidate.parts,
        age=query.now - match.created_at,
        start=match.start,
        stop=match.start + len(match.text),
    )
    return Hit(
        kind=match.kind,
        id=match.id,
        text=match.text,
        score=candidate.score,
        why=why,
        created_at=match.created_at,
        session_id=match.session_id,
        role=match.role,
        speaker=match.speaker,
    )
