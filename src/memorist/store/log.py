"""The log in a transaction: append, read, revise, grow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from memorist.errors import ConflictError, NotFoundError
from memorist.records.ids import to_micros
from memorist.records.log import Appended, LogEntry, Source, source_of
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store.bm25 import PIECES
from memorist.store.engine import Db, Row
from memorist.store.indexing import index_messages
from memorist.store.queue import enqueue
from memorist.store.sessions import ensure_session, narrowed, settle

END = 2**62
MOST_IN_JOB = 100  # messages that are thought about together


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
    db: Db, scope: Scope, last: int | None, between: tuple[int | None, int | None], role: str | None
) -> list[LogEntry]:
    """The newest messages in the scope, after one place and before another, oldest first."""
    after, before = between
    bounds = {
        "last": END if last is None else min(last, END),  # no log is longer
        "before": END if before is None else min(before, END),
        "after": -1 if after is None else min(after, END),
    }
    if scope.session is not None and role is None:
        rows = db.rows("session_history", **narrowed(scope), **bounds)
        session_id, unpack = scope.session, db.unpack
        return [LogEntry(row[0], session_id, row[1], unpack(row)) for row in reversed(rows)]
    rows = db.rows("history", **narrowed(scope), role=role, **bounds)
    return _entries(db, reversed(rows))


def following(db: Db, scope: Scope, after: int, limit: int) -> list[LogEntry]:
    """The messages of a session after a place, oldest first."""
    rows = db.rows("following", **narrowed(scope), after=after, limit=limit)
    return [LogEntry(row[0], scope.session or "", row[1], db.unpack(row)) for row in rows]


def find(db: Db, scope: Scope, message_ids: Sequence[str]) -> list[LogEntry]:
    """The messages with these ids that lie in the scope, in log order."""
    return _entries(db, db.rows("messages_by_id", **narrowed(scope), ids=list(message_ids)))


def revise(db: Db, scope: Scope, message: Message, now: int) -> None:
    """Put a message in the place of the one with its id, which stays among the revisions."""
    entry = _only(db, scope, message.message_id)
    key, agent, _ = ensure_session(db, scope.within(session=entry.session_id), now)
    db.run("keep_revision", owner=scope.owner, seq=entry.seq, now=now)
    db.run("delete_summaries_of_messages", owner=scope.owner, seqs=[entry.seq])
    _rewrite(db, scope, entry.seq, message, agent=agent, session=key)
    db.run("void_leases", owner=scope.owner, seqs=[entry.seq], now=now)
    enqueue(db, scope.owner, "embed", entry.seq, entry.seq, now, session=key)


def grow(db: Db, scope: Scope, message: Message, now: int) -> None:
    """Put more of an unfinished message in the place of what had arrived of it.

    Its text must begin with what is stored: a writer that was left behind takes nothing back.
    """
    scope = scope.within(session=_only(db, scope, message.message_id).session_id)
    key, agent, _ = ensure_session(db, scope, now)
    entry = _only(db, scope, message.message_id)  # again: now that it is locked, it stays so
    if entry.message == message:
        return
    _check_growth(entry.message, message)
    db.run("delete_summaries_of_messages", owner=scope.owner, seqs=[entry.seq])
    # No lease is voided: a worker that lost its job at every flush would never come to an end.
    _rewrite(db, scope, entry.seq, message, agent=agent, session=key)
    if not message.unfinished:
        enqueue(db, scope.owner, "embed", entry.seq, entry.seq, now, session=key)


def revisions(db: Db, scope: Scope, message_id: str) -> list[Message]:
    """What a message said before, oldest first."""
    if not find(db, scope, [message_id]):
        raise NotFoundError("no message with this id in this scope")
    rows = db.rows("revisions", **narrowed(scope), message_id=message_id)
    return [db.unpack(row) for row in rows]


def _only(db: Db, scope: Scope, message_id: str) -> LogEntry:
    """The one message with this id in the scope."""
    found = find(db, scope, [message_id])
    if not found:
        raise NotFoundError("no message with this id in this scope")
    if len(found) > 1:
        raise ConflictError("several sessions hold a message with this id; name the session")
    return found[0]


def _check_growth(held: Message, message: Message) -> None:
    if not held.unfinished:
        raise ConflictError("the message is finished; use revise to change it")
    if held.role != message.role:
        raise ConflictError("a message keeps its role while it grows")
    before = held.content or ""
    if not isinstance(before, str) or not isinstance(message.content, str):
        raise ConflictError("only text grows; use revise to change other content")
    if not message.content.startswith(before):
        raise ConflictError("the text does not begin with what is stored of it")


def _rewrite(db: Db, scope: Scope, seq: int, message: Message, *, agent: str, session: Any) -> None:
    """Put a message, and its index entries, in the place of what stands there."""
    at = {"owner": scope.owner, "seq": seq}
    created_at = to_micros(message.created_at)
    db.run("rewrite_message", **at, role=message.role, created_at=created_at, **db.pack(message))
    [(last,)] = db.rows("last_piece", **at)
    db.run("delete_message_passages", **at)
    placed, first = [(seq, message, created_at)], next_piece(last)
    index_messages(db, scope.owner, placed, agent=agent, session=session, first_piece=first)


def next_piece(last: int | None) -> int:
    """Where the passages of a rewritten message begin, given the id of its last one.

    New ids for new words: a vector still being made of the old ones must not fit. They begin
    anew before they could reach the ids of the next message.
    """
    first = 0 if last is None else last % PIECES + 1
    return 0 if first > PIECES // 2 else first


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
        rows.append(
            {
                "seq": seq,
                "owner": owner,
                "session": key,
                "message_id": message.message_id,
                "role": message.role,
                "source": source_of(message, source),
                "created_at": created_at,
                **db.pack(message),
            }
        )
    if db.many("append_message", rows) < len(rows):
        raise RepeatError
    index_messages(db, owner, placed, agent=agent, session=key)
    if not all(message.unfinished for message in messages):  # such are queued when they end
        for start in range(0, len(places), MOST_IN_JOB):
            some = places[start : start + MOST_IN_JOB]
            enqueue(db, owner, "embed", some[0], some[-1], now, session=key)
    return places
