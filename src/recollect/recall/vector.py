"""The meaning channel: what lies near the question, whatever words it uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recollect.providers.embedder import Embedder
from recollect.recall.names import in_first_person
from recollect.records.query import Found, Query
from recollect.store.base import Store


def embed_question(embedder: Embedder, question: str, names: Iterable[str]) -> list[float]:
    """The question's vector, asked as those it names would ask it."""
    vector: list[float] = (
        embedder.embed_query(in_first_person(question, names)).reshape(-1).tolist()
    )
    return vector


def find_meaning(
    store: Store, embedder: str, vector: Sequence[float], query: Query, depth: int
) -> list[Found]:
    """The passages nearest to the question, best first."""
    return store.match_vector(query.scope, embedder, vector, limit=depth, filters=query.filters)
