"""The channels of recall: each finds passages for a question in its own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from memorist.errors import ProviderError
from memorist.language.names import in_first_person
from memorist.language.shorten import ends, gist
from memorist.language.stems import stem, term_stem
from memorist.language.stop_words import STOP_WORDS
from memorist.providers.embedder import Embedder
from memorist.records.query import Found, Query
from memorist.records.text import UNSPACED, fold
from memorist.store.base import Kin, Store, Term

LAST = 10


def find_recent(store: Store, query: Query) -> list[Found]:
    """The newest messages in the scope, newest first."""
    newest = store.newest(query.scope, limit=LAST, filters=query.filters)
    return [Found(passage, 1 - rank / LAST) for rank, passage in enumerate(newest)]


MAX_TERMS = 64
MAX_KIN = 24  # of all terms, the nearest

KinOf = Callable[[str], Sequence[tuple[str, float]]]
"""The stems of words that mean about what a word does, and how near to 1 each is."""


def no_kin(word: str) -> Sequence[tuple[str, float]]:
    """Nothing: for who goes by the words alone."""
    return ()


def terms_of(question: str) -> list[Term]:
    """The words worth looking for; characters of unspaced scripts go in pairs."""
    words = fold(question).split()
    kept = [word for word in words if word not in STOP_WORDS] or words
    terms: list[Term] = []
    for place, word in enumerate(kept):
        after = kept[place + 1] if place + 1 < len(kept) else ""
        if not UNSPACED.match(word):
            terms.append((word,))
        elif UNSPACED.match(after):
            terms.append((word, after))
        elif not (place and UNSPACED.match(kept[place - 1])):
            terms.append((word,))
    return ends(list(dict.fromkeys(terms)), MAX_TERMS)


def kin_of_all(terms: Sequence[Term], kin_of: KinOf, worth: float) -> list[Kin]:
    """The nearest kin of the terms: none of them twice, and no term.

    So much is worth what means the same, up to 1; less, the further it is from that.
    """
    if not worth > 0:
        return []
    asked = {term_stem(term) for term in terms}
    best: dict[str, Kin] = {}
    for term in terms:
        for word, near in kin_of(term[0]) if len(term) == 1 else ():
            if word not in asked and word not in _stop_stems():
                kin = Kin(word, term, min(worth, 1.0) * near)
                best[word] = max(best.get(word, kin), kin, key=lambda it: it.worth)
    return sorted(best.values(), key=lambda it: -it.worth)[:MAX_KIN]


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(map(stem, STOP_WORDS))


def find_words(store: Store, query: Query, depth: int, kin_of: KinOf, worth: float) -> list[Found]:
    """What shares words with the question, or has kin of them, best first."""
    terms = terms_of(query.question)
    kin = kin_of_all(terms, kin_of, worth)
    return store.match_text(query.scope, terms, kin=kin, limit=depth, filters=query.filters)


LONGEST_NAME = 4  # words
MAX_NAMES = 200
NAMES_BYTES = 600  # of a question, which hold about so many


def names_in(question: str) -> list[str]:
    """Every run of up to four words that may name a thing, folded as facts' ends are."""
    question = gist(question, NAMES_BYTES)
    words = fold(question).split()
    worth = {word for term in terms_of(question) for word in term}
    runs = (
        words[start : start + size]
        for size in range(1, LONGEST_NAME + 1)
        for start in range(len(words) - size + 1)
    )
    found = (" ".join(run) for run in runs if worth.intersection(run))
    return list(dict.fromkeys(found))[:MAX_NAMES]


def find_links(store: Store, query: Query, depth: int) -> list[Found]:
    """Facts about what the question names, facts that share a thing with those, their sources."""
    names = names_in(query.question)
    return store.match_links(query.scope, names, limit=depth, filters=query.filters)


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
