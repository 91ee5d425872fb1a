"""Sessions in a transaction: find, open and list them."""

from __future__ import annotations

import hashlib
from datetime import datetime
from functools import lru_cache
from typing import Any

from memorist.errors import ScopeError
from memorist.records.message import Session
from memorist.records.scope import Scope
from memorist.records.values import from_micros, new_id, to_micros
from memorist.store.engine import Db, one

ALL = 2**31 - 1  # rows: more than any list has
FIRST_MOMENT = -(2**62)  # before any that can be stored


@lru_cache(maxsize=4_096)
def session_hash(session_id: str | None) -> str | None:
    """A short key for a session id of any length."""
    return None if session_id is None else hashlib.sha256(session_id.encode()).hexdigest()[:32]


def find_by(scope: Scope) -> dict[str, Any]:
    """The values that a session is looked up by."""
    return {"owner": scope.owner, "session_hash": session_hash(scope.session)}


def narrowed(scope: Scope) -> dict[str, Any]:
    """The values of the filter that every scoped query shares."""
    return {**find_by(scope), "agent": scope.agent}


def dated_page(limit: int | None, after: tuple[datetime, str] | None) -> dict[str, Any]:
    """The values that cut a page of a list that is ordered by a moment and an id."""
    moment, id_ = (None, None) if after is None else after
    return {
        "limit": ALL if limit is None else limit,
        "after_at": FIRST_MOMENT if moment is None else to_micros(moment),
        "after_id": "" if id_ is None else id_,
    }


def add_owner(db: Db, scope: Scope) -> None:
    """Note that this user exists, unless that is known."""
    db.run("add_owner", owner=scope.owner, tenant=scope.tenant, user_id=scope.user, now=db.now)


def ensure_session(db: Db, scope: Scope) -> tuple[Any, str, int]:
    """Lock the session that `scope` names, creating it if need be: key, agent, created_at."""
    assert scope.session is not None  # callers resolve it first
    named = find_by(scope)
    row = one(db.rows("lock_session", **named))
    if row is None:
        agent = scope.agent or ""
        add_owner(db, scope)
        db.rows("create_session", **named, session_id=scope.session, agent=agent, now=db.now)
        row = one(db.rows("lock_session", **named))
        assert row is not None  # just made, and only `forget` removes it
    key, agent, created_at, *_ = row
    if scope.agent is not None and scope.agent != agent:
        raise ScopeError("this session belongs to another agent of the same user")
    return key, agent, created_at


def resolve_session(db: Db, scope: Scope) -> Scope:
    """The scope with a session: the named one, else the active one, else a new one."""
    if scope.session is not None:
        return scope
    active = _active(db, scope)
    if active is None:
        return open_session(db, scope).scope
    return scope.within(session=active)


def open_session(db: Db, scope: Scope, *, claimed: str | None = None) -> Session:
    """The named session, else the claimed one if it is this user's, the active one, a new one."""
    chosen = scope.session
    if chosen is None:
        chosen = _if_theirs(db, scope, claimed)
    if chosen is None:
        chosen = _active(db, scope)
    if chosen is None:
        chosen = new_id()
    _, agent, created_at = ensure_session(db, scope.within(session=chosen))
    db.run(
        "activate_session",
        owner=scope.owner,
        user_id=scope.user,
        agent=agent,
        session_id=chosen,
        now=db.now,
    )
    home = Scope(user=scope.user, tenant=scope.tenant, agent=agent, session=chosen)
    return Session(scope=home, created_at=from_micros(created_at))


def active(db: Db, scope: Scope) -> Session | None:
    """The active session with this agent, if there is one."""
    chosen = _active(db, scope)
    sessions = [] if chosen is None else list_sessions(db, scope.within(session=chosen))
    return sessions[0] if sessions else None


def list_sessions(
    db: Db, scope: Scope, *, limit: int | None = None, after: tuple[datetime, str] | None = None
) -> list[Session]:
    """The sessions in the scope, oldest first; `after` is a session's `created_at` and id."""
    rows = db.rows("sessions_in_scope", **narrowed(scope), **dated_page(limit, after))
    return [
        Session(
            scope=Scope(user=scope.user, tenant=scope.tenant, agent=agent, session=session_id),
            created_at=from_micros(created_at),
        )
        for _, session_id, agent, created_at in rows
    ]


def _if_theirs(db: Db, scope: Scope, claimed: str | None) -> str | None:
    try:
        wanted = None if claimed is None else scope.within(session=claimed)
    except ScopeError:  # it comes from a browser and may be anything
        wanted = None
    row = None if wanted is None else one(db.rows("find_session", **find_by(wanted)))
    if row is None:
        return None
    _, agent, _ = row
    return claimed if agent == (scope.agent or "") else None


def _active(db: Db, scope: Scope) -> str | None:
    row = one(db.rows("active_session", owner=scope.owner, agent=scope.agent or ""))
    return None if row is None else str(row[0])
