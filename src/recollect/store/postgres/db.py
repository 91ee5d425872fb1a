"""A PostgreSQL transaction as the shared logic sees it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import psycopg

from recollect.records.message import Message
from recollect.records.text import dump_json, fold
from recollect.store.base import Term
from recollect.store.engine import Row, load_queries
from recollect.store.postgres.langchain import from_langchain, to_langchain
from recollect.store.vectors import cosines, pack_vector

QUERIES = {
    name: re.sub(r"(?<!:):(\w+)", r"%(\1)s", sql)
    for name, sql in load_queries("postgres", r"= ANY(:\1)").items()
}


class PostgresDb:
    """Named queries on one connection."""

    def __init__(self, connection: psycopg.Connection[Row], has_pgvector: bool) -> None:
        self._connection = connection
        self._has_pgvector = has_pgvector

    def rows(self, query: str, **values: Any) -> list[Row]:
        return self._connection.execute(QUERIES[query], values).fetchall()

    def run(self, query: str, **values: Any) -> int:
        return self._connection.execute(QUERIES[query], values).rowcount

    def many(self, query: str, values: Iterable[dict[str, Any]]) -> int:
        rows = list(values)
        if len(rows) == 1:  # by far the most common, and executemany costs more
            return self.run(query, **rows[0])
        with self._connection.cursor() as cursor:
            if rows:
                cursor.executemany(QUERIES[query], rows)
            return cursor.rowcount

    def next_seqs(self, count: int) -> Sequence[int]:
        return [row[0] for row in self.rows("next_seqs", count=count)]

    def next_view_passages(self, count: int) -> Sequence[int]:
        return [row[0] for row in self.rows("next_view_passages", count=count)]

    def add_passages(self, rows: Sequence[dict[str, Any]]) -> None:
        self.many("add_passage", ({**row, "words": fold(row["words"])} for row in rows))

    def pack(self, message: Message) -> dict[str, Any]:
        return {"message": dump_json(to_langchain(message))}

    def unpack(self, row: Row) -> Message:
        return from_langchain(row[5], row[2], row[3], row[4])

    def text_query(self, owner: str, terms: Sequence[Term]) -> str:
        return " | ".join("(" + " <-> ".join(f"'{word}'" for word in term) + ")" for term in terms)

    def nearest(
        self, narrowed: dict[str, Any], embedder: str, vector: Sequence[float], limit: int
    ) -> list[tuple[int, float]]:
        named = {**narrowed, "embedder": embedder}
        if self._has_pgvector:
            rows = self.rows("nearest", **named, vector=self.vector(vector), limit=limit)
            return [(passage, float(score)) for passage, score in rows]
        held = [(id_, pack_vector(values)) for id_, values in self.rows("vectors", **named)]
        return cosines(held, vector, limit)

    def vector(self, values: Sequence[float]) -> list[float]:
        return [float(value) for value in values]
