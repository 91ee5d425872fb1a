"""Background jobs: the queue, in a transaction, and the loop of those who work on it.

The runners, and the kinds of jobs that they do:

    Indexer      embed, vectors; of backfill index, embed later, vectors later, vectors:<embedder>
    Worker       derive, which follows embed, derive later; without an embedder the others, too
    Summarizer   summarize

A job `index` is `embed` for messages that are cut into passages anew first. A job `rebuild` waits
until its user's views are thrown away and derived again. Backfill is what was imported or restored,
is rebuilt, or gets vectors of another embedder: it is done when nothing new waits.

Any number of processes may run them.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from memorist.errors import LeaseLostError, MemoristError, NotFoundError
from memorist.forks import EXIT_SECONDS, ProcessPart, fork_safe
from memorist.records.message import Job, retry_delay_seconds
from memorist.records.scope import Scope, tenant_hash
from memorist.records.values import Count, check_each, new_id
from memorist.store.activity import note
from memorist.store.engine import Db
from memorist.store.rows import Columns, Row, check_count

if TYPE_CHECKING:
    from memorist.store.base import Store

JOB = Columns(Job, omit=("scope",))
SECOND = 1_000_000  # microseconds
HOUR = 3_600 * SECOND
STAGES = ("embed", "vectors", "derive", "summarize", "rebuild")
LATER = " later"  # at the end of the kinds of what was imported or restored
KINDS = ("index", *STAGES, *(stage + LATER for stage in STAGES[:3]))
# A message is embedded, then memories are extracted from it.
FOLLOWING = {"embed": "derive", "index": "derive later", "embed later": "derive later"}
GATE_SECONDS = 0.1  # for which background work waits for a request
QUIET_SECONDS = 0.5  # after a request, before background work takes more than one processor
GATHER_SECONDS = 0.05  # after a request: what belongs to it comes first, and is worked on together
LONGEST_GATHER = 0.5  # seconds, where one request follows another
LONGEST_RENEWAL = 3_600.0  # seconds: a runner that hangs must not keep its jobs for ever
LONGEST_LEASE = 900.0  # seconds: a job that is due later than that was dated by a wrong clock
MAX_DEATHS = 1 + 5  # of processes that had a job: the first time among others, then alone
DIED = "the process ended, or hung, while working on it"

log = logging.getLogger("memorist")


EMBEDDING = ("index", "embed", "embed later", "vectors", "vectors later")


def embedding_kinds(embedder_name: str) -> tuple[str, ...]:
    """The kinds of jobs that an embedder does."""
    return (*EMBEDDING, f"vectors:{embedder_name}")


def extraction_kinds(*, has_embedder: bool) -> tuple[str, ...]:
    """The kinds of jobs that extraction does; without an embedder, it does not wait for one."""
    derivation = ("derive", "derive later")
    return derivation if has_embedder else (*EMBEDDING, *derivation)


def is_backfill(kind: str) -> bool:
    """Whether jobs of a kind wait while there are new ones."""
    return kind == "index" or kind.startswith("vectors:") or kind.endswith(LATER)


def enqueue(db: Db, owner: str, kind: str, first: int, last: int, *, session: Any = None) -> None:
    """Queue work on messages, or, by numbers below zero, on passages of derived records."""
    span = {"first_seq": first, "last_seq": last}
    db.later("enqueue", owner=owner, kind=kind, session=session, **span, now=db.now)


def claim(
    db: Db,
    *,
    kinds: Sequence[str] = (),
    limit: int = 1,
    lease_seconds: float = 60,
    suspects_first: bool = False,
) -> list[Job]:
    """Take jobs that are due, new ones before backfill; each is free when its lease runs out.

    One of them may be why a process died. So those that were taken when one did are suspects and
    taken alone, after the others or before them. One that processes keep dying of alone is dead.
    """
    now, wanted = db.now, list(kinds or KINDS)
    buried = db.rows("bury_deadly", kinds=wanted, now=now, max_deaths=MAX_DEATHS, reason=DIED)
    if buried:
        db.run("note_jobs", change="failed", ids=[id_ for (id_,) in buried], now=now)
    named = {"lease": new_id(), "until": _lease_end(db, lease_seconds), "limit": limit}
    new, backfill = _divided(wanted)
    looks = [("take_jobs", new), ("take_jobs", backfill)]
    looks.insert(0 if suspects_first else 2, ("take_suspect", wanted))
    found = (db.rows(query, **_due(db, kinds), **named) for query, kinds in looks if kinds)
    taken = next(filter(None, found), ())
    return [_job(row) for row in db.rows("jobs_by_id", ids=[id_ for (id_,) in taken])]


def new_wait(db: Db, kinds: Sequence[str]) -> bool:
    """Whether a job of these kinds that is no backfill could be taken."""
    new, _ = _divided(kinds)
    return bool(new) and db.row("new_wait", **_due(db, new)) is not None


def _divided(kinds: Sequence[str]) -> tuple[list[str], list[str]]:
    """Kinds of new jobs, and of backfill."""
    new = [kind for kind in kinds if not is_backfill(kind)]
    return new, [kind for kind in kinds if kind not in new]


def _due(db: Db, kinds: Sequence[str]) -> dict[str, Any]:
    return {"kinds": kinds, "now": db.now, "beyond": db.now + int(LONGEST_LEASE * SECOND)}


def _lease_end(db: Db, lease_seconds: float) -> int:
    return db.now + int(min(lease_seconds, LONGEST_LEASE) * SECOND)


def finish(db: Db, job: Job) -> None:
    """Remove a job from the queue, in the same transaction as its effect."""
    if job.error is not None:  # who heard that it failed hears this too
        note(db, "jobs", job.owner, "done", [job.id])
    _update(db, "finish_job", job)


def advance(db: Db, job: Job) -> None:
    """Pass a job on to the next stage of the pipeline, or finish it after the last one."""
    following = FOLLOWING.get(job.kind)
    if following is None:
        finish(db, job)
    else:
        _update(db, "advance_job", job, kind=following, now=db.now)


def renew(db: Db, job: Job, *, lease_seconds: float = 60, progressed: bool = False) -> None:
    """Extend the lease of a job; if it progressed, earlier deaths count no more."""
    until = _lease_end(db, lease_seconds)
    _update(db, "renew_job", job, until=until, progressed=int(progressed))


def release(db: Db, job: Job) -> None:
    """Give a job back as if it had not been claimed."""
    _update(db, "release_job", job, now=db.now)


def backlog(db: Db, kinds: Sequence[str] = (), *, dead: bool = False) -> int:
    """How many jobs wait or are being worked on or, with `dead`, were given up."""
    [(count,)] = db.rows("buried" if dead else "backlog", kinds=list(kinds or KINDS))
    return int(count)


def fail(db: Db, job: Job, error: str, *, final: bool = False) -> None:
    """Postpone a job, or give it up when it has been tried often enough or this was `final`."""
    check_each("error", error)
    attempts = job.attempts + 1
    delay = None if final else retry_delay_seconds(attempts)
    _update(
        db,
        "postpone_job",
        job,
        run_at=db.now + int((delay or 0) * SECOND),
        attempts=attempts,
        error=error,
        dead=int(delay is None),
    )
    if delay is None:
        note(db, "jobs", job.owner, "failed", [job.id])


def _update(db: Db, query: str, job: Job, **values: Any) -> None:
    """Change a job that this worker still has the lease of."""
    if not db.run(query, owner=job.scope.owner, id=job.id, lease=job.lease, **values):
        raise LeaseLostError(f"job {job.id} is no longer this worker's; its changes were dropped")


def list_jobs(
    db: Db, scope: Scope, *, dead: bool | None = None, limit: Count = None, after: Count = None
) -> list[Job]:
    """The jobs in the scope by rising id: waiting, dead, or both; `after` is a job's id."""
    wanted = None if dead is None else int(dead)
    page = {"limit": check_count(limit, "limit"), "after": check_count(after, "after", 0)}
    return [_job(row) for row in db.rows("jobs_in_scope", **scope.columns(), **page, dead=wanted)]


def waiting_jobs(db: Db, scope: Scope) -> dict[str, int]:
    """How many jobs of each kind wait or run for this user; under "dead", were given up."""
    return dict(db.rows("waiting_of_owner", owner=scope.owner))


def retry(db: Db, scope: Scope, job_id: int) -> None:
    """Put a dead job back into the queue."""
    if not db.run("revive_job", owner=scope.owner, id=job_id, now=db.now):
        raise NotFoundError(f"no dead job {job_id} in this scope")


def queue_rebuild(db: Db, tenant: str, user: str | None = None) -> None:
    """Queue a rebuild of the views of a tenant's users, or one, for whom none is under way."""
    db.run("queue_rebuilds", tenant_hash=tenant_hash(tenant), user=user, now=db.now)


def next_rebuild(db: Db) -> Scope | None:
    """Whose rebuild is to begin or to end: one user's at a time."""
    row = db.row("next_rebuild")
    return None if row is None else Scope(tenant=row[0], user=row[1])


def _job(row: Row) -> Job:
    tenant, user, agent, session, *job = row
    return JOB.record(job, scope=Scope(user=user, tenant=tenant, agent=agent, session=session))


def users(
    db: Db, *, after: Scope | None = None, limit: int = 1_000, tenant: str | None = None
) -> list[Scope]:
    """Users of one tenant or all, in an order of their own; `after` is the last one of a page."""
    first = "0" * 32 if after is None else after.owner
    page = {"after": first, "limit": check_count(limit, "limit")}
    if tenant is None:
        rows = db.rows("users", **page)
    else:
        rows = db.rows("users_of_tenant", **page, tenant_hash=tenant_hash(tenant))
    return [Scope(tenant=tenant, user=user) for tenant, user in rows]


def spend(
    db: Db, *, calls: int, tokens: int, max_calls: int | None = None, max_tokens: int | None = None
) -> bool:
    """Count what a model costs in this hour; where it exceeds a limit, count nothing: False."""
    hour = db.now // HOUR
    if not db.rows("spent", hour=hour):
        db.run("close_hours", hour=hour)
        db.run("open_hour", hour=hour)
    cost = {"hour": hour, "calls": calls, "tokens": tokens}
    return bool(db.run("spend", **cost, max_calls=max_calls, max_tokens=max_tokens))


def spent(db: Db) -> tuple[int, int]:
    """The calls and tokens of this hour."""
    row = db.row("spent", hour=db.now // HOUR)
    return (0, 0) if row is None else (int(row[0]), int(row[1]))


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
        kinds = (*self.kinds, *self.awaited)
        while (left := self._store.backlog(kinds)) or self.idle_at == float("-inf"):
            if self.stopped or (deadline is not None and time.monotonic() >= deadline):
                break
            time.sleep(0.05)
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
        self._requests = 0
        self._left_at = float("-inf")
        self.watch_process()

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:  # its parent's requests are not its own
            self._requests = 0

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

    def settle(self) -> None:
        """Wait until a request and the pause after it are over, but not for long."""
        began = time.monotonic()
        with self._changed:
            while (now := time.monotonic()) - began < LONGEST_GATHER and (
                self._requests or now - max(self._left_at, began) < GATHER_SECONDS
            ):
                self._changed.wait(GATHER_SECONDS)

    def is_quiet(self) -> bool:
        """Whether no request is being answered, and none was lately."""
        return not self._requests and time.monotonic() - self._left_at > QUIET_SECONDS
