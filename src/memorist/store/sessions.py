"""Sessions in a transaction: find, open, list."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

from memorist.errors import ScopeError
from memorist.records.ids import from_micros, new_id
from memorist.records.scope import Scope
from memorist.records.session import Session
from memorist.store.engine import Db, one


@lru_cache(maxsize=4_096)
def session_hash(session_id: str | None) -> str | None:
    """A short key for a session id of any length."""
    return None if session_id is None else hashlib.sha256(session_id.encode()).hexdigest()[:32]


def find_by(scope: Scope) -> dict[str, Any]:
    """The values by which a session is looked up."""
    return {"owner": scope.owner, "session_hash": session_hash(scope.session)}


def narrowed(scope: Scope) -> dict[str, Any]:
    """The values of the filter that every scoped query shares."""
    return {**find_by(scope), "agent": scope.agent}


def ensure_session(db: Db, scope: Scope, now: int) -> tuple[Any, str, int]:
    """Lock the session that `scope` names, making it first if need be: key, agent, birth."""
    assert scope.session is not None  # callers settle on one first
    named = find_by(scope)
    found = one(db.rows("lock_session", **named))
    if found is None:
        agent = scope.agent or ""
        db.run("add_owner", owner=scope.owner, tenant=scope.tenant, user_id=scope.user, now=now)
        db.rows("create_session", **named, session_id=scope.session, agent=agent, now=now)
        found = one(db.rows("lock_session", **named))
        assert found is not None  # just made, and only `forget` removes it
    key, agent, created_at = found[:3]
    if scope.agent is not None and scope.agent != agent:
        raise ScopeError("this session belongs to another agent of the same user")
    return key, agent, created_at


def settle(db: Db, scope: Scope, now: int) -> Scope:
    """The scope with its session: the one named, else the active one, else a new one."""
    if scope.session is not None:
        return scope
    active = _active(db, scope)
    if active is None:
        return open_session(db, scope, None, now).scope
    return scope.within(session=active)


def open_session(db: Db, scope: Scope, claimed: str | None, now: int) -> Session:
    """The session named, or else the claimed one if it is theirs, the active one, a new one."""
    chosen = scope.session
    if chosen is None:
        chosen = _theirs(db, scope, claimed)
    if chosen is None:
        chosen = _active(db, scope)
    if chosen is None:
        chosen = new_id()
    _, agent, created_at = ensure_session(db, scope.within(session=chosen), now)
    db.run(
        "activate_session",
        owner=scope.owner,
        user_id=scope.user,
        agent=agent,
        session_id=chosen,
        now=now,
    )
    found = Scope(user=scope.user, tenant=scope.tenant, agent=agent, session=chosen)
    return Session(scope=found, created_at=from_micros(created_at))


def active(db: Db, scope: Scope) -> Session | None:
    """The session that goes on with this agent; none is begun."""
    chosen = _active(db, scope)
    found = None if chosen is None else list_sessions(db, scope.within(session=chosen))
    return found[0] if found else None


def list_sessions(db: Db, scope: Scope) -> list[Session]:
    """Every session in the scope, oldest first."""
    return [
        Session(
            scope=Scope(user=scope.user, tenant=scope.tenant, agent=agent, session=session_id),
            created_at=from_micros(created_at),
        )
        for _, session_id, agent, created_at in db.rows("sessions_in_scope", **narrowed(scope))
    ]


def _theirs(db: Db, scope: Scope, claimed: str | None) -> str | None:
    try:
        wanted = None if claimed is None else scope.within(session=claimed)
    except ScopeError:  # it comes from a browser, and may be anything
        wanted = None
    if wanted is None:
        return None
    found = one(db.rows("find_session", **find_by(wanted)))
    return claimed if found is not None and found[1] == (scope.agent or "") else None


def _active(db: Db, scope: Scope) -> str | None:
    found = one(db.rows("active_session", owner=scope.owner, agent=scope.agent or ""))
    return None if found is None else str(found[0])
