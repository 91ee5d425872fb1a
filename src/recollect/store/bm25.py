"""BM25 over lists of places: which records hold the words, and how well they fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from recollect.records.query import Found

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]

PIECES = 1_048_576  # a message's passages have the ids from PIECES * seq upward
K1 = 1.0
POOL = 400  # so many records, best by their words alone, have their lengths looked at


def records_of(passages: Ids) -> Ids:
    """The message a passage is of; a derived passage stands for itself."""
    import numpy as np

    return np.where(passages > 0, passages // PIECES, passages)


def rank(
    places: Sequence[Ids], total: int, lengths_of: Callable[[list[int]], dict[int, int]], limit: int
) -> list[Found]:
    """The best records for terms that stand at these places, once for each time.

    A message is one record however many passages it has; the first one that holds the rarest
    of the terms stands for it.
    """
    import numpy as np

    places = sorted((place for place in places if len(place)), key=len)
    if not places or limit <= 0:
        return []
    counted = [np.unique(records_of(place), return_counts=True) for place in places]
    records, first = np.unique(np.concatenate([records_of(it) for it in places]), return_index=True)
    passages = np.concatenate(places)[first]
    counts = np.zeros((len(counted), len(records)), np.float32)
    for row, (held, count) in enumerate(counted):
        counts[row, np.searchsorted(records, held)] = count
    found = np.array([len(held) for held, _ in counted], np.float32)
    idf = np.log1p((max(total, len(records)) - found + 0.5) / (found + 0.5))[:, None]
    pool = np.sort(_best((idf * counts / (counts + K1)).sum(axis=0), max(POOL, limit)))
    by_record = lengths_of(records[pool].tolist())
    known = np.array([by_record.get(record, 0) for record in records[pool].tolist()], np.float32)
    counts = counts[:, pool]
    scores = (idf * counts / (counts + K1 * _length_norm(known))).sum(axis=0)
    best = _best(scores, limit)
    return [Found(int(passages[pool[it]]), float(scores[it])) for it in best]


def _length_norm(lengths: NDArray[np.float32]) -> NDArray[np.float32]:
    """How much longer than usual each is. It counts the more, the more the lengths differ:
    among short turns a longer one says more, among turns and essays it is only longer.
    """
    mean = max(float(lengths.mean()), 1.0)
    share = min(max(1.2 * float(lengths.std()) / mean, 0.3), 1.0)
    return 1 - share + share * lengths / mean


def _best(scores: NDArray[np.float32], limit: int) -> NDArray[np.intp]:
    """The places of the highest scores, best first; of equals the later."""
    import numpy as np

    if len(scores) > limit:
        bar = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        above, equal = np.flatnonzero(scores > bar), np.flatnonzero(scores == bar)
        chosen = np.concatenate([above, equal[len(above) - limit :]])
    else:
        chosen = np.arange(len(scores))
    return chosen[np.lexsort((-chosen, -scores[chosen]))]
