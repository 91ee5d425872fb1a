"""The budget of model calls: how many calls and tokens all workers of a store spent this hour."""

from __future__ import annotations

from memorist.store.engine import Db

HOUR = 3_600_000_000  # microseconds


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
