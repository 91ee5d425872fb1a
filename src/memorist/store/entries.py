"""Entries in a transaction: read them, write them, and delete expired ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import accumulate, islice
from typing import Any

from memorist.language.text import passages
from memorist.records.entry import (
    Answer,
    Ask,
    Entry,
    Get,
    Ids,
    Namespaces,
    Put,
    Search,
    entry_id,
    findable,
    namespace_of,
    passes,
    path_of,
)
from memorist.records.scope import Scope
from memorist.records.values import dump_json, from_micros
from memorist.store.engine import Db
from memorist.store.indexing import Piece, index_pieces
from memorist.store.log import add_owner
from memorist.store.rows import ALL, Row

SWEPT = 100  # expired entries at most that are deleted with each write
JOINT = "\n"
MICROSECOND = timedelta(microseconds=1)


def answer(db: Db, scope: Scope, asks: Sequence[Ask]) -> list[Answer]:
    """The answer to each question."""
    return [_answer(db, scope, ask) for ask in asks]


def batch(db: Db, scope: Scope, asks: Sequence[Ask], puts: Sequence[Put]) -> list[Answer]:
    """Answer first, then write; of two values for one key the later counts."""
    answers = answer(db, scope, asks)
    if read := refreshed(asks, answers):
        db.run("refresh_entries", owner=scope.owner, ids=read, now=db.now)
    # Always in the same order, so that two who write the same keys do not wait for each other.
    last = sorted({put.id: put for put in puts}.values(), key=lambda put: put.id)
    kept = [put for put in last if put.value is not None]
    if kept:
        add_owner(db, scope)
    for put in kept:
        _put(db, scope, put)
    if gone := [put.id for put in last if put.value is None]:
        _delete(db, scope, gone)
    if puts:
        sweep(db, scope, limit=SWEPT)
    return answers


def refreshed(asks: Sequence[Ask], answers: Sequence[Answer]) -> list[str]:
    """The ids of the entries whose expiry is moved because they were read."""
    return sorted(
        {
            entry.id
            for ask, answer in zip(asks, answers, strict=True)
            if isinstance(ask, Get | Search) and ask.refresh
            for entry in answer
            if isinstance(entry, Entry) and entry.expires_at is not None
        }
    )


def sweep(db: Db, scope: Scope, *, limit: int = ALL) -> int:
    """Delete expired entries; say how many."""
    rows = db.rows("expired_entries", owner=scope.owner, now=db.now, limit=limit)
    return _delete(db, scope, [id_ for (id_,) in rows]) if rows else 0


def _delete(db: Db, scope: Scope, ids: list[str]) -> int:
    gone = db.run("delete_entries", owner=scope.owner, ids=ids)
    db.run("delete_view_passages", owner=scope.owner, ids=ids)
    return gone


def _put(db: Db, scope: Scope, put: Put) -> None:
    """Store a value; its texts are indexed again if they have changed."""
    texts = [text for text in map(findable, put.texts) if text.strip()]
    text, pieces = JOINT.join(texts), _pieces(texts)
    before = db.row("lock_entry", owner=scope.owner, id=put.id)
    ttl = None if put.ttl is None else put.ttl // MICROSECOND
    db.run(
        "put_entry",
        owner=scope.owner,
        id=put.id,
        path=path_of(put.namespace),
        key=_dump(put.key),
        value=_dump(put.value),
        text=text,
        pieces=len(pieces),
        now=db.now,
        ttl=ttl,
        expires_at=None if ttl is None else db.now + ttl,
    )
    if before is None or before[0] != text:
        db.run("delete_view_passages", owner=scope.owner, ids=[put.id])
        index_pieces(db, scope, "entry", put.id, pieces, from_micros(db.now))


def _pieces(texts: Sequence[str]) -> list[Piece]:
    """The passages of texts that are joined to one."""
    starts = accumulate((len(text) + len(JOINT) for text in texts), initial=0)
    return [
        Piece(at + start, at + stop, text[start:stop])
        for at, text in zip(starts, texts, strict=False)
        for start, stop in passages(text)
    ]


def _answer(db: Db, scope: Scope, ask: Ask) -> Answer:
    named = {"owner": scope.owner, "now": db.now}
    if isinstance(ask, Namespaces):
        return sorted(namespace_of(path) for (path,) in db.rows("entry_paths", **named))
    if isinstance(ask, Get):
        rows = db.rows("entries_by_id", **named, ids=[entry_id(ask.namespace, ask.key)])
        return [_entry(row) for row in rows]
    if isinstance(ask, Ids):
        return [row[0] for row in _passing(ask.of, _below(db, named, ask.of))]
    wanted = ALL if ask.limit is None else ask.limit
    if not ask.ranks and not ask.where:
        return [_entry(row) for row in _below(db, named, ask, wanted, ask.offset)]
    ranked = _ranked(db, named, ask) if ask.ranks else []
    missing = ask.offset + wanted - len(ranked)
    if missing > 0:  # entries without a rank follow
        others = (row for row in _below(db, named, ask) if row[0] not in ask.ranks)
        ranked += islice(_passing(ask, others), missing)
    return [
        replace(_entry(row), score=ask.ranks.get(row[0]))
        for row in ranked[ask.offset : ask.offset + wanted]
    ]


def _below(
    db: Db, named: dict[str, Any], ask: Search, limit: int = ALL, offset: int = 0
) -> list[Row]:
    """The entries below a prefix, newest first."""
    page = {"limit": limit, "offset": offset}
    if not ask.prefix:
        return db.rows("entries", **named, **page)
    path = path_of(ask.prefix)
    # From the path itself to the end of all paths that begin with it and a full stop.
    return db.rows("entries_below", **named, **page, path=path, inside=f"{path}.", end=f"{path}/")


def _ranked(db: Db, named: dict[str, Any], ask: Search) -> list[Row]:
    rows = db.rows("entries_by_id", **named, ids=list(ask.ranks))
    depth = len(ask.prefix)
    inside = [row for row in rows if namespace_of(row[1])[:depth] == ask.prefix]
    return sorted(_passing(ask, inside), key=lambda row: (-ask.ranks[row[0]], row[0]))


def _passing(ask: Search, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows that meet the conditions, lazily."""
    return (row for row in rows if not ask.where or passes(json.loads(row[3]), ask.where))


def _entry(row: Row) -> Entry:
    _, path, key, value, created_at, updated_at, expires_at = row
    return Entry(
        namespace=namespace_of(path),
        key=json.loads(key),
        value=json.loads(value),
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        expires_at=None if expires_at is None else from_micros(expires_at),
    )


def _dump(value: Any) -> str:
    """JSON that every database keeps: with lone surrogates escaped, as NUL always is."""
    text = dump_json(value)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text
