"""Search: run the channels and say what each found, and how long it took."""

from __future__ import annotations

import time
from datetime import datetime

from recollect.recall.lexical import search_words
from recollect.records.query import Hit, Match, Recall, Why
from recollect.records.scope import Scope
from recollect.store.base import Store


def search(store: Store, scope: Scope, question: str, *, limit: int, now: datetime) -> Recall:
    """The best hits in the scope, each with its reason."""
    started = time.perf_counter()
    found = search_words(store, scope, question, limit)
    took = (time.perf_counter() - started) * 1_000
    hits = tuple(_hit(match, rank, now) for rank, match in enumerate(found, start=1))
    return Recall(hits=hits, timings_ms={"words": took})


def _hit(match: Match, rank: int, now: datetime) -> Hit:
    why = Why(ranks={"words": rank}, scores={"words": match.score}, age=now - match.created_at)
    return Hit(
        kind=match.kind,
        id=match.id,
        text=match.text,
        score=match.score,
        created_at=match.created_at,
        why=why,
        session_id=match.session_id,
        role=match.role,
    )
