"""Entries in a transaction: read them, write them, and delete expired ones.

They are read a few at a time, by their sizes: one alone may take megabytes.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import accumulate, islice
from typing import Any, NamedTuple

from memorist.errors import TooLargeError
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
    findable,
    namespace_of,
    passes,
    path_of,
)
from memorist.records.json_values import any_json
from memorist.records.scope import Scope
from memorist.records.values import Count, from_micros, to_micros
from memorist.store.engine import Db, Piece
from memorist.store.indexing import Preparation, check_size, index_pieces
from memorist.store.log import add_owner
from memorist.store.rows import ALL, END, Row

SWEPT = 100  # expired entries at most that are deleted with each write
PAGE = 500  # entries that are looked up at once
PAGE_BYTES = 1_048_576  # of values that are read at once, and at least one
JOINT = "\n"
MICROSECOND = timedelta(microseconds=1)


def answer(db: Db, scope: Scope, asks: Sequence[Ask], *, max_bytes: Count = None) -> list[Answer]:
    """The answer to each question; TooLargeError where they have more than `max_bytes`."""
    answers, left = list[Answer](), max_bytes
    for ask in asks:
        items = list[Any]()
        for size, item in _answer(db, scope, ask):
            if left is not None and (left := left - size) < 0:
                raise TooLargeError("the answer is too large; ask for fewer entries at once")
            items.append(item)
        answers.append(items)
    return answers


class PreparedPut(NamedTuple):
    """A value as it is stored, all of it computed; without columns, it is deleted."""

    id: str
    columns: dict[str, Any]
    pieces: list[Piece]


def prepare(preparation: Preparation, scope: Scope, puts: Sequence[Put]) -> list[PreparedPut]:
    """What `write` stores: the last value of each key, sorted, so that none wait in a circle."""
    last = sorted({put.id: put for put in puts}.items())
    return [_prepared(preparation, scope, id_, put) for id_, put in last]


def _prepared(preparation: Preparation, scope: Scope, id_: str, put: Put) -> PreparedPut:
    if put.value is None:
        return PreparedPut(id_, {}, [])
    texts = [text for text in map(findable, put.texts) if text.strip()]
    value, text = any_json(put.value), JOINT.join(texts)
    check_size(value + text, "entry")
    pieces = preparation.pieces(scope.owner, _pieces(texts))
    columns = {
        "id": id_,
        "path": path_of(put.namespace),
        "key": any_json(put.key),
        "value": value,
        "text": text,
        "pieces": len(pieces),
        "ttl": None if put.ttl is None else put.ttl // MICROSECOND,
        "now": None if put.written_at is None else to_micros(put.written_at),
    }
    return PreparedPut(id_, columns, pieces)


def write(db: Db, scope: Scope, puts: Sequence[PreparedPut], read: list[str]) -> None:
    """Write values and delete others; give new time to the entries that were read."""
    if read:
        db.run("refresh_entries", ids=read)
    kept = [put for put in puts if put.columns]
    if kept:
        add_owner(db, scope)
    for id_, columns, pieces in kept:
        ttl, before = columns["ttl"], db.row("lock_entry", id=id_)
        expires_at = None if ttl is None else db.now + ttl
        columns = {**columns, "now": columns["now"] or db.now, "expires_at": expires_at}
        db.run("put_entry", **columns)
        if before is None or before[0] != columns["text"]:  # else it is indexed
            db.run("delete_view_passages", ids=[id_])
            index_pieces(db, scope, "entry", id_, pieces, from_micros(columns["now"]))
    if gone := [put.id for put in puts if not put.columns]:
        _delete(db, gone)
    if puts:
        sweep(db, scope, limit=SWEPT)


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
    ids = db.column("expired_entries", limit=limit)
    return _delete(db, ids) if ids else 0


def _delete(db: Db, ids: list[str]) -> int:
    gone = db.run("delete_entries", ids=ids)
    db.run("delete_view_passages", ids=ids)
    return gone


def _pieces(texts: Sequence[str]) -> list[Piece]:
    """The passages of texts that are joined to one."""
    starts = accumulate((len(text) + len(JOINT) for text in texts), initial=0)
    return [
        Piece(at + start, at + stop, text[start:stop])
        for at, text in zip(starts, texts, strict=False)
        for start, stop in passages(text)
    ]


def _answer(db: Db, scope: Scope, ask: Ask) -> Iterator[tuple[int, Any]]:
    """What answers a question, each with its size, read as it is asked for."""
    rows: Iterable[Row]
    if isinstance(ask, Namespaces):
        paths = db.column("entry_paths")
        yield from ((len(path), namespace_of(path)) for path in sorted(paths, key=namespace_of))
    elif isinstance(ask, Get):
        yield from map(_entry, db.rows("entries_by_id", ids=[ask.id]))
    elif isinstance(ask, Ids):
        rows = _passing(db, ask.of) if ask.of.where else _found(db, ask.of, PAGE)
        yield from ((len(row[0]), row[0]) for row in rows)
    else:
        stop = None if ask.limit is None else ask.offset + ask.limit
        if ask.where:
            rows = islice(_passing(db, ask), ask.offset, stop)
        else:
            page = PAGE if stop is None else min(PAGE, stop)
            rows = _read(db, islice(_found(db, ask, page), ask.offset, stop))
        for row in rows:
            size, entry = _entry(row)
            yield size, replace(entry, score=ask.ranks.get(row[0]))


def _passing(db: Db, ask: Search) -> Iterator[Row]:
    """The rows of the entries that a search finds."""
    rows = _read(db, _found(db, ask, PAGE))
    return (row for row in rows if passes(json.loads(row[3]), ask.where))


def _found(db: Db, ask: Search, page: int) -> Iterator[Row]:
    """The entries below a prefix, ranked ones first, then the newest: id, path, key, …, size."""
    if ask.ranks:
        rows = db.rows("sized_entries", ids=list(ask.ranks))
        inside = [row for row in rows if namespace_of(row[1])[: len(ask.prefix)] == ask.prefix]
        yield from sorted(inside, key=lambda row: (-ask.ranks[row[0]], row[0]))
    path, place = path_of(ask.prefix), dict[str, str]()
    if path:
        # From the path itself to the end of all paths that begin with it and a full stop.
        place = {"path": path, "inside": f"{path}.", "end": f"{path}/"}
    query = "entries_below" if path else "entries"
    after = {"after_path": "", "after_key": "", "at": END}
    while rows := db.rows(query, **place, **after, limit=page):
        yield from (row for row in rows if row[0] not in ask.ranks)
        after = dict(zip(after, rows[-1][1:4], strict=True))


def _read(db: Db, entries: Iterable[Row]) -> Iterator[Row]:
    """The whole rows of entries, read a few at a time."""
    waiting, size = list[str](), 0

    def read() -> Iterator[Row]:
        rows = {row[0]: row for row in db.rows("entries_by_id", ids=waiting)}
        return (rows[id_] for id_ in waiting)

    for id_, *_, bytes_ in entries:
        if waiting and size + bytes_ > PAGE_BYTES:
            yield from read()
            waiting, size = [], 0
        waiting.append(id_)
        size += bytes_
    if waiting:
        yield from read()


def _entry(row: Row) -> tuple[int, Entry]:
    """The entry of a row, and the bytes of its key and value."""
    _, path, key, value, created_at, updated_at, expires_at = row
    return len(f"{key}{value}".encode()), Entry(
        namespace=namespace_of(path),
        key=json.loads(key),
        value=json.loads(value),
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        expires_at=None if expires_at is None else from_micros(expires_at),
    )
