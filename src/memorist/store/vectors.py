"""Vectors in memory: exact search while that is fastest, a look at signs first beyond.

A shelf holds what one embedder made of one user's passages. It is filled from the database and
kept up with it: vectors are never changed, and new ones have higher ids.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from memorist.store.rows import Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXACT_UP_TO = 20_000
RESCORED = 256
SHELF_BYTES = 256 * 1_048_576


def pack_vector(values: Sequence[float]) -> bytes:
    """A vector as 16-bit floats of length 1: half the size, and the same order."""
    import numpy as np

    vector = np.asarray(values, np.float32)
    length = float(np.linalg.norm(vector))
    return (vector / length if length > 0 else vector).astype("<f2").tobytes()


def code_of(packed: bytes) -> bytes:
    """The sign of each number of a packed vector, one bit each, in whole 8-byte words."""
    import numpy as np

    bits = np.packbits(np.frombuffer(packed, "<f2") > 0).tobytes()
    return bits + bytes(-len(bits) % 8)


def unpack_vectors(packed: Sequence[bytes]) -> NDArray[np.float32]:
    """Packed vectors as the rows of a matrix."""
    import numpy as np

    return np.frombuffer(b"".join(packed), "<f2").reshape(len(packed), -1).astype(np.float32)


def cosines(rows: Sequence[Row], vector: Sequence[float], limit: int) -> list[tuple[int, float]]:
    """The `limit` of `(passage, packed vector)` nearest to `vector`, best first."""
    import numpy as np

    if not rows or limit <= 0:
        return []
    scores = unpack_vectors([row[1] for row in rows]) @ _unit(vector)
    best = np.argsort(-scores, kind="stable")[:limit]
    return [(rows[place][0], float(scores[place])) for place in best]


def _unit(vector: Sequence[float]) -> NDArray[np.float32]:
    import numpy as np

    query = np.asarray(vector, np.float32)
    length = float(np.linalg.norm(query))
    return query / length if length > 0 else query


class Shelf:
    """One user's vectors by one embedder: whole while they are few, their signs when many."""

    def __init__(self, coded: bool) -> None:
        import numpy as np

        self.coded = coded
        self.last = 0  # the highest id taken in
        self.missing = 0  # how many of those found were no longer there
        self._count = 0
        self._passages = np.empty(0, np.int64)
        # Whole vectors stand in rows, codes in columns: each is read along its memory.
        self._values: NDArray[np.float32] | NDArray[np.uint64] = np.empty((0, 0), np.float32)

    @property
    def nbytes(self) -> int:
        return self._passages.nbytes + self._values.nbytes

    def __len__(self) -> int:
        return self._count

    def add(self, rows: Sequence[Row]) -> None:
        """Take in `(id, passage, vector or code)`, by rising id."""
        import numpy as np

        if not rows:
            return
        packed = [row[2] for row in rows]
        values = _codes(packed) if self.coded else unpack_vectors(packed)
        stop = self._count + len(rows)
        if stop > len(self._passages):
            room = max(stop, 2 * self._count)
            passages, self._passages = self._passages, np.empty(room, np.int64)
            self._passages[: self._count] = passages[: self._count]
            held, self._values = self._used(), self._room(values, room)
            if self._count:
                self._used()[:] = held
        self._passages[self._count : stop] = [row[1] for row in rows]
        start, self._count = self._count, stop
        new = self._used()[:, start:] if self.coded else self._used()[start:]
        new[:] = values
        self.last = rows[-1][0]

    def _room(self, like: NDArray[np.generic], room: int) -> Any:
        import numpy as np

        shape = (len(like), room) if self.coded else (room, like.shape[1])
        return np.empty(shape, like.dtype)

    def _used(self) -> Any:
        return self._values[:, : self._count] if self.coded else self._values[: self._count]

    def search(
        self, vector: Sequence[float], limit: int, allowed: NDArray[np.int64] | None
    ) -> list[tuple[int, float]]:
        """The nearest passages, best first; scores are cosines, or for codes a likeness."""
        import numpy as np

        if not self._count or limit <= 0:
            return []
        passages, values = self._passages[: self._count], self._used()
        if allowed is not None:
            kept = np.flatnonzero(np.isin(passages, allowed))
            passages = passages[kept]
            values = values[:, kept] if self.coded else values[kept]
        scores = _likeness(values, vector) if self.coded else _dots(values, _unit(vector))
        chosen = _highest(scores, limit)
        chosen = chosen[np.lexsort((-passages[chosen], -scores[chosen]))][:limit]
        return list(zip(passages[chosen].tolist(), scores[chosen].tolist(), strict=True))


def _dots(
    rows: NDArray[np.float32], vector: NDArray[np.float32], block: int = 1_000
) -> NDArray[np.float32]:
    """Each row times the vector, in blocks too small for BLAS to start threads on."""
    import numpy as np

    scores = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), block):
        np.dot(rows[start : start + block], vector, out=scores[start : start + block])
    return scores


def _codes(packed: Sequence[bytes]) -> NDArray[np.uint64]:
    import numpy as np

    return np.frombuffer(b"".join(packed), np.uint64).reshape(len(packed), -1).T


def _likeness(codes: NDArray[np.uint64], vector: Sequence[float]) -> NDArray[np.int16]:
    """How few signs of each code differ from the vector's: 0 where none does."""
    import numpy as np

    query = np.frombuffer(code_of(pack_vector(vector)), np.uint64)
    likeness = np.zeros(codes.shape[1], np.int16)
    for word, column in zip(query, codes, strict=True):
        likeness -= np.bitwise_count(column ^ word)
    return likeness


def _highest(scores: NDArray[Any], limit: int) -> NDArray[np.intp]:
    """The places of at least the `limit` highest scores, in no order."""
    import numpy as np

    if len(scores) <= limit:
        return np.arange(len(scores))
    if len(scores) > 64 * limit:  # a guess from some of them spares sorting all
        some = scores[::16]
        near = max(len(some) - limit // 8 - 8, 0)
        chosen = np.flatnonzero(scores >= np.partition(some, near)[near])
        if len(chosen) >= limit:
            return chosen
    return np.argpartition(scores, len(scores) - limit)[-limit:]


class Shelves:
    """The shelves in use, the least used given up when they hold too much memory."""

    def __init__(self, max_bytes: int = SHELF_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._shelves: OrderedDict[tuple[str, str, int], tuple[threading.Lock, Shelf]]
        self._shelves = OrderedDict()

    def search(
        self,
        db: VectorTable,
        key: tuple[str, str],
        vector: Sequence[float],
        limit: int,
        allowed: NDArray[np.int64] | None,
    ) -> list[tuple[int, float]]:
        """The passages nearest to the vector, by cosine."""
        lock, shelf = self._shelf(db, key, len(vector))
        wanted = max(RESCORED, limit) if shelf.coded else limit
        while True:
            with lock:
                self._catch_up(db, key, shelf)
                found = shelf.search(vector, wanted, allowed)
            near = self._look(db, key, vector, found, shelf.coded)
            if len(near) >= limit or len(found) < wanted:
                shelf.missing += len(found) - len(near)
                return near[:limit]
            wanted *= 4  # what was forgotten must not stand before what is there

    @staticmethod
    def _look(
        db: VectorTable,
        key: tuple[str, str],
        vector: Sequence[float],
        found: list[tuple[int, float]],
        coded: bool,
    ) -> list[tuple[int, float]]:
        """Those of the finds that are still there; for codes, scored by their vectors."""
        passages = [passage for passage, _ in found]
        if coded:
            return cosines(db.vectors_of(key, passages), vector, len(found))
        there = db.vectors_there(key, passages)
        return [find for find in found if find[0] in there]

    def _shelf(
        self, db: VectorTable, key: tuple[str, str], length: int
    ) -> tuple[threading.Lock, Shelf]:
        place = (*key, length)  # a forgotten user may come back with another model of that name
        with self._lock:
            held = self._shelves.get(place)
            if held is None or self._is_worn(held[1]):
                held = threading.Lock(), Shelf(coded=db.count_vectors(key) > EXACT_UP_TO)
                self._shelves[place] = held
            self._shelves.move_to_end(place)
            while len(self._shelves) > 1 and self._nbytes() > self._max_bytes:
                self._shelves.popitem(last=False)
            return held

    def _nbytes(self) -> int:
        return sum(shelf.nbytes for _, shelf in self._shelves.values())

    @staticmethod
    def _is_worn(shelf: Shelf) -> bool:
        """Whether too much on it is gone from the store, or it outgrew its kind."""
        outgrown = not shelf.coded and len(shelf) > 2 * EXACT_UP_TO
        return outgrown or shelf.missing > max(100, len(shelf) // 20)

    @staticmethod
    def _catch_up(db: VectorTable, key: tuple[str, str], shelf: Shelf) -> None:
        while rows := db.vectors_since(key, shelf.last, shelf.coded):
            shelf.add(rows)


class VectorTable(Protocol):
    """Where a shelf is filled from. A key is an owner and an embedder."""

    def count_vectors(self, key: tuple[str, str]) -> int: ...
    def vectors_since(self, key: tuple[str, str], last: int, coded: bool) -> list[Row]:
        """Some of `(id, passage, vector or code)` after id `last`, by rising id."""

    def vectors_of(self, key: tuple[str, str], passages: list[int]) -> list[Row]:
        """`(passage, vector)` of those that are still there."""

    def vectors_there(self, key: tuple[str, str], passages: list[int]) -> set[int]:
        """Those that are still there."""
