"""A PostgreSQL transaction as the shared logic sees it."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import psycopg

from memorist.language.words import stems, term_stem
from memorist.records.message import Message
from memorist.records.text import dump_json
from memorist.store.base import Term
from memorist.store.engine import Row, load_queries
from memorist.store.postgres.langchain import from_langchain, to_langchain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memorist.store.bm25 import Ids

MAX_PLACES = 60_000  # of words read for one question
MAX_SYNONYMS = 8  # the nearest: each word is a search of its own, which takes .3 ms
EVERY_PLACE = 2**31 - 1
COUNTED_ANEW = 1_000  # records up to which they are counted for every question

MAX_TIMES = 8  # that a word counts in one passage: more would hardly change a rank
MAX_COUNTS = 1_000
_HEAD = 20  # bytes before the first element of an array on the wire

Counts = dict[str, tuple[int, float]]
"""How many records large users have, and until when that is near enough."""

QUERIES = {
    name: re.sub(r"(?<!:):(\w+)", r"%(\1)s", sql)
    for name, sql in load_queries("postgres", r"= ANY(:\1)").items()
}


class PostgresDb:
    """Named queries on one connection."""

    def __init__(
        self, connection: psycopg.Connection[Row], has_pgvector: bool, counts: Counts
    ) -> None:
        self._connection = connection
        self._has_pgvector = has_pgvector
        self._counts = counts

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
        for row in rows:
            row["words"] = word_keys(row["owner"], stems(row["words"]))
        self.many("add_passage", rows)

    def pack(self, message: Message) -> dict[str, Any]:
        return {"message": dump_json(to_langchain(message))}

    def unpack(self, row: Row) -> Message:
        return from_langchain(row[5], row[2], row[3], row[4])

    def places(self, owner: str, terms: Sequence[Term], *, every: bool = False) -> dict[Term, Ids]:
        most = EVERY_PLACE if every else MAX_PLACES
        words, stems = ["".join(term) for term in terms], [term_stem(term) for term in terms]
        found: dict[Term, Ids] = {}
        total = 0
        there = self._places(owner, words, stems, most)
        for term, places in sorted(zip(terms, there, strict=True), key=lambda it: len(it[1])):
            total += len(places)
            if total > most and total > len(places):
                break  # what is left stands nearly everywhere
            found[term] = places
        return found

    def few_places(self, owner: str, stems: Sequence[str], most: int) -> dict[str, Ids]:
        import numpy as np

        stems = stems[:MAX_SYNONYMS]
        held = map(np.unique, self._places(owner, stems, stems, most + 1))
        return {stem: it for stem, it in zip(stems, held, strict=True) if len(it) <= most}

    def _places(
        self, owner: str, words: Sequence[str], stems: Sequence[str], most: int
    ) -> list[Ids]:
        """Where each of the words stands, rising."""
        named = {"words": list(words), "stems": list(stems)}
        rows: dict[int, bytes] = dict(self.rows("places", owner=owner, **named, most=most))
        found = [_ids(rows.get(number)) for number in range(1, len(words) + 1)]
        for places in found:
            places.sort()
        return found

    def count_records(self, owner: str) -> int:
        count, until = self._counts.get(owner, (0, 0.0))
        if time.monotonic() >= until:
            count = int(self.rows("count_records", owner=owner)[0][0])
            self._counts.pop(owner, None)
            if count > COUNTED_ANEW:
                # The more there are, the longer counting takes, and the less a few more matter.
                if len(self._counts) >= MAX_COUNTS:
                    self._counts.clear()
                self._counts[owner] = count, time.monotonic() + count / 1_000
        return count

    def lengths(self, owner: str, records: list[int]) -> dict[int, int]:
        return dict(self.rows("record_lengths", owner=owner, records=records))

    def allowed(self, conditions: dict[str, Any]) -> Ids:
        return _ids(self.rows("allowed", **conditions)[0][0])

    def nearest(
        self, owner: str, embedder: str, vector: Sequence[float], limit: int, allowed: Ids | None
    ) -> list[tuple[int, float]]:
        named: dict[str, Any] = {"owner": owner, "embedder": embedder}
        if allowed is not None:
            named["allowed"] = allowed.tolist()
        if self._has_pgvector:
            query = "nearest" if allowed is None else "nearest_of"
            rows = self.rows(query, **named, vector=str(_floats(vector)), limit=limit)
            return [(passage, float(score)) for passage, score in rows]
        query = QUERIES["vectors" if allowed is None else "vectors_of"]
        sent = self._connection.execute(query, named, binary=True).fetchall()  # half the bytes
        return _cosines(sent, vector, limit)

    def vector(self, values: Sequence[float]) -> dict[str, Any]:
        return {"embedding": _floats(values)}


def word_keys(owner: str, words: Sequence[str]) -> list[int]:
    """What words are found by: a number for each, and more for one that stands there again."""
    from_owner, times, keys = bytes.fromhex(owner), Counter[str](), []
    for word in words:
        times[word] += 1
        if times[word] <= MAX_TIMES:
            said = sha256(from_owner + f"{times[word]} {word}".encode()).digest()
            keys.append(int.from_bytes(said[:8], "big", signed=True))
    return keys


def _floats(values: Sequence[float]) -> list[float]:
    return [float(value) for value in values]


def _ids(sent: bytes | None) -> Ids:
    """The numbers of an array as PostgreSQL sends it: a head, then each with its size."""
    import numpy as np

    if sent is None:
        return np.empty(0, np.int64)
    listed = np.frombuffer(sent, [("size", ">i4"), ("id", ">i8")], offset=_HEAD)
    return listed["id"].astype(np.int64)


def _cosines(rows: Sequence[Row], vector: Sequence[float], limit: int) -> list[tuple[int, float]]:
    """The nearest of `(passage, vector as PostgreSQL sends it)`, best first."""
    import numpy as np

    if not rows or limit <= 0:
        return []
    sent = np.frombuffer(b"".join([row[1] for row in rows]), ">f4").reshape(len(rows), -1)
    held = sent[:, _HEAD // 4 + 1 :: 2].astype(np.float32)  # each number follows its size
    passages = np.array([row[0] for row in rows], np.int64)
    scores = _units(held) @ _units(np.asarray([vector], np.float32))[0]
    best = np.lexsort((-passages, -scores))[:limit]
    return list(zip(passages[best].tolist(), scores[best].tolist(), strict=True))


def _units(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row with length 1, or as it is where it has none."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    units: NDArray[np.float32] = vectors / lengths
    return units
