"""The queue in a transaction: claim, finish, fail and retry jobs, and count what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memorist.errors import LeaseLostError, NotFoundError
from memorist.records.message import MAX_ATTEMPTS, Job, retry_delay_seconds
from memorist.records.scope import Scope
from memorist.records.values import check_each, from_micros, new_id
from memorist.store.engine import Db, one
from memorist.store.rows import Row
from memorist.store.sessions import ALL, narrowed

SECOND = 1_000_000  # microseconds
HOUR = 3_600 * SECOND
KINDS = ("embed", "vectors", "derive", "summarize")
FOLLOWING = {"embed": "derive"}  # a message is embedded, then memories are extracted from it


def enqueue(db: Db, owner: str, kind: str, first: int, last: int, *, session: Any = None) -> None:
    """Queue work on messages, or, by numbers below zero, on passages of derived records."""
    span = {"first_seq": first, "last_seq": last}
    db.run("enqueue", owner=owner, kind=kind, session=session, **span, now=db.now)


def claim(
    db: Db, *, kinds: Sequence[str] = (), limit: int = 1, lease_seconds: float = 60
) -> list[Job]:
    """Take jobs that are due; each is free again when its lease runs out."""
    now = db.now
    wanted = list(kinds or KINDS)
    db.run("bury_exhausted", kinds=wanted, now=now, max_attempts=MAX_ATTEMPTS)
    until = now + int(lease_seconds * SECOND)
    named = {"kinds": wanted, "lease": new_id(), "now": now, "until": until, "limit": limit}
    taken = db.rows("take_jobs", **named)
    return [_job(row) for row in db.rows("jobs_by_id", ids=[id_ for (id_,) in taken])]


def finish(db: Db, job: Job) -> None:
    """Remove a job from the queue, in the same transaction as its effect."""
    if not db.run("finish_job", **_named(job)):
        raise LeaseLostError(f"job {job.id} is no longer this worker's; its changes were dropped")


def advance(db: Db, job: Job) -> None:
    """Pass a job on to the next stage of the pipeline, or finish it after the last one."""
    following = FOLLOWING.get(job.kind)
    if following is None:
        finish(db, job)
    elif not db.run("advance_job", **_named(job), kind=following, now=db.now):
        raise LeaseLostError(f"job {job.id} is no longer this worker's")


def renew(db: Db, job: Job, *, lease_seconds: float = 60) -> None:
    """Extend the lease of a job."""
    if not db.run("renew_job", **_named(job), until=db.now + int(lease_seconds * SECOND)):
        raise LeaseLostError(f"job {job.id} is no longer this worker's")


def release(db: Db, job: Job) -> None:
    """Give a job back as if it had not been claimed."""
    if not db.run("release_job", **_named(job), attempts=job.attempts - 1, now=db.now):
        raise LeaseLostError(f"job {job.id} is no longer this worker's")


def backlog(db: Db, kinds: Sequence[str] = (), *, dead: bool = False) -> int:
    """How many jobs wait or are being worked on or, with `dead`, were given up."""
    [(count,)] = db.rows("buried" if dead else "backlog", kinds=list(kinds or KINDS))
    return int(count)


def _named(job: Job) -> dict[str, Any]:
    return {"owner": job.scope.owner, "id": job.id, "lease": job.lease}


def fail(db: Db, job: Job, error: str) -> None:
    """Postpone a job, or give it up when it has been tried often enough."""
    check_each("error", error)
    delay = retry_delay_seconds(job.attempts)
    postponed = db.run(
        "postpone_job",
        **_named(job),
        run_at=db.now + int((delay or 0) * SECOND),
        attempts=job.attempts,  # renewing a lease resets the count of crashes, not of failures
        error=error,
        dead=int(delay is None),
    )
    if not postponed:
        raise LeaseLostError(f"job {job.id} is no longer this worker's")


def list_jobs(
    db: Db,
    scope: Scope,
    *,
    dead: bool | None = None,
    limit: int | None = None,
    after: int | None = None,
) -> list[Job]:
    """The jobs in the scope by rising id: waiting, dead, or both; `after` is a job's id."""
    wanted = None if dead is None else int(dead)
    page = {"limit": ALL if limit is None else limit, "after": 0 if after is None else after}
    return [_job(row) for row in db.rows("jobs_in_scope", **narrowed(scope), **page, dead=wanted)]


def retry(db: Db, scope: Scope, job_id: int) -> None:
    """Put a dead job back into the queue."""
    if not db.run("revive_job", owner=scope.owner, id=job_id, now=db.now):
        raise NotFoundError(f"no dead job {job_id} in this scope")


def _job(row: Row) -> Job:
    id_, kind, tenant, user, agent, session, first, last, attempts, run_at, lease, error, dead = row
    return Job(
        id=id_,
        kind=kind,
        scope=Scope(user=user, tenant=tenant, agent=agent, session=session),
        first_seq=first,
        last_seq=last,
        attempts=attempts,
        run_at=from_micros(run_at),
        lease=lease,
        error=error,
        dead=bool(dead),
    )


def users(db: Db, *, after: Scope | None = None, limit: int = 1_000) -> list[Scope]:
    """The users of all tenants, in an order of their own; `after` is the last one of a page."""
    last = "0" * 32 if after is None else after.owner
    rows = db.rows("users", after=last, limit=limit)
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
    row = one(db.rows("spent", hour=db.now // HOUR))
    return (0, 0) if row is None else (int(row[0]), int(row[1]))
