"""Signals in the wording of a text: whether it tells of oneself, asks, or hints at an error.

`signals_of` weighs passages for recall, `cues_of` sorts statements into the parts of a summary.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from itertools import pairwise, product
from typing import NamedTuple

from memorist.language.text import ALL_LANGUAGES, data
from memorist.records.values import UNSPACED, fold

LOOK_AT_CHARS = 4_000
SHORT_CHARS = 200  # of an answer that asks back, and says little else
_DIGIT, _ASCII_DIGIT = re.compile(r"\d"), re.compile("[0-9]")
_MARKS = ("", ".", ",", "!", "?", ";", ":")
_ENOUGH = 3  # words of oneself
_HIGHEST = 7


class Signals(NamedTuple):
    """How a text is worded: how much it tells of its author, and whether it asks."""

    self_reference: float = 0.0  # up to 1; below 0 where authors only tell what they will do
    is_question: bool = False


class _SignalWords(NamedTuple):
    own: frozenset[str]
    own_characters: str  # of scripts without spaces
    did: frozenset[str]
    past: frozenset[str]
    future: frozenset[str]
    listed: frozenset[str]  # all but the verbs that follow "i"


@cache
def _signal_words() -> _SignalWords:
    lists = [data(code, "words").get("signals", {}) for code in ALL_LANGUAGES]

    def words(name: str) -> list[str]:
        return [word for each in lists for word in each.get(name, "").split()]

    personal = words("self_reference")
    own = frozenset(word for word in personal if not UNSPACED.match(word))
    past = frozenset(word + mark for word in words("past") for mark in _MARKS)
    future = frozenset(words("future"))
    return _SignalWords(
        own=own,
        own_characters="".join(word for word in personal if UNSPACED.match(word)),
        did=frozenset(words("did")),
        past=past,
        future=future,
        listed=own | past | future | {"i"},
    )


def asks_back(answer: str) -> bool:
    """Whether an assistant's answer is a question in its turn: "Which cities would you like?"."""
    return len(answer) <= SHORT_CHARS and answer.rstrip().endswith(("?", "？"))


def signals_of(text: str) -> Signals:
    """The signals of a text, by its words alone.

    Questions about the past are answered by definite statements: a figure or a time counts as
    much as two words of oneself, and an intention counts against it.
    """
    listed = _signal_words()
    start = text[:LOOK_AT_CHARS]
    is_ascii = start.isascii()
    definite = int((_ASCII_DIGIT if is_ascii else _DIGIT).search(start) is not None)
    words = (start if is_ascii else start.replace("’", "'")).lower().split()
    if is_ascii and listed.listed.isdisjoint(words):  # mostly, and faster
        return Signals(2 * definite / _HIGHEST, "?" in start)
    count = sum(map(listed.own.__contains__, words))
    if "i" in words:
        did = listed.did
        verbs = [verb for word, verb in pairwise(words) if word == "i"]
        count += sum(verb in did or verb[-2:] == "ed" for verb in verbs)
    if not is_ascii:
        count += sum(map(start.count, listed.own_characters))
    definite += not listed.past.isdisjoint(words)
    intended = not listed.future.isdisjoint(words)
    points = min(count, _ENOUGH) + 2 * (definite - intended)
    return Signals(points / _HIGHEST, "?" in start or "？" in start)


class Cue(IntEnum):
    """What a word hints at."""

    ERROR = 0
    FIX = 1
    DECISION = 2
    TASK = 3
    DONE = 4
    WISH = 5
    REQUEST = 6


ROOT_CHARS = 4
_ROOT_LENGTHS = range(ROOT_CHARS, 10)  # of what stands before a star


class _CueIndex:
    """The cues of all languages, sorted by how they are looked up."""

    def __init__(self) -> None:
        self.words: dict[str, Cue] = {}
        self.roots: dict[str, Cue] = {}
        self.phrases: dict[str, Cue] = {}
        self.characters: dict[str, Cue] = {}
        for cue, code in product(Cue, ALL_LANGUAGES):
            for written in data(code, "words")["cues"].get(cue.name.lower(), "").split():
                self._add(written, cue)
        self.root_starts = frozenset(root[:ROOT_CHARS] for root in self.roots)
        self.phrases_by_word: dict[str, list[tuple[str, Cue]]] = {}
        for phrase, cue in self.phrases.items():  # by their longest word, which is the rarest
            longest = max(phrase.split(), key=len)
            self.phrases_by_word.setdefault(longest, []).append((f" {phrase} ", cue))

    def _add(self, written: str, cue: Cue) -> None:
        plain = " ".join(fold(written.replace("_", " ").rstrip("*")).split())
        if UNSPACED.match(written):
            self.characters[written] = cue
        elif " " in plain:
            self.phrases[plain] = cue
        else:
            (self.roots if written.endswith("*") else self.words)[plain] = cue


_cue_index = cache(_CueIndex)


@cache
def cue_words() -> frozenset[str]:
    """Every word that is a cue or stands in one."""
    index = _cue_index()
    listed = (*index.words, *index.roots, *index.phrases)
    return frozenset(word for cue in listed for word in cue.split())


def cues_of(text: str, words: Sequence[str]) -> frozenset[Cue]:
    """What the words of a text hint at; `words` are the text folded."""
    index = _cue_index()
    cues = {index.words[word] for word in index.words.keys() & words}
    if not index.root_starts.isdisjoint([word[:ROOT_CHARS] for word in words]):
        starts = {word[:length] for word in words for length in _ROOT_LENGTHS}
        cues.update(index.roots[root] for root in index.roots.keys() & starts)
    if not index.phrases_by_word.keys().isdisjoint(words):
        line = f" {' '.join(words)} "
        for word in index.phrases_by_word.keys() & words:
            cues.update(cue for phrase, cue in index.phrases_by_word[word] if phrase in line)
    if not text.isascii():
        cues.update(cue for characters, cue in index.characters.items() if characters in text)
    return frozenset(cues)
