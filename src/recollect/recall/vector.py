"""The meaning channel: what lies near the question, whatever words it uses."""

from __future__ import annotations

from collections.abc import Iterable

from recollect.providers.embedder import Embedder
from recollect.recall.names import in_first_person
from recollect.records.query import Found, Query
from recollect.store.base import Store


def find_meaning(
    store: Store, embedder: Embedder, query: Query, names: Iterable[str], depth: int
) -> list[Found]:
    """The passages nearest to the question, best first."""
    asked = in_first_person(query.question, names)
    vector = embedder.embed_query(asked).reshape(-1).tolist()
    return store.match_vector(
        query.scope, embedder.name, vector, limit=depth, filters=query.filters
    )
