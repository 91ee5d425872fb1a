"""The views in a transaction: memories, facts, notes, and the changes made to them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from recollect.errors import ConflictError, NotFoundError, RecordError
from recollect.records.change import Add, Change, Expire, Promote, Reinforce, Retract, Supersede
from recollect.records.fact import Fact
from recollect.records.ids import from_micros, new_id, to_micros
from recollect.records.log import Job
from recollect.records.memory_item import MemoryItem
from recollect.records.note import Note
from recollect.records.scope import Scope
from recollect.records.text import check_text, dump_json
from recollect.store.engine import Db, Row, one
from recollect.store.indexing import index_view, link_fact
from recollect.store.queue import finish


def apply(db: Db, scope: Scope, changes: Sequence[Change], done: Job | None, now: int) -> None:
    """Make all the changes, or none; with the job that asked for them, exactly once."""
    if done is not None:
        finish(db, done)
    db.run("add_owner", owner=scope.owner, tenant=scope.tenant, user_id=scope.user, now=now)
    for change in changes:
        _apply_one(db, scope, change, now)


def items(db: Db, scope: Scope, current: bool, now: int) -> list[MemoryItem]:
    """The memories in the scope, oldest first; with `current`, those neither ended nor expired."""
    rows = db.rows("items", **_named(scope), current=int(current), now=now)
    sources = _sources(db, scope, [row[0] for row in rows])
    return [_item(scope, row, sources[row[0]]) for row in rows]


def facts(
    db: Db, scope: Scope, topic: str | None, valid_at: datetime | None, known_at: datetime | None
) -> list[Fact]:
    """The facts in the scope that held at the moments asked for, in the order they were learnt."""
    rows = db.rows("facts", **_named(scope), topic=topic)
    sources = _sources(db, scope, [row[0] for row in rows])
    found = [_fact(scope, row, sources[row[0]]) for row in rows]
    return [fact for fact in found if fact.holds(valid_at, known_at)]


def note(db: Db, scope: Scope, version: int | None) -> Note | None:
    """The note of this user and agent, as it is or as it was."""
    place = {"owner": scope.owner, "agent": scope.agent or ""}
    if version is None:
        row = one(db.rows("note", **place))
    else:
        row = one(db.rows("note_versions", **place, version=version))
    return None if row is None else _note(scope, row)


def note_versions(db: Db, scope: Scope) -> list[Note]:
    """Every version of the note, newest first."""
    place = {"owner": scope.owner, "agent": scope.agent or ""}
    return [_note(scope, row) for row in db.rows("note_versions", **place, version=None)]


def write_note(db: Db, scope: Scope, text: str, base_version: int, now: int) -> Note:
    """Write the version after `base_version`, unless someone else has."""
    check_text(text, "note")
    place = {"owner": scope.owner, "agent": scope.agent or ""}
    before = one(db.rows("note", **place))
    db.run("add_owner", owner=scope.owner, tenant=scope.tenant, user_id=scope.user, now=now)
    id_ = before[0] if before else new_id()
    if base_version == 0:
        named = {"user_id": scope.user, "id": id_}
        written = db.run("create_note", **place, **named, text=text, now=now)
    else:
        written = db.run("update_note", **place, text=text, now=now, base_version=base_version)
    if not written:
        raise ConflictError(
            f"the note is at version {before[1] if before else 0}, not {base_version}; "
            "read it again and redo the edit"
        )
    version = base_version + 1
    db.run("add_note_version", **place, version=version, text=text, now=now)
    db.run("delete_view_passages", owner=scope.owner, ids=[id_])
    index_view(db, scope, "note", id_, text, now, now)
    return Note(id=id_, scope=scope, version=version, text=text, created_at=from_micros(now))


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
        case Supersede(old_id=old_id, record=record, reason=reason, at=at):
            _add(db, scope, record, now)
            _end(db, owner, old_id, at, reason, superseded_by=record.id)
        case Promote(id=id_):
            if not db.run("promote_item", owner=owner, id=id_):
                raise NotFoundError("no such memory in this scope")
        case Expire(id=id_, reason=reason, at=at):
            _end(db, owner, id_, at, reason)
        case Retract(id=id_, reason=reason, at=at):
            _end(db, owner, id_, at, reason, belief=True)


def _add(db: Db, scope: Scope, record: MemoryItem | Fact, now: int) -> None:
    if record.scope.owner != scope.owner:
        raise RecordError("a change may only add records of its own user")
    shared = {
        "owner": scope.owner, "id": record.id, "agent": record.scope.agent or "",
        "session_id": record.scope.session, "source": record.source,
        "superseded_by": record.superseded_by, "reason": record.reason,
    }  # fmt: skip
    if isinstance(record, Fact):
        kind, created_at = "fact", to_micros(record.known_from)
        added = db.run(
            "add_fact", **shared, topic=record.topic, subject=record.subject,
            predicate=record.predicate, object=record.object, confidence=record.confidence,
            valid_from=_micros(record.valid_from), valid_to=_micros(record.valid_to),
            known_from=created_at, known_to=_micros(record.known_to),
        )  # fmt: skip
    else:
        kind, created_at = "memory", to_micros(record.created_at)
        added = db.run(
            "add_item", **shared, text=record.text, kind=record.kind, category=record.category,
            importance=record.importance, tags=dump_json(list(record.tags)), tier=record.tier,
            created_at=created_at, uses=record.uses, used_at=_micros(record.used_at),
            expires_at=_micros(record.expires_at), ended_at=_micros(record.ended_at),
        )  # fmt: skip
    if added:
        _cite(db, scope.owner, record.id, record.sources)
        if _is_over(record):
            return  # search is for what holds
        index_view(db, record.scope, kind, record.id, record.text, created_at, now)
        if isinstance(record, Fact):
            link_fact(db, scope.owner, record.id, (record.subject, record.object))


def _is_over(record: MemoryItem | Fact) -> bool:
    if isinstance(record, Fact):
        return record.known_to is not None or record.valid_to is not None
    return record.ended_at is not None


def _end(
    db: Db,
    owner: str,
    id_: str,
    at: datetime,
    reason: str,
    *,
    superseded_by: str | None = None,
    belief: bool = False,
) -> None:
    values = {
        "owner": owner, "id": id_, "at": to_micros(at), "reason": reason,
        "superseded_by": superseded_by,
    }  # fmt: skip
    if _kind_of(db, owner, id_) == "memory":
        db.run("end_item", **values)
    else:
        db.run("end_fact_belief" if belief else "end_fact_validity", **values)
    for query in ("delete_view_passages", "delete_entities"):  # search is for what holds
        db.run(query, owner=owner, ids=[id_])


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


def _item(scope: Scope, row: Row, sources: list[str]) -> MemoryItem:
    return MemoryItem(
        id=row[0], scope=_home(scope, row[1], row[2]), text=row[3], kind=row[4], category=row[5],
        importance=row[6], tags=tuple(json.loads(row[7])), tier=row[8], source=row[9],
        created_at=from_micros(row[10]), uses=row[11], used_at=_moment(row[12]),
        expires_at=_moment(row[13]), ended_at=_moment(row[14]), superseded_by=row[15],
        reason=row[16], sources=tuple(sources),
    )  # fmt: skip


def _fact(scope: Scope, row: Row, sources: list[str]) -> Fact:
    return Fact(
        id=row[0], scope=_home(scope, row[1], row[2]), subject=row[3], predicate=row[4],
        object=row[5], valid_from=_moment(row[6]), valid_to=_moment(row[7]),
        known_from=from_micros(row[8]), known_to=_moment(row[9]), confidence=row[10],
        source=row[11], superseded_by=row[12], reason=row[13], sources=tuple(sources),
    )  # fmt: skip


def _note(scope: Scope, row: Row) -> Note:
    id_, version, text, created_at = row
    return Note(id=id_, scope=scope, version=version, text=text, created_at=from_micros(created_at))
