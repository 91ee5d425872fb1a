"""Forgetting in a transaction: the words, their index entries, and all derived from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memorist.errors import NotFoundError
from memorist.records.fact import Fact
from memorist.records.ids import to_micros
from memorist.records.memory_item import MemoryItem
from memorist.records.scope import Scope
from memorist.store.engine import Db
from memorist.store.queue import enqueue
from memorist.store.sessions import narrowed
from memorist.store.views import records, restore


class What(NamedTuple):
    """One message, one memory, fact, article or entry, or all from one source."""

    message_id: str | None = None
    record_id: str | None = None
    source: str | None = None


def forget(db: Db, scope: Scope, what: What, now: int) -> Counter[str]:
    """Remove what is named, or else everything in the scope; count what went."""
    if what.message_id is not None:
        return _forget_message(db, scope, what.message_id, now)
    if what.record_id is not None:
        return _forget_record(db, scope, what.record_id, now)
    if what.source is not None:
        return _forget_source(db, scope, what.source, now)
    gone: Counter[str] = Counter()
    sessions = db.rows("sessions_in_scope", **narrowed(scope))
    keys = [row[0] for row in sessions]
    ids = [row[1] for row in sessions]
    messages = db.rows("messages_in_sessions", owner=scope.owner, sessions=keys) if keys else []
    gone += _forget_messages(db, scope, messages, now, also=_views_in(db, scope, ids))
    if keys:
        gone["jobs"] += db.run("delete_session_jobs", owner=scope.owner, sessions=keys)
        db.run("delete_active_sessions", owner=scope.owner, ids=ids)
        gone["sessions"] += db.run("delete_sessions", owner=scope.owner, sessions=keys)
    if scope.agent is None and scope.session is None:
        gone["jobs"] += db.run("delete_owner_jobs", owner=scope.owner)
        for query in ("delete_embedders", "delete_speakers"):
            db.run(query, owner=scope.owner)
        gone["users"] += db.run("delete_owner", owner=scope.owner)
    return +gone


def _forget_message(db: Db, scope: Scope, message_id: str, now: int) -> Counter[str]:
    found = db.rows("messages_by_id", **narrowed(scope), ids=[message_id])
    if not found:
        raise NotFoundError("no message with this id in this scope")
    return _forget_some(db, scope, [(row[0], message_id) for row in found], now)


def _forget_record(db: Db, scope: Scope, record_id: str, now: int) -> Counter[str]:
    """A memory with its facts, a fact, an article or an entry; the messages they came of stay."""
    named = {"owner": scope.owner, "id": record_id}
    if not db.rows("is_put", **named) and not db.rows("view_exists", **named):
        raise NotFoundError("no memory, fact, article or entry with this id for this user")
    stated = db.rows("facts_of_memory", owner=scope.owner, id=record_id)
    return +_forget_derived(db, scope, [record_id, *(id_ for (id_,) in stated)], now)


def _forget_source(db: Db, scope: Scope, source: str, now: int) -> Counter[str]:
    messages = db.rows("messages_of_source", **narrowed(scope), source=source)
    named = {"owner": scope.owner, "agent": scope.agent, "session_id": scope.session}
    views = [view for (view,) in db.rows("views_of_source", **named, source=source)]
    return _forget_some(db, scope, messages, now, also=views)


def _forget_some(
    db: Db, scope: Scope, messages: Sequence[tuple[Any, ...]], now: int, also: Sequence[str] = ()
) -> Counter[str]:
    named = {"owner": scope.owner, "seqs": [seq for seq, _ in messages]}
    # A worker that has read it already must not bring it back: it has to read again.
    db.run("void_leases", **named, now=now)
    gone = _forget_messages(db, scope, messages, now, also=also)
    gone["jobs"] += db.run("delete_message_jobs", **named)
    return +gone


def _forget_messages(
    db: Db, scope: Scope, messages: Sequence[tuple[Any, ...]], now: int, also: Sequence[str] = ()
) -> Counter[str]:
    """Remove messages and all derived from them; what other messages said is thought anew."""
    owner, seqs = scope.owner, [seq for seq, _ in messages]
    cited = db.rows("views_from_messages", owner=owner, ids=[id_ for _, id_ in messages])
    views = list(dict.fromkeys([*(view for (view,) in cited), *also]))
    others = db.rows("messages_cited_by", owner=owner, ids=views) if views else []
    gone = _forget_derived(db, scope, views, now)
    if seqs:
        passages, vectors = db.rows("count_passages_of_messages", owner=owner, seqs=seqs)[0]
        gone["summaries"] += db.run("delete_summaries_of_messages", owner=owner, seqs=seqs)
        gone["revisions"] += db.run("delete_revisions", owner=owner, seqs=seqs)
        gone["messages"] += db.run("delete_messages", owner=owner, seqs=seqs)
        db.run("delete_silent_speakers", owner=owner)
        gone += Counter(passages=passages, vectors=vectors)
    forgotten = set(seqs)
    for seq, session in others:
        if seq not in forgotten:
            enqueue(db, owner, "derive", seq, seq, now, session=session)
    return gone


def _forget_derived(db: Db, scope: Scope, views: list[str], now: int) -> Counter[str]:
    """Remove derived records; what they had replaced holds again."""
    if not views:
        return Counter()
    going = {record.id: record for record in records(db, scope, views)}
    replaced = db.rows("superseded_by_views", owner=scope.owner, ids=views)
    gone = _forget_views(db, scope.owner, views)
    for old in records(db, scope, [view for (view,) in replaced]):
        _give_back(db, scope, old, going, now)
    return gone


def _give_back(
    db: Db, scope: Scope, old: MemoryItem | Fact, gone: Mapping[str, MemoryItem | Fact], now: int
) -> None:
    """What a forgotten record replaced holds again, or until that was replaced itself."""
    end = old.valid_to if isinstance(old, Fact) else old.ended_at
    heir, left = old.superseded_by, dict(gone)
    while heir is not None and heir in left:
        between = left.pop(heir)
        if isinstance(between, MemoryItem):
            end = between.ended_at
        elif between.known_to is None:  # else it never held, and what is right began as it did
            end = between.valid_to
        heir = between.superseded_by
    if heir is None or end is None:
        restore(db, scope, old.id, "what took its place was forgotten", now)
    else:
        query = "bridge_fact" if isinstance(old, Fact) else "bridge_item"
        db.run(query, owner=scope.owner, id=old.id, heir=heir, at=to_micros(end))


def _forget_views(db: Db, owner: str, views: list[str]) -> Counter[str]:
    named = {"owner": owner, "ids": views}
    passages, vectors = db.rows("count_passages_of_views", **named)[0]
    agents = [agent for (agent,) in db.rows("note_agents", **named)]
    db.run("delete_view_passages", **named)
    db.run("delete_view_sources", **named)
    db.run("delete_entities", **named)
    if agents:
        db.run("delete_note_versions", owner=owner, agents=agents)
    return Counter(
        memories=db.run("delete_items", **named),
        facts=db.run("delete_facts", **named),
        notes=db.run("delete_notes", **named),
        articles=db.run("delete_articles", **named),
        entries=db.run("delete_entries", **named),
        passages=passages,
        vectors=vectors,
    )


def _views_in(db: Db, scope: Scope, session_ids: list[str]) -> list[str]:
    """Derived records that belong to the scope itself, whichever messages they cite."""
    if scope.session is not None:
        found = [
            row
            for session_id in session_ids
            for row in db.rows("views_of_session", owner=scope.owner, session_id=session_id)
        ]
    elif scope.agent is not None:
        found = db.rows("views_of_agent", owner=scope.owner, agent=scope.agent)
    else:
        found = db.rows("all_views", owner=scope.owner)
    return [view for (view,) in found]
