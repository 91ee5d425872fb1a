"""Memories and facts in a transaction, and the changes made to them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memorist.errors import ConflictError, NotFoundError, RecordError
from memorist.records.change import (
    Add,
    Change,
    Expire,
    Promote,
    Reinforce,
    Restore,
    Retract,
    Supersede,
)
from memorist.records.fact import Fact
from memorist.records.ids import from_micros, to_micros
from memorist.records.log import Job
from memorist.records.memory_item import MemoryItem
from memorist.records.scope import Scope
from memorist.records.text import dump_json
from memorist.store.engine import Db, Row, one
from memorist.store.indexing import index_view, link_fact
from memorist.store.queue import finish


def apply(
    db: Db,
    scope: Scope,
    changes: Sequence[Change],
    done: Sequence[Job],
    base_version: int | None,
    now: int,
) -> None:
    """Make all the changes, or none; with the jobs that asked for them, exactly once."""
    for job in done:
        finish(db, job)
    if not changes:
        return
    db.run("add_owner", owner=scope.owner, tenant=scope.tenant, user_id=scope.user, now=now)
    if not db.run("count_change", owner=scope.owner, base=base_version):
        raise ConflictError("what this user's memories were has changed meanwhile; look again")
    for change in changes:
        _apply_one(db, scope, change, now)


def version(db: Db, scope: Scope) -> int:
    """How often this user's views have changed."""
    row = one(db.rows("views_version", owner=scope.owner))
    return int(row[0]) if row else 0


def items(db: Db, scope: Scope, current: bool, now: int) -> list[MemoryItem]:
    """The memories in the scope, oldest first; with `current`, those neither ended nor expired."""
    return _items(db, scope, db.rows("items", **_named(scope), current=int(current), now=now))


def derived(db: Db, scope: Scope, message_ids: list[str]) -> list[str]:
    """The ids of the memories that came of some messages, ended or not."""
    rows = db.rows("memories_from_messages", owner=scope.owner, ids=message_ids)
    return [id_ for (id_,) in rows]


def superseded_by(db: Db, scope: Scope, id_: str) -> list[MemoryItem | Fact]:
    """The records whose place this one took."""
    rows = db.rows("superseded_by_views", owner=scope.owner, ids=[id_])
    return records(db, scope, [old for (old,) in rows])


def records(db: Db, scope: Scope, ids: Sequence[str]) -> list[MemoryItem | Fact]:
    """The memories and facts with these ids, ended or not."""
    named = {"owner": scope.owner, "ids": list(ids)}
    found: list[MemoryItem | Fact] = []
    found += _items(db, scope, db.rows("items_by_id", **named))
    found += _facts(db, scope, db.rows("facts_by_id", **named))
    return found


def facts(
    db: Db, scope: Scope, topic: str | None, valid_at: datetime | None, known_at: datetime | None
) -> list[Fact]:
    """The facts in the scope that held at the moments asked for, in the order they were learnt."""
    found = _facts(db, scope, db.rows("facts", **_named(scope), topic=topic))
    return [fact for fact in found if fact.holds(valid_at, known_at)]


def touch(db: Db, scope: Scope, ids: Sequence[str], now: int) -> None:
    """Count a use of memories."""
    db.run("touch_items", owner=scope.owner, ids=list(ids), now=now)


def _apply_one(db: Db, scope: Scope, change: Change, now: int) -> None:
    owner = scope.owner
    match change:
        case Add(record):
            _add(db, scope, record, now)
        case Reinforce(id=id_, sources=sources, importance=importance, at=at):
            kind = _kind_of(db, owner, id_)
            values = {"owner": owner, "id": id_, "importance": importance}
            if kind == "memory":
                db.run("reinforce_item", **values, at=to_micros(at))
            else:
                db.run("reinforce_fact", **values)
            _cite(db, owner, id_, sources)
        case Supersede(old_id=old_id, record=record):
            _add(db, scope, record, now)
            _end(db, owner, old_id, change, now, record)
        case Promote(id=id_):
            if not db.run("promote_item", owner=owner, id=id_):
                raise NotFoundError("no such memory in this scope")
        case Expire(id=id_) | Retract(id=id_):
            _end(db, owner, id_, change, now)
        case Restore(id=id_, reason=reason):
            restore(db, scope, id_, reason, now)


def _add(db: Db, scope: Scope, record: MemoryItem | Fact, now: int) -> None:
    if record.scope.owner != scope.owner:
        raise RecordError("a change may only add records of its own user")
    shared = {
        "owner": scope.owner,
        "id": record.id,
        "agent": record.scope.agent or "",
        "session_id": record.scope.session,
        "source": record.source,
        "superseded_by": record.superseded_by,
        "reason": record.reason,
    }
    if isinstance(record, Fact):
        kind, created_at = "fact", to_micros(record.known_from)
        added = db.run(
            "add_fact",
            **shared,
            topic=record.topic,
            subject=record.subject,
            predicate=record.predicate,
            object=record.object,
            confidence=record.confidence,
            valid_from=_micros(record.valid_from),
            valid_to=_micros(record.valid_to),
            known_from=created_at,
            known_to=_micros(record.known_to),
            ended_at=_micros(record.ended_at),
            said_at=_micros(record.said_at),
            memory=record.memory,
        )
    else:
        kind, created_at = "memory", to_micros(record.created_at)
        added = db.run(
            "add_item",
            **shared,
            text=record.text,
            kind=record.kind,
            category=record.category,
            importance=record.importance,
            tags=dump_json(list(record.tags)),
            tier=record.tier,
            created_at=created_at,
            uses=record.uses,
            used_at=_micros(record.used_at),
            expires_at=_micros(record.expires_at),
            ended_at=_micros(record.ended_at),
        )
    if added:
        _cite(db, scope.owner, record.id, record.sources)
        _index(db, record, kind, created_at, now)


def _index(db: Db, record: MemoryItem | Fact, kind: str, created_at: int, now: int) -> None:
    """Make a record findable, if it holds: search is for what does."""
    if _is_over(record):
        return
    index_view(db, record.scope, kind, record.id, record.text, created_at, now)
    if isinstance(record, Fact):
        link_fact(db, record.scope.owner, record.id, (record.subject, record.object))


def restore(db: Db, scope: Scope, id_: str, reason: str, now: int) -> None:
    """Let what ended hold again, and the memory that states it."""
    kind = _kind_of(db, scope.owner, id_)
    query = "restore_item" if kind == "memory" else "restore_fact"
    db.run(query, owner=scope.owner, id=id_, reason=reason)
    db.run("delete_view_passages", owner=scope.owner, ids=[id_])
    [record] = records(db, scope, [id_])
    at = record.known_from if isinstance(record, Fact) else record.created_at
    _index(db, record, kind, to_micros(at), now)
    if isinstance(record, Fact):
        _mark(db, scope.owner, id_, outdated=False)
    if isinstance(record, Fact) and record.memory and records(db, scope, [record.memory]):
        restore(db, scope, record.memory, reason, now)


def _is_over(record: MemoryItem | Fact) -> bool:
    if isinstance(record, Fact):
        return record.known_to is not None or record.valid_to is not None
    return record.ended_at is not None


def _end(
    db: Db,
    owner: str,
    id_: str,
    change: Supersede | Expire | Retract,
    now: int,
    successor: MemoryItem | Fact | None = None,
) -> None:
    """End a record, and the memory that states it where it is a fact."""
    by = change.by if isinstance(change, Retract) else None
    values = {
        "owner": owner,
        "id": id_,
        "at": to_micros(change.at),
        "reason": change.reason,
        "superseded_by": by if successor is None else successor.id,
    }
    ended = [id_]
    if _kind_of(db, owner, id_) == "memory":
        db.run("end_item", **values)
    else:
        if isinstance(change, Retract):
            db.run("end_fact_belief", **values)
        else:
            db.run("end_fact_validity", **values, now=now)
        _mark(db, owner, id_, outdated=True)
        [(memory,)] = db.rows("memory_of_fact", owner=owner, id=id_)
        if memory is not None:  # what states it says something that holds no longer
            heir = successor.memory if isinstance(successor, Fact) else None
            db.run("end_item", **{**values, "id": memory, "superseded_by": heir})
            ended.append(memory)
    for query in ("delete_view_passages", "delete_entities"):  # search is for what holds
        db.run(query, owner=owner, ids=ended)


def _mark(db: Db, owner: str, fact: str, *, outdated: bool) -> None:
    """Let search know whether what a fact's messages say still holds."""
    for seq, _ in db.rows("messages_cited_by", owner=owner, ids=[fact]):
        db.run("mark_outdated", owner=owner, seq=seq, outdated=int(outdated))


def _kind_of(db: Db, owner: str, id_: str) -> str:
    found = one(db.rows("view_exists", owner=owner, id=id_))
    if found is None:
        raise NotFoundError("no such memory or fact in this scope")
    return str(found[0])


def _cite(db: Db, owner: str, view: str, sources: Sequence[str]) -> None:
    db.many("add_source", [{"owner": owner, "view": view, "message_id": id_} for id_ in sources])


def _named(scope: Scope) -> dict[str, Any]:
    return {"owner": scope.owner, "agent": scope.agent, "session_id": scope.session}


def _sources(db: Db, scope: Scope, views: list[str]) -> dict[str, list[str]]:
    cited: dict[str, list[str]] = defaultdict(list)
    if views:
        for view, message_id in db.rows("sources_of", owner=scope.owner, ids=views):
            cited[view].append(message_id)
    return cited


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def _home(scope: Scope, agent: str, session_id: str | None) -> Scope:
    return Scope(user=scope.user, tenant=scope.tenant, agent=agent or None, session=session_id)


def _items(db: Db, scope: Scope, rows: list[Row]) -> list[MemoryItem]:
    sources = _sources(db, scope, [row[0] for row in rows])
    return [_item(scope, row, sources[row[0]]) for row in rows]


def _facts(db: Db, scope: Scope, rows: list[Row]) -> list[Fact]:
    sources = _sources(db, scope, [row[0] for row in rows])
    return [_fact(scope, row, sources[row[0]]) for row in rows]


def _item(scope: Scope, row: Row, sources: list[str]) -> MemoryItem:
    return MemoryItem(
        id=row[0],
        scope=_home(scope, row[1], row[2]),
        text=row[3],
        kind=row[4],
        category=row[5],
        importance=row[6],
        tags=tuple(json.loads(row[7])),
        tier=row[8],
        source=row[9],
        created_at=from_micros(row[10]),
        uses=row[11],
        used_at=_moment(row[12]),
        expires_at=_moment(row[13]),
        ended_at=_moment(row[14]),
        superseded_by=row[15],
        reason=row[16],
        sources=tuple(sources),
    )


def _fact(scope: Scope, row: Row, sources: list[str]) -> Fact:
    return Fact(
        id=row[0],
        scope=_home(scope, row[1], row[2]),
        subject=row[3],
        predicate=row[4],
        object=row[5],
        valid_from=_moment(row[6]),
        valid_to=_moment(row[7]),
        known_from=from_micros(row[8]),
        known_to=_moment(row[9]),
        confidence=row[10],
        source=row[11],
        superseded_by=row[12],
        reason=row[13],
        ended_at=_moment(row[14]),
        said_at=_moment(row[15]),
        memory=row[16],
        sources=tuple(sources),
    )
