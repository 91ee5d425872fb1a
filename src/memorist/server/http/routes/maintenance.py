"""Maintenance: background jobs, audit, tidying, and forgetting for good."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, Field

from memorist.lifecycle.audit import Audit, Finding
from memorist.records.memories import Expire
from memorist.records.message import Job, Source
from memorist.records.query import Forgotten
from memorist.server.http.caller import CurrentCaller
from memorist.server.http.openapi import AT, MEMORY_ID, SESSION
from memorist.server.http.pagination import Page, keyset_page
from memorist.server.http.routes.memories import NamedChange
from memorist.server.http.routing import operation
from memorist.server.http.schemas import (
    AgentRequest,
    CursorQuery,
    FromQuery,
    Scrub,
    SessionId,
    SessionRequest,
    UserRequest,
)

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
_JUNK = Finding(kind="junk", ids=(MEMORY_ID,), reason="says nothing", suggestion="forget it")
_EXPIRED = NamedChange.of(Expire(id=MEMORY_ID, reason="its time is over", at=AT))


class JobsQuery(CursorQuery, UserRequest):
    """A page of jobs."""

    session: SessionId = None
    dead: bool | None = Field(None, description="Only those given up, or only those that wait.")


class WaitingJobs(BaseModel):
    """How many jobs of each kind wait or are worked on."""

    waiting: dict[str, int]


class MaintainBody(AgentRequest):
    """Whether to apply maintenance, or only to report what it would do."""

    dry_run: bool = Field(False, examples=[True])


class MaintenanceReport(BaseModel):
    """What maintenance changed, or would change."""

    changes: list[NamedChange]
    dry_run: bool


class ForgetBody(SessionRequest):
    """What to delete for good: what is named, or everything."""

    message: str | None = None
    memory: str | None = Field(None, description="A memory, a fact or an article.")
    source: Source | None = Field(None, description="Everything with this source.")
    everything: bool = Field(False, description="Everything of the user's.")
    scrub: Scrub = True


@operation("list_jobs", example=_JOB)
def list_jobs(query: FromQuery[JobsQuery], caller: CurrentCaller) -> Page[Job]:
    """The jobs that wait, those that were given up, or both, oldest first."""
    place = caller.place(query)

    def read(limit: int, after: tuple[int] | None) -> list[Job]:
        last = after and after[0]
        return caller.memory.jobs.list(**place, dead=query.dead, limit=limit, after=last)

    return keyset_page(read, query, lambda job: (job.id,), kinds=(int,))


@operation("retry_job", status_code=204)
def retry_job(job_id: JobId, body: AgentRequest, caller: CurrentCaller) -> None:
    """Try a job again that was given up."""
    caller.memory.jobs.retry(job_id, user=caller.user(body.user))


@operation("count_waiting", example=WaitingJobs(waiting={"embed": 0, "derive": 2}))
def count_waiting(query: FromQuery[UserRequest], caller: CurrentCaller) -> WaitingJobs:
    """How many jobs wait: the caller's own, or for an operator those of all users."""
    if query.user is None and caller.is_operator:
        return WaitingJobs(waiting=caller.memory.jobs.waiting())
    embedder = caller.memory.embedder
    vectors = "vectors" if embedder is None else f"vectors:{embedder.name}"
    jobs = caller.memory.jobs.list(user=caller.user(query.user), dead=False)
    kinds = ["vectors" if job.kind == vectors else job.kind for job in jobs]
    return WaitingJobs(waiting={kind: kinds.count(kind) for kind in KINDS})


@operation("audit", example=Audit(memories=2, facts=1, findings=(_JUNK,)))
def audit(query: FromQuery[AgentRequest], caller: CurrentCaller) -> Audit:
    """Which memories are junk, doubled, stale, contradictory or hold secrets; changes nothing."""
    return caller.memory.memories.audit(**caller.place(query))


@operation("maintain", example=MaintenanceReport(changes=[_EXPIRED], dry_run=False))
def maintain(body: MaintainBody, caller: CurrentCaller) -> MaintenanceReport:
    """Expire and promote memories by the policies, and keep to their limits; or only report."""
    done = caller.memory.memories.maintain(**caller.place(body), dry_run=body.dry_run)
    changes = [NamedChange.of(change) for change in done.changes]
    return MaintenanceReport(changes=changes, dry_run=done.dry_run)


@operation("forget")
def forget(body: ForgetBody, caller: CurrentCaller) -> Forgotten:
    """Delete a message, a session, all of an agent's, or everything of a user, for good.

    Everything goes only with `everything`; an id that is null is refused.
    """
    named = body.model_dump(exclude_unset=True, exclude={"user"})  # a null is named, too
    return caller.memory.forget(user=caller.user(body.user), **named)
