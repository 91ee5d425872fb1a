"""The worker: takes messages from the queue and makes memories of them, in the background."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from recollect.errors import BadAnswerError, ConflictError, LeaseLostError, ProviderError
from recollect.lifecycle.candidate import Candidate
from recollect.lifecycle.derive import Deriver, Material, OverBudgetError
from recollect.lifecycle.maintenance import maintain
from recollect.lifecycle.thinking import Thinking
from recollect.records.ids import now
from recollect.records.log import Job
from recollect.records.scope import Scope
from recollect.store.background import Background
from recollect.store.base import Store

JOBS = 16  # taken at once
LEASE_SECONDS = 180.0
ATTEMPTS = 5
FIRST_REST = 1.0
LONGEST_REST = 60.0

log = logging.getLogger("recollect")


class Worker:
    """Makes memories of what waits in the queue. Several may share one store.

    With a model that fails, jobs wait and it is asked ever more rarely until it answers; an
    answer that cannot be used is asked for again, and the job is buried when it never can.
    """

    def __init__(
        self,
        store: Store,
        thinking: Thinking,
        *,
        kinds: Sequence[str] = ("derive",),
        clock: Callable[[], datetime] = now,
    ) -> None:
        self.kinds = tuple(kinds)
        self._store = store
        self._thinking = thinking
        self._clock = clock
        self._deriver = Deriver(store, thinking, clock)
        self._background = Background(self.step, "thinking")
        self._rest_until = 0.0
        self._rest = FIRST_REST
        self._used: dict[Scope, Counter[str]] = {}
        self._used_lock = threading.Lock()
        self._made: Counter[Scope] = Counter()

    def wake(self) -> None:
        """There may be work."""
        self._background.wake()

    def catch_up(self, timeout_s: float | None = None) -> int:
        """Wait until nothing waits to be thought about; return how many jobs still do."""
        return self._background.wait_for(self._store, self.kinds, timeout_s)

    def close(self) -> None:
        """Stop after the job at hand; what is left stays in the queue."""
        self._background.close()

    def used(self, scope: Scope, ids: Iterable[str]) -> None:
        """Memories were recalled: count it, with the next work that is done."""
        with self._used_lock:
            self._used.setdefault(scope, Counter()).update(ids)

    def step(self) -> bool:
        """Take some jobs and do them; say whether there were any."""
        self._note_uses()
        if time.monotonic() < self._rest_until:
            return False
        jobs = self._store.claim(kinds=self.kinds, limit=JOBS, lease_seconds=LEASE_SECONDS)
        jobs.sort(key=lambda job: (job.scope.owner, job.scope.session or "", job.first_seq))
        talks = itertools.groupby(jobs, key=lambda job: job.scope)
        todo = [list(group) for _, group in talks]
        try:
            while todo and not self._background.closing and time.monotonic() >= self._rest_until:
                self._think(todo[0])
                todo.pop(0)
        finally:
            for left in todo:
                self._release(left)
        return bool(jobs)

    def _think(self, jobs: Sequence[Job]) -> None:
        """Do the jobs of one session; those that fail together are tried alone."""
        try:
            self._do(jobs)
            self._rest = FIRST_REST
        except (LeaseLostError, BadAnswerError) as error:
            if len(jobs) > 1:
                for job in jobs:
                    self._think([job])
            elif isinstance(error, BadAnswerError):
                with contextlib.suppress(LeaseLostError):
                    self._store.fail(jobs[0], str(error))
            else:
                log.info("another worker took over job %d", jobs[0].id)
        except (ProviderError, OverBudgetError) as error:
            self._release(jobs)
            self._pause(error)

    def _do(self, jobs: Sequence[Job]) -> None:
        material = self._deriver.read(jobs)
        candidates = self._deriver.candidates(material)
        for _ in range(ATTEMPTS):
            try:
                self._keep(jobs, material, candidates)
            except LeaseLostError:
                raise
            except ConflictError:
                continue  # somebody else changed this user's memories: decide again
            return
        raise BadAnswerError("this user's memories keep changing")

    def _keep(
        self, jobs: Sequence[Job], material: Material, candidates: Sequence[Candidate]
    ) -> None:
        home, store = material.home, self._store
        if not candidates:
            store.apply(home, [], done=jobs)
            return
        version = store.version(home)
        changes = self._deriver.changes(material, candidates)
        store.apply(home, changes, done=jobs, base_version=version)
        self._tidy(home, len(changes))

    def _tidy(self, home: Scope, changed: int) -> None:
        every = self._thinking.maintain_every
        self._made[home] += changed
        if every and self._made[home] >= every:
            del self._made[home]
            with contextlib.suppress(ConflictError):
                maintain(self._store, home, self._thinking, self._clock())

    def _note_uses(self) -> None:
        with self._used_lock:
            used, self._used = self._used, {}
        for scope, ids in used.items():
            self._store.touch(scope, list(ids))

    def _release(self, jobs: Sequence[Job]) -> None:
        """Let others have at once what is not done."""
        for job in jobs:
            with contextlib.suppress(LeaseLostError):
                self._store.release(job)

    def _pause(self, error: ProviderError | OverBudgetError) -> None:
        """Ask the model ever more rarely while it does not answer, or may not be asked."""
        asked = getattr(error, "retry_after_s", None)
        wait = self._rest if asked is None else max(float(asked), self._rest)
        self._rest_until = time.monotonic() + min(wait, LONGEST_REST)
        self._rest = min(self._rest * 2, LONGEST_REST)
        log.warning("memories wait for %.0f s: %s", min(wait, LONGEST_REST), error)
