"""The meaning channel: what lies near the question, whatever words it uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memorist.errors import ProviderError
from memorist.language.names import in_first_person
from memorist.language.shorten import gist
from memorist.providers.embedder import Embedder
from memorist.records.query import Found, Query
from memorist.store.base import Store


def embed_question(embedder: Embedder, question: str, names: Iterable[str]) -> list[float]:
    """The vector of the question's gist, asked as those it names would ask it."""
    import numpy as np

    asked = in_first_person(gist(question), names)
    row = np.asarray(embedder.embed_query(asked), np.float32)
    if not np.isfinite(row).all():
        raise ProviderError("the embedder gave a vector that is not finite")
    vector: list[float] = row.reshape(-1).tolist()
    return vector


def find_meaning(
    store: Store, embedder: str, vector: Sequence[float], query: Query, depth: int
) -> list[Found]:
    """The passages nearest to the question, best first."""
    return store.match_vector(query.scope, embedder, vector, limit=depth, filters=query.filters)
