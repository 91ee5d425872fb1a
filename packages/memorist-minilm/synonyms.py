"""Which words mean about the same: those whose vectors lie nearest to each other.

A word is looked up as it is asked for, since "doctors" are not "doctoral"; its synonyms are given
by their stems, as Memorist's index has them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from snowballstemmer import stemmer

MOST = 10
LEAST = 0.55  # how near, as a cosine
BLOCK = 1_000
# Near to each other, and never the same: a date or a number is that one and no other. Nor is
# what shares its stem, as Julie does July's: the index cannot tell them apart.
DISTINCT = frozenset(
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec "
    "monday tuesday wednesday thursday friday saturday sunday mondays fridays sundays "
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty "
    "ninety hundred thousand million billion dozen".split()
)


def synonym_lines(pieces: list[str], vectors: np.ndarray) -> Iterator[str]:
    """A line for each word that has synonyms: the word, then their stems and how near each is."""
    stem = stemmer("english").stemWord
    distinct = set(map(stem, DISTINCT))
    words = {
        piece: id_
        for id_, piece in enumerate(pieces)
        if piece.isascii() and piece.isalpha() and len(piece) > 1 and stem(piece) not in distinct
    }
    stems = list(map(stem, words))
    rows = vectors[list(words.values())].astype(np.float32)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    for start in range(0, len(stems), BLOCK):
        near = rows[start : start + BLOCK] @ rows.T
        for own, (word, cosines) in enumerate(zip(list(words)[start:], near, strict=False), start):
            there = np.flatnonzero(cosines >= LEAST)
            best: dict[str, float] = {}
            for place in there[np.argsort(-cosines[there], kind="stable")]:
                if stems[place] != stems[own]:
                    best.setdefault(stems[place], cosines[place])
            if best:
                synonyms = [f"{it}:{cosine:.2f}" for it, cosine in list(best.items())[:MOST]]
                yield " ".join([word, *synonyms])
