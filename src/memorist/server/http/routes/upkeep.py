"""Upkeep: look a memory over, tidy it, forget for good, and hold what must stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from memorist.errors import MissingExtraError, NotFoundError
from memorist.lifecycle.audit import Audit, Finding
from memorist.memory import Memory
from memorist.records.change import Expire
from memorist.records.hold import Hold
from memorist.records.query import Forgotten
from memorist.server.http.caller import Agent, Asking, User
from memorist.server.http.examples import AT, FORGOTTEN, HOLD, HOLD_ID, MEMORY_ID, listed, shown
from memorist.server.http.pagination import Cursor, Limit, Page, page_of
from memorist.server.http.paths import Parts
from memorist.server.http.routes.memories import Changed
from memorist.server.http.schemas_views import Forget, Maintain, PlaceHold

try:
    from fastapi import APIRouter, Path
    from pydantic import BaseModel
except ImportError as error:
    raise MissingExtraError("server") from error

router = APIRouter(prefix="/api", tags=["upkeep"], route_class=Parts)
KINDS = ("embed", "vectors", "derive", "summarize")
HoldId = Annotated[str, Path(description="The hold's id.", examples=[HOLD_ID])]
_JUNK = Finding(kind="junk", ids=(MEMORY_ID,), reason="says nothing", suggestion="forget it")
_AUDIT = Audit(memories=2, facts=1, findings=(_JUNK,))


class Tidied(BaseModel):
    """What maintenance did, or would do, and how many memories a hold kept."""

    changes: list[Changed]
    held: int
    dry_run: bool


_EXPIRED = Changed.of(Expire(id=MEMORY_ID, reason="its time is over", at=AT))
_TIDIED = Tidied(changes=[_EXPIRED], held=0, dry_run=False)


class Waiting(BaseModel):
    """How many jobs of each kind wait or are worked on."""

    waiting: dict[str, int]


@router.get("/audit", responses=shown(_AUDIT))
def audit(caller: Asking, user: User = None, agent: Agent = None) -> Audit:
    """Which memories are junk, doubled, stale, contradictory or hold secrets; nothing changes."""
    return caller.memory.audit(user=caller.user(user), agent=agent)


@router.post("/maintain", responses=shown(_TIDIED))
def maintain(ask: Maintain, caller: Asking) -> Tidied:
    """Expire, promote and make room, by policy and retention; or only say what would be."""
    user = caller.user(ask.user)
    done = caller.memory.maintain(user=user, agent=ask.agent, dry_run=ask.dry_run)
    changes = [Changed.of(one) for one in done.changes]
    return Tidied(changes=changes, held=done.held, dry_run=done.dry_run)


@router.post("/forget", responses=shown(FORGOTTEN))
def forget(ask: Forget, caller: Asking) -> Forgotten:
    """Remove a message, a session, all of an agent's, or everything of a user, for good.

    Everything goes only where `everything` says so; an id that is null is refused.
    """
    user = caller.user(ask.user)
    return caller.memory.forget(user=user, scrub=ask.scrub, everything=ask.everything, **ask.what())


@router.get("/waiting", responses=shown(Waiting(waiting={"embed": 0, "derive": 2})))
def count_waiting(caller: Asking, user: User = None) -> Waiting:
    """How much waits to be thought about: the caller's own, and for an admin that of everybody."""
    if user is None and caller.runs_it:
        return Waiting(waiting=caller.memory.waiting())
    jobs = caller.memory.jobs(user=caller.user(user), dead=False)
    kinds = ["vectors" if job.kind == _vectors(caller.memory) else job.kind for job in jobs]
    return Waiting(waiting={kind: kinds.count(kind) for kind in KINDS})


@router.get("/holds", responses=listed(HOLD))
def list_holds(
    caller: Asking, user: User = None, limit: Limit = 100, cursor: Cursor = None
) -> Page[Hold]:
    """The holds on what a user has, oldest first; the reason of a legal one is for admins."""
    found = caller.memory.holds(user=caller.user(user))
    told = [
        one if caller.runs_it or one.kind != "legal" else replace(one, reason="") for one in found
    ]
    return page_of(sorted(told, key=_place), limit, cursor, _place)


@router.post("/holds", status_code=201, responses=shown(HOLD, 201))
def place_hold(ask: PlaceHold, caller: Asking) -> Hold:
    """Keep something from being cleared away; a legal hold is an admin's, and refuses to forget."""
    if ask.kind == "legal":
        caller.must_run_it()
    scope = caller.memory.scope(user=caller.user(ask.user), agent=ask.agent, session=ask.session)
    hold = Hold(scope=scope, kind=ask.kind, target=ask.target, reason=ask.reason)
    caller.memory.store.hold(hold)
    return hold


@router.delete("/holds/{hold_id}", status_code=204)
def lift_hold(hold_id: HoldId, caller: Asking, user: User = None) -> None:
    """End a hold; a legal one is an admin's to end."""
    name = caller.user(user)
    found = [hold for hold in caller.memory.holds(user=name) if hold.id == hold_id]
    if not found:
        raise NotFoundError("no hold with this id for this user")
    if found[0].kind == "legal":
        caller.must_run_it()
    caller.memory.lift(hold_id, user=name)


def _vectors(memory: Memory) -> str:
    """The kind of the jobs that make vectors here; those of another embedder may wait for ever."""
    return "vectors" if memory.embedder is None else f"vectors:{memory.embedder.name}"


def _place(hold: Hold) -> str:
    return f"{hold.created_at.isoformat()} {hold.id}"
