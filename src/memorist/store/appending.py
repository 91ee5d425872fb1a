"""Appending in a transaction: messages, each stored once, with their index entries and jobs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from memorist.errors import ConflictError, naming_item
from memorist.records.json_values import dump_json
from memorist.records.log import Appended, Batch, Source, source_of
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store.engine import Db
from memorist.store.indexing import PlacedMessage, PreparedMessage, index_messages
from memorist.store.jobs import enqueue
from memorist.store.log import (
    SessionRow,
    active_id,
    create_session,
    ensure_session,
    find,
    open_session,
    revisions,
)
from memorist.store.rows import Row

MOST_IN_JOB = 100  # messages
Addition = tuple[Scope, SessionRow, Sequence[PreparedMessage]]
"""New messages of a session."""


class RepeatError(Exception):
    """Some of the messages are in this session already: append those that are not."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id


def append(
    db: Db, scope: Scope, messages: Sequence[PreparedMessage], source: Source | None = None
) -> Appended:
    """Store messages that are all new, with their index entries and their jobs."""
    scope = _in_session(db, scope)
    seqs = _store(db, [(scope, ensure_session(db, scope), messages)], source)
    return Appended(session_id=scope.session or "", seqs=tuple(seqs), added=len(seqs))


def _in_session(db: Db, scope: Scope) -> Scope:
    """The scope with its session: the one it names, the active one, or a new one."""
    if scope.session is not None:
        return scope
    active = active_id(db, scope)
    return open_session(db, scope).scope if active is None else scope.within(session=active)


def append_at_once(
    db: Db, scope: Scope, messages: Sequence[PreparedMessage], source: Source | None = None
) -> Callable[[], list[Row]]:
    """Store messages that are all new by one statement, in a session that exists.

    What it returns has their seqs after the commit: none if there is no such session.
    """
    db.repeat = RepeatError(scope.session or "")
    said = [
        {**it.traits, **it.content, "id": it.id, "source": source_of(it.message, source)}
        for it in messages
    ]
    pieces: list[dict[str, Any]] = [
        {"of": of, "piece": number, "start_at": it.start, "stop_at": it.stop, "words": it.words}
        for of, one in enumerate(messages, 1)
        for number, it in enumerate(one.pieces)
    ]
    shared = {
        **scope.columns(),
        "queued": not all(it.message.unfinished for it in messages),  # else queued when they end
        "kind": _kind(messages, source),
        "last_at": messages[-1].traits["created_at"],
    }
    if len(said) == len(pieces) == 1:
        return db.later("append_short_message", **shared, **said[0], **pieces[0])
    words = [it.pop("words") for it in pieces]
    ends = list(accumulate(map(len, words), initial=0))
    for it, before, until in zip(pieces, ends, ends[1:], strict=False):
        it.update(before=before, until=until)
    lists = {"said": dump_json(said), "pieces": dump_json(pieces), "words": words}
    return db.later("append_messages", **shared, **lists, most_in_job=MOST_IN_JOB)


def append_each(
    db: Db,
    _: Scope,
    batches: Sequence[tuple[Batch, Sequence[PreparedMessage]]],
    source: Source | None = None,
    *,
    at_once: bool = False,
) -> list[str]:
    """Store messages of several users and sessions, all of them new; return their sessions."""
    scopes = [batch.scope for batch, _ in batches]
    # Locked in one order, so that no two writers wait for each other; stored in the order given.
    names = [(it.owner, it.session or "") for it in scopes]
    in_order = sorted(range(len(names)), key=names.__getitem__)
    named = [place for place in in_order if scopes[place].session]
    locks = dict[int, Callable[[], list[Row]]]()
    for place in named:  # first all of them, and then all that are new: a round trip each
        db.act_for(scopes[place].owner)
        locks[place] = db.later("lock_session", **scopes[place].columns())
    for place in [place for place in named if not locks[place]()]:
        db.act_for(scopes[place].owner)
        locks[place] = create_session(db, scopes[place])
    homes = dict[int, tuple[Scope, SessionRow]]()
    for place in in_order:
        scope, locked = scopes[place], None
        with naming_item(place, len(batches)):
            if place in locks:
                locked = locks[place]()
            else:
                db.act_for(scope.owner)
                scope = _in_session(db, scope)
            homes[place] = scope, ensure_session(db, scope, locked=locked)
    if not at_once:
        new = [(*homes[place], messages) for place, (_, messages) in enumerate(batches)]
        _store(db, new, source)
    for place, (batch, messages) in enumerate(batches):
        db.act_for(batch.scope.owner)
        if messages and at_once:
            append_at_once(db, homes[place][0], messages, source)
        if messages and batch.title is not None:
            db.later("title_session", **homes[place][0].columns(), title=batch.title)
    return [homes[place][0].session or "" for place in range(len(batches))]


def unseen(
    db: Db, scope: Scope, messages: Sequence[PreparedMessage]
) -> tuple[dict[str, int], list[PreparedMessage]]:
    """The seqs of the messages that are stored, by id, and the messages that are not.

    A stored one must have the content it has now, or had in one of its revisions.
    """
    seqs, fresh = dict[str, int](), dict[str, PreparedMessage]()
    for prepared in messages:  # one by one: the stored ones may be long
        message = prepared.message
        id_ = message.message_id
        entry = None if id_ in fresh else next(iter(find(db, scope, [id_])), None)
        stored = fresh[id_].message if entry is None and id_ in fresh else entry and entry.message
        if stored is None:
            fresh[id_] = prepared
        elif not _is_same(stored, message) and not _was_once(db, scope, message):
            raise ConflictError(
                "a message with this id is stored with other content; use revise to change it"
            )
        if entry is not None:
            seqs[id_] = entry.seq
    return seqs, list(fresh.values())


def _is_same(stored: Message, message: Message) -> bool:
    """Whether a message says the same as a stored one, whenever it was said."""
    return replace(stored, created_at=message.created_at) == message


def _was_once(db: Db, scope: Scope, message: Message) -> bool:
    """Whether a stored message said the same in one of its revisions."""
    number = 0
    page = {"limit": 16, "max_bytes": 1_048_576}
    while old := revisions(db, scope, message.message_id, after=number, **page):
        if any(_is_same(version, message) for version in old):
            return True
        number += len(old)
    return False


def write_messages(
    db: Db, messages: Sequence[PlacedMessage], sources: Sequence[str], session_id: str = ""
) -> None:
    """Write messages, each with its source; RepeatError where one is stored already.

    Their sessions note when they were active.
    """
    rows = [
        {
            "seq": seq,
            "owner": owner,
            "session": session,
            "message_id": prepared.id,
            "role": prepared.message.role,
            "source": source,
            "created_at": prepared.traits["created_at"],
            **prepared.content,
        }
        for (seq, owner, _, session, prepared), source in zip(messages, sources, strict=True)
    ]
    db.repeat = RepeatError(session_id)
    if db.many("append_message", rows) < len(rows):
        raise db.repeat
    last = {(it.owner, it.session): it.prepared.traits["created_at"] for it in messages}
    for (owner, session), at in last.items():
        db.later("note_activity", owner=owner, session=session, at=at)


def _store(db: Db, additions: Sequence[Addition], source: Source | None) -> Sequence[int]:
    """Write messages, passages and jobs; raise RepeatError if a message is stored already."""
    new = [(scope.owner, home, it) for scope, home, messages in additions for it in messages]
    if not new:
        return ()
    seqs = db.next_seqs(len(new))
    placed = [
        PlacedMessage(seq, owner, home.agent, home.key, it)
        for seq, (owner, home, it) in zip(seqs, new, strict=True)
    ]
    sources = [source_of(it.prepared.message, source) for it in placed]
    write_messages(db, placed, sources, additions[0][0].session or "")
    index_messages(db, placed)
    start = 0
    for scope, home, messages in additions:
        own, start = seqs[start : start + len(messages)], start + len(messages)
        if all(it.message.unfinished for it in messages):  # queued when they end
            continue
        db.act_for(scope.owner)
        for first in range(0, len(own), MOST_IN_JOB):
            lot, kind = own[first : first + MOST_IN_JOB], _kind(messages, source)
            enqueue(db, kind, lot[0], lot[-1], session=home.key)
    return seqs


def _kind(messages: Sequence[PreparedMessage], source: Source | None) -> str:
    """The kind of the jobs of messages: what is imported, or as much, waits for what is new."""
    return "embed later" if source == "import" or len(messages) > MOST_IN_JOB else "embed"
