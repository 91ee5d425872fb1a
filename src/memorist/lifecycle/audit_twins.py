"""Memories that say the same, or the same but for a number or a "not", without comparing all.

Two texts that share most of their words share one of their rarest: only texts that meet in an
index of rare words are compared, and of a crowd that meets in one word the newest alone.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, combinations, islice

from memorist.language.stems import stem, stems
from memorist.lifecycle.audit_junk import listed

_LOOK_AT_CHARS = 2_000
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_DATED = re.compile(r"\d{4}-\d\d|\d:\d\d|\b(?:19|20)\d\d\b|\d{1,2}[./]\d{1,2}[./]\d{2}")
_NAME = re.compile(r"(?<=[\w,;] )[A-ZÄÖÜА-ЯЁ]\w+")
_NO_NOT = re.compile(r"n['’]t\b", re.IGNORECASE)
_A_SERIES = 5  # as many different numbers are a log of measurements, not a contradiction


@dataclass(frozen=True, slots=True)
class Opposite:
    """Places of texts that differ in one thing only, and in which."""

    places: tuple[int, ...]
    differ_in: str


@dataclass(slots=True)
class Twins:
    """Places of texts that say the same, and of texts that contradict each other."""

    same: list[tuple[int, ...]] = field(default_factory=list)
    opposite: list[Opposite] = field(default_factory=list)
    comparisons: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class _Turn:
    """What turns the meaning of the same words round."""

    negated: bool
    numbers: tuple[str, ...]


@dataclass(slots=True)
class _Family:
    """All texts of one owner with the same telling words, by what turns their meaning."""

    owner: str
    words: frozenset[str]
    names: frozenset[str]
    dated: bool
    turns: dict[_Turn, list[int]] = field(default_factory=dict)


def find_twins(texts: Sequence[str], owners: Sequence[str], *, alike_at: float, most: int) -> Twins:
    """Find them among the texts of each owner; each is compared with at most `most` others."""
    found = Twins()
    families = _families(texts, owners)
    kin = _kin(families, found, alike_at=alike_at, most=most)
    for group in kin:
        merged: dict[_Turn, list[int]] = defaultdict(list)
        for family in group:
            for turn, places in family.turns.items():
                merged[turn] += places
        found.same += [tuple(sorted(places)) for places in merged.values() if len(places) > 1]
        found.opposite += _negations(merged)
    for family in families:
        found.opposite += _numbers(family)
    return found


def _families(texts: Sequence[str], owners: Sequence[str]) -> list[_Family]:
    families: dict[tuple[str, frozenset[str]], _Family] = {}
    for place, (text, owner) in enumerate(zip(texts, owners, strict=True)):
        said = _NO_NOT.sub(" not", text[:_LOOK_AT_CHARS])
        words, turn = _read(said)
        family = families.get((owner, words))
        if family is None:
            names = frozenset(_NAME.findall(said))
            family = families[owner, words] = _Family(owner, words, names, False)
        family.dated = family.dated or bool(_DATED.search(said))
        family.turns.setdefault(turn, []).append(place)
    return list(families.values())


def _read(text: str) -> tuple[frozenset[str], _Turn]:
    """The telling words of a text, numbers hidden, and what would turn them round."""
    words = stems(text)
    denied = _stems_of("negation")
    # A pair of ideographs, one of which denies, is denial too.
    plain = [word for word in words if not (word in denied or (word[:1] in denied and word[1:]))]
    negated = len(plain) < len(words)
    plain = [word for word in plain if word[-1:] not in denied]
    telling = frozenset("#" if word[0].isdigit() else word for word in plain) - _stems_of("empty")
    numbers = tuple(sorted(_NUMBER.findall(text)))
    return telling or frozenset(words), _Turn(negated, numbers)


@cache
def _stems_of(name: str) -> frozenset[str]:
    return listed("words", name) | frozenset(map(stem, listed("words", name)))


def _kin(
    families: Sequence[_Family], found: Twins, *, alike_at: float, most: int
) -> list[list[_Family]]:
    """Families with nearly the same words, each beside the first of its kind."""
    common = Counter(word for family in families for word in family.words)
    index: dict[tuple[str, str], list[int]] = defaultdict(list)
    kin: list[list[_Family]] = []
    for family in families:
        rare = _rarest(family.words, common, alike_at)
        met = [index[family.owner, word] for word in rare]
        newest = chain.from_iterable(map(reversed, met))
        for place in dict.fromkeys(islice(newest, most)):
            found.comparisons += 1
            if _alike(family, kin[place][0], alike_at):
                kin[place].append(family)
                break
        else:
            found.skipped += max(sum(map(len, met)) - most, 0)
            for word in rare:
                index[family.owner, word].append(len(kin))
            kin.append([family])
    return kin


def _rarest(words: frozenset[str], common: Counter[str], alike_at: float) -> list[str]:
    """So many of a text's rarest words that any text alike must have one among its own."""
    shared = math.ceil(len(words) * alike_at / (2 - alike_at) - 1e-9)
    return sorted(words, key=lambda word: (common[word], word))[: len(words) - shared + 1]


def _alike(one: _Family, two: _Family, alike_at: float) -> bool:
    """Whether they share enough words, and not each has a name that the other lacks."""
    score = 2 * len(one.words & two.words) / (len(one.words) + len(two.words))
    clash = bool(one.names - two.names) and bool(two.names - one.names)
    return score >= alike_at and not clash


def _negations(turns: dict[_Turn, list[int]]) -> Iterator[Opposite]:
    for turn, places in turns.items():
        denied = turns.get(_Turn(True, turn.numbers))
        if not turn.negated and denied is not None:
            yield Opposite((places[0], denied[0]), "negation")


def _numbers(family: _Family) -> Iterator[Opposite]:
    """The same words with one other number; what is dated happened more than once."""
    by_negation: dict[bool, list[_Turn]] = defaultdict(list)
    for turn in family.turns:
        by_negation[turn.negated].append(turn)
    for turns in () if family.dated else by_negation.values():
        if 1 < len(turns) < _A_SERIES and all(
            _differ_once(one, two) for one, two in combinations(turns, 2)
        ):
            yield Opposite(tuple(family.turns[turn][0] for turn in turns), "number")


def _differ_once(one: _Turn, two: _Turn) -> bool:
    mine, theirs = Counter(one.numbers), Counter(two.numbers)
    return sum((mine - theirs).values()) == 1 == sum((theirs - mine).values())
