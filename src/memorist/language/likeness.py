"""How alike two texts are: by their words without endings, minding negations and numbers."""

from __future__ import annotations

import re
from functools import cache

from memorist.language.lexicon import language, languages_of, plain
from memorist.language.stems import stems
from memorist.records.text import fold

_LOOK_AT_CHARS = 4_000
_AT_MOST = 0.5  # what texts score at most that differ in a number or a negation
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NAME = re.compile(r"(?<=[\w,;] )[A-ZÄÖÜА-ЯЁ]\w+")


def alike(one: str, two: str) -> float:
    """How nearly two texts say the same, from 0 to 1."""
    one, two = one[:_LOOK_AT_CHARS], two[:_LOOK_AT_CHARS]
    mine, theirs = _content(one), _content(two)
    if not mine or not theirs:
        return float(stems(one) == stems(two) and bool(stems(one)))
    score = 2 * len(mine & theirs) / (len(mine) + len(theirs))
    return min(score, _AT_MOST) if _clash(one, two) else score


def contains(text: str, known: str) -> float:
    """Which share of a text's words is found in what is known, from 0 to 1."""
    words = _content(text[:_LOOK_AT_CHARS])
    if not words:
        return 0.0
    return len(words & _content(known[:_LOOK_AT_CHARS])) / len(words)


def _content(text: str) -> frozenset[str]:
    """The stems of a text without the words that every text of its language has."""
    return frozenset(stems(text)).difference(*(_common(one.code) for one in languages_of(text)))


def _clash(one: str, two: str) -> bool:
    """Whether the texts differ in what turns a meaning round: numbers, "not", or each a name."""
    if _numbers(one) != _numbers(two) or _denies(one) != _denies(two):
        return True
    mine, theirs = set(map(fold, _NAME.findall(one))), set(map(fold, _NAME.findall(two)))
    return bool(mine - theirs) and bool(theirs - mine)


def _numbers(text: str) -> set[str]:
    return set(_NUMBER.findall(text))


def _denies(text: str) -> bool:
    return any(one.cues["negations"].search(plain(text)) for one in languages_of(text))


@cache
def _common(code: str) -> frozenset[str]:
    return frozenset(stem for word in language(code).common for stem in stems(word))
