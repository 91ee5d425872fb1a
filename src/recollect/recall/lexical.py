"""The words channel: a question becomes terms, never syntax."""

from __future__ import annotations

from recollect.recall.gist import ends
from recollect.records.query import Found, Query
from recollect.records.text import UNSPACED, fold
from recollect.store.base import Store, Term

MAX_TERMS = 64
# fmt: off
STOP_WORDS = frozenset({
    "a", "about", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did",
    "do", "does", "for", "from", "had", "has", "have", "he", "her", "him", "his", "how", "i", "if",
    "in", "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "s", "she",
    "should", "so", "t", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "to", "us", "was", "we", "were", "what", "when", "where", "which", "who", "whom",
    "whose", "why", "will", "with", "would", "you", "your",
})
# fmt: on


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


def find_words(store: Store, query: Query, depth: int) -> list[Found]:
    """What shares words with the question, best first."""
    terms = terms_of(query.question)
    return store.match_text(query.scope, terms, limit=depth, filters=query.filters)
