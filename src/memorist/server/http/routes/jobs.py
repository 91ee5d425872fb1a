"""Jobs: what waits to be thought about, and what was given up."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from memorist.records.log import Job
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.examples import AT, SESSION, listed
from memorist.server.http.pagination import Cursor, Limit, Page, page_of
from memorist.server.http.paths import Parts
from memorist.server.http.schemas import Scoped, SessionId, User

router = APIRouter(prefix="/api/jobs", tags=["jobs"], route_class=Parts)
JobId = Annotated[int, Path(ge=0, le=2**63 - 1, description="The job's id.", examples=[7])]
_JOB = Job(
    id=7,
    kind="derive",
    scope=SESSION.scope,
    first_seq=11,
    last_seq=12,
    attempts=5,
    run_at=AT,
    error="the model did not answer",
    dead=True,
)


@router.get("", responses=listed(_JOB))
def list_jobs(
    caller: CurrentCaller,
    user: User = None,
    session: SessionId = None,
    dead: Annotated[
        bool | None, Query(description="Only those given up, or only those that wait.")
    ] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Job]:
    """What waits to be thought about, what was given up, or both, oldest first."""
    found = caller.memory.jobs.list(user=caller.user(user), session=session, dead=dead)
    return page_of(found, limit, cursor, lambda job: f"{job.id:020}")


@router.post("/{job_id}/retry", status_code=204)
def retry_job(job_id: JobId, ask: Scoped, caller: CurrentCaller) -> None:
    """Give a job that was given up another life."""
    caller.memory.jobs.retry(job_id, user=caller.user(ask.user))
