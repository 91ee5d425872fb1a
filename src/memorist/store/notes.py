"""Notes in a transaction: read, write, and every version there was."""

from __future__ import annotations

from memorist.errors import ConflictError
from memorist.records.ids import from_micros, new_id
from memorist.records.note import Note
from memorist.records.scope import Scope
from memorist.records.text import check_text
from memorist.store.engine import Db, Row, one
from memorist.store.indexing import index_view


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
    if text.strip():  # an empty note is nothing to be found
        index_view(db, scope, "note", id_, text, now, now)
    return Note(id=id_, scope=scope, version=version, text=text, created_at=from_micros(now))


def _note(scope: Scope, row: Row) -> Note:
    id_, version, text, created_at = row
    return Note(id=id_, scope=scope, version=version, text=text, created_at=from_micros(created_at))
