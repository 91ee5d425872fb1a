"""Jobs: the background work that waits, and what was given up."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from memorist.records.log import Job
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.openapi import AT, SESSION, example, example_page
from memorist.server.http.pagination import Page, page_of
from memorist.server.http.routing import ApiRoute, operation
from memorist.server.http.schemas import JobsQuery, ScopedBody, UserQuery

router = APIRouter(tags=["jobs"], route_class=ApiRoute)
JobId = Annotated[int, Path(ge=0, le=2**63 - 1, description="The job's id.", examples=[7])]
KINDS = ("embed", "vectors", "derive", "summarize")
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


class WaitingJobs(BaseModel):
    """How many jobs of each kind wait or are worked on."""

    waiting: dict[str, int]


@operation(router, "list_jobs", responses=example_page(_JOB))
def list_jobs(query: Annotated[JobsQuery, Query()], caller: CurrentCaller) -> Page[Job]:
    """The jobs that wait, those that were given up, or both, oldest first."""
    jobs = caller.memory.jobs.list(
        user=caller.user(query.user), session=query.session, dead=query.dead
    )
    return page_of(jobs, query, lambda job: f"{job.id:020}")


@operation(router, "retry_job", status_code=204)
def retry_job(job_id: JobId, body: ScopedBody, caller: CurrentCaller) -> None:
    """Try a job again that was given up."""
    caller.memory.jobs.retry(job_id, user=caller.user(body.user))


@operation(
    router, "count_waiting", responses=example(WaitingJobs(waiting={"embed": 0, "derive": 2}))
)
def count_waiting(query: Annotated[UserQuery, Query()], caller: CurrentCaller) -> WaitingJobs:
    """How many jobs wait: the caller's own, or for an operator those of all users."""
    if query.user is None and caller.is_operator:
        return WaitingJobs(waiting=caller.memory.jobs.waiting())
    embedder = caller.memory.embedder
    vectors = "vectors" if embedder is None else f"vectors:{embedder.name}"
    jobs = caller.memory.jobs.list(user=caller.user(query.user), dead=False)
    kinds = ["vectors" if job.kind == vectors else job.kind for job in jobs]
    return WaitingJobs(waiting={kind: kinds.count(kind) for kind in KINDS})
