"""How alike two texts are: by the stems they share, with regard to negations and numbers."""

from __future__ import annotations

import re
from collections.abc import Set
from functools import cache

from memorist.language.lexicon import languages_of, plain
from memorist.language.text import stems, stop_words
from memorist.records.values import fold

LOOK_AT_CHARS = 4_000
NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NAME = re.compile(r"(?<=[\w,;] )[A-ZÄÖÜА-ЯЁ]\w+")
_OPPOSED = 0.5  # the highest score of texts that differ in a number, a negation or their names


def alike(one: str, two: str) -> float:
    """How nearly two texts say the same, from 0 to 1."""
    one, two = one[:LOOK_AT_CHARS], two[:LOOK_AT_CHARS]
    first, second = _content(one), _content(two)
    if not first or not second:
        return float(stems(one) == stems(two) and bool(stems(one)))
    score = dice(first, second)
    return min(score, _OPPOSED) if _opposed(one, two) else score


def contains(text: str, other: str) -> float:
    """The share of a text's words that another text has, from 0 to 1."""
    words = _content(text[:LOOK_AT_CHARS])
    if not words:
        return 0.0
    return len(words & _content(other[:LOOK_AT_CHARS])) / len(words)


def dice(one: Set[str], two: Set[str]) -> float:
    """Dice's coefficient of two sets of which one at least is not empty."""
    return 2 * len(one & two) / (len(one) + len(two))


def names_in(text: str) -> frozenset[str]:
    """The words written as names inside a sentence, folded."""
    return frozenset(map(fold, _NAME.findall(text)))


def names_differ(one: Set[str], two: Set[str]) -> bool:
    """Whether each of two sets of names has one that the other lacks."""
    return bool(one - two) and bool(two - one)


def _content(text: str) -> frozenset[str]:
    """The stems of a text without the stop words of its language."""
    return frozenset(stems(text)).difference(*(_stop_stems(one.code) for one in languages_of(text)))


def _opposed(one: str, two: str) -> bool:
    """Whether the texts differ in what changes a meaning: numbers, "not", or each in a name."""
    if set(NUMBER.findall(one)) != set(NUMBER.findall(two)) or _denies(one) != _denies(two):
        return True
    return names_differ(names_in(one), names_in(two))


def _denies(text: str) -> bool:
    return any(one.cues["negations"].search(plain(text)) for one in languages_of(text))


@cache
def _stop_stems(code: str) -> frozenset[str]:
    words = stop_words("ranking", "grammar", codes=(code,))
    return frozenset(stem for word in words for stem in stems(word))
