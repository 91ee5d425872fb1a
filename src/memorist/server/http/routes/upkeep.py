"""Upkeep: look a memory over, tidy it, forget for good."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from memorist.lifecycle.audit import Audit, Finding
from memorist.memory import Memory
from memorist.records.change import Expire
from memorist.records.query import Forgotten
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.examples import AT, FORGOTTEN, MEMORY_ID, shown
from memorist.server.http.paths import Parts
from memorist.server.http.routes.memories import Changed
from memorist.server.http.schemas import Agent, User
from memorist.server.http.schemas_views import Forget, Maintain

router = APIRouter(prefix="/api", tags=["upkeep"], route_class=Parts)
KINDS = ("embed", "vectors", "derive", "summarize")
_JUNK = Finding(kind="junk", ids=(MEMORY_ID,), reason="says nothing", suggestion="forget it")
_AUDIT = Audit(memories=2, facts=1, findings=(_JUNK,))


class Tidied(BaseModel):
    """What maintenance did, or would do."""

    changes: list[Changed]
    dry_run: bool


_EXPIRED = Changed.of(Expire(id=MEMORY_ID, reason="its time is over", at=AT))
_TIDIED = Tidied(changes=[_EXPIRED], dry_run=False)


class Waiting(BaseModel):
    """How many jobs of each kind wait or are worked on."""

    waiting: dict[str, int]


@router.get("/audit", responses=shown(_AUDIT))
def audit(caller: CurrentCaller, user: User = None, agent: Agent = None) -> Audit:
    """Which memories are junk, doubled, stale, contradictory or hold secrets; nothing changes."""
    return caller.memory.memories.audit(user=caller.user(user), agent=agent)


@router.post("/maintain", responses=shown(_TIDIED))
def maintain(ask: Maintain, caller: CurrentCaller) -> Tidied:
    """Expire, promote and make room, by policy and retention; or only say what would be."""
    user = caller.user(ask.user)
    done = caller.memory.memories.maintain(user=user, agent=ask.agent, dry_run=ask.dry_run)
    changes = [Changed.of(one) for one in done.changes]
    return Tidied(changes=changes, dry_run=done.dry_run)


@router.post("/forget", responses=shown(FORGOTTEN))
def forget(ask: Forget, caller: CurrentCaller) -> Forgotten:
    """Remove a message, a session, all of an agent's, or everything of a user, for good.

    Everything goes only where `everything` says so; an id that is null is refused.
    """
    user = caller.user(ask.user)
    return caller.memory.forget(user=user, scrub=ask.scrub, everything=ask.everything, **ask.what())


@router.get("/waiting", responses=shown(Waiting(waiting={"embed": 0, "derive": 2})))
def count_waiting(caller: CurrentCaller, user: User = None) -> Waiting:
    """How much waits to be thought about: the caller's own, and for an admin that of everybody."""
    if user is None and caller.is_operator:
        return Waiting(waiting=caller.memory.jobs.waiting())
    jobs = caller.memory.jobs.list(user=caller.user(user), dead=False)
    kinds = ["vectors" if job.kind == _vectors(caller.memory) else job.kind for job in jobs]
    return Waiting(waiting={kind: kinds.count(kind) for kind in KINDS})


def _vectors(memory: Memory) -> str:
    """The kind of the jobs that make vectors here; those of another embedder may wait for ever."""
    return "vectors" if memory.embedder is None else f"vectors:{memory.embedder.name}"
