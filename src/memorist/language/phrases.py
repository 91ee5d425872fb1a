"""Phrases: what a claim is about, cut out of a sentence short and clean."""

from __future__ import annotations

from collections.abc import Iterator

from memorist.language.lexicon import Language, plain

_MOST_WORDS = 8
_MOST_IDEOGRAPHS = 20
_EDGES = " \t\"'“”„«»「」《》*_`.,;:!?-–—~。，！？；：、"


def objects_of(
    phrase: str, language: Language, *, several: bool = False, place: bool = False
) -> list[str]:
    """What a phrase names: one thing or, if it may name `several`, each of them.

    Where it names a `place`, an employer or the like, it ends at the next preposition too.
    """
    found: list[str] = []
    phrase = phrase.split(" - ")[0]
    for piece in _pieces(phrase, language) if several else [phrase]:
        ends = (language.places if place else language.stops).search(plain(piece))
        cleaned = _cleaned(piece[: ends.start()] if ends else piece, language)
        if not _is_object(cleaned, language, first=not found):
            return found[:1]  # no list after all, but another clause
        found.append(cleaned)
        if ends:
            break
    return found


def _pieces(phrase: str, language: Language) -> Iterator[str]:
    start = 0
    for join in language.joins.finditer(plain(phrase)):
        yield phrase[start : join.start()]
        start = join.end()
    yield phrase[start:]


def _cleaned(piece: str, language: Language) -> str:
    piece = piece.strip(_EDGES)
    article = language.articles.match(plain(piece))
    return piece[article.end() :].strip(_EDGES) if article else piece


def _is_object(piece: str, language: Language, *, first: bool) -> bool:
    words = piece.lower().split()
    if not words or words[0].replace("’", "'").split("'")[0] in language.nothing:
        return False
    if not language.spaced:
        return len(piece) <= _MOST_IDEOGRAPHS
    # What follows a comma is one more thing only if it is as short as things in a list are.
    return len(words) <= (_MOST_WORDS if first else 3)
