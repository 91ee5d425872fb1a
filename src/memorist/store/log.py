"""The log in a transaction: sessions and their messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from memorist.errors import ConflictError, InvalidError, NotFoundError, ScopeError
from memorist.records.message import Appended, LogEntry, Message, Session, Source, source_of
from memorist.records.scope import Scope
from memorist.records.values import PASSAGES_PER_MESSAGE, check_each, from_micros, new_id, to_micros
from memorist.store.engine import Db
from memorist.store.indexing import index_messages
from memorist.store.jobs import enqueue
from memorist.store.rows import END, Row, dated_page

MOST_IN_JOB = 100  # messages


def add_owner(db: Db, scope: Scope) -> None:
    """Note that this user exists, unless that is known."""
    db.run("add_owner", owner=scope.owner, tenant=scope.tenant, user_id=scope.user, now=db.now)


def ensure_session(
    db: Db, scope: Scope, *, is_own_id: bool = False, adopt: bool = False
) -> tuple[Any, str, int]:
    """Lock the session that `scope` names, creating it if need be: key, agent, created_at.

    Rows that LangChain writes under the session's id are part of it if the id is our own, made
    this moment, or if the caller may `adopt` them. Any other caller may have read the id somewhere.
    """
    assert scope.session is not None  # callers resolve it first
    columns = scope.columns()
    if adopt and not db.rows("adopt_session", **columns)[0][0]:
        raise ConflictError("only a session whose id is a UUID that no other user has is adopted")
    row = db.row("lock_session", **columns)
    if row is None:
        add_owner(db, scope)
        named = {**columns, "agent": scope.agent or "", "adopt": is_own_id or adopt}
        db.rows("create_session", **named, now=db.now)
        row = db.row("lock_session", **columns)
        assert row is not None  # just made, and only `forget` removes it
    key, agent, created_at, *_ = row
    if scope.agent is not None and scope.agent != agent:
        raise ScopeError("this session belongs to another agent of the same user")
    return key, agent, created_at


def open_session(
    db: Db, scope: Scope, *, claimed: str | None = None, new: bool = False, adopt: bool = False
) -> Session:
    """The named session, else the claimed one if it is this user's, the active one, a new one.

    `new` says that the name was made this moment; `adopt`: see `ensure_session`.
    """
    chosen = scope.session
    if chosen is None:
        chosen = _if_theirs(db, scope, claimed)
    if chosen is None:
        chosen = _active(db, scope)
    if chosen is None:
        new, chosen = True, new_id()
    home = scope.within(session=chosen)
    _, agent, created_at = ensure_session(db, home, is_own_id=new, adopt=adopt)
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
    rows = db.rows("sessions_in_scope", **scope.columns(), **dated_page(limit, after))
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
    row = None if wanted is None else db.row("find_session", **wanted.columns())
    if row is None:
        return None
    _, agent, _ = row
    return claimed if agent == (scope.agent or "") else None


def _active(db: Db, scope: Scope) -> str | None:
    row = db.row("active_session", owner=scope.owner, agent=scope.agent or "")
    return None if row is None else str(row[0])


class RepeatError(Exception):
    """Some of the messages are stored already: append those that are not, with `unseen`."""


def append(
    db: Db,
    scope: Scope,
    messages: Sequence[Message],
    source: Source | None = None,
    *,
    unseen: bool = False,
) -> Appended:
    """Store messages that are all new, with their index entries and their jobs.

    With `unseen`, only those that are new; one whose id is known must have the content it had.
    """
    if scope.session is None:
        active = _active(db, scope)
        scope = open_session(db, scope).scope if active is None else scope.within(session=active)
    key, agent, _ = ensure_session(db, scope)
    seqs, fresh = {}, messages
    if unseen:
        stored = find(db, scope, [message.message_id for message in messages])
        seqs = {entry.message.message_id: entry.seq for entry in stored}
        fresh = _unseen(db, scope, messages, stored)
    added = _store(db, scope, key, agent, fresh, source)
    if not unseen:
        return Appended(session_id=scope.session or "", seqs=tuple(added), added=len(added))
    seqs.update(zip((message.message_id for message in fresh), added, strict=True))
    return Appended(
        session_id=scope.session or "",
        seqs=tuple(seqs[message.message_id] for message in messages),
        added=len(fresh),
    )


def history(
    db: Db,
    scope: Scope,
    *,
    last: int | None = None,
    before: int | None = None,
    after: int | None = None,
    role: str | None = None,
) -> list[LogEntry]:
    """The `last` messages in the scope, oldest first; `before` and `after` are exclusive seqs."""
    if last is not None and (not isinstance(last, int) or last < 0):
        raise InvalidError("last must be a number, and not negative")
    check_each("role", role)
    bounds = {
        "last": END if last is None else min(last, END),  # no log is longer
        "before": END if before is None else min(before, END),
        "after": -1 if after is None else min(after, END),
    }
    if scope.session is not None and role is None:
        rows = db.rows("session_history", **scope.columns(), **bounds)
        return _entries(db, reversed(rows), scope.session)
    rows = db.rows("history", **scope.columns(), role=role, **bounds)
    return _entries(db, reversed(rows))


def following(db: Db, scope: Scope, *, after: int, limit: int) -> list[LogEntry]:
    """The messages of a session after a seq, oldest first."""
    rows = db.rows("following", **scope.columns(), after=after, limit=limit)
    return _entries(db, rows, scope.session or "")


def find(db: Db, scope: Scope, message_ids: Sequence[str]) -> list[LogEntry]:
    """The messages with these ids in the scope, in log order."""
    check_each("message_id", *message_ids)
    return _entries(db, db.rows("messages_by_id", **scope.columns(), ids=list(message_ids)))


def revise(db: Db, scope: Scope, message: Message) -> None:
    """Replace the message with this id; what it said before stays among its revisions."""
    entry = _only(db, scope, message.message_id)
    key, agent, _ = ensure_session(db, scope.within(session=entry.session_id))
    db.run("keep_revision", owner=scope.owner, seq=entry.seq, now=db.now)
    db.run("delete_summaries_of_messages", owner=scope.owner, seqs=[entry.seq])
    _rewrite(db, scope, entry.seq, message, agent=agent, session=key)
    db.run("void_leases", owner=scope.owner, seqs=[entry.seq], now=db.now)
    enqueue(db, scope.owner, "embed", entry.seq, entry.seq, session=key)


def append_text(db: Db, scope: Scope, message: Message) -> None:
    """Replace an unfinished message by a longer version of it.

    Its text must begin with what is stored, so that a writer that is behind removes nothing.
    """
    scope = scope.within(session=_only(db, scope, message.message_id).session_id)
    key, agent, _ = ensure_session(db, scope)
    entry = _only(db, scope, message.message_id)  # read again, now that its session is locked
    if entry.message == message:
        return
    stored, before = entry.message, entry.message.content or ""
    if not stored.unfinished:
        raise ConflictError("the message is finished; use revise to change it")
    if stored.role != message.role:
        raise ConflictError("text cannot be appended under another role")
    if not isinstance(before, str) or not isinstance(message.content, str):
        raise ConflictError("only text can be appended to; use revise to change other content")
    if not message.content.startswith(before):
        raise ConflictError("the text does not begin with what is stored of it")
    db.run("delete_summaries_of_messages", owner=scope.owner, seqs=[entry.seq])
    # No lease is voided: a worker that lost its job at every flush would never finish.
    _rewrite(db, scope, entry.seq, message, agent=agent, session=key)
    if not message.unfinished:
        enqueue(db, scope.owner, "embed", entry.seq, entry.seq, session=key)


def revisions(db: Db, scope: Scope, message_id: str) -> list[Message]:
    """The earlier versions of a message, oldest first."""
    check_each("message_id", message_id)
    if not find(db, scope, [message_id]):
        raise NotFoundError("no message with this id in this scope")
    rows = db.rows("revisions", **scope.columns(), message_id=message_id)
    return [db.unpack(row) for row in rows]


def _only(db: Db, scope: Scope, message_id: str) -> LogEntry:
    """The one message with this id in the scope."""
    entries = find(db, scope, [message_id])
    if not entries:
        raise NotFoundError("no message with this id in this scope")
    if len(entries) > 1:
        raise ConflictError("several sessions have a message with this id; name the session")
    return entries[0]


def _rewrite(db: Db, scope: Scope, seq: int, message: Message, *, agent: str, session: Any) -> None:
    """Overwrite a message and its index entries."""
    at = {"owner": scope.owner, "seq": seq}
    created_at = to_micros(message.created_at)
    db.run("rewrite_message", **at, role=message.role, created_at=created_at, **db.pack(message))
    [(last,)] = db.rows("last_piece", **at)
    db.run("delete_message_passages", **at)
    placed, first = [(seq, message, created_at)], next_piece(last)
    index_messages(db, scope.owner, placed, agent=agent, session=session, first_piece=first)


def next_piece(last: int | None) -> int:
    """The number of a rewritten message's first passage, given the id of its last one so far.

    New words get new ids, so that a vector that is still being made of the old words matches
    none. The numbers start again at 0 before they could reach the ids of the next message.
    """
    first = 0 if last is None else last % PASSAGES_PER_MESSAGE + 1
    return 0 if first > PASSAGES_PER_MESSAGE // 2 else first


def _entries(db: Db, rows: Iterable[Row], session_id: str | None = None) -> list[LogEntry]:
    """Rows of `seq, source, …`, which end with the session's id unless it is given."""
    return [
        LogEntry(row[0], row[-1] if session_id is None else session_id, row[1], db.unpack(row))
        for row in rows
    ]


def _unseen(
    db: Db, scope: Scope, messages: Sequence[Message], stored: Sequence[LogEntry]
) -> list[Message]:
    """The messages that are not stored; a stored one must be like one of its versions."""
    ids = {entry.message.message_id: entry.message for entry in stored}
    seen = {id_: [message, *revisions(db, scope, id_)] for id_, message in ids.items()}
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
    db: Db, scope: Scope, key: Any, agent: str, messages: Sequence[Message], source: Source | None
) -> Sequence[int]:
    """Write messages, passages and jobs; raise RepeatError if a message is stored already."""
    if not messages:
        return ()
    seqs = db.next_seqs(len(messages))
    owner, rows, placed = scope.owner, [], []
    for seq, message in zip(seqs, messages, strict=True):
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
    if not all(message.unfinished for message in messages):  # those are queued when they end
        for start in range(0, len(seqs), MOST_IN_JOB):
            batch = seqs[start : start + MOST_IN_JOB]
            enqueue(db, owner, "embed", batch[0], batch[-1], session=key)
    return seqs
