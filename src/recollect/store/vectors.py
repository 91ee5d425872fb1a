"""Exact vector search, for databases that have none of their own."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.store.engine import Row


def pack_vector(values: Sequence[float]) -> bytes:
    """A vector as little-endian 32-bit floats."""
    import numpy as np  # here, so that `import recollect` stays light

    return np.asarray(values, dtype="<f4").tobytes()


def cosines(rows: Sequence[Row], vector: Sequence[float], limit: int) -> list[tuple[int, float]]:
    """The `limit` packed vectors nearest to `vector`, as (passage, cosine), best first."""
    import numpy as np

    if not rows:
        return []
    matrix = np.frombuffer(b"".join(row[1] for row in rows), dtype="<f4").reshape(len(rows), -1)
    query = np.asarray(vector, dtype="<f4")
    norms = np.linalg.norm(matrix, axis=1) * np.linalg.norm(query)
    scores = np.divide(matrix @ query, norms, out=np.zeros(len(rows), "<f4"), where=norms > 0)
    best = np.argsort(-scores, kind="stable")[:limit]
    return [(rows[place][0], float(scores[place])) for place in best]
