"""The worker: takes messages from the queue and makes memories of them, in the background."""

from __future__ import annotations

import contextlib
import itertools
import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from memorist import metrics
from memorist.errors import (
    BadAnswerError,
    ConflictError,
    LeaseLostError,
    MemoristError,
    NotFoundError,
    ProviderError,
    StoreError,
)
from memorist.lifecycle.candidate import Candidate
from memorist.lifecycle.derive import Deriver, Material, OverBudgetError
from memorist.lifecycle.maintenance import maintain
from memorist.lifecycle.settings import Extraction
from memorist.records.ids import now
from memorist.records.log import Job
from memorist.records.scope import Scope
from memorist.store.background import Background, Courtesy
from memorist.store.base import Store
from memorist.store.lease_renewal import kept

JOBS = 16  # taken at once
LEASE_SECONDS = 45.0  # renewed while it works: a dead worker's jobs are others' in a minute
ATTEMPTS = 20  # to keep what was thought, while others change the same user's memories
PATIENCE = 0.01  # seconds; longer with each attempt
FIRST_REST = 1.0
LONGEST_REST = 60.0
LONGEST_ASKED = 3_600.0  # of the rests that a model asks for
OURS = (400, 413, 422)  # refusals that are about what was asked, not about who was

log = logging.getLogger("memorist")


class Worker:
    """Makes memories of what waits in the queue. Several may share one store.

    With a model that fails, jobs wait and it is asked ever more rarely until it answers; an
    answer that cannot be used is asked for again, and the job is buried when it never can.
    """

    def __init__(
        self,
        store: Store,
        extraction: Extraction,
        *,
        kinds: Sequence[str] = ("derive",),
        clock: Callable[[], datetime] = now,
        courtesy: Courtesy | None = None,
    ) -> None:
        self.kinds = tuple(kinds)
        self._store = store
        self._extraction = extraction
        self._clock = clock
        self._deriver = Deriver(store, extraction, clock, courtesy)
        self._background = Background(self.step, "extraction")
        self._rest_until = 0.0
        self._rest = FIRST_REST
        self._used: dict[Scope, tuple[set[str], set[str]]] = {}
        self._used_lock = threading.Lock()
        self._made: Counter[Scope] = Counter()
        self._untidy: set[Scope] = set()
        self._held: Sequence[Job] = ()

    def wake(self) -> None:
        """There may be work."""
        self._background.wake()

    def catch_up(self, timeout_s: float | None = None) -> int:
        """Wait until nothing waits to be thought about; return how many jobs still do."""
        return self._background.wait_for(self._store, self.kinds, timeout_s)

    def stop(self) -> None:
        """Begin no other job; what was taken and not begun is given back."""
        self._background.closing = True

    def close(self) -> None:
        """Stop after the job at hand, or without it if it takes long; the rest stays queued."""
        self._background.close()
        with contextlib.suppress(MemoristError):  # the store may be away
            self._release(self._held)
            self._note_uses()

    def used(self, scope: Scope, memories: Iterable[str], messages: Iterable[str]) -> None:
        """Memories were recalled, or the messages they are of: noted with the next work."""
        with self._used_lock:
            ids, said = self._used.setdefault(scope, (set(), set()))
            ids.update(memories)
            said.update(messages)
        self._background.start()

    def step(self) -> bool:
        """Take some jobs and do them; say whether there were any."""
        self._note_uses()
        if time.monotonic() < self._rest_until:
            return False
        jobs = self._store.claim(kinds=self.kinds, limit=JOBS, lease_seconds=LEASE_SECONDS)
        jobs.sort(key=lambda job: (job.scope.owner, job.scope.session or "", job.first_seq))
        talks = itertools.groupby(jobs, key=lambda job: job.scope)
        todo = [list(group) for _, group in talks]
        self._held = jobs
        with kept(self._store, jobs, LEASE_SECONDS):
            try:
                while todo and self._goes_on():
                    self._think(todo[0])
                    todo.pop(0)
            finally:
                self._held = ()
                for left in todo:
                    self._release(left)
        self._tidy()
        return bool(jobs)

    def _goes_on(self) -> bool:
        return not self._background.closing and time.monotonic() >= self._rest_until

    def _think(self, jobs: Sequence[Job]) -> None:
        """Do the jobs of one session; those that fail together are tried alone."""
        try:
            self._do(jobs)
        except LeaseLostError:
            self._each(jobs, lambda job: log.info("another worker took over job %d", job.id))
        except ConflictError as error:
            self._release(jobs)
            log.info("%d jobs wait: %s", len(jobs), error)
        except OverBudgetError as error:
            self._release(jobs)
            self._pause(error)
        except ProviderError as error:
            if isinstance(error, BadAnswerError) or error.status in OURS:
                bad = error  # the name ends with this block
                self._each(jobs, lambda job: self._fail(job, bad))
            else:
                self._release(jobs)
                self._pause(error)

    def _each(self, jobs: Sequence[Job], alone: Callable[[Job], None]) -> None:
        """Try jobs that failed together one by one; one that was alone is dealt with."""
        if len(jobs) == 1:
            alone(jobs[0])
            return
        self._in_turn([[job] for job in jobs])

    def _in_turn(self, parts: Sequence[Sequence[Job]]) -> None:
        for part in parts:
            if self._goes_on():
                self._think(part)
            else:
                self._release(part)

    def _fail(self, job: Job, error: ProviderError) -> None:
        """Try it later, and so the others: a model that talks nonsense often does for a while."""
        with contextlib.suppress(LeaseLostError):
            self._store.fail(job, str(error))
            metrics.count("memorist.jobs", kind=job.kind, result="failed")
        self._pause(error)

    def _do(self, jobs: Sequence[Job]) -> None:
        """Think about the jobs' messages. Whatever they hold, none may stop the others."""
        if jobs[0].scope.session is None:  # vectors of derived records, which nobody makes here
            self._store.apply(jobs[0].scope, [], done=jobs)
            _count_done(jobs)
            return
        try:
            self._make(jobs)
        except (ConflictError, OverBudgetError, ProviderError, StoreError):
            raise
        except Exception as error:
            raise BadAnswerError(f"extraction raised {type(error).__name__}") from error

    def _make(self, jobs: Sequence[Job]) -> None:
        material = self._deriver.read(jobs)
        if self._extraction.model and len(parts := self._deriver.apart(jobs, material)) > 1:
            self._in_turn(parts)  # each is paid for and kept by itself
            return
        candidates = self._deriver.candidates(material)
        if candidates:  # where none was asked for, nobody knows whether the model is back
            self._rest = FIRST_REST
        for attempt in range(ATTEMPTS):
            time.sleep(random.uniform(0, PATIENCE * attempt))
            try:
                self._keep(jobs, material, candidates)
            except LeaseLostError:
                raise
            except (ConflictError, NotFoundError):
                continue  # somebody else changed this user's memories: decide again
            return
        raise ConflictError("this user's memories keep changing")

    def _keep(
        self, jobs: Sequence[Job], material: Material, candidates: Sequence[Candidate]
    ) -> None:
        home, store = material.home, self._store
        version = store.version(home)
        changes = self._deriver.changes(material, candidates)
        store.apply(home, changes, done=jobs, base_version=version)
        _count_done(jobs)
        self._count(home, len(changes))

    def _count(self, home: Scope, changed: int) -> None:
        every = self._extraction.maintain_every
        if every and changed:
            self._made[home] += changed
            if self._made[home] >= every:
                del self._made[home]
                self._untidy.add(home)

    def _tidy(self) -> None:
        """Tidy where much was made; by itself, since what was made is kept already."""
        while self._untidy:
            with contextlib.suppress(ConflictError):
                maintain(self._store, self._untidy.pop(), self._extraction, self._clock())

    def _note_uses(self) -> None:
        with self._used_lock:
            used, self._used = self._used, {}
        for scope, (ids, said) in used.items():
            if recalled := ids.union(self._store.derived(scope, sorted(said))):
                self._store.touch(scope, sorted(recalled))

    def _release(self, jobs: Sequence[Job]) -> None:
        """Let others have at once what is not done."""
        for job in jobs:
            with contextlib.suppress(LeaseLostError):
                self._store.release(job)

    def _pause(self, error: ProviderError | OverBudgetError) -> None:
        """Ask the model ever more rarely while it does not answer, or may not be asked."""
        asked = getattr(error, "retry_after_s", None)
        wait = self._rest if asked is None else max(min(asked, LONGEST_ASKED), self._rest)
        self._rest_until = time.monotonic() + wait
        self._rest = min(self._rest * 2, LONGEST_REST)
        log.warning("memories wait for %.0f s: %s", wait, error)


def _count_done(jobs: Sequence[Job]) -> None:
    for job in jobs:
        metrics.count("memorist.jobs", kind=job.kind, result="done")
