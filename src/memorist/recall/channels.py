"""The channels of recall: each finds passages for a question in its own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from memorist.errors import ProviderError
from memorist.language.questions import first_and_last, in_first_person, shorten_middle
from memorist.language.words import ranking_stop_words, stem, term_stem
from memorist.providers.embedder import Embedder
from memorist.records.query import Found, Query
from memorist.records.text import UNSPACED, fold
from memorist.store.base import Store, Synonym, Term

LAST = 10


def find_recent(store: Store, query: Query) -> list[Found]:
    """The newest messages in the scope, newest first."""
    newest = store.newest(query.scope, limit=LAST, filters=query.filters)
    return [Found(passage, 1 - rank / LAST) for rank, passage in enumerate(newest)]


MAX_TERMS = 64
MAX_SYNONYMS = 24  # of all terms, the nearest

SynonymsOf = Callable[[str], Sequence[tuple[str, float]]]
"""The stems of words that mean about what a word does, and how near to 1 each is."""


def no_synonyms(word: str) -> Sequence[tuple[str, float]]:
    """Nothing: for who goes by the words alone."""
    return ()


def terms_of(question: str) -> list[Term]:
    """The words worth looking for; characters of unspaced scripts go in pairs."""
    words = fold(question).split()
    stop_words = ranking_stop_words()
    kept = [word for word in words if word not in stop_words] or words
    terms: list[Term] = []
    for place, word in enumerate(kept):
        after = kept[place + 1] if place + 1 < len(kept) else ""
        if not UNSPACED.match(word):
            terms.append((word,))
        elif UNSPACED.match(after):
            terms.append((word, after))
        elif not (place and UNSPACED.match(kept[place - 1])):
            terms.append((word,))
    return first_and_last(list(dict.fromkeys(terms)), MAX_TERMS)


def synonyms_of_all(terms: Sequence[Term], synonyms_of: SynonymsOf, worth: float) -> list[Synonym]:
    """The nearest synonyms of the terms: none of them twice, and no term.

    So much is worth what means the same, up to 1; less, the further it is from that.
    """
    if not worth > 0:
        return []
    asked = {term_stem(term) for term in terms}
    best: dict[str, Synonym] = {}
    for term in terms:
        for word, near in synonyms_of(term[0]) if len(term) == 1 else ():
            if word not in asked and word not in _stop_stems():
                synonym = Synonym(word, term, min(worth, 1.0) * near)
                best[word] = max(best.get(word, synonym), synonym, key=lambda it: it.worth)
    return sorted(best.values(), key=lambda it: -it.worth)[:MAX_SYNONYMS]


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(map(stem, ranking_stop_words()))


def find_words(
    store: Store, query: Query, depth: int, synonyms_of: SynonymsOf, worth: float
) -> list[Found]:
    """What shares words with the question, or has synonyms of them, best first."""
    terms = terms_of(query.question)
    synonyms = synonyms_of_all(terms, synonyms_of, worth)
    return store.match_text(
        query.scope, terms, synonyms=synonyms, limit=depth, filters=query.filters
    )


LONGEST_NAME = 4  # words
MAX_NAMES = 200
NAMES_BYTES = 600  # of a question, which hold about so many


def names_in(question: str) -> list[str]:
    """Every run of up to four words that may name a thing, folded as facts' ends are."""
    question = shorten_middle(question, NAMES_BYTES)
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
    """The vector of the shortened question, asked as the people it names would ask it."""
    import numpy as np

    asked = in_first_person(shorten_middle(question), names)
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
