"""BM25 over lists of places: which records hold the words, and how well they fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from memorist.records.ids import PASSAGES_PER_MESSAGE
from memorist.records.query import Found

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]

K1 = 1.0
CANDIDATES = 8_000  # places of the rarest terms that make the candidates; the others only count
POOL = 200  # so many records, best by their words alone, have their lengths looked at


def records_of(passages: Ids) -> Ids:
    """The message a passage is of; a derived passage stands for itself."""
    import numpy as np

    return np.where(passages > 0, passages // PASSAGES_PER_MESSAGE, passages)


class Near(NamedTuple):
    """Where a word stands that is near to one of the terms: to which, and what it is worth."""

    places: Ids
    of: int
    worth: float


def rank(
    places: Sequence[Ids],
    total: int,
    lengths_of: Callable[[list[int]], dict[int, int]],
    limit: int,
    near: Sequence[Near] = (),
) -> list[Found]:
    """The best records for terms that stand at these rising places, once for each time.

    A message is one record however many passages it has; the first one that holds the rarest
    of the terms stands for it. Where terms stand in many places, a record must hold one of the
    rarer ones. A near word counts instead of its term, where that counts less: not beside it.
    """
    import numpy as np

    asked = _rarest_first([Near(there, of, 1.0) for of, there in enumerate(places)])
    words = [*asked, *_rarest_first(near)]
    if not words or limit <= 0:
        return []
    sizes = [len(word.places) for word in words]
    rarer = max(int(np.searchsorted(np.cumsum(sizes[: len(asked)]), CANDIDATES, "right")), 1)
    passages = np.concatenate([word.places for word in words])
    records, terms = records_of(passages), np.repeat(np.arange(len(words)), sizes)
    order = np.argsort(records, kind="stable")  # which merges what rises already
    records, terms = records[order], terms[order]
    # A record begins with the rarest of its terms, and each of them follows once for each time.
    begins = np.diff(records, prepend=records[0] - 1) != 0
    first = np.flatnonzero(begins)
    pairs = np.flatnonzero(begins | (np.diff(terms, prepend=-1) != 0))
    record_of, term_of = np.cumsum(begins)[pairs] - 1, terms[pairs]
    counts = np.diff(pairs, append=len(records)).astype(np.float32)
    of = _leaders(words)
    tells = _tells(np.bincount(term_of).astype(np.float32), total, of, len(asked))
    worth = tells * np.array([word.worth for word in words], np.float32)
    is_near = term_of >= len(asked)
    by_words = _by_words(record_of, worth[term_of] * counts / (counts + K1), is_near)
    makes = terms[first] < rarer
    makes[record_of[is_near]] = True
    candidates = np.flatnonzero(makes)
    pool = candidates[np.sort(_best(by_words[candidates], max(POOL, limit)))]
    ids = records[first[pool]].tolist()
    by_record = lengths_of(ids)
    # What says nothing is found by its date.
    known = np.array([max(by_record.get(record, 1), 1) for record in ids], np.float32)
    held = _table(pool, len(first), record_of, term_of, counts)
    fits = held / (held + K1 * _length_norm(known)[:, None])
    scores = _by_term(worth * fits, of)
    best = _best(scores, limit)
    full = _by_term(tells * fits[best], of)
    chosen = passages[order[first[pool[best]]]]
    return list(map(Found, chosen.tolist(), scores[best].tolist(), full.tolist()))


def _rarest_first(words: Sequence[Near]) -> list[Near]:
    return sorted((word for word in words if len(word.places)), key=lambda it: len(it.places))


def _leaders(words: Sequence[Near]) -> Ids:
    """For each word the number of the one that leads its term: the term itself, if it is there."""
    import numpy as np

    leaders: dict[int, int] = {}
    return np.array([leaders.setdefault(word.of, number) for number, word in enumerate(words)])


def _tells(found: NDArray[np.float32], total: int, of: Ids, asked: int) -> NDArray[np.float32]:
    """How much each word tells: the more, the fewer records hold it. The first so many are the
    terms asked for; a near one tells at most as much as its own.
    """
    import numpy as np

    idf: NDArray[np.float32] = np.log1p((max(total, found.max()) - found + 0.5) / (found + 0.5))
    return np.where(of < asked, np.minimum(idf, idf[of]), idf)


def _by_words(
    record_of: Ids, scores: NDArray[np.float32], is_near: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """About what each record scores: all of its terms, and of its near words the best one."""
    import numpy as np

    terms = np.bincount(record_of, np.where(is_near, 0, scores)).astype(np.float32)
    near = np.zeros_like(terms)
    np.maximum.at(near, record_of[is_near], scores[is_near])
    return terms + near


def _by_term(fits: NDArray[np.floating], of: Ids) -> NDArray[np.float32]:
    """How well each record, in rows, fits: of a term and its near words, in columns, the best."""
    import numpy as np

    columns = np.argsort(of, kind="stable")
    starts = np.flatnonzero(np.diff(of[columns], prepend=-1))
    scores: NDArray[np.floating] = np.maximum.reduceat(fits[:, columns], starts, axis=1).sum(axis=1)
    return scores.astype(np.float32)


def _table(
    pool: Ids, records: int, record_of: Ids, term_of: Ids, counts: NDArray[np.float32]
) -> NDArray[np.float32]:
    """How often each term, in columns, stands in each record of a pool, in rows."""
    import numpy as np

    rows = np.full(records, -1)
    rows[pool] = np.arange(len(pool))
    row_of = rows[record_of]
    inside = np.flatnonzero(row_of >= 0)
    table = np.zeros((len(pool), int(term_of.max()) + 1), np.float32)
    table[row_of[inside], term_of[inside]] = counts[inside]
    return table


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
