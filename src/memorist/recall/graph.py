"""The links channel: from the things a question names to facts, and from those one step on."""

from __future__ import annotations

from memorist.language.shorten import gist
from memorist.recall.lexical import terms_of
from memorist.records.query import Found, Query
from memorist.records.text import fold
from memorist.store.base import Store

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
