"""Search: run the channels until the deadline, rank what they found, and say what was missed."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from types import ModuleType
from typing import Any, Self

from memorist import metrics
from memorist.errors import MemoristError
from memorist.language.likeness import Clause, content_stems
from memorist.language.questions import (
    QUESTION_BYTES,
    asks_about_past,
    facts_asked_about,
    in_own_words,
    role_asked_about,
    shorten_middle,
    speakers_asked_about,
)
from memorist.providers.daemon_pool import DaemonPool, Task
from memorist.providers.embedder import Embedder
from memorist.recall import fusion
from memorist.recall.channels import (
    CHANNELS,
    NEWEST,
    Channel,
    ChannelInput,
    SynonymsOf,
    no_synonyms,
    terms_of,
)
from memorist.recall.fusion import (
    AMONG,
    DEFAULT_RANKING,
    DEPTH,
    LOOKED_AT,
    Period,
    QuestionFocus,
    Ranking,
    answer_first,
    fuse,
    newer_first,
    probably_over,
    shares_words,
)
from memorist.recall.relevance import is_judged, relevance
from memorist.records.memories import Fact
from memorist.records.query import (
    MIN_SCORE,
    Found,
    Hit,
    Match,
    Passage,
    Query,
    Recall,
    Record,
    Update,
    Why,
)
from memorist.records.values import now
from memorist.store.base import Store
from memorist.store.engine import LateError

RANKING_SECONDS = 0.008  # of the deadline that the channels leave to ranking and reading
LATE_HITS = 20  # the most that are read when the time is up
GRACE_SECONDS = 0.015  # beyond the deadline, for the store to answer at all
FOUND_SECONDS = 0.05  # the same if channels found something: late hits are better than none
AT_ONCE = 2  # searches of a process whose store and model are on this machine
PATIENCE = 5  # deadlines that a search waits for its turn at most
PATIENCE_SECONDS = 1.0  # the same where there is no deadline
STANDSTILL_SECONDS = 0.01  # a thread that wakes up later than that: the process stood still

log = logging.getLogger("memorist")
_SHARED = tuple(it.name for it in fields(Record))


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """What every search needs: the store, the embedder, the ranking, and threads.

    The store and the models have a pool each: while a model hangs, the store still answers.
    """

    store: Store
    embedder: Embedder | None = None
    ranking: Ranking = DEFAULT_RANKING
    store_pool: DaemonPool = field(default_factory=DaemonPool)
    model_pool: DaemonPool = field(default_factory=DaemonPool)
    synonyms_of: SynonymsOf = no_synonyms
    turns: threading.Semaphore = field(default_factory=partial(threading.Semaphore, AT_ONCE))

    def search(self, query: Query) -> Recall:
        """The best hits that are found in time, each with its reason."""
        self.load()
        with metrics.span("memorist.recall"), RecallRun(self, query) as run:
            recall = run.run()
        metrics.record("memorist.recall.duration", recall.timings_ms["total"] / 1_000)
        metrics.record("memorist.recall.hits", len(recall.hits))
        for channel in recall.late:
            metrics.count("memorist.recall.late", channel=channel)
        for channel in recall.failed:
            metrics.count("memorist.recall.failed", channel=channel)
        return recall

    def close(self) -> None:
        """Let idle threads go."""
        self.store_pool.close()
        self.model_pool.close()

    def load(self) -> None:
        """Load modules and data, once in a process, so that no search's time is spent on it."""
        _dates()
        self.synonyms_of("")
        if self.embedder is None:
            return
        from memorist.recall.learned import net_of  # here, as it needs numpy

        net_of(self.embedder.name)
        if load := getattr(self.embedder, "load", None):
            with contextlib.suppress(Exception):  # the meaning channel will report it
                load()


@cache
def _dates() -> ModuleType:
    """The module that finds dates, and all else with its data: `import memorist` stays light."""
    from memorist.language import dates
    from memorist.store import bm25, vectors  # noqa: F401

    Clause.about(content_stems("load"), "It loads")
    asks_about_past(in_own_words("load"))
    dates.time_asked_about("today", now())
    return dates


class RecallRun:
    """One search.

    The store's thread runs one channel after the other: side by side they would wait for each
    other, since Python runs one thread at a time. The model's thread runs beside it what mostly
    works outside of Python: the embedder and the vector search. Each looks up what it found, and
    the last of them ranks. The caller waits for the ranking, and no longer than the deadline.
    """

    def __init__(self, searcher: Searcher, query: Query) -> None:
        self._clock = Clock(query.deadline_ms)
        question = in_own_words(shorten_middle(query.question, QUESTION_BYTES))
        if question != query.question:
            query = replace(query, question=question)
        self._searcher = searcher
        self._query = query
        self._terms = terms_of(question)
        self._about_past = False
        store, embedder = searcher.store, searcher.embedder
        self._embedder = embedder.name if embedder else None
        channels = [it for it in CHANNELS if embedder is not None or not it.needs_embedder]
        self._channels = {it.name: Task(partial(self._find, it)) for it in channels}
        self._by_model = [it.name for it in channels if it.needs_embedder]
        self._speakers = Task(
            lambda: speakers_asked_about(query.question, store.speakers(query.scope))
        )
        self._period: Task[Period | None] = Task(
            lambda: _dates().time_asked_about(query.question, query.now)
        )
        self._facts = Task(self._find_facts)
        self._answer = Task(lambda: self._rank(query.limit))
        self._passages: dict[int, Passage] = {}
        self._lock = threading.Lock()
        self._at_work = 1 + bool(self._by_model)  # threads whose channels are not done
        self._is_ranking = self._store_is_done = False
        self._timings: dict[str, float] = {}
        self._total = 0
        self._updates: list[Update] = []
        self._overtaken: Mapping[str, Match] = {}
        self._floor = 0.0
        self._best: float | None = None  # the score of the best that was found, if anything was
        self._late: list[str] = []
        self._failed: dict[str, str] = {}
        self._has_turn = False

    def __enter__(self) -> Self:
        """Wait for a turn, and begin the deadline then.

        Python runs one thread at a time: of many searches at once all would be late, and none
        sooner. What waits for another machine leaves this one to others, and needs no turn.
        """
        searcher, allowed = self._searcher, self._clock.allowed
        if not searcher.store.saves_trips and hasattr(searcher.embedder, "load"):
            patience = PATIENCE_SECONDS if allowed is None else PATIENCE * allowed
            self._has_turn = searcher.turns.acquire(timeout=min(patience, threading.TIMEOUT_MAX))
            self._clock.begin()
        return self

    def __exit__(self, *_: object) -> None:
        if self._has_turn:
            self._searcher.turns.release()

    def run(self) -> Recall:
        """Start both threads, wait for the answer, rerank it, and report what was late."""
        store_tasks, model_tasks = self._plan()
        if model_tasks:
            self._searcher.model_pool.start(*model_tasks)
        self._searcher.store_pool.start(*store_tasks)
        answer = self._await_answer(store_tasks)
        for task in (*model_tasks, *self._channels.values()):
            task.drop()  # or it would keep its thread for nobody
        hits = self._rerank(self._note_late(answer))
        question, about_past = self._query.question, self._about_past
        holding = {update.message_id for update in self._updates if update.holds}
        overtaken = {id_: by for id_, by in self._overtaken.items() if id_ not in holding}
        hits = newer_first(question, hits, self._updates, overtaken, about_past=about_past)
        hits = probably_over(hits, overtaken, self._query.now)
        if facts := self._facts.result_or([]):
            asked_at = self._query.filters.before or self._query.now
            hits = answer_first(hits, facts, asked_at, about_past=about_past)
        hits = [hit for hit in hits if hit.score >= self._floor]
        self._timings["total"] = self._clock.elapsed_ms()
        return self._report(tuple(hits[: self._query.limit]))

    def _plan(self) -> tuple[list[Task[Any]], list[Task[Any]]]:
        """The tasks of the store's thread and of the model's, in order.

        The embedder needs the speakers. Both threads begin to look for them, and the first to come
        does it; where round trips are saved, the store's, with what it asks first in any case.
        """
        in_store = [task for name, task in self._channels.items() if name not in self._by_model]
        by_model = [self._channels[name] for name in self._by_model]
        looks_up = [
            Task(partial(self._look_up_and_rank, names))
            for names in (self._channels.keys() - self._by_model, self._by_model)
        ]
        foreseen: list[Task[Any]] = []
        if self._searcher.store.saves_trips:
            foreseen = [Task(self._foresee), self._speakers]
        asked = (self._speakers, self._period, self._facts)
        store = self._together(*foreseen, *in_store, *asked, looks_up[0])
        first = [] if foreseen else [self._speakers]
        return [store], [*first, self._together(*by_model, looks_up[1])] if by_model else []

    def _foresee(self) -> None:
        query = self._query
        self._searcher.store.foresee(query.scope, limit=NEWEST, filters=query.filters)

    def _find_facts(self) -> list[Fact]:
        """What was, is and will be so of the user, where just that is asked, and of no period."""
        asked = facts_asked_about(self._query.question)
        if not asked or self._period.result_or(None):
            return []
        return self._searcher.store.facts_of(self._query.scope, asked)

    def _together(self, *tasks: Task[Any]) -> Task[None]:
        """A task that runs others, which read the store in one transaction."""

        def run() -> None:
            try:
                with self._searcher.store.reading(self._query.scope, self._time_to_read):
                    for task in tasks:
                        task.run()
            finally:  # if it could not begin, each says why
                for task in tasks:
                    task.run()

        return Task(run)

    def _time_to_read(self) -> float | None:
        return self._clock.left(keep=-FOUND_SECONDS if self._is_ranking else RANKING_SECONDS)

    def _await_answer(self, store_tasks: Sequence[Task[Any]]) -> Task[Any]:
        """The task whose result is the answer: done in time, or given up."""
        answer = self._answer
        is_done = self._wait_for(answer, keep=2 * RANKING_SECONDS)
        if not is_done and not self._store_is_done:  # else only the model is late: go on without
            is_done = self._wait_for(answer, keep=RANKING_SECONDS)
        if is_done:
            return answer
        if not answer.begun:
            # A channel is slow: rank what the others found, in another thread.
            for task in (*store_tasks, *self._channels.values(), answer):
                task.drop()
            limit = self._query.limit
            most = limit if self._store_is_done else min(limit, LATE_HITS)
            answer = Task(lambda: self._rank(most))
            self._searcher.store_pool.start(self._together(answer))
        grace = FOUND_SECONDS if any(self._finds().values()) else GRACE_SECONDS
        answer.wait(self._clock.left(keep=-grace))
        answer.drop()
        return answer

    def _wait_for(self, task: Task[Any], *, keep: float) -> bool:
        """Whether it is done in time; time in which the whole process stood still is given back."""
        if task.wait(self._clock.left(keep=keep)):
            return True
        self._clock.forgive_standstill(keep)
        return task.wait(self._clock.left(keep=keep))

    def _find(self, channel: Channel) -> list[Found]:
        searcher, query = self._searcher, self._query
        inputs = ChannelInput(
            store=searcher.store,
            query=query,
            terms=self._terms,
            depth=max(DEPTH, query.limit),
            synonyms_of=searcher.synonyms_of,
            synonym_weight=searcher.ranking.synonyms,
            embedder=searcher.embedder,
            speakers=self._speakers_in_time,
            is_abandoned=lambda: self._channels[channel.name].dropped,
        )
        return channel.find(inputs)

    def _speakers_in_time(self) -> frozenset[str]:
        self._speakers.wait(self._clock.left(keep=2 * RANKING_SECONDS))  # the other thread's task
        return self._speakers.result_or(frozenset())

    def _look_up_and_rank(self, channels: Collection[str]) -> None:
        """Look up what a thread's channels found; rank, if the other's are done, too."""
        finds = self._finds()
        with contextlib.suppress(Exception):  # the ranking will look again, and report it
            self._look_up({name: finds[name] for name in channels if name in finds})
        if channels is not self._by_model:
            self._store_is_done = True
        with self._lock:
            self._at_work -= 1
            is_last = not self._at_work
        if is_last:
            self._answer.run()

    def _finds(self) -> dict[str, list[Found]]:
        """What the channels that are done have found."""
        return {name: task.result() for name, task in self._channels.items() if task.succeeded}

    def _look_up(self, finds: dict[str, list[Found]]) -> dict[int, Passage]:
        """The passages that were found; the store is asked for those not looked up before."""
        ids = {find[0] for found in finds.values() for find in found} - self._passages.keys()
        if ids:
            new = self._searcher.store.passages(self._query.scope, sorted(ids))
            with self._lock:
                self._passages = self._passages | {passage.id: passage for passage in new}
        return self._passages

    def _rank(self, limit: int) -> tuple[list[Hit], Collection[str]]:
        """The best of what was found so far, and the names of the channels that found it."""
        self._is_ranking = True
        finds = self._finds()
        passages = self._look_up(finds)
        self._total = len({it[1:3] for it in passages.values()})  # by kind and record
        if not passages:
            return [], finds.keys()
        limit = max(limit, self._looked_at())
        chosen = self._fuse(finds, passages, limit)
        texts = self._read([record.passage.id for record in chosen])
        if len(texts) < len(chosen):  # some are blank or expired: others take their places
            texts = self._read(sorted(passages))
            chosen = self._fuse(finds, {id_: passages[id_] for id_ in texts}, limit)
        hits = [_hit(record, texts[record.passage.id], self._query) for record in chosen]
        self._overtaken = self._overtaken_among(chosen, texts)
        if over := [hit.id for hit in hits if hit.over or hit.id in self._overtaken]:
            self._updates = self._searcher.store.updates(self._query.scope, over)
        return hits, finds.keys()

    def _overtaken_among(
        self, chosen: Sequence[fusion.RankedRecord], texts: Mapping[int, Match]
    ) -> dict[str, Match]:
        """The messages that later ones of the same matter probably update, each with that one."""
        linked = {it.passage.id: it.passage.overtaken_by for it in chosen}
        unread = {by for by in linked.values() if by} - texts.keys()
        texts = {**texts, **self._read(sorted(unread))} if unread else texts
        pairs = ((texts[id_], texts[by]) for id_, by in linked.items() if by in texts)
        asked_at = self._query.filters.before or self._query.now
        return {
            older.id: newer
            for older, newer in pairs
            if newer.created_at <= asked_at and shares_words(older, newer)
        }

    def _fuse(
        self, finds: dict[str, list[Found]], passages: dict[int, Passage], limit: int
    ) -> list[fusion.RankedRecord]:
        """The best of the passages; twice as many, if a reranker will choose among them."""
        ranking, question = self._searcher.ranking, self._query.question
        self._about_past = asks_about_past(question)
        focus = QuestionFocus(
            self._speakers.result_or(frozenset()),
            role_asked_about(question),
            self._period.result_or(None),
            self._about_past,
            len(self._terms),
        )
        limit *= 2 if ranking.reranker else 1
        asked: dict[str, Any] = {"focus": focus, "now": self._query.now, "embedder": self._embedder}
        records = fuse(finds, passages, ranking, **asked, limit=limit)
        return self._above_floor(records, finds, len(passages))

    def _above_floor(
        self, records: list[fusion.RankedRecord], finds: dict[str, list[Found]], size: int
    ) -> list[fusion.RankedRecord]:
        """The records that probably bear on the question, with that probability as their score."""
        name, least = self._embedder, self._query.min_score
        if least <= MIN_SCORE and not is_judged(finds, name):
            least = 0.0  # words alone tell too little to leave something out unasked
        chances = relevance(finds, records, size, name, self._query.now)
        self._best = max(chances, default=0.0)
        best = 0.0
        for record, chance in zip(reversed(records), reversed(chances), strict=True):
            best = record.score = max(best, chance)  # what ranks higher bears on it no less
        self._floor = least
        if best < least and not self._facts.result_or([]):
            return []
        # Of the first, each may yet be raised to the score of what it is an update of.
        return [
            it for place, it in enumerate(records) if it.score >= least or place < self._looked_at()
        ]

    def _looked_at(self) -> int:
        """How many hits may change places."""
        return AMONG if self._facts.result_or([]) else LOOKED_AT

    def _read(self, ids: Sequence[int]) -> dict[int, Match]:
        matches = self._searcher.store.read(self._query.scope, ids)
        return {match.passage: match for match in matches}

    def _note_late(self, answer: Task[tuple[list[Hit], Collection[str]]]) -> list[Hit]:
        """Note which channels were late or failed, and return the hits of the answer."""
        hits: list[Hit] = []
        heard: Collection[str] = self._channels.keys()
        if answer.succeeded:
            hits, heard = answer.result()
        for name, task in self._channels.items():
            self._timings[name] = task.elapsed_ms() if task.took_ms is None else task.took_ms
            is_late = task.took_ms is None or isinstance(task.error, LateError)
            if task.error is not None and not is_late:
                self._failed[name] = _reason(task.error)
            elif is_late or name not in heard:
                self._late.append(name)
        if answer.took_ms is None or isinstance(answer.error, LateError):
            self._late.append("store")
        elif answer.error is not None:
            self._failed["store"] = _reason(answer.error)
        return hits

    def _rerank(self, hits: list[Hit]) -> list[Hit]:
        """The hits in the reranker's order, if it gives one in the time that is left."""
        reranker = self._searcher.ranking.reranker
        if reranker is None or not hits:
            return hits
        question, texts = self._query.question, [hit.text for hit in hits]
        task = Task(lambda: [float(score) for score in reranker.score(question, texts)])
        self._searcher.model_pool.start(task)
        done = task.wait(self._clock.left())
        task.drop()
        self._timings["rerank"] = task.took_ms or task.elapsed_ms()
        if not done:
            self._late.append("rerank")
            return hits
        if task.error is not None or len(scores := task.result()) != len(hits):
            self._failed["rerank"] = _reason(task.error) if task.error else "wrong length"
            return hits
        order = sorted(range(len(hits)), key=lambda place: -scores[place])
        for rank, place in enumerate(order, start=1):
            why = hits[place].why
            why.scores["rerank"], why.ranks["rerank"] = scores[place], rank
        return [hits[place] for place in order]

    def _report(self, hits: tuple[Hit, ...]) -> Recall:
        """The answer; a warning is logged if a channel failed, or all were late."""
        if self._failed or (self._late and not hits):
            log.warning(
                "recall answered with %d hits; late: %s; failed: %s",
                len(hits),
                ", ".join(self._late) or "none",
                self._failed or "none",
            )
        return Recall(
            hits=hits,
            timings_ms=self._timings,
            late=tuple(self._late),
            failed=self._failed,
            reason="" if hits else self._why_empty(),
            total_found=self._total,
        )

    def _why_empty(self) -> str:
        if self._late or self._failed:
            late = f"not searched in time: {', '.join(self._late)}" if self._late else ""
            failed = f"the search failed: {', '.join(dict.fromkeys(self._failed.values()))}"
            return "; ".join(filter(None, (late, failed if self._failed else "")))
        if self._best is None:
            return "nothing is remembered here"
        return (
            f"nothing bears on the question: the best score is {self._best:.4f}, "
            f"below min_score {self._query.min_score:g}; a lower one shows it"
        )


class Clock:
    """The time of one search."""

    def __init__(self, deadline_ms: float | None) -> None:
        self._started = time.perf_counter()
        self.allowed = None if deadline_ms is None else deadline_ms / 1_000
        self.begin()

    def begin(self) -> None:
        """Count the deadline from now on; the time that passed before stays in the total."""
        allowed = self.allowed
        self._deadline = None if allowed is None else time.perf_counter() + allowed

    def left(self, *, keep: float = 0.0) -> float | None:
        """Seconds until the deadline, less those to keep; None where there is no deadline."""
        if self._deadline is None:
            return None
        left = self._deadline - keep - time.perf_counter()
        return min(max(left, 0.0), threading.TIMEOUT_MAX)

    def forgive_standstill(self, keep: float) -> None:
        """Give back the time by which a wait until `keep` seconds before the deadline overslept.

        The process stood still, as while garbage is collected, and the other thread lost it too.
        """
        if self._deadline is not None and self.allowed is not None:
            now = time.perf_counter()
            overslept = now - (self._deadline - keep)
            if overslept > STANDSTILL_SECONDS:
                self._deadline = now + min(overslept, self.allowed)

    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self._started) * 1_000


def _reason(error: BaseException) -> str:
    """Why it failed: the text of our own errors, which quote nobody; of others only the kind."""
    if isinstance(error, MemoristError):
        return str(error)
    return type(error).__name__


def _hit(record: fusion.RankedRecord, match: Match, query: Query) -> Hit:
    why = Why(
        ranks=record.ranks,
        scores=record.scores,
        parts=record.parts,
        age=query.now - match.created_at,
        start=match.start,
        stop=match.start + len(match.text),
    )
    shared = {name: getattr(match, name) for name in _SHARED}
    return Hit(**shared, score=record.score, why=why)
