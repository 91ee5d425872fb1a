"""Vectors in memory: exact search of few, and of many a search by their signs first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memorist.forks import fork_safe
from memorist.store.rows import Row

EXACT_UP_TO = 20_000
RESCORED = 256
WEIGHED = 3  # times as many as are wanted of those found by signs
CACHE_BYTES = 256 * 2**20
BLOCK = 1_000  # rows, too few for BLAS to start threads on
MAY_GROW = 32  # indexes, the last ones used: an index grows when it is searched
Vector = NDArray[np.float32]
"""One, or several in rows."""
Hits = list[tuple[int, float]]
"""Passages with their scores, best first."""
Place = tuple[str, str, int]
"""An owner, an embedder, and how long its vectors are: a forgotten user's may be others."""


def pack_vector(values: Sequence[float]) -> bytes:
    """A vector as 16-bit floats of length 1: half the size, and the same order."""
    return _unit(values).astype("<f2").tobytes()


def code_of(packed: bytes) -> bytes:
    """The sign of each number of a packed vector, one bit each, in whole 8-byte words."""
    bits = np.packbits(np.frombuffer(packed, "<f2") > 0).tobytes()
    return bits + bytes(-len(bits) % 8)


def unpack_vectors(packed: bytes, count: int) -> NDArray[np.float32]:
    """Packed vectors, joined, as the rows of a matrix."""
    numbers = np.frombuffer(packed, "<f2").astype(np.float32)
    return numbers.reshape(count, len(numbers) // max(count, 1))


def cosines(
    passages: Sequence[int], vectors: NDArray[np.float32], vector: Sequence[float], limit: int
) -> Hits:
    """The `limit` passages whose vectors, in rows, are nearest to `vector`, best first."""
    if not passages or limit <= 0:
        return []
    ids, lengths = np.array(passages, np.int64), np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    scores = vectors @ _unit(vector) / np.where(lengths, lengths, np.float32(1))
    best = np.lexsort((-ids, -scores))[:limit]
    return list(zip(ids[best].tolist(), scores[best].tolist(), strict=True))


def _unit(vector: Sequence[float]) -> NDArray[np.float32]:
    """Scaled to length 1; zeros stay zeros."""
    row = np.asarray(vector, np.float32)
    return row / np.float32(np.linalg.norm(row) or 1)


class VectorIndex:
    """One user's vectors by one embedder: whole while they are few, their signs when many.

    Several threads search it. It follows the database, where vectors never change, and new ones
    have higher ids.
    """

    def __init__(self, coded: bool) -> None:
        self.coded = coded
        self.lock = fork_safe(threading.Lock())  # to be held while something is added
        self.last = 0  # the highest id added, or the last row of many
        self.offset = 0  # bytes of that row
        self.missing = 0  # hits that did not exist any more
        self.counted = 0  # of its bytes, by the cache
        self._count = 0
        self._passages = np.empty(0, np.int64)
        # Whole vectors stand in rows, codes in columns: each is read along its memory.
        self._values: NDArray[Any] = np.empty((0, 0), np.float32)

    @property
    def nbytes(self) -> int:
        return self._passages.nbytes + self._values.nbytes

    def __len__(self) -> int:
        return self._count

    def is_stale(self) -> bool:
        """Whether too many of its vectors are deleted, or it became too large to be exact."""
        outgrown = not self.coded and self._count > 2 * EXACT_UP_TO
        return outgrown or self.missing > max(100, self._count // 20)

    def add(self, rows: Sequence[Row]) -> None:
        """Add `(id, passage, vector or code)`, by rising id."""
        if not rows:
            return
        joined = b"".join([row[2] for row in rows])
        values = _codes(joined, len(rows)) if self.coded else unpack_vectors(joined, len(rows))
        self._extend(np.array([row[1] for row in rows], np.int64), values)
        self.last = rows[-1][0]

    def add_entries(self, rows: Sequence[Row], size: int) -> None:
        """Add `(number, entries)` by rising number: of the last row, what is beyond `offset`.

        An entry is a passage in eight bytes and its code; one that was forgotten is all zeros.
        """
        joined = b"".join([entries for _, entries in rows])
        words = np.frombuffer(joined, np.uint64).reshape(-1, size // 8).T
        words = words[:, words[0] != 0]
        self._extend(words[0].view(">i8").astype(np.int64), words[1:])
        for number, entries in rows:
            self.offset = len(entries) + (self.offset if number == self.last else 0)
            self.last = number

    def _extend(self, passages: NDArray[np.int64], values: NDArray[Any]) -> None:
        start, stop = self._count, self._count + len(passages)
        if stop > len(self._passages):
            self._grow(max(stop, 2 * start), values)
        self._count = stop
        self._passages[start:stop] = passages
        new = self._used()[:, start:] if self.coded else self._used()[start:]
        new[:] = values

    def _grow(self, room: int, like: NDArray[np.generic]) -> None:
        passages, values = self._passages[: self._count], self._used()
        self._passages = np.empty(room, np.int64)
        self._passages[: self._count] = passages
        self._values = np.empty(
            (len(like), room) if self.coded else (room, like.shape[1]), like.dtype
        )
        if self._count:
            self._used()[:] = values

    def _used(self) -> Any:
        return self._values[:, : self._count] if self.coded else self._values[: self._count]

    def search(
        self, vector: Sequence[float], limit: int, allowed: NDArray[np.int64] | None
    ) -> Hits:
        """The nearest passages, best first; scores are cosines, or likewise of their signs."""
        with self.lock:  # what is there stays as it is while more is added
            passages, values = self._passages[: self._count], self._used()
        if not len(passages) or limit <= 0:
            return []
        if allowed is not None:
            kept = np.flatnonzero(np.isin(passages, allowed))
            passages = passages[kept]
            values = values[:, kept] if self.coded else values[kept]
        if self.coded:  # by how many signs differ, and the best of that by how much those weigh
            best = _highest(_likeness(values, vector), WEIGHED * limit)
            passages, values = passages[best], _signs(values[:, best], len(vector))
        scores = _dots(values, _unit(vector))
        chosen = _highest(scores, limit)
        chosen = chosen[np.lexsort((-passages[chosen], -scores[chosen]))][:limit]
        return list(zip(passages[chosen].tolist(), scores[chosen].tolist(), strict=True))

    def search_existing(
        self,
        vector: Sequence[float],
        limit: int,
        allowed: NDArray[np.int64] | None,
        existing: Callable[[Hits], Hits],
        rescored: int | None = None,
    ) -> Hits:
        """The passages nearest to the vector that are still in the database.

        `existing` leaves out the others, and puts what was found by signs into the order of the
        vectors themselves.
        """
        wanted = max(rescored or RESCORED, limit) if self.coded else limit
        while True:
            hits = self.search(vector, wanted, allowed)
            found = existing(hits)
            if len(found) >= limit or len(hits) < wanted:
                self.missing += len(hits) - len(found)
                return found[:limit]
            wanted *= 4  # deleted vectors must not crowd out the others


def _dots(rows: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row times the vector."""
    scores = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), BLOCK):
        np.dot(rows[start : start + BLOCK], vector, out=scores[start : start + BLOCK])
    return scores


def _codes(packed: bytes, count: int) -> NDArray[np.uint64]:
    return np.frombuffer(packed, np.uint64).reshape(count, -1).T


def _likeness(codes: NDArray[np.uint64], vector: Sequence[float]) -> NDArray[np.int16]:
    """Minus the number of signs in which each code differs from the vector."""
    query = np.frombuffer(code_of(pack_vector(vector)), np.uint64)
    likeness = np.zeros(codes.shape[1], np.int16)
    for word, column in zip(query, codes, strict=True):
        likeness -= np.bitwise_count(column ^ word)
    return likeness


def _signs(codes: NDArray[np.uint64], length: int) -> NDArray[np.float32]:
    """The codes as rows of numbers: 1 for what is above zero."""
    bits = np.ascontiguousarray(codes.T).view(np.uint8)
    return np.unpackbits(bits, axis=1, count=length).astype(np.float32)


def _highest(scores: NDArray[Any], limit: int) -> NDArray[np.intp]:
    """The positions of at least the `limit` highest scores, in no order."""
    if len(scores) <= limit:
        return np.arange(len(scores))
    if len(scores) > 64 * limit:  # a threshold from a sample is faster than partitioning all
        some = scores[::16]
        near = max(len(some) - limit // 8 - 8, 0)
        chosen = np.flatnonzero(scores >= np.partition(some, near)[near])
        if len(chosen) >= limit:
            return chosen
    return np.argpartition(scores, len(scores) - limit)[-limit:]


class VectorIndexCache:
    """The indexes in use; the least used are dropped when they take too much memory."""

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = fork_safe(threading.Lock())
        self._indexes: OrderedDict[Place, VectorIndex] = OrderedDict()
        self._nbytes = 0

    def find(self, place: Place) -> VectorIndex | None:
        """The index of a place, unless there is none or it is to be filled anew."""
        with self._lock:
            index = self._indexes.get(place)
            if index is None or index.is_stale():
                return None
            self._used(place)
            return index

    def add(self, place: Place, *, coded: bool) -> VectorIndex:
        """A new index, which is empty, instead of the one before."""
        with self._lock:
            if (before := self._indexes.pop(place, None)) is not None:
                self._nbytes -= before.counted
            index = self._indexes[place] = VectorIndex(coded)
            self._used(place)
            return index

    def _used(self, place: Place) -> None:
        self._indexes.move_to_end(place)
        for index in islice(reversed(self._indexes.values()), MAY_GROW):
            size = index.nbytes
            self._nbytes += size - index.counted
            index.counted = size
        while len(self._indexes) > 1 and self._nbytes > self._max_bytes:
            self._nbytes -= self._indexes.popitem(last=False)[1].counted
