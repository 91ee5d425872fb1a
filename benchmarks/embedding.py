"""Embedders for benchmarks: the product's own, with vectors kept from one run to the next."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

if TYPE_CHECKING:
    from memorist.providers.embedder import Embedder, Vectors

BATCH = 64
EMBEDDERS = ("minilm", "static", "none")


class CachedEmbedder:
    """An embedder that makes the vector of a passage once in a cache's life.

    Each batch is committed as it is made, so that a run that was stopped goes on from there.
    Questions are never cached: their time is part of what is measured.
    """

    def __init__(self, inner: Embedder, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._inner = inner
        self._lock = threading.Lock()  # one connection, and embedders serve several threads
        self._db = apsw.Connection(str(folder / "vectors.db"))
        self._db.set_busy_timeout(60_000)
        self._db.pragma("journal_mode", "wal")
        self._db.pragma("synchronous", "normal")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID"
        )
        self.made = self.cached = 0
        self.seconds = 0.0

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def update_chances(self) -> Any:
        """The inner one's method, if it has one."""
        return getattr(self._inner, "update_chances", None)

    @property
    def confirm_updates(self) -> Any:
        """Likewise."""
        return getattr(self._inner, "confirm_updates", None)

    def embed(self, texts: Sequence[str]) -> Vectors:
        keys = [self._key(text) for text in texts]
        held = self._held(keys)
        wanted = {key: text for key, text in zip(keys, texts, strict=True) if key not in held}
        self.cached += len(texts) - len(wanted)
        missing = list(wanted.items())
        for start in range(0, len(missing), BATCH):
            held |= self._make(missing[start : start + BATCH])
        rows = [np.frombuffer(held[key], dtype="<f4") for key in keys]
        return np.stack(rows) if rows else np.zeros((0, 0), dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        return self._inner.embed_query(text)

    def report(self) -> str:
        """How much was made, how fast, and how much the cache spared."""
        if not self.made:
            return f"{self.cached:,} vectors from the cache, none made"
        rate = self.made / self.seconds
        return (
            f"{self.made:,} vectors made in {self.seconds:,.0f} s ({rate:,.0f}/s), "
            f"{self.cached:,} from the cache"
        )

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self.name}\0{text}".encode()).digest()

    def _held(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        query = "SELECT vector FROM vectors WHERE key = ?"
        with self._lock:
            found = ((key, self._db.execute(query, (key,)).get) for key in set(keys))
            return {key: vector for key, vector in found if vector is not None}

    def _make(self, batch: Sequence[tuple[bytes, str]]) -> dict[bytes, bytes]:
        started = time.perf_counter()
        vectors = self._inner.embed([text for _, text in batch])
        self.seconds += time.perf_counter() - started
        self.made += len(batch)
        rows = [
            (key, np.asarray(vector, dtype="<f4").tobytes())
            for (key, _), vector in zip(batch, vectors, strict=True)
        ]
        with self._lock, self._db:
            self._db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        return dict(rows)


def make_embedder(kind: str, cache: Path) -> CachedEmbedder | None:
    """The embedder of that name, cached; None is words only."""
    if kind == "none":
        return None
    if kind == "static":
        from memorist.providers.minilm import StaticEmbedder

        return CachedEmbedder(StaticEmbedder(), cache)
    from memorist.providers.minilm import MiniLM

    return CachedEmbedder(MiniLM(), cache)
