"""A SQLite transaction as the shared logic sees it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

import apsw

from recollect.records.message import Message
from recollect.records.text import dump_json, fold
from recollect.store import codec
from recollect.store.base import Term
from recollect.store.engine import Row, load_queries
from recollect.store.vectors import cosines, pack_vector

QUERIES = load_queries("sqlite", r"IN (SELECT value FROM json_each(:\1))")


def _picker(sql: str) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """Picks a statement's values in the order it names them: binding by place is faster."""
    names = list(dict.fromkeys(re.findall(r":(\w+)", sql)))
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: (values[names[0]],) if names else ()


_PICK = {name: _picker(sql) for name, sql in QUERIES.items()}


class SqliteDb:
    """Named queries on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    def rows(self, query: str, **values: Any) -> list[Row]:
        return self._run(query, values).fetchall()

    def run(self, query: str, **values: Any) -> int:
        self._run(query, values)
        return self.connection.changes()

    def many(self, query: str, values: Iterable[dict[str, Any]]) -> int:
        before = self.connection.total_changes()
        self.connection.executemany(QUERIES[query], map(_PICK[query], values))
        return self.connection.total_changes() - before

    def _run(self, query: str, values: dict[str, Any]) -> apsw.Cursor:
        for name, value in values.items():
            if type(value) is list:
                values[name] = json.dumps(value)
        return self.connection.execute(QUERIES[query], _PICK[query](values))

    def next_seqs(self, count: int) -> Sequence[int]:
        first: int = self.rows("next_seq")[0][0]
        return range(first, first + count)

    def next_view_passages(self, count: int) -> Sequence[int]:
        first: int = self.rows("next_view_passage")[0][0]
        return range(first, first - count, -1)

    def add_passages(self, rows: Sequence[dict[str, Any]]) -> None:
        for row in rows:
            if not row["words"].isascii():  # FTS5 folds and splits the rest as we do
                row["words"] = fold(row["words"])
        self.many("add_passage", rows)
        self.many("index_passage", rows)

    def pack(self, message: Message) -> dict[str, Any]:
        text = message.content if isinstance(message.content, str) else None
        more = codec.extras(message)
        return {"content": text, "extras": dump_json(more) if more else None}

    def unpack(self, row: Row) -> Message:
        extras = row[6]
        return codec.join(row[2], row[3], row[4], row[5], json.loads(extras) if extras else None)

    def text_query(self, owner: str, terms: Sequence[Term]) -> str:
        quoted = " OR ".join(f'"{" ".join(term)}"' for term in terms)
        return f'owner : "{owner}" AND words : ({quoted})'

    def nearest(
        self, narrowed: dict[str, Any], embedder: str, vector: Sequence[float], limit: int
    ) -> list[tuple[int, float]]:
        return cosines(self.rows("vectors", **narrowed, embedder=embedder), vector, limit)

    def vector(self, values: Sequence[float]) -> bytes:
        return pack_vector(values)
