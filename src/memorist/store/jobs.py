"""The queue of background jobs in a transaction.

Who works on it (`store/runner.py` has their loop), and the kinds of jobs that they do:

    Indexer      embed, vectors; of backfill index, embed later, vectors later, vectors:<embedder>
    Worker       derive, which follows embed, derive later; without an embedder the others, too
    Summarizer   summarize

A job `index` is `embed` for messages that are cut into passages anew first. A job `rebuild` waits
until its user's views are thrown away and derived again. Backfill is what was imported or restored,
is rebuilt, or gets vectors of another embedder: it is done when nothing new waits.

Any number of processes may run them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memorist.errors import LeaseLostError, NotFoundError
from memorist.records.log import Job, retry_delay_seconds
from memorist.records.scope import Scope, tenant_hash
from memorist.records.values import Count, check_each, new_id
from memorist.store.activity import note
from memorist.store.engine import Db
from memorist.store.rows import Columns, Row, check_count

JOB = Columns(Job, omit=("scope",))
SECOND = 1_000_000  # microseconds
HOUR = 3_600 * SECOND
STAGES = ("embed", "vectors", "derive", "summarize", "rebuild")
LATER = " later"  # at the end of the kinds of what was imported or restored
KINDS = ("index", *STAGES, *(stage + LATER for stage in STAGES[:3]))
# A message is embedded, then memories are extracted from it.
FOLLOWING = {"embed": "derive", "index": "derive later", "embed later": "derive later"}
LONGEST_LEASE = 900.0  # seconds: a job that is due later than that was dated by a wrong clock
MAX_DEATHS = 1 + 5  # of processes that had a job: the first time among others, then alone
DIED = "the process ended, or hung, while working on it"

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


def enqueue(db: Db, kind: str, first: int, last: int, *, session: Any = None) -> None:
    """Queue work on messages, or, by numbers below zero, on passages of derived records."""
    span = {"first_seq": first, "last_seq": last}
    db.later("enqueue", kind=kind, session=session, **span)


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
    wanted = list(kinds or KINDS)
    buried = db.later("bury_deadly", kinds=wanted, max_deaths=MAX_DEATHS, reason=DIED)
    named = {"lease": new_id(), "until": _lease_end(db, lease_seconds), "limit": limit}
    new, backfill = _divided(wanted)
    looks = [("take_jobs", new), ("take_jobs", backfill)]
    looks.insert(0 if suspects_first else 2, ("take_suspect", wanted))
    found = (db.rows(query, **_due(db, kinds), **named) for query, kinds in looks if kinds)
    taken = next(filter(None, found), ())
    if dead := buried():
        db.run("note_jobs", change="failed", ids=[id_ for (id_,) in dead])
    return [_job(row) for row in db.rows("jobs_by_id", ids=[id_ for (id_,) in taken])]


def any_due(db: Db, kinds: Sequence[str]) -> bool:
    """Whether there may be a job to claim."""
    return db.row("any_due", **_due(db, list(kinds))) is not None


def new_wait(db: Db, kinds: Sequence[str]) -> bool:
    """Whether a job of these kinds that is no backfill could be taken."""
    new, _ = _divided(kinds)
    return bool(new) and db.row("new_wait", **_due(db, new)) is not None


def _divided(kinds: Sequence[str]) -> tuple[list[str], list[str]]:
    """Kinds of new jobs, and of backfill."""
    new = [kind for kind in kinds if not is_backfill(kind)]
    return new, [kind for kind in kinds if kind not in new]


def _due(db: Db, kinds: Sequence[str]) -> dict[str, Any]:
    return {"kinds": kinds, "beyond": db.now + int(LONGEST_LEASE * SECOND)}


def _lease_end(db: Db, lease_seconds: float) -> int:
    return db.now + int(min(lease_seconds, LONGEST_LEASE) * SECOND)


def finish(db: Db, job: Job) -> None:
    """Remove a job from the queue, in the same transaction as its effect."""
    if job.error is not None:  # who heard that it failed hears this too
        note(db, "jobs", "done", [job.id])
    _update(db, "finish_job", job)


def advance(db: Db, job: Job) -> None:
    """Pass a job on to the next stage of the pipeline, or finish it after the last one."""
    following = FOLLOWING.get(job.kind)
    if following is None:
        finish(db, job)
    else:
        _update(db, "advance_job", job, kind=following)


def renew(db: Db, job: Job, *, lease_seconds: float = 60, progressed: bool = False) -> None:
    """Extend the lease of a job; if it progressed, earlier deaths count no more."""
    until = _lease_end(db, lease_seconds)
    _update(db, "renew_job", job, until=until, progressed=int(progressed))


def release(db: Db, job: Job) -> None:
    """Give a job back as if it had not been claimed."""
    _update(db, "release_job", job)


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
        note(db, "jobs", "failed", [job.id])


def _update(db: Db, query: str, job: Job, **values: Any) -> None:
    """Change a job that this worker still has the lease of."""
    if not db.run(query, id=job.id, lease=job.lease, **values):
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
    return dict(db.rows("waiting_of_owner"))


def retry(db: Db, scope: Scope, job_id: int) -> None:
    """Put a dead job back into the queue."""
    check_count(job_id, "job_id")
    if not db.run("revive_job", id=job_id):
        raise NotFoundError(f"no dead job {job_id} in this scope")


def queue_rebuild(db: Db, tenant: str, user: str | None = None) -> None:
    """Queue a rebuild of the views of a tenant's users, or one, for whom none is under way."""
    db.run("queue_rebuilds", tenant_hash=tenant_hash(tenant), user=user)


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
