"""BM25 over posting lists: which records hold the words, and how well they match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memorist.records.query import Found, many
from memorist.records.values import PASSAGES_PER_MESSAGE

Ids = NDArray[np.int64]

K1 = 1.0
CANDIDATES = 8_000  # postings of the rarest terms make candidates; other terms only add to scores
POOL = 200  # records, best by their words alone, whose lengths are read
LEAST_RECORDS = 1_000  # that shares are told by: among few records no word is rare


def records_of(passages: Ids) -> Ids:
    """The message of each passage; a passage of a derived record is a record of its own."""
    return np.where(passages > 0, passages // PASSAGES_PER_MESSAGE, passages)


class Near(NamedTuple):
    """The postings of a term or of its synonym: the term's number, and the weight."""

    postings: Ids
    of: int
    worth: float


def rank(
    postings: Sequence[Ids],
    total: int,
    lengths_of: Callable[[list[int]], Sequence[int]],
    limit: int,
    near: Sequence[Near] = (),
    absent: int = 0,
) -> list[Found]:
    """The best records for terms with these rising postings, one for each occurrence.

    A message is one record however many passages it has; its first passage with the rarest of the
    terms represents it. Where terms have many postings, a record must hold one of the rarer terms.
    Of a term and its synonyms, the one that scores best counts. `absent` terms no record holds.
    """
    asked = _rarest_first([Near(ids, number, 1.0) for number, ids in enumerate(postings)])
    words = [*asked, *_rarest_first(near)]
    if not words or limit <= 0:
        return []
    sizes = [len(word.postings) for word in words]
    rarer = max(int(np.searchsorted(np.cumsum(sizes[: len(asked)]), CANDIDATES, "right")), 1)
    passages = np.concatenate([word.postings for word in words])
    records, terms = records_of(passages), np.repeat(np.arange(len(words)), sizes)
    order = np.argsort(records, kind="stable")  # fast, since each list is sorted already
    records, terms = records[order], terms[order]
    # Each record begins with the rarest of its terms; a term follows once for each occurrence.
    begins = _changes(records)
    first = np.flatnonzero(begins)
    pairs = np.flatnonzero(begins | _changes(terms))
    record_of, term_of = np.cumsum(begins)[pairs] - 1, terms[pairs]
    counts = np.diff(pairs, append=len(records)).astype(np.float32)
    leaders: dict[int, int] = {}  # the first word of each term: the term itself, if it occurs
    of = np.array([leaders.setdefault(word.of, number) for number, word in enumerate(words)])
    columns = np.argsort(of, kind="stable")
    grouped = columns, np.flatnonzero(_changes(of[columns]))
    documents = np.bincount(term_of).astype(np.float32)
    idf = _idf(documents, total, of, len(asked))
    worths = np.array([word.worth for word in words], np.float32)
    is_near = term_of >= len(asked)
    by_words = _by_words(record_of, (idf * worths)[term_of] * counts / (counts + K1), is_near)
    makes = terms[first] < rarer
    makes[record_of[is_near]] = True
    candidates = np.flatnonzero(makes)
    pool = candidates[np.sort(_best(by_words[candidates], max(POOL, limit)))]
    lengths = np.maximum(np.array(lengths_of(records[first[pool]].tolist()), np.float32), 1)
    frequencies = _table(pool, len(first), record_of, term_of, counts)
    # The more the lengths differ, the stronger they are normalised: among short turns a longer
    # one says more, among turns and essays it is only longer.
    mean = float(lengths.mean())
    share = min(max(1.2 * float(lengths.std()) / mean, 0.3), 1.0)
    norms = 1 - share + share * lengths / mean
    fits = frequencies / (frequencies + K1 * norms[:, None])
    scores = _by_term(idf * worths * fits, grouped)
    best = _best(scores, limit)
    chosen, full = passages[order[first[pool[best]]]], _by_term(idf * fits[best], grouped)
    total = max(total, LEAST_RECORDS)
    weights = _idf(documents, total, of, len(asked))
    held = _by_term(weights * worths * (frequencies[best] > 0), grouped)
    wanted = float(weights[: len(asked)].sum()) + absent * float(np.log1p(2 * total + 1))
    found = (chosen, scores[best], full, np.minimum(held / max(wanted, 1e-6), 1.0))
    return many(Found, zip(*(column.tolist() for column in found), strict=True))


def _changes(values: Ids) -> NDArray[np.bool_]:
    """Where a value differs from the one before it; the first one does."""
    changes = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes


def _rarest_first(words: Sequence[Near]) -> list[Near]:
    return sorted((word for word in words if len(word.postings)), key=lambda it: len(it.postings))


def _idf(documents: NDArray[np.float32], total: int, of: Ids, asked: int) -> NDArray[np.float32]:
    """The inverse document frequency of each word; that of a synonym at most that of its term.

    The first `asked` words are the terms themselves.
    """
    most = max(total, documents.max())
    idf: NDArray[np.float32] = np.log1p((most - documents + 0.5) / (documents + 0.5))
    return np.where(of < asked, np.minimum(idf, idf[of]), idf)


def _by_words(
    record_of: Ids, scores: NDArray[np.float32], is_near: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """About what each record scores: all of its terms, and the best of its synonyms."""
    terms = np.bincount(record_of, np.where(is_near, 0, scores)).astype(np.float32)
    near = np.zeros_like(terms)
    np.maximum.at(near, record_of[is_near], scores[is_near])
    return terms + near


def _by_term(fits: NDArray[np.floating], grouped: tuple[Ids, Ids]) -> NDArray[np.float32]:
    """The score of each record (row): for each term the best of its words (columns), summed.

    `grouped` is the columns in the order of their terms, and where each term begins in it.
    """
    columns, starts = grouped
    if len(starts) < len(columns):
        fits = np.maximum.reduceat(fits[:, columns], starts, axis=1)
    scores: NDArray[np.float32] = fits.sum(axis=1).astype(np.float32)
    return scores


def _table(
    pool: Ids, records: int, record_of: Ids, term_of: Ids, counts: NDArray[np.float32]
) -> NDArray[np.float32]:
    """How often each term, in columns, stands in each record of a pool, in rows."""
    rows = np.full(records, -1)
    rows[pool] = np.arange(len(pool))
    row_of = rows[record_of]
    inside = np.flatnonzero(row_of >= 0)
    table = np.zeros((len(pool), int(term_of.max()) + 1), np.float32)
    table[row_of[inside], term_of[inside]] = counts[inside]
    return table


def _best(scores: NDArray[np.float32], limit: int) -> NDArray[np.intp]:
    """The positions of the highest scores, best first; of equal ones the later first."""
    if len(scores) > limit:
        bar = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        above, equal = np.flatnonzero(scores > bar), np.flatnonzero(scores == bar)
        chosen = np.concatenate([above, equal[len(above) - limit :]])
    else:
        chosen = np.arange(len(scores))
    return chosen[np.lexsort((-chosen, -scores[chosen]))]
