"""Archives in a transaction: everything of a user as records, and back."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from memorist.errors import ConflictError, DimensionError, RecordError
from memorist.records.activity import TurnReceipt
from memorist.records.archive import (
    ArchiveRecord,
    EntryRecord,
    KeptRecord,
    MessageRecord,
    NoteRecord,
    RevisionRecord,
    SessionRecord,
    SummaryRecord,
    VectorsRecord,
    ViewRecord,
    Waiting,
    type_of,
)
from memorist.records.documents import Article, Chunk
from memorist.records.entry import entry_id, namespace_of, path_of
from memorist.records.json_values import any_json
from memorist.records.memories import Fact, MemoryItem
from memorist.records.scope import Scope
from memorist.records.values import from_micros, to_micros
from memorist.store import documents, views
from memorist.store.activity import add_receipt, receipts
from memorist.store.appending import write_messages
from memorist.store.engine import Db, Piece
from memorist.store.indexing import (
    PlacedMessage,
    Preparation,
    index_messages,
    index_pieces,
    index_view,
)
from memorist.store.jobs import LATER, is_backfill
from memorist.store.log import add_owner, ensure_session, message_places
from memorist.store.rows import ALL, Columns, Row
from memorist.store.search import put_vectors

PAGE = 250  # records that are read at once
PAGE_BYTES = 4_194_304
KINDS = ("memory", "fact", "note", "article", "entry")
SESSION, NOTE, SUMMARY = Columns(SessionRecord), Columns(NoteRecord), Columns(SummaryRecord)
ENTRY = Columns(EntryRecord, omit=("namespace", "key", "value", "passages"))
Wanted = Mapping[str, tuple[str, datetime | None]]
"""The kind of each record by its id, and the moment under which search finds it."""
Outcome = bool | None
"""Whether a record is stored as it is in the archive (True), otherwise (False), or not (None)."""


def export(
    db: Db, scope: Scope, take: Callable[[Iterator[ArchiveRecord]], Any], *, vectors: bool = False
) -> Any:
    """What `take` makes of all records of a user, in the order in which they are restored."""
    if db.rows("is_rebuilding"):
        raise ConflictError("the user's memories are being rebuilt; try again when that is done")
    return take(_everything(db, scope, vectors))


def _everything(db: Db, scope: Scope, vectors: bool) -> Iterator[ArchiveRecord]:
    for _, *row in _paged(db, "archive_sessions"):
        yield SESSION.record(row)
    yield from _log(db, vectors)
    yield from _views(db, scope, vectors)
    yield from map(SUMMARY.record, _paged(db, "archive_summaries"))
    for (view,) in _paged(db, "archive_kept"):
        yield KeptRecord(view=view)
    yield from receipts(db, scope)


def _paged(db: Db, query: str, after: Any = "", **named: Any) -> Iterator[Row]:
    """The rows of a list, read a page at a time; it goes on after the first column of the last."""
    while rows := db.page(query, PAGE_BYTES, **named, after=after, limit=PAGE):
        yield from rows
        after = rows[-1][0]


def _log(db: Db, vectors: bool) -> Iterator[ArchiveRecord]:
    place = 0
    seqs = sorted(db.ids("own_seqs").tolist())
    while page := seqs[place : place + PAGE]:
        span = {"seqs": page, "first": page[0], "last": page[-1]}
        jobs = {seq: _waiting(*job) for seq, *job in db.rows("archive_jobs", **span)}
        homes = dict[int, dict[str, str]]()
        for row in db.page("archive_messages", PAGE_BYTES, seqs=page):
            seq, source, id_, *_, outdated, session = row
            homes[seq] = {"session": session, "id": id_}
            place += 1
            yield MessageRecord(
                session=session,
                place=place,
                source=source,
                message=db.unpack(row),
                outdated=from_micros(outdated) if outdated else None,
                job=jobs.get(seq),
            )
        for row in _paged(db, "archive_revisions", 0, seqs=list(homes)):
            _, *message, number, replaced_at, session = row
            yield RevisionRecord(
                session=session,
                number=number,
                replaced_at=from_micros(replaced_at),
                message=db.unpack(tuple(message)),
            )
        if vectors:
            yield from _vectors(db, "vectors_of_messages", homes)


def _waiting(kind: str, attempts: int, error: str | None, dead: int) -> Waiting:
    stage: Any = kind.removesuffix(LATER)
    return Waiting(kind=stage, attempts=attempts, error=error, dead=bool(dead))


def _views(db: Db, scope: Scope, vectors: bool) -> Iterator[ArchiveRecord]:
    """In the order in which they were indexed, as search prefers the newest; then the others."""
    last = None
    ids = sorted(db.ids("own_view_passages").tolist(), reverse=True)
    for start in range(0, len(ids), PAGE):
        rows = db.rows("archive_passages", ids=ids[start : start + PAGE])
        found = {id_: (kind, from_micros(at)) for id_, kind, at in rows if id_ != last}
        last = rows[-1][0]
        yield from _read(db, scope, found)
        if vectors:
            homes = {id_: {"id": id_} for id_ in found}
            yield from _vectors(db, "vectors_of_views", homes)
    for kind in KINDS:
        for (id_,) in _paged(db, f"unindexed_{kind}"):
            yield from _read(db, scope, {id_: (kind, None)})


def _read(db: Db, scope: Scope, wanted: Wanted) -> Iterator[ArchiveRecord]:
    """The memories, facts, notes, articles and entries with these ids."""
    ids = [id_ for id_, (kind, _) in wanted.items() if kind in ("memory", "fact")]
    found = {record.id: record for record in views.records(db, scope, ids)} if ids else {}
    for id_, (kind, at) in wanted.items():
        if id_ in found:  # with its sources in an order that does not depend on the database
            ordered = tuple(sorted(found[id_].sources))
            yield ViewRecord(record=replace(found[id_], sources=ordered), indexed_at=at)
        elif kind == "article":
            for article in documents.read_articles(db, scope, [id_]):
                yield ViewRecord(record=article, indexed_at=at)
        elif kind == "note":
            for _, *row in _paged(db, "archive_note", -ALL, id=id_):
                yield NOTE.record(row)
        elif kind == "entry":
            for path, key, value, *row in db.rows("archive_entry", id=id_):
                spans = tuple(db.rows("spans_of_view", id=id_))
                what = {"key": json.loads(key), "value": json.loads(value)}
                yield ENTRY.record(row, namespace=namespace_of(path), **what, passages=spans)


def _vectors(db: Db, query: str, homes: Mapping[Any, Mapping[str, str]]) -> Iterator[VectorsRecord]:
    import numpy as np

    rows = db.rows(query, ids=list(homes))
    for (id_, embedder), parts in groupby(rows, key=itemgetter(0, 1)):
        packed = {}
        for _, _, start, stored in parts:
            values = np.frombuffer(stored, "<f2") if isinstance(stored, bytes) else stored
            packed[str(start)] = b64encode(np.asarray(values, "<f4").tobytes()).decode()
        yield VectorsRecord(embedder=embedder, **homes[id_], parts=packed)


class Prepared(NamedTuple):
    """A record, and what was computed of it before the transaction."""

    record: Any
    ready: Any = None


def prepare(
    preparation: Preparation,
    scope: Scope,
    record: ArchiveRecord,
    cut: Callable[[str], Sequence[Chunk]],
) -> Prepared:
    """Compute what a record is stored and found by; `cut` cuts the text of an article."""
    ready: Any = None
    match record:
        case MessageRecord(message=message):
            ready = preparation.message(scope.owner, message)
        case RevisionRecord(message=message):
            ready = preparation.engine.pack(message)
        case ViewRecord(record=Article() as article):
            pieces = documents.pieces_of(article, cut(article.text))
            ready = preparation.pieces(scope.owner, pieces)
        case EntryRecord(text=text, passages=spans):
            pieces = [Piece(start, stop, text[start:stop]) for start, stop in spans]
            ready = preparation.pieces(scope.owner, pieces)
    return Prepared(record, ready)


def texts_of(batch: Sequence[Prepared], **_: object) -> list[str]:
    """The texts that a batch adds to the index, besides those that are prepared already."""
    views = [it.record.record for it in batch if isinstance(it.record, ViewRecord)]
    notes = [it.record for it in batch if isinstance(it.record, NoteRecord)]
    return [it.text for it in (*views, *notes) if not isinstance(it, Article)]


def stored(db: Db, scope: Scope, batch: Sequence[ArchiveRecord]) -> list[Outcome]:
    """Which of the records are stored, as far as that is known before they are written."""
    there = {_key(found): _content(found) for found in _stored(db, scope, batch)}
    return [
        there[key] == _content(record) if (key := _key(record)) in there else None
        for record in batch
    ]


def _stored(db: Db, scope: Scope, batch: Iterable[ArchiveRecord]) -> Iterator[ArchiveRecord]:
    said = defaultdict[str, list[str]](list)
    wanted = dict[str, tuple[str, datetime | None]]()
    for record in batch:
        match record:
            case SessionRecord(id=session):
                named = scope.within(session=session).columns()
                yield from map(SESSION.record, db.rows("archive_session", **named))
            case MessageRecord(session=session, message=message):
                said[session].append(message.message_id)
            case ViewRecord() | NoteRecord() | EntryRecord():
                wanted[_key(record)[0]] = (type_of(record), None)
    for session, ids in said.items():
        if len(set(ids)) < len(ids):
            raise RecordError("the archive holds a message twice")
        named = scope.within(session=session).columns()
        for row in db.rows("stored_messages", **named, ids=ids):
            yield MessageRecord(session=session, place=0, source=row[1], message=db.unpack(row))
    yield from _read(db, scope, wanted)


def _key(record: ArchiveRecord) -> tuple[Any, ...]:
    """What tells a record from the others of its user."""
    match record:
        case SessionRecord(id=id_):
            return id_, "session", ""
        case MessageRecord(session=session, message=message):
            return message.message_id, "message", session
        case ViewRecord(record=view):
            return (view.id,)
        case NoteRecord(id=id_, version=version):
            return id_, version
        case EntryRecord(namespace=namespace, key=key):
            return (entry_id(namespace, key),)
    return ()


def _content(record: ArchiveRecord) -> Any:
    """What makes two records the same, wherever they are in the log or the index."""
    match record:
        case MessageRecord(source=source, message=message):
            return source, message
        case ViewRecord(record=view):
            return view
        case SessionRecord():
            return replace(record, active_at=None)
    return record


def restore(db: Db, scope: Scope, batch: Sequence[Prepared], *, own: bool = False) -> list[bool]:
    """Store records that are not stored, and say of which that was done.

    `own` says that the sessions may take the UUIDs that they are named by: see `ensure_session`.
    """
    add_owner(db, scope)
    if any(isinstance(it.record, ViewRecord) for it in batch):
        db.run("count_change", base=None)
    added = list[bool]()
    for is_message, some in groupby(batch, key=lambda it: isinstance(it.record, MessageRecord)):
        if is_message:
            added += _restore_messages(db, scope, list(some))
        else:
            added += [bool(_restore_one(db, scope, *it, own)) for it in some]
    return added


def _restore_messages(db: Db, scope: Scope, batch: Sequence[Prepared]) -> list[bool]:
    names = dict.fromkeys(it.record.session for it in batch)
    homes = {it: ensure_session(db, scope.within(session=it)) for it in names}
    seqs = db.next_seqs(len(batch))
    placed = [
        PlacedMessage(seq, scope.owner, home.agent, home.key, it.ready)
        for seq, it in zip(seqs, batch, strict=True)
        for home in [homes[it.record.session]]
    ]
    write_messages(db, placed, [it.record.source for it in batch])
    index_messages(db, placed)
    said = [(seq, it.record) for seq, it in zip(seqs, batch, strict=True)]
    for session, home in homes.items():
        _queue(db, home.key, [it for it in said if it[1].session == session])
    return [True] * len(batch)


def _queue(db: Db, session: Any, messages: list[tuple[int, MessageRecord]]) -> None:
    """Queue what the messages wait for, and vectors for the others; mark what is outdated."""
    done: dict[str, Any] = {"kind": "vectors later", "attempts": 0, "error": None, "dead": False}
    for job, some in groupby(messages, key=lambda it: it[1].job):
        if seqs := [seq for seq, it in some if job or not it.message.unfinished]:
            state = done if job is None else asdict(job)
            state |= {"first": seqs[0], "last": seqs[-1], "dead": int(state["dead"])}
            if not is_backfill(state["kind"]):
                state["kind"] += LATER
            db.run("restore_job", session=session, **state)
    for seq, record in messages:
        if record.outdated is not None:
            outdated = to_micros(record.outdated)
            db.run("mark_outdated", seq=seq, outdated=outdated)


def _restore_one(db: Db, scope: Scope, record: ArchiveRecord, ready: Any, own: bool) -> int:
    match record:
        case SessionRecord():
            return _restore_session(db, scope, record, own)
        case RevisionRecord(message=said):
            at = {"created_at": to_micros(said.created_at), "role": said.role}
            at |= {"replaced_at": to_micros(record.replaced_at), "number": record.number}
            seq = _seq(db, scope, record.session, said.message_id)
            return 0 if seq is None else db.run("restore_revision", seq=seq, **at, **ready)
        case ViewRecord(record=Article() as article):
            return documents.insert_article(db, article, ready)
        case ViewRecord(record=MemoryItem() | Fact() as view):
            return views.insert(db, view, record.indexed_at)
        case NoteRecord():
            return _restore_note(db, scope, record)
        case EntryRecord():
            return _restore_entry(db, scope, record, ready)
        case SummaryRecord():
            home = db.row("find_session", **scope.within(session=record.session).columns())
            seq = _seq(db, scope, record.session, record.last_message)
            if home is None or seq is None:
                return 0
            named = {**SUMMARY.row(record), "session": home[0], "last_seq": seq}
            return db.run("restore_summary", **named)
        case KeptRecord(view=id_):
            is_kept = views.kept_by_hand(db, scope, [id_])
            return 0 if is_kept else db.run("keep_by_hand", id=id_)
        case TurnReceipt():
            return add_receipt(db, scope, record)
        case VectorsRecord():
            return _restore_vectors(db, scope, record)
    raise AssertionError(type(record))


def _seq(db: Db, scope: Scope, session: str, message_id: str) -> int | None:
    places = message_places(db, scope.within(session=session), message_id, limit=1)
    return places[0][0] if places else None


def _restore_session(db: Db, scope: Scope, record: SessionRecord, own: bool) -> int:
    columns = {**scope.within(session=record.id).columns(), "agent": record.agent}
    if db.row("lock_session", **columns) is not None:
        return 0
    db.rows("create_session", **columns, adopt=own, now=to_micros(record.created_at))
    if record.active_at is not None:
        at = to_micros(record.active_at)
        db.run("restore_active", **columns, user_id=scope.user, at=at)
    return db.run("rename_session", **columns, title=record.title)


def _restore_note(db: Db, scope: Scope, record: NoteRecord) -> int:
    """Add a version of a note, of which the newest comes first; none to another note's."""
    named = {"user_id": scope.user, **NOTE.row(record)}
    if db.run("restore_note", **named):
        home = Scope(user=scope.user, tenant=scope.tenant, agent=record.agent)
        db.run("delete_view_passages", ids=[record.id])
        index_view(db, home, "note", record.id, record.text, record.created_at)
    return db.run("restore_note_version", **named)


def _restore_entry(db: Db, scope: Scope, record: EntryRecord, pieces: list[Piece]) -> int:
    id_ = entry_id(record.namespace, record.key)
    place = {"id": id_, "path": path_of(record.namespace)}
    what = {"key": any_json(record.key), "value": any_json(record.value), "pieces": len(pieces)}
    added = db.run("restore_entry", **place, **what, **ENTRY.row(record))
    if added:
        index_pieces(db, scope, "entry", id_, pieces, record.updated_at)
    return added


def _restore_vectors(db: Db, scope: Scope, record: VectorsRecord) -> int:
    """Store vectors of passages that are there, unless others of the embedder are longer."""
    if record.session is None:
        rows = db.rows("passages_of_view", id=record.id)
    else:
        seq = _seq(db, scope, record.session, record.id)
        rows = [] if seq is None else db.rows("passages_of_message", seq=seq)
    passages: dict[int, int] = dict(rows)
    vectors = {passages[at]: it for at, it in record.vectors().items() if at in passages}
    try:
        put_vectors(db, scope, record.embedder, vectors)
    except DimensionError:
        return 0
    return int(bool(vectors))
