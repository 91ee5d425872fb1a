"""Weights: how much a statement is worth keeping, by who says it, when, and what it states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from memorist.language.cues import Cue, cues_of
from memorist.language.signals import manner_of
from memorist.records.text import UNSPACED, fold

ROLES = {"user": 1.0, "assistant": 0.5, "system": 0.3, "tool": 0.3}
FAILED = 0.8  # what a role weighs at least that tells of an error
OLDEST = 0.8  # what the oldest statement weighs beside the newest
CUES = {
    Cue.ERROR: 0.5,
    Cue.FIX: 0.4,
    Cue.DECISION: 0.4,
    Cue.TASK: 0.3,
    Cue.WISH: 0.4,
    Cue.REQUEST: 0.2,
}
OWN = 3.0  # for what people tell of themselves and of what happened
FIGURE = 0.5
QUOTE = 0.5
NAME = 0.4
MOST_NAMES = 3
QUESTION = 0.4
SHORT_WORDS = 5
STEM_CHARS = 6

_ASKS = ("?", "？", "؟")
_FIGURE = re.compile(r"\d")
_QUOTE = re.compile(r"[\"“«„「].{3,60}[\"”»“」]")


class Statement(NamedTuple):
    """A piece of a text, what it is about, and what its words hint at."""

    text: str
    terms: frozenset[str]
    cues: frozenset[Cue]
    names: tuple[str, ...]
    words: int


def read(text: str) -> Statement:
    """A statement, looked at once."""
    words = fold(text).split()
    names = tuple([word for word in text.split()[1:] if word[0].isupper() and len(word) > 1])
    return Statement(text, _terms(text, words), cues_of(text, words), names, len(words))


def weigh(said: Statement, role: str = "user", age: float = 0.0) -> float:
    """The weight of a statement; `age` is 0 for the newest, 1 for the oldest of a session.

    A tool's words weigh little unless they tell of an error, then as much as anyone's.
    """
    by_role = ROLES.get(role, min(ROLES.values()))
    if Cue.ERROR in said.cues:
        by_role = max(by_role, FAILED)
    told = 1.0 + _stated(said, role) + sum([CUES.get(cue, 0.0) for cue in said.cues])
    asked = QUESTION if said.text.rstrip("\"'”’»)] ")[-1:] in _ASKS else 1.0
    fullness = min(1.0, said.words / SHORT_WORDS)
    return told * asked * fullness * by_role * (1 - (1 - OLDEST) * age)


def _stated(said: Statement, role: str) -> float:
    """What is definite counts: one's own doings, figures, names, titles."""
    return (
        (OWN * max(0.0, manner_of(said.text).own) if role == "user" else 0.0)
        + NAME * min(MOST_NAMES, len(said.names))
        + (FIGURE if _FIGURE.search(said.text) else 0.0)
        + (QUOTE if _QUOTE.search(said.text) else 0.0)
    )


def _terms(text: str, words: Sequence[str]) -> frozenset[str]:
    """What a text is about, roughly: its words' beginnings, and pairs of ideographs."""
    if text.isascii() or not UNSPACED.search(text):
        return frozenset([word[:STEM_CHARS] for word in words])
    found = set()
    for place, word in enumerate(words):
        if not UNSPACED.match(word):
            found.add(word[:STEM_CHARS])
        elif place + 1 < len(words) and UNSPACED.match(words[place + 1]):
            found.add(word + words[place + 1])
    return frozenset(found)
