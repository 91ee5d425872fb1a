"""The queue in a transaction: claim, finish, fail, retry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memorist.errors import LeaseLostError, NotFoundError
from memorist.records.ids import from_micros, new_id
from memorist.records.log import MAX_ATTEMPTS, Job, retry_delay_seconds
from memorist.records.scope import Scope
from memorist.store.engine import Db, Row
from memorist.store.sessions import narrowed

SECOND = 1_000_000
KINDS = ("embed", "vectors", "derive", "summarize")
FOLLOWING = {"embed": "derive"}  # a message is embedded, then memories are extracted from it


def enqueue(
    db: Db, owner: str, kind: str, first: int, last: int, now: int, *, session: Any = None
) -> None:
    """Queue work on messages, or, by numbers below zero, on passages of derived records."""
    db.run(
        "enqueue", owner=owner, kind=kind, session=session, first_seq=first, last_seq=last, now=now
    )


def claim(db: Db, kinds: Sequence[str], limit: int, lease_seconds: float, now: int) -> list[Job]:
    """Take jobs that are due. They come back by themselves when the lease runs out."""
    wanted = list(kinds or KINDS)
    db.run("bury_exhausted", kinds=wanted, now=now, max_attempts=MAX_ATTEMPTS)
    until = now + int(lease_seconds * SECOND)
    named = {"kinds": wanted, "lease": new_id(), "now": now, "until": until, "limit": limit}
    taken = db.rows("take_jobs", **named)
    return [_job(row) for row in db.rows("jobs_by_id", ids=[row[0] for row in taken])]


def finish(db: Db, job: Job) -> None:
    """Take a job off the queue, as part of the transaction that holds its effect."""
    if not db.run("finish_job", **_named(job)):
        raise LeaseLostError(f"job {job.id} is no longer this worker's; its changes were dropped")


def advance(db: Db, job: Job, now: int) -> None:
    """Pass a job on to the next stage of the pipeline, or finish it after the last one."""
    following = FOLLOWING.get(job.kind)
    if following is None:
        finish(db, job)
    elif not db.run("advance_job", **_named(job), kind=following, now=now):
        raise LeaseLostError(f"job {job.id} is no longer this worker's")


def renew(db: Db, job: Job, lease_seconds: float, now: int) -> None:
    """Keep a job for longer."""
    if not db.run("renew_job", **_named(job), until=now + int(lease_seconds * SECOND)):
        raise LeaseLostError(f"job {job.id} is no longer this worker's")


def release(db: Db, job: Job, now: int) -> None:
    """Give a job back as if it had not been taken."""
    if not db.run("release_job", **_named(job), attempts=job.attempts - 1, now=now):
        raise LeaseLostError(f"job {job.id} is no longer this worker's")


def backlog(db: Db, kinds: Sequence[str], dead: bool) -> int:
    """How many jobs wait or are being worked on, or else were given up."""
    [(count,)] = db.rows("buried" if dead else "backlog", kinds=list(kinds or KINDS))
    return int(count)


def _named(job: Job) -> dict[str, Any]:
    return {"owner": job.scope.owner, "id": job.id, "lease": job.lease}


def fail(db: Db, job: Job, error: str, now: int) -> None:
    """Give a job back, to be tried later, or bury it when it has been tried enough."""
    delay = retry_delay_seconds(job.attempts)
    kept = db.run(
        "postpone_job",
        **_named(job),
        run_at=now + int((delay or 0) * SECOND),
        attempts=job.attempts,  # renewing its lease forgave crashes, not failures
        error=error,
        dead=int(delay is None),
    )
    if not kept:
        raise LeaseLostError(f"job {job.id} is no longer this worker's")


def list_jobs(db: Db, scope: Scope, dead: bool | None) -> list[Job]:
    """The jobs in the scope: waiting, dead, or both."""
    wanted = None if dead is None else int(dead)
    return [_job(row) for row in db.rows("jobs_in_scope", **narrowed(scope), dead=wanted)]


def retry(db: Db, scope: Scope, job_id: int, now: int) -> None:
    """Give a dead job another life."""
    if not db.run("revive_job", owner=scope.owner, id=job_id, now=now):
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
