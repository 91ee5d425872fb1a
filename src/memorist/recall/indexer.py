"""The indexer: gives what was stored its vectors, in the background, for whoever stored it."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorist.errors import DimensionError, LeaseLostError, MemoristError, ProviderError
from memorist.providers.embedder import Embedder
from memorist.records.log import Job
from memorist.store.background import Background
from memorist.store.base import Store
from memorist.store.lease_renewal import kept

if TYPE_CHECKING:
    from memorist.providers.embedder import Vectors

JOBS = 32  # taken at once
PASSAGES = 64  # embedded at once
SLICE_CHARS = 4_000  # that are embedded in one go: so long the end may have to wait
MOST = 10_000  # looked at one by one when a job fails
FUTILE = 3  # refused in a row before any was taken
LEASE_SECONDS = 45.0  # renewed while it works: a dead indexer's jobs are others' in a minute
PREPARE_SECONDS = 60.0  # between two looks for users that this embedder has not seen

log = logging.getLogger("memorist")


class Indexer:
    """A thread that takes embedding jobs from the queue. Several may share one store."""

    def __init__(
        self, store: Store, embedder: Embedder, then: Callable[[], None] = lambda: None
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._kinds = ("embed", "vectors", f"vectors:{embedder.name}")
        self._then = then
        self._background = Background(self.step, "embedding")
        self._prepared_at = float("-inf")

    def wake(self) -> None:
        """There may be work."""
        self._background.wake()

    def start(self) -> None:
        """See to it that the thread runs."""
        self._background.start()

    def catch_up(self, timeout_s: float | None = None) -> int:
        """Wait until nothing waits for its vector; return how many jobs still do."""
        return self._background.wait_for(self._store, self._kinds, timeout_s)

    def stop(self) -> None:
        """Begin no other job; what was taken and not begun is given back."""
        self._background.closing = True

    def close(self) -> None:
        """Stop after the batch at hand; what is left stays in the queue."""
        self._background.close()

    def step(self) -> bool:
        """Take some jobs and do them; say whether there were any."""
        if time.monotonic() - self._prepared_at > PREPARE_SECONDS:
            self._prepare()
        jobs = self._store.claim(kinds=self._kinds, limit=JOBS, lease_seconds=LEASE_SECONDS)
        by_owner = defaultdict(list)
        for job in jobs:
            by_owner[job.scope.owner].append(job)
        todo = list(by_owner.values())
        with kept(self._store, jobs, LEASE_SECONDS):
            try:
                while todo and not self._background.closing:
                    self._embed(todo[0])
                    todo.pop(0)
            finally:
                for theirs in todo:
                    self._release(theirs)
        if any(job.kind == "embed" for job in jobs):
            self._then()  # what has its vector is thought about next
        return bool(jobs)

    def _release(self, jobs: Sequence[Job]) -> None:
        """Let others have at once what is not done."""
        for job in jobs:
            with contextlib.suppress(LeaseLostError):
                self._store.release(job)

    def _prepare(self) -> None:
        """Queue all of a user's past for an embedder that is new to it."""
        while scopes := self._store.unprepared(self._embedder.name):
            for scope in scopes:
                self._store.prepare(scope, self._embedder.name)
        self._prepared_at = time.monotonic()

    def _embed(self, jobs: Sequence[Job]) -> None:
        """Do the jobs of one user; those that fail are tried again later, alone."""
        try:
            self._do(jobs)
        except (LeaseLostError, ProviderError, DimensionError) as error:
            if isinstance(error, ProviderError):
                self._ask(["."])  # raises if it is not about the texts: then all of them wait
            if len(jobs) > 1:
                for job in jobs:
                    self._embed([job])
            elif isinstance(error, LeaseLostError):
                log.info("another worker took over embedding job %d", jobs[0].id)
            else:
                self._give_up(jobs[0], error)

    def _give_up(self, job: Job, error: ProviderError | DimensionError) -> None:
        """Try a job again later; those of its texts that can have their vector get it now."""
        with contextlib.suppress(LeaseLostError):
            self._embed_each(job)
            self._store.fail(job, str(error))

    def _embed_each(self, job: Job) -> None:
        done = refused = 0
        for id_, text in self._store.waiting(self._embedder.name, job, limit=MOST).items():
            try:
                self._put(job, {id_: text})
                done += 1
            except (ProviderError, DimensionError):
                refused += 1
            if self._background.closing or (
                refused == FUTILE and not done
            ):  # it is not about the texts
                return

    def _do(self, jobs: Sequence[Job]) -> None:
        name = self._embedder.name
        gathered: dict[int, str] = {}
        ready: list[Job] = []
        for place, job in enumerate(jobs):
            while len(texts := self._store.waiting(name, job, limit=PASSAGES)) == PASSAGES:
                self._put(job, texts)
                self._store.renew(job, lease_seconds=LEASE_SECONDS)  # raises if it was lost
                if self._background.closing:
                    break
            if self._background.closing:
                self._release([*ready, *jobs[place:]])
                return
            gathered |= texts
            ready.append(job)
            if len(gathered) >= PASSAGES:
                is_done = self._put(job, gathered, done=ready)
                if self._background.closing:
                    self._release([*(() if is_done else ready), *jobs[place + 1 :]])
                    return
                gathered, ready = {}, []
        if ready and not self._put(ready[0], gathered, done=ready):
            self._release(ready)

    def _put(self, job: Job, texts: dict[int, str], done: Sequence[Job] = ()) -> bool:
        """Give texts their vectors; of what the end interrupts, those that are made are kept."""
        vectors = dict[int, Any]()
        for some in _slices(texts):
            if vectors and self._background.closing:
                break
            vectors |= zip(some, self._ask([texts[id_] for id_ in some]), strict=True)
        is_done = len(vectors) == len(texts)
        kept = done if is_done else ()
        self._store.put_vectors(job.scope, self._embedder.name, vectors, done=kept)
        return is_done

    def _ask(self, texts: list[str]) -> Vectors:
        """The embedder's vectors. It is foreign code: whatever it does, the thread goes on."""
        import numpy as np

        try:
            vectors = np.asarray(self._embedder.embed(texts), np.float32)
        except MemoristError:
            raise
        except Exception as error:
            raise ProviderError(f"the embedder raised {type(error).__name__}") from error
        if vectors.ndim != 2 or len(vectors) != len(texts):
            shape = " × ".join(map(str, vectors.shape))
            raise ProviderError(f"the embedder gave {shape} numbers for {len(texts)} texts")
        if not np.isfinite(vectors).all():
            raise ProviderError("the embedder gave a vector that is not finite")
        return vectors


def _slices(texts: Mapping[int, str]) -> Iterator[list[int]]:
    """The ids of texts, a few at a time."""
    some: list[int] = []
    chars = 0
    for id_, text in texts.items():
        if some and chars + len(text) > SLICE_CHARS:
            yield some
            some, chars = [], 0
        some.append(id_)
        chars += len(text)
    if some:
        yield some
