"""Background jobs: a thread that takes jobs from the queue and does them while there are any.

The runners, and the kinds of jobs that they do:

    Indexer      embed, vectors, vectors:<embedder>
    Worker       derive, which follows embed; without an embedder embed and vectors, too
    Summarizer   summarize

`queue.FOLLOWING` says which kind follows which. Any number of processes may run them.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence

from memorist.errors import LeaseLostError, MemoristError
from memorist.records.message import Job
from memorist.store.base import Store

LONGEST_PAUSE = 15.0
EXIT_SECONDS = 5.0  # for which the end waits for a step that was begun
GATE_SECONDS = 0.1  # for which background work waits for a request
GATHER_SECONDS = 0.05  # what is stored together is worked on together, and writers go first
LONGEST_RENEWAL = 3_600.0  # seconds: a runner that hangs must not keep its jobs for ever

log = logging.getLogger("memorist")


def embedding_kinds(embedder_name: str) -> tuple[str, ...]:
    """The kinds of jobs that an embedder does."""
    return ("embed", "vectors", f"vectors:{embedder_name}")


def extraction_kinds(*, has_embedder: bool) -> tuple[str, ...]:
    """The kinds of jobs that extraction does; without an embedder, it does not wait for one."""
    return ("derive",) if has_embedder else ("embed", "vectors", "derive")


SUMMARY_KINDS = ("summarize",)


class JobRunner:
    """Takes jobs of some kinds from the queue and does them, in a thread or step by step.

    A subclass does them in `do`, in groups that `group` makes of what was taken at once. Leases
    are renewed meanwhile; jobs that were taken and not begun are given back.
    """

    name = "jobs"
    batch_size = 32
    lease_seconds = 45.0  # renewed: the jobs of a process that died are free in a minute

    def __init__(self, store: Store, kinds: Sequence[str]) -> None:
        self.kinds = tuple(kinds)
        self._store = store
        self._thread = BackgroundThread(self.step, self.name)
        self._taken: Sequence[Job] = ()
        self._paused_until = 0.0

    def do(self, jobs: Sequence[Job]) -> None:
        """Do a group of jobs: each is finished, failed or released afterwards."""
        raise NotImplementedError

    def group(self, jobs: Sequence[Job]) -> list[list[Job]]:
        """Which jobs are done together; by default each alone."""
        return [[job] for job in jobs]

    def before_step(self) -> None:
        """What is done before jobs are taken."""

    def after_step(self, jobs: Sequence[Job]) -> None:
        """What is done after the jobs of a step."""

    def wake(self) -> None:
        """Look for jobs now."""
        self._thread.wake()

    def start(self) -> None:
        """Start the thread if it does not run."""
        self._thread.start()

    def stop(self) -> None:
        """Begin no other job; those that were taken and not begun are given back."""
        self._thread.closing = True

    @property
    def stopped(self) -> bool:
        return self._thread.closing

    def close(self) -> None:
        """Stop after the job at hand, or without it if it takes long; the rest stays queued."""
        self._thread.close()
        if not self._thread.is_forked():  # the jobs of a parent process stay its own
            with contextlib.suppress(MemoristError):  # the store may be away
                self.release(self._taken)

    def catch_up(self, timeout_s: float | None = None) -> int:
        """Wait until no job is left, for at most so long; return how many are."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self.wake()
        while left := self._store.backlog(self.kinds):
            if self.stopped or (deadline is not None and time.monotonic() >= deadline):
                return left
            time.sleep(0.05)
        return 0

    def step(self) -> bool:
        """Take some jobs and do them; return whether there were any."""
        self.before_step()
        if self.paused:
            return False
        jobs = self._store.claim(
            kinds=self.kinds, limit=self.batch_size, lease_seconds=self.lease_seconds
        )
        groups = self.group(jobs)
        self._taken = jobs
        with renewing(self._store, jobs, self.lease_seconds):
            try:
                while groups and not self.stopped and not self.paused:
                    self.do(groups[0])
                    groups.pop(0)
            finally:
                self._taken = ()
                for group in groups:
                    self.release(group)
        self.after_step(jobs)
        return bool(jobs)

    def release(self, jobs: Sequence[Job]) -> None:
        """Give jobs back as if they had not been taken."""
        for job in jobs:
            with contextlib.suppress(LeaseLostError):
                self._store.release(job)

    def fail(self, job: Job, error: Exception) -> None:
        """Have a job tried again later, or given up when it was tried often enough."""
        with contextlib.suppress(LeaseLostError):
            self._store.fail(job, str(error))

    @property
    def paused(self) -> bool:
        return time.monotonic() < self._paused_until

    def pause(self, seconds: float) -> None:
        """Take no jobs for a while."""
        self._paused_until = time.monotonic() + seconds


@contextlib.contextmanager
def renewing(store: Store, jobs: Sequence[Job], lease_seconds: float) -> Iterator[None]:
    """Renew the leases of jobs while the block lasts; those that are done are left alone."""
    over = threading.Event()

    def renew() -> None:
        for _ in range(int(3 * LONGEST_RENEWAL / lease_seconds)):
            if over.wait(lease_seconds / 3):
                return
            for job in jobs:
                with contextlib.suppress(MemoristError):  # done by now, or the store is away
                    store.renew(job, lease_seconds=lease_seconds)

    if jobs:
        threading.Thread(target=renew, name="memorist-leases", daemon=True).start()
    try:
        yield
    finally:
        over.set()


class ForegroundGate:
    """Lets background work wait while a request is answered.

    Python runs one thread at a time and is slow to switch. A request holds the gate as a context;
    background work calls `wait` between two pieces of work.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests = 0
        self._free = threading.Event()
        self._free.set()

    def __enter__(self) -> None:
        with self._lock:
            self._requests += 1
            self._free.clear()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._requests -= 1
            if not self._requests:
                self._free.set()

    def wait(self) -> None:
        """Wait until no request is being answered, but not for long."""
        self._free.wait(GATE_SECONDS)


_running: weakref.WeakSet[BackgroundThread] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """Stop before Python does: a thread that it stops inside native code aborts the process."""
    deadline = time.monotonic() + EXIT_SECONDS
    running = list(_running)
    for thread in running:
        thread.close(wait_s=0)
    for thread in running:
        thread.close(wait_s=max(deadline - time.monotonic(), 0))


class BackgroundThread:
    """Calls `step` again and again: at once while it returns True, else ever more rarely."""

    def __init__(self, step: Callable[[], bool], name: str) -> None:
        self._step = step
        self._name = name
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self.closing = False

    def wake(self) -> None:
        """Call `step` soon."""
        self.start()
        self._woken.set()

    def start(self) -> None:
        """Start the thread if it does not run."""
        if self.is_forked():  # it has no threads, and locks that they may have held
            self._pid, self._thread = os.getpid(), None
            self._woken, self._lock = threading.Event(), threading.Lock()
        if not self.is_running():
            self._begin()

    def is_running(self) -> bool:
        """Whether the thread lives."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def is_forked(self) -> bool:
        """Whether this is the copy in a forked child, which has not started a thread of its own."""
        return self._pid != os.getpid()

    def close(self, wait_s: float = EXIT_SECONDS) -> None:
        """Stop after the step at hand, and wait for it for a while."""
        self.closing = True
        if self.is_forked():
            return
        self._woken.set()
        with self._lock:  # a thread that is just being started is waited for too
            thread = self._thread
        if thread is not None:
            thread.join(timeout=wait_s)

    def _begin(self) -> None:
        with self._lock:
            if self.closing or self.is_running():
                return
            self._thread = threading.Thread(
                target=self.run, name=f"memorist-{self._name}", daemon=True
            )
            self._thread.start()
            _running.add(self)

    def run(self) -> None:
        """Step until it is closed; errors of ours are logged."""
        pause = GATHER_SECONDS
        while not self.closing:
            try:
                worked = self._step()
            except MemoristError as error:
                if not self.closing:
                    log.warning("%s pauses: %s", self._name, error)
                worked = False
            pause = GATHER_SECONDS if worked else min(pause * 2, LONGEST_PAUSE)
            if not worked and self._woken.wait(pause):
                self._woken.clear()
                pause = GATHER_SECONDS
                time.sleep(pause)
