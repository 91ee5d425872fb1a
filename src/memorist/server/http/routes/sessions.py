"""Sessions: which conversation goes on here, and which there are."""

from __future__ import annotations

import hashlib

from fastapi import APIRouter
from pydantic import BaseModel

from memorist.errors import NotFoundError
from memorist.records.session import Session
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.examples import SESSION, listed, shown
from memorist.server.http.pagination import Cursor, Limit, Page, page_of
from memorist.server.http.schemas import Agent, Resolve, User

router = APIRouter(prefix="/api/sessions", tags=["sessions"])


class Resolved(BaseModel):
    """The conversation to go on with; `confirmed` says that it is the one the client holds."""

    session_id: str
    session: Session
    confirmed: bool


@router.post(
    "/resolve", responses=shown(Resolved(session_id=SESSION.id, session=SESSION, confirmed=True))
)
def resolve(ask: Resolve, caller: CurrentCaller) -> Resolved:
    """Confirm the session that a client holds, else find the active one, else begin a new one.

    An id of another user or agent, or one that is gone, is as good as none.
    """
    claimed = None if ask.new else ask.session_id
    session = caller.memory.session(
        user=caller.user(ask.user), agent=ask.agent, id=ask.id, new=ask.new, claimed=claimed
    ).session
    return Resolved(session_id=session.id, session=session, confirmed=session.id == claimed)


@router.get("/active", responses=shown(SESSION))
def active(caller: CurrentCaller, user: User = None, agent: Agent = None) -> Session:
    """The conversation that goes on with this agent; none is begun."""
    found = caller.memory.active_session(user=caller.user(user), agent=agent)
    if found is None:
        raise NotFoundError("no conversation with this agent is active")
    return found


@router.get("", responses=listed(SESSION))
def sessions(
    caller: CurrentCaller,
    user: User = None,
    agent: Agent = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Session]:
    """The user's conversations, oldest first."""
    found = caller.memory.sessions(user=caller.user(user), agent=agent)
    return page_of(sorted(found, key=_place), limit, cursor, _place)


def _place(session: Session) -> str:
    """Where it stands in the list; its id may be longer than a cursor."""
    short = hashlib.sha256(session.id.encode()).hexdigest()
    return f"{session.created_at.isoformat()} {short}"
