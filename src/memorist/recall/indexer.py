"""The indexer: embeds what was stored, in the background."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from memorist.errors import DimensionError, LeaseLostError, MemoristError, ProviderError
from memorist.providers.daemon_pool import DaemonPool, Task
from memorist.providers.embedder import Embedder
from memorist.records.log import Job
from memorist.records.scope import Scope
from memorist.records.values import batches
from memorist.store.base import Store
from memorist.store.jobs import FOLLOWING, embedding_kinds
from memorist.store.runner import ForegroundGate, JobRunner

if TYPE_CHECKING:
    from memorist.providers.embedder import Vectors

PASSAGES = 64  # embedded at once
SLICE_CHARS = 4_000  # embedded in one call: a call cannot be interrupted
LANES = min(os.cpu_count() or 1, 2)  # texts that a model on this machine embeds side by side
MOST_ALONE = 10_000  # texts of a job that failed, embedded one by one
FUTILE = 3  # refused in a row before any was taken
POSSIBLE = 0.05  # the chance by vectors alone from which on both messages are read,
READ = 3  # of so many earlier ones
UPDATES = 0.4  # the chance that a message updates another from which on they are linked
PREPARE_SECONDS = 60.0  # between two looks for users that this embedder has not seen

log = logging.getLogger("memorist")


class Indexer(JobRunner):
    """Does the embedding jobs of the queue. Several may share one store."""

    name = "embedding"
    batch_size = 64

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        then: Callable[[], None] = lambda: None,
        gate: ForegroundGate | None = None,
    ) -> None:
        super().__init__(store, embedding_kinds(embedder.name), gate)
        self._embedder = embedder
        self._lanes = LANES if hasattr(embedder, "load") else 1
        self._pool = DaemonPool(LANES, name="memorist-lane")
        self._then = then
        self._prepared_at = float("-inf")

    def before_step(self) -> None:
        """Queue all texts of the users that this embedder has not seen."""
        if self.stopped or time.monotonic() - self._prepared_at <= PREPARE_SECONDS:
            return
        while scopes := self._store.unprepared(self._embedder.name):
            for scope in scopes:
                self._store.prepare(scope, self._embedder.name)
        self._prepared_at = time.monotonic()
        self._then()  # for what another process embedded, and did not extract from

    def group(self, jobs: Sequence[Job]) -> list[list[Job]]:
        by_owner = defaultdict(list)
        for job in jobs:
            by_owner[job.scope.owner].append(job)
        return list(by_owner.values())

    def after_step(self, jobs: Sequence[Job]) -> None:
        if any(job.kind in FOLLOWING for job in jobs):
            self._then()  # extraction follows

    def do(self, jobs: Sequence[Job]) -> None:
        """Embed the texts of one user's jobs; jobs that fail together are tried alone."""
        try:
            self._embed(jobs)
        except (LeaseLostError, ProviderError, DimensionError) as error:
            if isinstance(error, ProviderError):
                self._ask(["."])  # raises if it is not about the texts: then all of them wait
            if len(jobs) > 1:
                for job in jobs:
                    self.do([job])
            elif isinstance(error, LeaseLostError):
                log.info("another worker took over embedding job %d", jobs[0].id)
            else:
                self._give_up(jobs[0], error)

    def _give_up(self, job: Job, error: ProviderError | DimensionError) -> None:
        """Have a job tried again later; those of its texts that can be embedded are, now."""
        done = refused = 0
        texts = self._store.waiting(job, self._embedder.name, limit=MOST_ALONE)
        with contextlib.suppress(LeaseLostError):
            for id_, text in texts.items():
                try:
                    self._put(job, {id_: text})
                    done += 1
                except (ProviderError, DimensionError):
                    refused += 1
                if self.stopped or (refused == FUTILE and not done):  # it is not about the texts
                    break
            self._store.fail(job, str(error))

    def _embed(self, jobs: Sequence[Job]) -> None:
        """Embed the texts of jobs, several together; when it gives way, give back the rest."""
        name, over = self._embedder.name, self.stopped
        gathered: dict[int, str] = {}
        ready: list[Job] = []
        for job in jobs:
            while (
                len(texts := self._store.waiting(job, name, limit=PASSAGES)) == PASSAGES
                and not over
            ):
                self._put(job, texts)
                # Raises if it was lost.
                self._store.renew(job, lease_seconds=self.lease_seconds, progressed=True)
                over = self.gives_way(jobs)
            if over := over or self.stopped:
                break
            gathered |= texts
            ready.append(job)
            if len(gathered) >= PASSAGES:
                self._put(job, gathered, done=ready)
                gathered, ready = {}, []
                over = self.gives_way(jobs)
        if ready and not over:
            self._put(ready[0], gathered, done=ready)
        if over or self.stopped:
            self.release(jobs)  # a job that is done is not ours any more, and stays done

    def _put(self, job: Job, texts: dict[int, str], done: Sequence[Job] = ()) -> None:
        """Store the vectors of texts and finish jobs; when stopped, store those made so far."""
        vectors = self._vectors(texts)
        done = done if len(vectors) == len(texts) else ()
        overtaken = self._overtaken(job.scope, texts, vectors)
        self._store.put_vectors(
            job.scope, self._embedder.name, vectors, done=done, overtaken=overtaken
        )

    def _overtaken(
        self, scope: Scope, texts: Mapping[int, str], vectors: Mapping[int, Any]
    ) -> dict[int, int]:
        """The earlier messages that new ones probably update, by passage, each with the newest.

        It is judged when a vector is made: of a message that is revised or indexed anew, as in a
        rebuild, again. Whatever fails, the vectors are stored.
        """
        import numpy as np

        links: dict[int, int] = {}
        chances_of = getattr(self._embedder, "update_chances", None)
        if chances_of is None:
            return links
        try:
            before = self._store.earlier_statements(scope, self._embedder.name, vectors)
            possible = dict[int, dict[int, float]]()
            for newer, earlier in before.items():
                chances = chances_of(np.asarray(list(earlier.values())), vectors[newer])
                likely = nlargest(READ, zip(chances.tolist(), earlier, strict=True))
                possible[newer] = {id_: chance for chance, id_ in likely if chance >= POSSIBLE}
            for newer, chances in self._confirmed(scope, texts, possible):
                for older, chance in chances.items():
                    if chance >= UPDATES:
                        links[older] = max(newer, links.get(older, 0))
        except Exception as error:  # noqa: BLE001 - its text may quote the user
            log.warning("messages are not linked to what they update: %s", type(error).__name__)
        return links

    def _confirmed(
        self, scope: Scope, texts: Mapping[int, str], possible: Mapping[int, Mapping[int, float]]
    ) -> Iterator[tuple[int, Mapping[int, float]]]:
        """New messages with the chances of what they may update, read where the embedder can."""
        import numpy as np

        confirm = getattr(self._embedder, "confirm_updates", None)
        stored = set().union(*possible.values()) - texts.keys() if confirm else ()
        if stored:
            read = self._store.read(scope.whole_user(), sorted(stored))
            texts = {**texts, **{it.passage: it.text for it in read}}
        for newer, chances in possible.items():
            if confirm and chances:
                known = {older: chance for older, chance in chances.items() if older in texts}
                given = np.asarray(list(known.values()), np.float32)
                told = confirm([texts[it] for it in known], texts[newer], given)
                chances = dict(zip(known, told.tolist(), strict=True))
            if chances:
                yield newer, chances

    def _vectors(self, texts: Mapping[int, str]) -> dict[int, Any]:
        """The vectors of texts, or the first ones when stopped.

        A model on this machine takes one text at a time, so that requests need not wait for
        several; while there are none, it has a thread on each lane.
        """
        most_chars = SLICE_CHARS if self._lanes == 1 else 0  # else each by itself
        lengths = {id_: len(text) for id_, text in texts.items()}
        slices = deque(batches(texts, lengths.__getitem__, most=PASSAGES, most_size=most_chars))
        vectors = dict[int, Any]()

        def embed(may_go_on: Callable[[], bool]) -> None:
            with contextlib.suppress(IndexError):  # no slice is left
                while not (vectors and self.stopped) and may_go_on():
                    self.gate.wait()
                    some = slices.popleft()
                    vectors.update(zip(some, self._ask([texts[id_] for id_ in some]), strict=True))

        lanes = min(self._lanes, len(slices))
        beside = [Task(partial(embed, self.gate.is_quiet)) for _ in range(1, lanes)]
        for task in beside:
            self._pool.start(task)
        try:
            embed(lambda: True)
        finally:
            slices.clear()
            for task in beside:
                task.wait(None)
        for task in beside:
            task.result()
        return vectors

    def _ask(self, texts: list[str]) -> Vectors:
        """The embedder's vectors; whatever it raises becomes a `ProviderError`."""
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
