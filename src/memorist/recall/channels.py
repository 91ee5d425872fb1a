"""The channels of recall: each finds passages for a question in its own way.

A new channel is a function here, a line in `CHANNELS`, and a weight of its name in `Ranking`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from memorist.errors import ProviderError
from memorist.language import likeness
from memorist.language.lexicon import codes_of
from memorist.language.questions import first_and_last, in_first_person, shorten_middle
from memorist.language.text import ranking_stop_words, stem, stop_words, term_stem
from memorist.providers.embedder import Embedder
from memorist.records.query import Found, Query, Synonym, Term
from memorist.records.values import UNSPACED, fold
from memorist.store.base import Store
from memorist.store.engine import LateError

NEWEST = 10  # messages that the recency channel finds
MAX_TERMS = 64
MAX_SYNONYMS = 24  # of all terms together, the nearest
LONGEST_NAME = 4  # words
MAX_NAMES = 200
NAMES_BYTES = 600  # of a question: about as many as hold MAX_NAMES names

_WORD = re.compile(r"\w+")
SynonymsOf = Callable[[str], Sequence[tuple[str, float]]]
"""Maps a word to the stems of its synonyms, each with how near in meaning it is, up to 1."""


def no_synonyms(word: str) -> Sequence[tuple[str, float]]:
    """No synonyms at all: for a search by the question's own words."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelInput:
    """What a channel is given: the question, where to look, and how much to find."""

    store: Store
    query: Query
    terms: Sequence[Term]  # the words of the question that are worth looking for
    depth: int
    synonyms_of: SynonymsOf = no_synonyms
    synonym_weight: float = 0.0
    embedder: Embedder | None = None
    speakers: Callable[[], Iterable[str]] = tuple  # those that the question names
    is_abandoned: Callable[[], bool] = bool  # whether nobody waits for the channel any more


def find_recent(inputs: ChannelInput) -> list[Found]:
    """The newest messages, newest first: they may have no vector yet."""
    query = inputs.query
    newest = inputs.store.newest(query.scope, limit=NEWEST, filters=query.filters)
    return [Found(passage, 1 - rank / NEWEST) for rank, passage in enumerate(newest)]


def find_words(inputs: ChannelInput) -> list[Found]:
    """Passages that share words with the question, or synonyms of them, best first."""
    query, terms = inputs.query, inputs.terms
    synonyms = synonyms_of_all(terms, inputs.synonyms_of, inputs.synonym_weight)
    return inputs.store.match_text(
        query.scope, terms, synonyms=synonyms, limit=inputs.depth, filters=query.filters
    )


def find_links(inputs: ChannelInput) -> list[Found]:
    """Facts about what the question names, facts that share a thing with those, their sources."""
    query, names = inputs.query, names_in(inputs.query.question, inputs.terms)
    return inputs.store.match_links(query.scope, names, limit=inputs.depth, filters=query.filters)


def find_meaning(inputs: ChannelInput) -> list[Found]:
    """The passages nearest in meaning to the question, whatever words they use.

    A cosine of 0 is no likeness: of several such passages, chance would say which are found.
    """
    embedder, query = inputs.embedder, inputs.query
    if embedder is None:
        return []
    vector: list[float] = []
    if inputs.store.saves_trips and not likeness.names_in(query.question):
        # Whom it names is not known yet: mostly nobody, and then no time is lost by waiting.
        vector = embed_question(embedder, query.question, ())
    if (named := tuple(inputs.speakers())) or not vector:
        vector = embed_question(embedder, query.question, named)
    if inputs.is_abandoned():
        raise LateError("nobody waits for what is near in meaning any more")
    found = inputs.store.match_vector(
        query.scope, embedder.name, vector, limit=inputs.depth, filters=query.filters
    )
    return [find for find in found if find.score > 0]


@dataclass(frozen=True, slots=True)
class Channel:
    """A way to find passages.

    `merged` is its place when finds are merged: the first channel that found a record says which
    of its passages is shown. `fits` tells whether a find is a sign that the passage fits the
    question. `needs_embedder` has it run beside the others, as it mostly waits for a model.
    """

    name: str
    find: Callable[[ChannelInput], list[Found]]
    merged: int
    fits: bool = True
    needs_embedder: bool = False


# In the order in which they run: what is quick, and finds something in any case, comes first.
CHANNELS = (
    Channel("recency", find_recent, merged=4, fits=False),
    Channel("words", find_words, merged=1),
    Channel("links", find_links, merged=3),
    Channel("meaning", find_meaning, merged=2, needs_embedder=True),
)


def terms_of(question: str) -> list[Term]:
    """The words worth looking for; characters of unspaced scripts go in pairs."""
    words, unasked = fold(question).split(), _stop_words(question)
    kept = [word for word in words if word not in unasked] or words
    terms: list[Term] = [(word,) for word in kept] if question.isascii() else []
    for place, word in enumerate(() if terms else kept):
        after = kept[place + 1] if place + 1 < len(kept) else ""
        if not UNSPACED.match(word):
            terms.append((word,))
        elif UNSPACED.match(after):
            terms.append((word, after))
        elif not (place and UNSPACED.match(kept[place - 1])):
            terms.append((word,))
    return first_and_last(list(dict.fromkeys(terms)), MAX_TERMS)


def _stop_words(question: str) -> frozenset[str]:
    """The words that are not looked for: "ich" says nothing of a topic, "té" does, unlike "te"."""
    if "en" in (codes := codes_of(question)):
        return ranking_stop_words()
    own = stop_words("grammar", codes=tuple(codes)).intersection(_WORD.findall(question.lower()))
    return ranking_stop_words() | set(map(fold, own))


def synonyms_of_all(terms: Sequence[Term], synonyms_of: SynonymsOf, weight: float) -> list[Synonym]:
    """The nearest synonyms of the terms, none of them twice and none that is a term itself.

    One of exactly the same meaning counts `weight`, at most 1, and less the further it is.
    """
    if not weight > 0:
        return []
    asked, stop_stems = {term_stem(term) for term in terms}, _stop_stems()
    best: dict[str, Synonym] = {}
    for term in terms:
        for word, near in synonyms_of(term[0]) if len(term) == 1 else ():
            if word not in asked and word not in stop_stems:
                worth = min(weight, 1.0) * near
                if word not in best or worth > best[word].worth:
                    best[word] = Synonym(word, term, worth)
    return sorted(best.values(), key=lambda it: -it.worth)[:MAX_SYNONYMS]


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(map(stem, ranking_stop_words()))


def names_in(question: str, terms: Sequence[Term] | None = None) -> list[str]:
    """Every run of up to four words that may name a thing, folded as facts' ends are.

    `terms` are those of the question, where they are known.
    """
    short = shorten_middle(question, NAMES_BYTES)
    words = fold(short).split()
    known = terms_of(short) if terms is None or short is not question else terms
    worth = {word for term in known for word in term}
    telling = [word in worth for word in words]
    names = (
        " ".join(words[start : start + size])
        for size in range(1, LONGEST_NAME + 1)
        for start in range(len(words) - size + 1)
        if True in telling[start : start + size]
    )
    return list(dict.fromkeys(names))[:MAX_NAMES]


def embed_question(embedder: Embedder, question: str, speakers: Iterable[str]) -> list[float]:
    """The vector of the question, shortened, and in the first person of those it names."""
    import numpy as np

    row = np.asarray(
        embedder.embed_query(in_first_person(shorten_middle(question), speakers)), np.float32
    )
    if not np.isfinite(row).all():
        raise ProviderError("the embedder gave a vector that is not finite")
    vector: list[float] = row.reshape(-1).tolist()
    return vector
