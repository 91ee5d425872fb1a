"""The worker: makes memories of the messages that wait in the queue, in the background."""

from __future__ import annotations

import contextlib
import itertools
import logging
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from memorist import metrics
from memorist.errors import (
    BadAnswerError,
    ConflictError,
    LeaseLostError,
    MemoristError,
    ProviderError,
    StoreError,
)
from memorist.forks import EXIT_SECONDS
from memorist.lifecycle.derive import Deriver, OverTimeError
from memorist.lifecycle.policy import maintain, promote
from memorist.lifecycle.settings import Extraction
from memorist.records.log import Job
from memorist.records.scope import Scope
from memorist.records.values import now
from memorist.store.base import Store
from memorist.store.jobs import LATER, extraction_kinds, is_backfill
from memorist.store.runner import ForegroundGate, JobRunner

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
MAX_RECALLED = 10_000  # recalls whose uses wait to be noted, while a step takes long
LONGEST_RETRY_AFTER = 3_600.0  # seconds that a model server may ask for
REJECTED = (400, 413, 422)  # statuses about what was asked; others are about the server

log = logging.getLogger("memorist")


class Worker(JobRunner):
    """Makes memories of what waits in the queue. Several may share one store.

    While a model fails, its jobs wait and it is asked ever more rarely. An answer that cannot be
    used is asked for again later; a job is given up when that never works.
    """

    name = "extraction"
    batch_size = 32
    awaited = ("rebuild",)

    def __init__(
        self,
        store: Store,
        extraction: Extraction,
        *,
        kinds: Sequence[str] = extraction_kinds(has_embedder=True),
        clock: Callable[[], datetime] = now,
        gate: ForegroundGate | None = None,
        timer: Callable[[], float] = time.thread_time,
    ) -> None:
        super().__init__(store, kinds, gate)
        self.then: Callable[[], None] = lambda: None  # called when a rebuild has queued messages
        self._extraction = extraction
        self._clock = clock
        self._deriver = Deriver(store, extraction, clock, gate, timer)
        self._next_pause = FIRST_PAUSE
        # Uses to note with the next step: scopes with the kinds and ids of hits.
        self.recalled: deque[tuple[Scope, Sequence[tuple[str, str]]]] = deque(maxlen=MAX_RECALLED)
        self._changes_since_maintenance: Counter[Scope] = Counter()
        self._due_for_maintenance: set[Scope] = set()

    def close(self, wait_s: float | None = EXIT_SECONDS) -> None:
        super().close(wait_s)
        with contextlib.suppress(MemoristError):  # the store may be away
            self.before_step()

    def step(self) -> bool:
        """Do jobs or, where there are none, begin or end the rebuild of a user's views."""
        if super().step():
            return True
        scope = None if self.stopped or self.paused else self._store.next_rebuild()
        if scope is not None:
            self._store.rebuild(scope)
            self.then()
        return scope is not None

    def group(self, jobs: Sequence[Job]) -> list[list[Job]]:
        """The jobs of a session that follow one another; for a model, all of them: a call costs.

        Without one, backfill is done job by job, and gives way in between.
        """
        has_model = self._extraction.model is not None

        def place(job: Job) -> tuple[str, str, int]:
            session = job.scope.session if has_model else None
            return job.scope.owner, session or "", job.first_seq

        ordered = sorted(jobs, key=place)

        def together(job: Job) -> tuple[Scope, int]:
            return job.scope, job.id if is_backfill(job.kind) and not has_model else 0

        return [list(group) for _, group in itertools.groupby(ordered, key=together)]

    def after_step(self, jobs: Sequence[Job]) -> None:
        while self._due_for_maintenance:
            with contextlib.suppress(ConflictError):
                scope = self._due_for_maintenance.pop()
                maintain(self._store, scope, self._extraction, self._clock())

    def do(self, jobs: Sequence[Job]) -> None:
        """Do the jobs of one session; those that fail together are tried alone."""
        try:
            self._extract(jobs)
        except LeaseLostError:
            self._each(jobs, lambda job: log.info("another worker took over job %d", job.id))
        except OverTimeError as error:
            reason = str(error)  # the name ends with this block
            self._each(jobs, lambda job: self._set_aside(job, reason))
        except ConflictError as error:
            self.release(jobs)
            log.info("%d jobs wait: %s", len(jobs), error)
        except ProviderError as error:
            if isinstance(error, BadAnswerError) or error.status in REJECTED:
                unusable = error  # the name ends with this block
                self._each(jobs, lambda job: self._fail_and_pause(job, unusable))
            else:
                self.release(jobs)
                self._pause_model(error)

    def _each(self, jobs: Sequence[Job], alone: Callable[[Job], None]) -> None:
        """Try jobs that failed together one by one; for a single job call `alone`."""
        if len(jobs) == 1:
            alone(jobs[0])
        else:
            self._in_turn([[job] for job in jobs])

    def _in_turn(self, parts: Sequence[Sequence[Job]]) -> None:
        for number, part in enumerate(parts):
            if self.paused or self.stopped or (number and self.gives_way(part)):
                self.release(part)
            else:
                self.do(part)

    def _set_aside(self, job: Job, reason: str) -> None:
        """Give a job up at once: trying it again would take as long."""
        with contextlib.suppress(LeaseLostError):
            self._store.fail(job, reason, final=True)
        _count([job], "failed")
        log.warning("job %d is set aside: %s", job.id, reason)

    def _fail_and_pause(self, job: Job, error: ProviderError) -> None:
        """Try it later, and the others too: a model's bad answers often come in a row."""
        self.fail(job, error)
        _count([job], "failed")
        self._pause_model(error)

    def _extract(self, jobs: Sequence[Job]) -> None:
        """Extract from the jobs' messages; an error that nobody foresaw fails these jobs alone."""
        if jobs[0].scope.session is None:  # vectors of derived records: there is no embedder
            self._store.apply(jobs[0].scope, [], done=jobs)
            _count(jobs, "done")
            return
        try:
            self._derive(jobs)
        except (ConflictError, ProviderError, StoreError, OverTimeError):
            raise
        except Exception as error:
            raise BadAnswerError(f"extraction raised {type(error).__name__}") from error

    def _derive(self, jobs: Sequence[Job]) -> None:
        batch = self._deriver.read(jobs)
        if self._extraction.model and len(parts := self._deriver.apart(jobs, batch)) > 1:
            self._in_turn(parts)  # each is paid for and applied by itself
            return
        candidates = self._deriver.candidates(batch)
        if candidates:  # without any, the model may not have been asked
            self._next_pause = FIRST_PAUSE
        changes = self._store.change(
            batch.home, lambda: self._deriver.changes(batch, candidates), done=jobs
        )
        _count(jobs, "done")
        every = self._extraction.maintain_every
        if every and changes:
            self._changes_since_maintenance[batch.home] += len(changes)
            if self._changes_since_maintenance[batch.home] >= every:
                del self._changes_since_maintenance[batch.home]
                self._due_for_maintenance.add(batch.home)

    def before_step(self) -> None:
        """Note that memories were used: those recalled, and those made of recalled messages."""
        used: dict[Scope, set[tuple[str, str]]] = defaultdict(set)
        with contextlib.suppress(IndexError):  # it is empty
            while True:
                scope, hits = self.recalled.popleft()
                used[scope].update(hits)
        for scope, ids in used.items():
            messages = sorted(id_ for kind, id_ in ids if kind == "message")
            memories = {id_ for kind, id_ in ids if kind == "memory"}
            if memories := memories.union(self._store.derived(scope, messages)):
                self._store.touch(scope, sorted(memories))
                with contextlib.suppress(ConflictError):  # then the next use or maintenance does
                    promote(self._store, scope, memories, self._clock(), self._extraction.policy)

    def _pause_model(self, error: ProviderError) -> None:
        """Ask the model ever more rarely while it does not answer, or may not be asked."""
        asked = min(error.retry_after_s or 0.0, LONGEST_RETRY_AFTER)
        seconds = max(asked, self._next_pause)
        self.pause(seconds)
        self._next_pause = min(self._next_pause * 2, LONGEST_PAUSE)
        log.warning("memories wait for %.0f s: %s", seconds, error)


class WorkerElsewhere(Worker):
    """Stands for the process that does the jobs: wakes it, and here only notes what was used."""

    name = "noting uses"
    longest_pause = 2.0

    def __init__(self, wake_worker: Callable[[], None], *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._wake_worker = wake_worker

    def wake(self) -> None:
        """Have that process look for jobs now."""
        self.start()
        self._wake_worker()

    def step(self) -> bool:
        """Note what was used since the last time; no job is done here."""
        self.before_step()
        return False


def _count(jobs: Sequence[Job], result: str) -> None:
    for job in jobs:
        metrics.count("memorist.jobs", kind=job.kind.removesuffix(LATER), result=result)
