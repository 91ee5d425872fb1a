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
CANDIDATES = 8_000  # places of the rarest terms that make the candidates; the others only count
POOL = 200  # so many records, best by their words alone, have their lengths looked at


def records_of(passages: Ids) -> Ids:
    """The message a passage is of; a derived passage stands for itself."""
    import numpy as np

    return np.where(passages > 0, passages // PIECES, passages)


def rank(
    places: Sequence[Ids], total: int, lengths_of: Callable[[list[int]], dict[int, int]], limit: int
) -> list[Found]:
    """The best records for terms that stand at these rising places, once for each time.

    A message is one record however many passages it has; the first one that holds the rarest
    of the terms stands for it. Where terms stand in many places, a record must hold one of the
    rarer ones.
    """
    import numpy as np

    places = sorted((place for place in places if len(place)), key=len)
    if not places or limit <= 0:
        return []
    held = [records_of(place) for place in places]
    read = np.cumsum([len(place) for place in places])
    rarer = max(int(np.searchsorted(read, CANDIDATES, "right")), 1)
    records = np.sort(np.concatenate(held[:rarer]))
    records = records[np.diff(records, prepend=records[0] - 1) != 0]
    counts = np.array([_counts(records, each) for each in held], np.float32)
    found = np.array([1 + np.count_nonzero(np.diff(each)) for each in held], np.float32)
    idf = np.log1p((max(total, found.max()) - found + 0.5) / (found + 0.5))[:, None]
    pool = np.sort(_best((idf * counts / (counts + K1)).sum(axis=0), max(POOL, limit)))
    by_record = lengths_of(records[pool].tolist())
    known = np.array([by_record.get(record, 0) for record in records[pool].tolist()], np.float32)
    known = np.maximum(known, 1)  # what says nothing is found by its date
    counts = counts[:, pool]
    scores = (idf * counts / (counts + K1 * _length_norm(known))).sum(axis=0)
    best = _best(scores, limit)
    chosen = records[pool[best]]
    passages = _first_places(chosen, places, held)
    return [Found(*pair) for pair in zip(passages.tolist(), scores[best].tolist(), strict=True)]


def _first_places(records: Ids, places: Sequence[Ids], held: Sequence[Ids]) -> Ids:
    """For each record a passage of it: the first that holds the rarest of its terms."""
    import numpy as np

    chosen = np.zeros(len(records), np.int64)
    for place, each in zip(reversed(places), reversed(held), strict=True):
        at = np.minimum(np.searchsorted(each, records), len(each) - 1)
        chosen = np.where(each[at] == records, place[at], chosen)
    return chosen


def _counts(records: Ids, held: Ids) -> NDArray[np.intp]:
    """How often each of some sorted records stands in a list."""
    import numpy as np

    at = np.minimum(np.searchsorted(records, held), len(records) - 1)
    return np.bincount(at[records[at] == held], minlength=len(records))


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
