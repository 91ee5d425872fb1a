"""The log in a transaction: append, read, revise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from recollect.errors import ConflictError, NotFoundError
from recollect.records.ids import to_micros
from recollect.records.log import Appended, LogEntry, Source, source_of
from recollect.records.message import Message
from recollect.records.scope import Scope
from recollect.store.bm25 import PIECES
from recollect.store.engine import Db, Row
from recollect.store.indexing import index_messages
from recollect.store.queue import enqueue
from recollect.store.sessions import ensure_session, find_by, narrowed, settle

END = 2**62


class RepeatError(Exception):
    """Some of the messages are stored already: append them again with `append_unseen`."""


def append(
    db: Db, scope: Scope, messages: Sequence[Message], source: Source | None, now: int
) -> Appended:
    """Store messages that are all new, with their index entries and one job for the lot."""
    scope = settle(db, scope, now)
    key, agent, _ = ensure_session(db, scope, now)
    places = _store(db, scope, key, agent, messages, source, now)
    return Appended(session_id=scope.session or "", seqs=tuple(places), added=len(places))


def append_unseen(
    db: Db, scope: Scope, messages: Sequence[Message], source: Source | None, now: int
) -> Appended:
    """Store those messages that are new; a repeated id must come with its first words."""
    scope = settle(db, scope, now)
    key, agent, _ = ensure_session(db, scope, now)
    stored = find(db, scope, [message.message_id for message in messages])
    seqs = {entry.message.message_id: entry.seq for entry in stored}
    fresh = _unseen(messages, _versions(db, scope, stored))
    places = _store(db, scope, key, agent, fresh, source, now)
    seqs.update(zip((message.message_id for message in fresh), places, strict=True))
    return Appended(
        session_id=scope.session or "",
        seqs=tuple(seqs[message.message_id] for message in messages),
        added=len(fresh),
    )


def history(
    db: Db, scope: Scope, last: int | None, before: int | None, role: str | None
) -> list[LogEntry]:
    """The newest messages in the scope, oldest first."""
    bounds = {
        "last": END if last is None else last,
        "before": END if before is None else before,
    }
    if scope.session is not None and scope.agent is None and role is None:
        rows = db.rows("session_history", **find_by(scope), **bounds)
        session_id, unpack = scope.session, db.unpack
        return [LogEntry(row[0], session_id, row[1], unpack(row)) for row in reversed(rows)]
    rows = db.rows("history", **narrowed(scope), role=role, **bounds)
    return _entries(db, reversed(rows))


def find(db: Db, scope: Scope, message_ids: Sequence[str]) -> list[LogEntry]:
    """The messages with these ids that lie in the scope, in log order."""
    return _entries(db, db.rows("messages_by_id", **narrowed(scope), ids=list(message_ids)))


def revise(db: Db, scope: Scope, message: Message, now: int) -> None:
    """Put a message in the place of the one with its id, which stays among the revisions."""
    found = find(db, scope, [message.message_id])
    if not found:
        raise NotFoundError("no message with this id in this scope")
    if len(found) > 1:
        raise ConflictError("several sessions hold a message with this id; name the session")
    entry = found[0]
    key, agent, _ = ensure_session(db, scope.within(session=entry.session_id), now)
    at = {"owner": scope.owner, "seq": entry.seq}
    created_at = to_micros(message.created_at)
    db.run("keep_revision", **at, now=now)
    db.run("rewrite_message", **at, role=message.role, created_at=created_at, **db.pack(message))
    # New ids for the new passages: a vector still being made of the old words must not fit.
    [(last,)] = db.rows("last_piece", **at)
    db.run("delete_message_passages", **at)
    db.run("void_leases", owner=scope.owner, seqs=[entry.seq], now=now)
    placed = [(entry.seq, message, created_at)]
    first = 0 if last is None else last % PIECES + 1
    index_messages(db, scope.owner, placed, agent=agent, session=key, first_piece=first)
    enqueue(db, scope.owner, "embed", entry.seq, entry.seq, now, session=key)


def revisions(db: Db, scope: Scope, message_id: str) -> list[Message]:
    """What a message said before, oldest first."""
    if not find(db, scope, [message_id]):
        raise NotFoundError("no message with this id in this scope")
    rows = db.rows("revisions", **narrowed(scope), message_id=message_id)
    return [db.unpack(row) for row in rows]


def _entries(db: Db, rows: Iterable[Row]) -> list[LogEntry]:
    return [LogEntry(row[0], row[-1], row[1], db.unpack(row)) for row in rows]


def _versions(db: Db, scope: Scope, stored: Sequence[LogEntry]) -> dict[str, list[Message]]:
    """What each stored message says, and what it said before it was revised."""
    found: dict[str, list[Message]] = {}
    for entry in stored:
        id_ = entry.message.message_id
        found[id_] = [entry.message, *revisions(db, scope, id_)]
    return found


def _unseen(messages: Sequence[Message], seen: dict[str, list[Message]]) -> list[Message]:
    fresh = []
    for message in messages:
        versions = seen.setdefault(message.message_id, [])
        if not versions:
            fresh.append(message)
            versions.append(message)
        elif not any(replace(old, created_at=message.created_at) == message for old in versions):
            raise ConflictError(
                "a message with this id is stored with other content; use revise to change it"
            )
    return fresh


def _store(
    db: Db,
    scope: Scope,
    key: Any,
    agent: str,
    messages: Sequence[Message],
    source: Source | None,
    now: int,
) -> Sequence[int]:
    """Write messages, passages and the job; raise if any message turns out to be there."""
    if not messages:
        return ()
    places = db.next_seqs(len(messages))
    owner, rows, placed = scope.owner, [], []
    for seq, message in zip(places, messages, strict=True):
        created_at = to_micros(message.created_at)
        placed.append((seq, message, created_at))
        rows.append({
            "seq": seq, "owner": owner, "session": key, "message_id": message.message_id,
            "role": message.role, "source": source_of(message, source),
            "created_at": created_at, **db.pack(message),
        })  # fmt: skip
    if db.many("append_message", rows) < len(rows):
        raise RepeatError
    index_messages(db, owner, placed, agent=agent, session=key)
    enqueue(db, owner, "embed", places[0], places[-1], now, session=key)
    return places
