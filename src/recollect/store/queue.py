"""The queue in a transaction: claim, finish, fail, retry."""

from __future__ import annotations

from recollect.errors import LeaseLostError, NotFoundError
from recollect.records.ids import from_micros, new_id
from recollect.records.log import MAX_ATTEMPTS, Job, retry_delay_seconds
from recollect.records.scope import Scope
from recollect.store.engine import Db, Row
from recollect.store.sessions import narrowed

SECOND = 1_000_000


def claim(db: Db, limit: int, lease_seconds: float, now: int) -> list[Job]:
    """Take jobs that are due. They come back by themselves when the lease runs out."""
    db.run("bury_exhausted", now=now, max_attempts=MAX_ATTEMPTS)
    until = now + int(lease_seconds * SECOND)
    taken = db.rows("take_jobs", lease=new_id(), now=now, until=until, limit=limit)
    return [_job(row) for row in db.rows("jobs_by_id", ids=[row[0] for row in taken])]


def finish(db: Db, job: Job) -> None:
    """Take a job off the queue, as part of the transaction that holds its effect."""
    if not db.run("finish_job", owner=job.scope.owner, id=job.id, lease=job.lease):
        raise LeaseLostError(f"job {job.id} is no longer this worker's; its changes were dropped")


def fail(db: Db, job: Job, error: str, now: int) -> None:
    """Give a job back, to be tried later, or bury it when it has been tried enough."""
    delay = retry_delay_seconds(job.attempts)
    kept = db.run(
        "postpone_job",
        owner=job.scope.owner,
        id=job.id,
        lease=job.lease,
        run_at=now + int((delay or 0) * SECOND),
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
