"""Maintenance: background jobs, audit, tidying, and forgetting for good."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from memorist.lifecycle.audit import Audit, Finding
from memorist.records.memories import Expire
from memorist.records.message import Job
from memorist.records.query import Forgotten
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.openapi import AT, FORGOTTEN, MEMORY_ID, SESSION, example, example_page
from memorist.server.http.pagination import Page, keyset_page
from memorist.server.http.routes.memories import NamedChange
from memorist.server.http.routing import ApiRoute, operation
from memorist.server.http.schemas import (
    AgentQuery,
    ForgetBody,
    JobsQuery,
    MaintainBody,
    ScopedBody,
    UserQuery,
)

router = APIRouter(route_class=ApiRoute)
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
    user = caller.user(query.user)

    def read(limit: int, after: Any) -> list[Job]:
        last_id = None if after is None else after[0]
        return caller.memory.jobs.list(
            user=user, session=query.session, dead=query.dead, limit=limit, after=last_id
        )

    return keyset_page(read, query, lambda job: (job.id,), int)


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


_JUNK = Finding(kind="junk", ids=(MEMORY_ID,), reason="says nothing", suggestion="forget it")
_AUDIT = Audit(memories=2, facts=1, findings=(_JUNK,))


class MaintenanceReport(BaseModel):
    """What maintenance changed, or would change."""

    changes: list[NamedChange]
    dry_run: bool


_EXPIRED = NamedChange.of(Expire(id=MEMORY_ID, reason="its time is over", at=AT))


@operation(router, "audit", responses=example(_AUDIT))
def audit(query: Annotated[AgentQuery, Query()], caller: CurrentCaller) -> Audit:
    """Which memories are junk, doubled, stale, contradictory or hold secrets; changes nothing."""
    return caller.memory.memories.audit(user=caller.user(query.user), agent=query.agent)


@operation(
    router, "maintain", responses=example(MaintenanceReport(changes=[_EXPIRED], dry_run=False))
)
def maintain(body: MaintainBody, caller: CurrentCaller) -> MaintenanceReport:
    """Expire and promote memories by the policies, and keep to their limits; or only report."""
    user = caller.user(body.user)
    done = caller.memory.memories.maintain(user=user, agent=body.agent, dry_run=body.dry_run)
    changes = [NamedChange.of(change) for change in done.changes]
    return MaintenanceReport(changes=changes, dry_run=done.dry_run)


@operation(router, "forget", responses=example(FORGOTTEN))
def forget(body: ForgetBody, caller: CurrentCaller) -> Forgotten:
    """Delete a message, a session, all of an agent's, or everything of a user, for good.

    Everything goes only with `everything`; an id that is null is refused.
    """
    return caller.memory.forget(
        user=caller.user(body.user), scrub=body.scrub, everything=body.everything, **body.named()
    )
