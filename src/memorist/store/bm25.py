"""BM25 over posting lists: which records hold the words, and how well they match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

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
    pairs, terms, count = _pairs_of(words), _Terms.of(words), len(asked)
    documents = np.bincount(pairs.words).astype(np.float32)  # that hold each word
    worths = np.array([word.worth for word in words], np.float32)
    idf = _idf(documents, total, terms.leaders, count)
    by_words = _by_words(pairs, idf * worths, count)
    candidates = _candidates(pairs, asked)
    pool = candidates[np.sort(_best(by_words[candidates], max(POOL, limit)))]
    lengths = np.maximum(np.array(lengths_of(pairs.ids[pool].tolist()), np.float32), 1)
    frequencies = _table(pairs, pool)
    fits = frequencies / (frequencies + K1 * _norms(lengths)[:, None])
    scores = terms.scores(idf * worths * fits)
    best = _best(scores, limit)
    # How much of what was asked a record holds, by the weight of each term.
    total = max(total, LEAST_RECORDS)
    weights = _idf(documents, total, terms.leaders, count)
    held = terms.scores(weights * worths * (frequencies[best] > 0))
    wanted = float(weights[:count].sum()) + absent * float(np.log1p(2 * total + 1))
    shares = np.minimum(held / max(wanted, 1e-6), 1.0)
    found = (pairs.passages[pool[best]], scores[best], terms.scores(idf * fits[best]), shares)
    return many(Found, zip(*(column.tolist() for column in found), strict=True))


class _Pairs(NamedTuple):
    """Which records hold which words, and how often.

    The first three have a place for each record, by rising id, the others one for each pair of a
    record and a word that it holds, of which a record's rarest comes first.
    """

    ids: Ids
    passages: Ids  # the first one with the record's rarest word
    rarest: Ids  # the number of that word
    records: Ids  # places in the first three
    words: Ids  # numbers
    counts: NDArray[np.float32]


def _pairs_of(words: Sequence[Near]) -> _Pairs:
    passages = np.concatenate([word.postings for word in words])
    numbers = np.repeat(np.arange(len(words)), [len(word.postings) for word in words])
    records = records_of(passages)
    order = np.argsort(records, kind="stable")  # fast, since each list is sorted already
    passages, records, numbers = passages[order], records[order], numbers[order]
    begins = _changes(records)
    first = np.flatnonzero(begins)
    pairs = np.flatnonzero(begins | _changes(numbers))  # a word follows once for each occurrence
    counts = np.diff(pairs, append=len(records)).astype(np.float32)
    of_records = records[first], passages[first], numbers[first]
    return _Pairs(*of_records, np.cumsum(begins)[pairs] - 1, numbers[pairs], counts)


class _Terms(NamedTuple):
    """Which words are synonyms of which term.

    `leaders` has the first word of the term of each: the term itself, if it occurs. `columns` are
    the words in the order of their terms, and `starts` where each term begins among them.
    """

    leaders: Ids
    columns: Ids
    starts: Ids

    @classmethod
    def of(cls, words: Sequence[Near]) -> Self:
        first: dict[int, int] = {}
        leaders = np.array([first.setdefault(it.of, number) for number, it in enumerate(words)])
        columns = np.argsort(leaders, kind="stable")
        return cls(leaders, columns, np.flatnonzero(_changes(leaders[columns])))

    def scores(self, fits: NDArray[np.floating]) -> NDArray[np.float32]:
        """The score of each record (row): for each term the best of its words (columns), summed."""
        if len(self.starts) < len(self.columns):
            fits = np.maximum.reduceat(fits[:, self.columns], self.starts, axis=1)
        scores: NDArray[np.float32] = fits.sum(axis=1).astype(np.float32)
        return scores


def _changes(values: Ids) -> NDArray[np.bool_]:
    """Where a value differs from the one before it; the first one does."""
    changes = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes


def _rarest_first(words: Sequence[Near]) -> list[Near]:
    return sorted((word for word in words if len(word.postings)), key=lambda it: len(it.postings))


def _idf(
    documents: NDArray[np.float32], total: int, leaders: Ids, asked: int
) -> NDArray[np.float32]:
    """The inverse document frequency of each word; that of a synonym at most that of its term.

    The first `asked` words are the terms themselves.
    """
    most = max(total, documents.max())
    idf: NDArray[np.float32] = np.log1p((most - documents + 0.5) / (documents + 0.5))
    return np.where(leaders < asked, np.minimum(idf, idf[leaders]), idf)


def _by_words(pairs: _Pairs, weights: NDArray[np.float32], asked: int) -> NDArray[np.float32]:
    """About what each record scores: all of its terms, and the best of its synonyms."""
    scores = weights[pairs.words] * pairs.counts / (pairs.counts + K1)
    is_near = pairs.words >= asked
    terms = np.bincount(pairs.records, np.where(is_near, 0, scores)).astype(np.float32)
    near = np.zeros_like(terms)
    np.maximum.at(near, pairs.records[is_near], scores[is_near])
    return terms + near


def _candidates(pairs: _Pairs, asked: Sequence[Near]) -> Ids:
    """The places of records that hold one of the rarer terms, or a synonym."""
    postings = np.cumsum([len(term.postings) for term in asked])
    rarer = max(int(np.searchsorted(postings, CANDIDATES, "right")), 1)
    fits = pairs.rarest < rarer
    fits[pairs.records[pairs.words >= len(asked)]] = True
    return np.flatnonzero(fits)


def _norms(lengths: NDArray[np.float32]) -> NDArray[np.float32]:
    """How much longer than usual each record is.

    The more the lengths differ, the more that counts: among short turns a longer one says more,
    among turns and essays it is only longer.
    """
    mean = float(lengths.mean())
    share = min(max(1.2 * float(lengths.std()) / mean, 0.3), 1.0)
    return 1 - share + share * lengths / mean


def _table(pairs: _Pairs, pool: Ids) -> NDArray[np.float32]:
    """How often each word, in columns, stands in each record of a pool, in rows."""
    rows = np.full(len(pairs.ids), -1)
    rows[pool] = np.arange(len(pool))
    row_of = rows[pairs.records]
    inside = np.flatnonzero(row_of >= 0)
    table = np.zeros((len(pool), int(pairs.words.max()) + 1), np.float32)
    table[row_of[inside], pairs.words[inside]] = pairs.counts[inside]
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
