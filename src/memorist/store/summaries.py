"""Summaries in a transaction: the newest of a session, all of them, and one more."""

from __future__ import annotations

from collections.abc import Sequence

from memorist.errors import ConflictError
from memorist.records.ids import from_micros, to_micros
from memorist.records.log import Job, LogEntry
from memorist.records.scope import Scope
from memorist.records.summary import Summary
from memorist.store.engine import Db, Row, one
from memorist.store.log import following
from memorist.store.queue import enqueue, finish
from memorist.store.sessions import ensure_session, find_by, narrowed


def summary(db: Db, scope: Scope, least: int | None) -> Summary | None:
    """The summary that stands for most, or else for `least` tokens and as little more as can be."""
    if least is None:
        row = one(db.rows("summaries", **narrowed(scope), limit=1))
    else:
        row = one(db.rows("least_summary", **narrowed(scope), least=least))
    return None if row is None else _summary(scope, row)


def summaries(db: Db, scope: Scope) -> list[Summary]:
    """Every summary of the session, newest first."""
    return [_summary(scope, row) for row in db.rows("summaries", **narrowed(scope), limit=2**31)]


def queue_summary(db: Db, scope: Scope, last_seq: int, now: int) -> None:
    """Ask for a summary of all up to a place, by the model where there is one."""
    found = one(db.rows("find_session", **find_by(scope)))
    if found is not None:
        session = {"owner": scope.owner, "session": found[0], "last": last_seq}
        if not db.rows("summary_is_queued", **session):
            enqueue(db, scope.owner, "summarize", last_seq, last_seq, now, session=found[0])


def write_summary(
    db: Db, scope: Scope, made: Summary, of: Sequence[LogEntry], done: Sequence[Job], now: int
) -> None:
    """Keep a summary, if what it was made of is still what is there; finish who asked for it."""
    for job in done:
        finish(db, job)
    key, _, _ = ensure_session(db, scope, now)
    after = _place_of(db, scope, made.previous)
    stored = following(db, scope, after, len(of) + 1)
    if [entry for entry in stored if entry.seq <= made.last_seq] != list(of):
        raise ConflictError("the messages to be summarised have changed meanwhile; look again")
    db.run(
        "put_summary",
        owner=scope.owner,
        session=key,
        last_seq=made.last_seq,
        id=made.id,
        previous=made.previous,
        text=made.text,
        made_by=made.made_by,
        asked=int(made.asked),
        messages=made.messages,
        tokens_before=made.tokens_before,
        tokens=made.tokens,
        now=to_micros(made.created_at),
    )


def _place_of(db: Db, scope: Scope, previous: str | None) -> int:
    """Up to where the summary goes that another one extends."""
    if previous is None:
        return 0
    found = one(db.rows("place_of_summary", **narrowed(scope), id=previous))
    if found is not None:
        return int(found[0])
    raise ConflictError("the summary that this one extends is gone; look again")


def _summary(scope: Scope, row: Row) -> Summary:
    id_, previous, text, last_seq, made_by, asked, messages, before, tokens, created_at = row
    return Summary(
        id=id_,
        scope=scope,
        previous=previous,
        text=text,
        last_seq=last_seq,
        made_by=made_by,
        asked=bool(asked),
        messages=messages,
        tokens_before=before,
        tokens=tokens,
        created_at=from_micros(created_at),
    )
