"""What one process measures of a filled store: a cold recall, warm ones, and their references."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from benchmarks.metrics import percentiles
from benchmarks.scale_corpus import SMALL, Corpus, QueryEmbedder
from memorist import Memory, ProviderError

TENANT = "bench"
LIMIT = 10
WARM_UP = 20
SAME = 1e-3  # cosines closer than the store's 16 bits can tell apart
Figures = dict[str, Any]
Asked = Sequence[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Probe:
    """Which store, how much is in it, for how many users, and what to measure of it."""

    path: str
    size: int
    users: int
    asks: int
    plain: str | None = None
    cold: bool = True


def user_of(number: int, users: int) -> str:
    return f"u{number % users}"


def measure(probe: Probe) -> Figures:
    """All the figures, in a process that has not seen the store before."""
    corpus = Corpus()
    embedder = QueryEmbedder(corpus, real_model())
    asked = corpus.questions(probe.size, probe.asks + WARM_UP, seed=probe.users)
    embedder.prepare([text for _, text in asked])
    figures: Figures = {"real_query_embedding": embedder.model is not None}
    with Memory(probe.path, tenant=TENANT, embedder=embedder, extraction=None) as memory:
        ask = partial(recall_ms, memory, probe.users)
        if probe.cold:
            figures |= cold(embedder, ask, asked[0])
        figures |= warm(embedder, ask, asked)
        if probe.plain:
            figures |= beside_plain(memory, embedder, probe, asked[WARM_UP:])
    return figures


def real_model() -> Any:
    """The default embedder, loaded and warm; None where its weights are not installed."""
    try:
        from memorist.providers.minilm import MiniLM

        model = MiniLM()
        for _ in range(3):
            model.embed_query("what was it about the bicycle?")
    except (ImportError, ProviderError):
        return None
    return model


def recall_ms(
    memory: Memory, users: int, one: tuple[int, str], **settings: Any
) -> tuple[float, Any]:
    """How long one recall took, end to end, and what it gave."""
    number, text = one
    started = time.perf_counter()
    recall = memory.recall(text, user=user_of(number, users), limit=LIMIT, **settings)
    return (time.perf_counter() - started) * 1_000, recall


def cold(
    embedder: QueryEmbedder, ask: Callable[..., tuple[float, Any]], one: tuple[int, str]
) -> Figures:
    """The first recall of a process, and the memory that it fills."""
    embedder.is_free = True
    before = resident_bytes()
    took_ms, _ = ask(one, deadline_ms=None)
    embedder.is_free = False
    return {"cold_ms": took_ms, "cold_bytes": resident_bytes() - before}


def warm(embedder: QueryEmbedder, ask: Callable[..., tuple[float, Any]], asked: Asked) -> Figures:
    """Recall whole, without the query's embedding, and at the default deadline."""
    for one in asked[:WARM_UP]:
        ask(one, deadline_ms=None)
    rest = asked[WARM_UP:]
    figures: Figures = {}
    for name, free, settings in (
        ("end_to_end", False, {"deadline_ms": None}),
        ("engine", True, {"deadline_ms": None}),
        ("default_deadline", False, {}),
    ):
        embedder.is_free = free
        answers = [ask(one, **settings) for one in rest]
        figures[name] = percentiles([took for took, _ in answers])
        figures[f"{name}_late"] = sum(bool(recall.late) for _, recall in answers)
        figures[f"{name}_channels"] = channels([recall.timings_ms for _, recall in answers])
    return figures


def channels(timings: Sequence[dict[str, float]]) -> dict[str, dict[str, float]]:
    """The distribution of each channel's time."""
    names = {name for one in timings for name in one}
    return {
        name: percentiles([one[name] for one in timings if name in one]) for name in sorted(names)
    }


def beside_plain(memory: Memory, embedder: QueryEmbedder, probe: Probe, asked: Asked) -> Figures:
    """The plain ways on the same data: one matrix product, and one FTS5 query."""
    matrix = embedder.embed(list(Corpus().texts(0, probe.size)))
    queries = [embedder.embed_query(text) for _, text in asked]
    taken, best = [], []
    for query in queries:
        started = time.perf_counter()
        best.append(highest(matrix @ query))
        taken.append((time.perf_counter() - started) * 1_000)
    scope = memory.scope(user=user_of(0, probe.users))
    shares = []
    for query, exact in zip(queries, best, strict=True):
        found = memory.store.match_vector(scope, embedder.name, query.tolist(), limit=LIMIT)
        near = sum(one.score >= exact[-1] - SAME for one in found)
        shares.append(min(near, LIMIT) / min(LIMIT, len(matrix)))
    return {
        "numpy_ms": percentiles(taken),
        "vector_recall@10": float(np.mean(shares)),
        "fts5_ms": percentiles(plain_words_ms(str(probe.plain), [text for _, text in asked])),
    }


def highest(scores: Any) -> list[float]:
    """The ten highest scores, highest first."""
    count = min(LIMIT, len(scores))
    places = np.argpartition(scores, len(scores) - count)[-count:]
    return sorted(scores[places].tolist(), reverse=True)


def plain_words_ms(path: str, texts: Sequence[str]) -> list[float]:
    """How long FTS5 takes for the same words, joined by OR and ranked by its own bm25."""
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    query = "SELECT rowid FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?"
    taken = []
    for text in texts:
        words = [word for word in text.strip("?").split() if word not in SMALL]
        started = time.perf_counter()
        db.execute(query, (" OR ".join(words), LIMIT)).fetchall()
        taken.append((time.perf_counter() - started) * 1_000)
    return taken


def resident_bytes() -> int:
    """The memory this process holds now; where the system does not say, the most it ever held."""
    pages = Path("/proc/self/statm")
    if pages.exists():
        return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
