"""Holds, spending and use in a transaction: what a memory's life is governed by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memorist.errors import HeldError, NotFoundError
from memorist.records.fact import Fact
from memorist.records.hold import Hold
from memorist.records.ids import from_micros, to_micros
from memorist.records.memory_item import MemoryItem
from memorist.records.scope import Scope
from memorist.store.engine import Db

HOUR = 3_600_000_000  # microseconds


def hold(db: Db, hold: Hold, now: int) -> None:
    """Keep something from being cleared away."""
    scope = hold.scope
    db.run("add_owner", owner=scope.owner, tenant=scope.tenant, user_id=scope.user, now=now)
    db.run(
        "add_hold",
        owner=scope.owner,
        id=hold.id,
        kind=hold.kind,
        agent=scope.agent,
        session_id=scope.session,
        target=hold.target,
        reason=hold.reason,
        created_at=to_micros(hold.created_at),
    )


def holds(db: Db, scope: Scope) -> list[Hold]:
    """The holds that reach into the scope, oldest first."""
    found = []
    for id_, kind, agent, session, target, reason, created_at in db.rows(
        "holds", owner=scope.owner
    ):
        home = Scope(user=scope.user, tenant=scope.tenant, agent=agent, session=session)
        found.append(
            Hold(
                id=id_,
                scope=home,
                kind=kind,
                target=target,
                reason=reason,
                created_at=from_micros(created_at),
            )
        )
    return [hold for hold in found if hold.reaches(scope)]


def lift(db: Db, scope: Scope, hold_id: str) -> None:
    """End a hold."""
    if not db.run("delete_hold", owner=scope.owner, id=hold_id):
        raise NotFoundError("no hold with this id for this user")


def check_holds(db: Db, scope: Scope, targets: Iterable[str] | None) -> None:
    """Raise if a legal hold keeps the scope, or one of the targets in it, from being forgotten."""
    wanted = None if targets is None else set(targets)
    for held in legal_holds(db, scope):
        if wanted is None or held.target is None or held.target in wanted:
            raise HeldError(f"the legal hold {held.id} keeps this; lift it first")


def check_kept(held: Iterable[Hold], records: Sequence[MemoryItem | Fact]) -> None:
    """Raise if one of the holds keeps one of the records from being forgotten."""
    for hold in held:
        if any(hold.keeps(record) for record in records):
            raise HeldError(f"the legal hold {hold.id} keeps this; lift it first")


def legal_holds(db: Db, scope: Scope) -> list[Hold]:
    """The holds in the scope that nothing may be forgotten under."""
    return [hold for hold in holds(db, scope) if hold.kind == "legal"]


def touch(db: Db, scope: Scope, ids: Sequence[str], now: int) -> None:
    """Count a use of memories."""
    db.run("touch_items", owner=scope.owner, ids=list(ids), now=now)


def spend(
    db: Db, calls: int, tokens: int, max_calls: int | None, max_tokens: int | None, now: int
) -> bool:
    """Count what a model costs in this hour; say no, and count nothing, where it is too much."""
    hour = now // HOUR
    if not db.rows("spent", hour=hour):
        db.run("close_hours", hour=hour)
        db.run("open_hour", hour=hour)
    named = {"hour": hour, "calls": calls, "tokens": tokens}
    return bool(db.run("spend", **named, max_calls=max_calls, max_tokens=max_tokens))


def spent(db: Db, now: int) -> tuple[int, int]:
    """Calls and tokens of this hour."""
    rows = db.rows("spent", hour=now // HOUR)
    return (int(rows[0][0]), int(rows[0][1])) if rows else (0, 0)
