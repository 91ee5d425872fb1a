"""Comparison of memories for the audit: duplicates, and statements that contradict each other.

Two texts that share most of their words share one of their rarest. So only texts that meet in an
index of rare words are compared, and of many that meet in one word only the newest.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, combinations, islice
from typing import NamedTuple

from memorist.language.likeness import NUMBER, dice, names_differ, names_in
from memorist.language.text import (
    LANGUAGES,
    data,
    is_single_valued,
    negations,
    stem,
    stems,
    stop_words,
)
from memorist.records.memories import FIRST, Fact
from memorist.records.values import fold

_LOOK_AT_CHARS = 2_000
_STATEMENT_CHARS = 400
_DATED = re.compile(r"\d{4}-\d\d|\d:\d\d|\b(?:19|20)\d\d\b|\d{1,2}[./]\d{1,2}[./]\d{2}")
_NOT_ENDING = re.compile(r"n['’]t\b", re.IGNORECASE)
_MEASUREMENTS = 5  # as many different numbers are a log of measurements, not a contradiction


class Contradiction(NamedTuple):
    """Places of records that cannot all hold, and what they differ in or are about."""

    places: tuple[int, ...]
    about: str


@dataclass(slots=True)
class Comparison:
    """Places of texts that say the same, places of texts that contradict each other, the work."""

    duplicates: list[tuple[int, ...]] = field(default_factory=list)
    contradictions: list[Contradiction] = field(default_factory=list)
    comparisons: int = 0
    skipped: int = 0


class _Polarity(NamedTuple):
    """What changes the meaning of the same words."""

    negated: bool
    numbers: tuple[str, ...]


@dataclass(slots=True)
class _SameWords:
    """All texts of one owner with the same content words, by their polarity."""

    owner: str
    words: frozenset[str]
    names: frozenset[str]
    dated: bool = False
    places: dict[_Polarity, list[int]] = field(default_factory=dict)


def compare(
    texts: Sequence[str], owners: Sequence[str], *, alike_at: float = 0.85, most: int = 64
) -> Comparison:
    """Compare the texts of each owner; each text with at most `most` others."""
    result = Comparison()
    groups = _group_by_words(texts, owners)
    for similar in _gather_similar(groups, result, alike_at=alike_at, most=most):
        merged: dict[_Polarity, list[int]] = defaultdict(list)
        for group in similar:
            for polarity, places in group.places.items():
                merged[polarity] += places
        result.duplicates += [tuple(sorted(each)) for each in merged.values() if len(each) > 1]
        result.contradictions += _differ_by_negation(merged)
    for group in groups:
        result.contradictions += _differ_by_number(group)
    return result


def _group_by_words(texts: Sequence[str], owners: Sequence[str]) -> list[_SameWords]:
    groups: dict[tuple[str, frozenset[str]], _SameWords] = {}
    for place, (text, owner) in enumerate(zip(texts, owners, strict=True)):
        start = _NOT_ENDING.sub(" not", text[:_LOOK_AT_CHARS])
        words, polarity = _read(start)
        if (owner, words) not in groups:
            groups[owner, words] = _SameWords(owner, words, names_in(start))
        group = groups[owner, words]
        group.dated = group.dated or bool(_DATED.search(start))
        group.places.setdefault(polarity, []).append(place)
    return list(groups.values())


def _read(text: str) -> tuple[frozenset[str], _Polarity]:
    """The content words of a text, each number as "#", and its polarity."""
    words = stems(text)
    denials = _negation_stems()
    # A pair of ideographs that begins with a negation is a negation too.
    plain = [word for word in words if not (word in denials or (word[:1] in denials and word[1:]))]
    negated = len(plain) < len(words)
    plain = [word for word in plain if word[-1:] not in denials]
    content = frozenset("#" if word[0].isdigit() else word for word in plain) - _empty_stems()
    return content or frozenset(words), _Polarity(negated, tuple(sorted(NUMBER.findall(text))))


@cache
def empty_words() -> frozenset[str]:
    """Words that say nothing about a person by themselves, folded; negations among them."""
    words = " ".join(stop_words("ranking", "grammar", "subject"))
    return frozenset(fold(words).split())


@cache
def audit_words(name: str) -> frozenset[str]:
    """The words of a list in the audit's data files, of all languages."""
    return frozenset(
        word for code in LANGUAGES for word in data(code, "audit").get(name, "").split()
    )


@cache
def _empty_stems() -> frozenset[str]:
    return empty_words() | frozenset(map(stem, empty_words()))


@cache
def _negation_stems() -> frozenset[str]:
    return negations() | frozenset(map(stem, negations()))


def _gather_similar(
    groups: Sequence[_SameWords], result: Comparison, *, alike_at: float, most: int
) -> list[list[_SameWords]]:
    """Groups with nearly the same words, each list led by the first of them."""
    frequency = Counter(word for group in groups for word in group.words)
    index: dict[tuple[str, str], list[int]] = defaultdict(list)
    similar: list[list[_SameWords]] = []
    for group in groups:
        rare = _rarest(group.words, frequency, alike_at)
        meetings = [index[group.owner, word] for word in rare]
        newest_first = chain.from_iterable(map(reversed, meetings))
        for place in dict.fromkeys(islice(newest_first, most)):
            result.comparisons += 1
            other = similar[place][0]
            alike = dice(group.words, other.words) >= alike_at
            if alike and not names_differ(group.names, other.names):
                similar[place].append(group)
                break
        else:
            result.skipped += max(sum(map(len, meetings)) - most, 0)
            for word in rare:
                index[group.owner, word].append(len(similar))
            similar.append([group])
    return similar


def _rarest(words: frozenset[str], frequency: Counter[str], alike_at: float) -> list[str]:
    """So many of a text's rarest words that any text alike must have one among its own."""
    shared = math.ceil(len(words) * alike_at / (2 - alike_at) - 1e-9)
    return sorted(words, key=lambda word: (frequency[word], word))[: len(words) - shared + 1]


def _differ_by_negation(places: Mapping[_Polarity, list[int]]) -> Iterator[Contradiction]:
    for polarity, affirmed in places.items():
        denied = places.get(_Polarity(True, polarity.numbers))
        if not polarity.negated and denied is not None:
            yield Contradiction((affirmed[0], denied[0]), "the same words but for a negation")


def _differ_by_number(group: _SameWords) -> Iterator[Contradiction]:
    """The same words with one other number; dated texts tell of several occasions."""
    by_negation: dict[bool, list[_Polarity]] = defaultdict(list)
    for polarity in group.places:
        by_negation[polarity.negated].append(polarity)
    for each in () if group.dated else by_negation.values():
        numbers = [Counter(polarity.numbers) for polarity in each]
        if 1 < len(each) < _MEASUREMENTS and all(
            (one - two).total() == 1 == (two - one).total() for one, two in combinations(numbers, 2)
        ):
            places = tuple(group.places[polarity][0] for polarity in each)
            yield Contradiction(places, "the same words but for a number")


def contradicting_facts(facts: Sequence[Fact]) -> Iterator[Contradiction]:
    """Facts of one topic with different objects at the same time, where only one can hold."""
    topics: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, fact in enumerate(facts):
        if is_single_valued(fact.predicate):
            topics[fact.scope.owner, fact.topic].append(place)
    for places in topics.values():
        opposed = {
            place
            for pair in combinations(places, 2)
            if _disagree(*(facts[place] for place in pair))
            for place in pair
        }
        if opposed:
            yield Contradiction(tuple(sorted(opposed)), "facts of one topic")


def _disagree(one: Fact, two: Fact) -> bool:
    """Whether two facts name different objects at some moment."""
    if fold(one.object).split() == fold(two.object).split():
        return False
    return all(
        end is None or (fact.valid_from or FIRST) < end
        for fact, end in ((one, two.valid_to), (two, one.valid_to))
    )


def contradicting_statements(
    texts: Sequence[str], owners: Sequence[str]
) -> Iterator[Contradiction]:
    """Memories that give one question, such as where somebody lives, different answers."""
    topics: dict[tuple[str, str, str], dict[frozenset[str], int]] = defaultdict(dict)
    for place, (text, owner) in enumerate(zip(texts, owners, strict=True)):
        for who, what, value in _statements(text):
            topics[owner, who, what].setdefault(value, place)
    for (_, _, what), values in topics.items():
        opposed = {
            values[value]
            for pair in combinations(values, 2)
            if not (pair[0] <= pair[1] or pair[1] <= pair[0])  # Berlin, and Berlin in Germany
            for value in pair
        }
        if opposed:
            yield Contradiction(tuple(sorted(opposed)), f"different answers: {what.split()[0]}")


def _statements(text: str) -> Iterator[tuple[str, str, frozenset[str]]]:
    """What a memory states of whom, where there is one answer at a time, and its answer."""
    empty = empty_words() - negations()
    for name, pattern in _statement_patterns():
        if not (match := pattern.search(text[:_STATEMENT_CHARS].strip())):
            continue
        parts = match.groupdict()
        who = [word for word in fold(parts["who"]).split() if word not in empty]
        value = frozenset(fold(parts["value"]).split()) - empty
        if value and not set(who) & (audit_words("unreal") | negations()):
            what = " ".join([name, *fold(parts.get("what") or "").split()])
            yield " ".join(who), what, value


@cache
def _statement_patterns() -> list[tuple[str, re.Pattern[str]]]:
    return [
        (name, re.compile(written, re.IGNORECASE))
        for code in LANGUAGES
        for name, written in data(code, "audit")["statements"].items()
    ]
