"""Background work: a loop for jobs, a gate by which requests go first, and the Scrubber."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator, Sequence

from memorist.errors import LeaseLostError, MemoristError
from memorist.forks import EXIT_SECONDS, ProcessPart, fork_safe
from memorist.records.log import Job
from memorist.store.base import Store
from memorist.store.jobs import is_backfill

GATE_SECONDS = 0.1  # for which background work waits for a request
QUIET_SECONDS = 0.5  # after a request, before background work takes more than one processor
GATHER_SECONDS = 0.05  # after a request: what belongs to it comes first, and is worked on together
LONGEST_GATHER = 0.5  # seconds, where one request follows another
LONGEST_RENEWAL = 3_600.0  # seconds: a runner that hangs must not keep its jobs for ever

log = logging.getLogger("memorist")


class JobRunner(ProcessPart):
    """Takes jobs of some kinds from the queue and does them, in a thread or step by step.

    A subclass does them in `do`, in groups that `group` makes of what was taken at once. Leases
    are renewed meanwhile; jobs that were taken and not begun are given back.
    """

    name = "jobs"
    batch_size = 32
    lease_seconds = 45.0  # renewed: the jobs of a process that died are free in a minute
    longest_pause = 15.0  # seconds between two looks at an empty queue
    awaited: tuple[str, ...] = ()  # kinds that end by themselves when its own are done

    def __init__(
        self, store: Store, kinds: Sequence[str], gate: ForegroundGate | None = None
    ) -> None:
        self.kinds = tuple(kinds)
        self.gate = gate or ForegroundGate()
        self.stopped = False
        self.worked_at = self.idle_at = float("-inf")  # the end of a step, the start of an idle one
        self._store = store
        self._paused_until = 0.0
        self._suspects_first = False
        self._thread: threading.Thread | None = None
        self._lock = fork_safe(threading.Lock())
        self._woken = fork_safe(threading.Event())
        self._taken: Sequence[Job] = ()
        self.watch_process()

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:  # which has neither the thread nor its jobs
            self._thread, self._taken = None, ()

    def before_exit(self) -> None:
        self.stop()

    def await_exit(self, seconds: float) -> None:
        self.join(seconds)

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
        self.start()
        self._woken.set()

    def start(self) -> None:
        """Start the thread if it does not run."""
        if self.is_running():
            return
        with self._lock:
            if not self.stopped and not self.is_running():
                name = f"memorist-{self.name}"
                self._thread = threading.Thread(target=self.run, name=name, daemon=True)
                self._thread.start()

    def is_running(self) -> bool:
        """Whether the thread lives."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def stop(self) -> None:
        """Begin no other job; those that were taken and not begun are given back."""
        self.stopped = True
        self._woken.set()

    def join(self, wait_s: float | None) -> None:
        """Wait for the step at hand."""
        with self._lock:  # a thread that is just being started is waited for too
            thread = self._thread
        if thread is not None:
            thread.join(wait_s)

    def close(self, wait_s: float | None = EXIT_SECONDS) -> None:
        """Stop after the job at hand, or without it if it takes long; the rest stays queued."""
        self.stop()
        self.join(wait_s)
        with contextlib.suppress(MemoristError):  # the store may be away
            self.release(self._taken)

    def catch_up(self, timeout_s: float | None = None) -> int:
        """Wait until no job is left but dead ones, for at most so long; return how many are."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self.wake()
        kinds, pause = (*self.kinds, *self.awaited), 0.002
        with self.gate.hurry():
            while (left := self._store.backlog(kinds)) or self.idle_at == float("-inf"):
                if self.stopped or (deadline is not None and time.monotonic() >= deadline):
                    break
                time.sleep(pause)
                pause = min(1.5 * pause, 0.05)
        return left + self._store.backlog(self.kinds, dead=True)

    def run(self) -> None:
        """Step until it is stopped: at once while there are jobs, else ever more rarely."""
        pause = GATHER_SECONDS
        while not self.stopped:
            began = time.monotonic()
            try:
                worked = self.step()
            except MemoristError as error:
                if not self.stopped:
                    log.warning("%s pauses: %s", self.name, error)
                worked = False
            if worked:
                self.worked_at, pause = time.monotonic(), GATHER_SECONDS
                continue
            self.idle_at, pause = began, min(pause * 2, self.longest_pause)
            if self._woken.wait(pause) and not self.stopped:
                self._woken.clear()
                pause = GATHER_SECONDS
                self.gate.settle()

    def step(self) -> bool:
        """Take some jobs and do them; return whether there were any."""
        self.before_step()
        if self.paused:
            return False
        jobs: list[Job] = []
        if self._store.any_due(self.kinds):  # to look writes nothing
            jobs = self._store.claim(
                kinds=self.kinds,
                limit=self.batch_size,
                lease_seconds=self.lease_seconds,
                suspects_first=self._suspects_first,
            )
        self._suspects_first = not self._suspects_first  # neither waits for all of the others
        groups = self.group(jobs)
        self._taken = jobs
        with renewing(self._store, jobs, self.lease_seconds):
            try:
                for job in jobs:
                    if job.kind == "index":
                        self._store.reindex(job)
                while groups and not self.stopped and not self.paused:
                    self.do(groups[0])
                    groups.pop(0)
                    if groups and self.gives_way(jobs):
                        break
            finally:
                self._taken = ()
                for group in groups:
                    self.release(group)
        self.after_step(jobs)
        return bool(jobs)

    def gives_way(self, jobs: Sequence[Job]) -> bool:
        """Whether these jobs are not gone on with: it is stopped, or new ones come first."""
        return self.stopped or (is_backfill(jobs[0].kind) and self._store.new_wait(self.kinds))

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


class ForegroundGate(ProcessPart):
    """Lets background work wait while a request is answered.

    Python runs one thread at a time and is slow to switch. A request holds the gate as a context;
    background work calls `wait` between two pieces of work.
    """

    def __init__(self) -> None:
        self._changed = fork_safe(threading.Condition(threading.Lock()))
        self._requests = self._hurried = 0
        self._left_at = float("-inf")
        self.watch_process()

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:  # its parent's requests are not its own
            self._requests = self._hurried = 0

    def __enter__(self) -> None:
        with self._changed:
            self._requests += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._requests -= 1
            self._left_at = time.monotonic()
            if not self._requests:
                self._changed.notify_all()

    def wait(self) -> None:
        """Wait until no request is being answered, but not for long."""
        with self._changed:
            self._changed.wait_for(lambda: not self._requests, GATE_SECONDS)

    @contextlib.contextmanager
    def hurry(self) -> Iterator[None]:
        """A time in which somebody waits for the background work: nothing is gathered for it."""
        with self._changed:
            self._hurried += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._hurried -= 1

    def settle(self) -> None:
        """Wait until a request and the pause after it are over, but not for long."""
        began = time.monotonic()
        with self._changed:
            while (
                not self._hurried
                and (now := time.monotonic()) - began < LONGEST_GATHER
                and (self._requests or now - max(self._left_at, began) < GATHER_SECONDS)
            ):
                self._changed.wait(GATHER_SECONDS)

    def is_quiet(self) -> bool:
        """Whether no request is being answered, and none was lately."""
        return not self._requests and time.monotonic() - self._left_at > QUIET_SECONDS


class Scrubber(JobRunner):
    """Scrubs the files in the background, once for all that was forgotten meanwhile.

    It also merges what appends leave of the text index, in which a search is slower.
    """

    name = "scrubbing"
    longest_pause = 5.0
    gather_seconds = 10.0  # what is forgotten together is scrubbed together
    retry_seconds = 60.0
    rest = 10.0  # a scrub that took t seconds is followed by at least 10 t without one
    long_seconds, long_rest = 10.0, 3_600.0  # writers give up during a longer one: rest long

    def __init__(self, store: Store, gate: ForegroundGate | None = None) -> None:
        super().__init__(store, (), gate)
        self.stopped = not store.scrubs

    def await_exit(self, seconds: float) -> None:
        super().await_exit(seconds)
        if self.is_running():  # Python would stop it inside SQLite
            self._store.close()  # which interrupts a scrub

    def step(self) -> bool:
        """Scrub if something waits for it, though not before others could be added; or merge."""
        waited_s = self._store.unscrubbed_s()
        if waited_s is None or 0 <= waited_s < self.gather_seconds or self.paused:
            self.gate.wait()
            return self._store.merge()
        began, is_clean = time.monotonic(), False
        try:
            is_clean = not self._store.scrub()
        finally:
            took_s = time.monotonic() - began
            least = self.gather_seconds if is_clean else self.retry_seconds
            if took_s > self.long_seconds:
                least = self.long_rest
            self.pause(max(self.rest * took_s, least))
        return True
