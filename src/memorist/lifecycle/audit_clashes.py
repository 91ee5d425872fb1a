"""What cannot all be so at once: facts and statements that have one answer at a time."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import combinations
from typing import NamedTuple

from memorist.lifecycle.audit_junk import data, listed
from memorist.records.fact import Fact
from memorist.records.text import fold

_LOOK_AT_CHARS = 400


class Clash(NamedTuple):
    """Places of records that cannot all hold, and what they are about."""

    places: tuple[int, ...]
    about: str


class _Statement(NamedTuple):
    topic: tuple[str, str, str]  # owner, who, what
    value: frozenset[str]


def clashing_facts(facts: Sequence[Fact], single: frozenset[str]) -> Iterator[Clash]:
    """Facts of one topic with different objects at the same time, where only one can be."""
    topics: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, fact in enumerate(facts):
        if fact.known_to is None and _has_one_answer(fact.predicate, single):
            topics[fact.scope.owner, fact.topic].append(place)
    for places in topics.values():
        clashing = {
            place
            for pair in combinations(places, 2)
            if _at_odds(*(facts[place] for place in pair))
            for place in pair
        }
        if clashing:
            yield Clash(tuple(sorted(clashing)), "facts of one topic")


def clashing_statements(texts: Sequence[str], owners: Sequence[str]) -> Iterator[Clash]:
    """Memories that give one question, such as where somebody lives, different answers."""
    topics: dict[tuple[str, str, str], dict[frozenset[str], int]] = defaultdict(dict)
    for place, (text, owner) in enumerate(zip(texts, owners, strict=True)):
        for said in _statements(text, owner):
            topics[said.topic].setdefault(said.value, place)
    for topic, values in topics.items():
        clashing = {
            values[value]
            for pair in combinations(values, 2)
            if not (pair[0] <= pair[1] or pair[1] <= pair[0])  # Berlin, and Berlin in Germany
            for value in pair
        }
        if clashing:
            yield Clash(tuple(sorted(clashing)), topic[2].split()[0])


def single_predicates() -> frozenset[str]:
    """Predicates that hold one object at a time, plainly spelled."""
    return listed("predicates", "single")


def _has_one_answer(predicate: str, single: frozenset[str]) -> bool:
    plain = _plain(predicate)
    return plain in single or plain.startswith(("favourite ", "favorite "))


def _at_odds(one: Fact, two: Fact) -> bool:
    return _plain(one.object) != _plain(two.object) and _overlap(one, two)


def _overlap(one: Fact, two: Fact) -> bool:
    """Whether there is a moment at which both are said to be true."""
    return _begins_before_end(one, two.valid_to) and _begins_before_end(two, one.valid_to)


def _begins_before_end(fact: Fact, end: datetime | None) -> bool:
    return end is None or fact.valid_from is None or fact.valid_from < end


def _statements(text: str, owner: str) -> Iterator[_Statement]:
    unsaid = listed("words", "empty") - listed("words", "negation")
    for name, pattern in _patterns().items():
        if not (found := pattern.search(text[:_LOOK_AT_CHARS].strip())):
            continue
        parts = found.groupdict()
        who = [word for word in fold(parts["who"]).split() if word not in unsaid]
        value = frozenset(fold(parts["value"]).split()) - unsaid
        if value and not set(who) & (listed("words", "unreal") | listed("words", "negation")):
            what = f"{name.partition('_')[0]} {_plain(parts.get('what') or '')}"
            yield _Statement((owner, " ".join(who), what), value)


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    return {name: re.compile(given, re.I) for name, given in data()["single"].items()}


def _plain(text: str) -> str:
    return " ".join(fold(text).split())
