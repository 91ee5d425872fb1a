"""Sessions: resolve the current one, and list them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel

from memorist.errors import NotFoundError
from memorist.records.message import Session
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.openapi import SESSION, example, example_page
from memorist.server.http.pagination import Page, keyset_page
from memorist.server.http.routing import ApiRoute, operation
from memorist.server.http.schemas import AgentPageQuery, AgentQuery, ResolveSessionBody

router = APIRouter(route_class=ApiRoute)


class ResolvedSession(BaseModel):
    """The session to go on with; `confirmed` says that it is the one the client keeps."""

    session_id: str
    session: Session
    confirmed: bool


_RESOLVED = ResolvedSession(session_id=SESSION.id, session=SESSION, confirmed=True)


@operation(router, "resolve_session", responses=example(_RESOLVED))
def resolve_session(body: ResolveSessionBody, caller: CurrentCaller) -> ResolvedSession:
    """Confirm the session that a client keeps, or find the active one, or begin a new one.

    An id of another user or agent, or of a session that is gone, is ignored.
    """
    claimed = None if body.new else body.session_id
    session = caller.memory.session(
        user=caller.user(body.user), agent=body.agent, id=body.id, new=body.new, claimed=claimed
    ).session
    return ResolvedSession(session_id=session.id, session=session, confirmed=session.id == claimed)


@operation(router, "active_session", responses=example(SESSION))
def get_active_session(query: Annotated[AgentQuery, Query()], caller: CurrentCaller) -> Session:
    """The active session with this agent; none is begun."""
    session = caller.memory.active_session(user=caller.user(query.user), agent=query.agent)
    if session is None:
        raise NotFoundError("no session with this agent is active")
    return session


@operation(router, "list_sessions", responses=example_page(SESSION))
def list_sessions(
    query: Annotated[AgentPageQuery, Query()], caller: CurrentCaller
) -> Page[Session]:
    """The user's sessions, oldest first."""
    user = caller.user(query.user)

    def read(limit: int, after: Any) -> list[Session]:
        return caller.memory.sessions(user=user, agent=query.agent, limit=limit, after=after)

    return keyset_page(read, query, lambda item: (item.created_at, item.id), datetime, str)
