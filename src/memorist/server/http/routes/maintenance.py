"""Maintenance: background jobs, audit, tidying, forgetting for good, and the API keys."""

from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Self

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from memorist.errors import InvalidError
from memorist.lifecycle.audit import Audit, Finding
from memorist.records.log import Job, Source
from memorist.records.memories import Expire
from memorist.records.query import Forgotten
from memorist.server.auth import Keys, NewKey
from memorist.server.http import schemas
from memorist.server.http.openapi import AT, MEMORY_ID, SESSION
from memorist.server.http.pagination import Page, keyset_page
from memorist.server.http.routes.memories import ChangeReport, NamedChange
from memorist.server.http.routing import Caller, Url, operation

JobId = Annotated[int, Path(ge=0, le=2**63 - 1, description="The job's id.", examples=[7])]
MAX_AUDIT_BYTES = 32 * 1024 * 1024  # of memories, and of facts
KEY_ID = "0123456789abcdef"
Lifetime = Annotated[int, Field(ge=1, le=36_500)] | None
Grace = Annotated[int, Field(ge=0, le=86_400 * 365)] | None
KeyId = Annotated[str, Path(description="The key's id.", examples=[KEY_ID])]
_JOB = Job(id=7, kind="derive", scope=SESSION.scope, first_seq=1, last_seq=2, attempts=5, run_at=AT)
_JUNK = Finding(kind="junk", ids=(MEMORY_ID,), reason="says nothing", suggestion="forget it")
_EXPIRED = NamedChange.of(Expire(id=MEMORY_ID, reason="its time is over", at=AT))


class JobsQuery(schemas.CursorQuery, schemas.UserRequest):
    """A page of jobs."""

    session: schemas.SessionId = None
    dead: bool | None = Field(None, description="Only those given up, or only those that wait.")


class WaitingJobs(BaseModel):
    """How many jobs of each kind wait or are worked on, and how many are dead."""

    waiting: dict[str, int]


class MaintainBody(schemas.AgentRequest):
    """Whether to apply maintenance, or only to report what it would do."""

    dry_run: bool = Field(False, examples=[True])


class MaintenanceReport(ChangeReport):
    """What maintenance changed, or would change."""

    dry_run: bool


class ForgetBody(schemas.SessionRequest):
    """What to delete for good: what is named, or everything."""

    message: str | None = None
    memory: str | None = Field(None, description="A memory, a fact or an article.")
    source: Source | None = Field(None, description="Everything with this source.")
    everything: bool = Field(False, description="Everything of the user's.")
    scrub: schemas.Scrub = True
    dry_run: schemas.DryRun = False


@operation("list_jobs", example=_JOB)
def list_jobs(query: Url[JobsQuery], caller: Caller) -> Page[Job]:
    """The jobs that wait, those that were given up, or both, oldest first."""
    read = partial(caller.memory.jobs.list, **caller.place(query), dead=query.dead)
    return keyset_page(read, query, by=lambda job: job.id, big=False)


@operation("retry_job", status_code=204)
def retry_job(job_id: JobId, body: schemas.AgentRequest, caller: Caller) -> None:
    """Try a job again that was given up."""
    caller.memory.jobs.retry(job_id, user=caller.user(body.user))


@operation("count_waiting", example=WaitingJobs(waiting={"embed": 0, "derive": 2, "dead": 0}))
def count_waiting(query: Url[schemas.UserRequest], caller: Caller) -> WaitingJobs:
    """How many jobs wait: the caller's own, or for an operator those of all users."""
    if query.user is None and caller.is_operator:
        return WaitingJobs(waiting=caller.memory.jobs.waiting())
    return WaitingJobs(waiting=caller.memory.jobs.waiting(user=caller.user(query.user)))


@operation("rebuild", status_code=202, example=WaitingJobs(waiting={"rebuild": 1, "dead": 0}))
def rebuild(body: schemas.UserRequest, caller: Caller) -> WaitingJobs:
    """Throw away what was derived from the log and derive it anew: a user's or, for an admin, all.

    It happens in the background; what waits for it is answered, now and by `count_waiting`.
    """
    user = caller.user_or_all(body.user)
    caller.memory.jobs.rebuild(user=user)
    return WaitingJobs(waiting=caller.memory.jobs.waiting(user=user))


@operation("audit", example=Audit(memories=2, facts=1, findings=(_JUNK,)))
def audit(query: Url[schemas.AgentRequest], caller: Caller) -> Audit:
    """Which memories are junk, doubled, stale, contradictory or hold secrets; changes nothing."""
    return caller.memory.memories.audit(**caller.place(query), max_bytes=MAX_AUDIT_BYTES)


@operation("maintain", example=MaintenanceReport(changes=[_EXPIRED], dry_run=False))
def maintain(body: MaintainBody, caller: Caller) -> MaintenanceReport:
    """Expire and promote memories by the policies, and keep to their limits; or only report."""
    done = caller.memory.memories.maintain(**caller.place(body), dry_run=body.dry_run)
    changes = [NamedChange.of(change) for change in done.changes]
    return MaintenanceReport(changes=changes, dry_run=done.dry_run)


@operation("forget")
def forget(body: ForgetBody, caller: Caller) -> Forgotten:
    """Delete a message, a session, all of an agent's, or everything of a user, for good.

    Everything goes only with `everything`; an id that is null is refused.
    """
    named = body.model_dump(exclude_unset=True, exclude={"user"})  # a null is named, too
    return caller.memory.forget(user=caller.user(body.user), **named)


# API keys


class AddKeyBody(schemas.RequestModel):
    """Whom a new API key is for."""

    user: str | None = Field(None, description="For one user.", examples=["ada"])
    admin: bool = Field(False, description="For an admin of the tenant, instead.")
    program: bool = Field(False, description="For a program: over MCP it may name any role.")
    label: str = Field("", examples=["her phone"])
    lifetime_days: Lifetime = Field(None, description="Without, it is valid until revoked.")


class RotateKeyBody(schemas.RequestModel):
    """How long the old key stays valid."""

    grace_s: Grace = Field(None, description="Seconds; without, until it is revoked.")


class KeyInfo(BaseModel):
    """An API key without its digest; without a user it is an admin's."""

    model_config = ConfigDict(from_attributes=True)
    id: str
    user: str | None
    label: str
    program: bool = False
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


class AddedKey(BaseModel):
    """A new API key; `key` is the only copy of its secret."""

    key: str = Field(description="Send it as `Authorization: Bearer …`.")
    info: KeyInfo

    @classmethod
    def of(cls, new: NewKey) -> Self:
        """A new key as it is answered."""
        return cls(key=new.text, info=KeyInfo.model_validate(new.record))


_INFO = KeyInfo(id=KEY_ID, user="ada", label="her phone", created_at=AT)
_ADDED = AddedKey(key=f"mk_{KEY_ID}_…", info=_INFO)


@operation("list_keys", example=_INFO)
def list_keys(query: Url[schemas.CursorQuery], caller: Caller) -> Page[KeyInfo]:
    """The keys of the tenant, oldest first, with those that have expired or were revoked."""
    page = keyset_page(partial(_keys(caller).of, caller.principal.tenant), query, big=False)
    return Page(items=[KeyInfo.model_validate(key) for key in page.items], next=page.next)


@operation("add_key", status_code=201, example=_ADDED)
def add_key(body: AddKeyBody, caller: Caller) -> AddedKey:
    """Make a key for a user, or for an admin; its secret is shown now and never again."""
    keys = _keys(caller)
    if body.admin == (body.user is not None):
        raise InvalidError("say whom the key is for: a user, or else admin")
    lifetime = None if body.lifetime_days is None else timedelta(days=body.lifetime_days)
    named = body.model_dump(include={"user", "label", "program"})
    return AddedKey.of(keys.create(tenant=caller.principal.tenant, lifetime=lifetime, **named))


@operation("revoke_key", status_code=204)
def revoke_key(key_id: KeyId, caller: Caller) -> None:
    """Revoke a key at once, on every server."""
    _keys(caller).revoke(caller.principal.tenant, key_id)


@operation("rotate_key", status_code=201, example=_ADDED)
def rotate_key(key_id: KeyId, body: RotateKeyBody, caller: Caller) -> AddedKey:
    """Make a new key like this one, which stays valid for the grace, or until it is revoked."""
    grace = None if body.grace_s is None else timedelta(seconds=body.grace_s)
    return AddedKey.of(_keys(caller).rotate(caller.principal.tenant, key_id, grace=grace))


def _keys(caller: Caller) -> Keys:
    caller.require_admin()
    return Keys(caller.memory.keys)
