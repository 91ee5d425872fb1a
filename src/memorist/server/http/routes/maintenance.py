"""Maintenance: audit a memory, tidy it, forget for good."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from memorist.lifecycle.audit import Audit, Finding
from memorist.records.change import Expire
from memorist.records.query import Forgotten
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.openapi import AT, FORGOTTEN, MEMORY_ID, example
from memorist.server.http.routes.memories import NamedChange
from memorist.server.http.routing import ApiRoute, operation
from memorist.server.http.schemas import AgentQuery, ForgetBody, MaintainBody

router = APIRouter(tags=["maintenance"], route_class=ApiRoute)
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
