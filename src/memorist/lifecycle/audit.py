"""The audit: which memories and facts are junk, duplicate, stale, contradictory or dangerous.

It needs no model and changes nothing. Findings name ids and reasons, never what memories say. Two
texts that share most of their words share one of their rarest: only texts that meet in an index of
rare words are compared, and of many that meet in one word only the newest.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import chain, combinations, islice
from typing import Literal, NamedTuple, get_args

from memorist.language.dates import resolve
from memorist.language.likeness import NUMBER, dice, names_differ, names_in
from memorist.language.patterns import Pattern
from memorist.language.signals import signals_of
from memorist.language.text import (
    LANGUAGES,
    data,
    is_single_valued,
    negations,
    stem,
    stems,
    stop_words,
)
from memorist.language.unsafe import find_secrets, injections
from memorist.records.memories import FIRST, Fact, MemoryItem
from memorist.records.values import check_moment, fold

AuditKind = Literal[
    "junk", "duplicate", "stale", "contradictory", "secret", "injection", "ungrounded"
]
KINDS: tuple[AuditKind, ...] = get_args(AuditKind)
_OF_MEMORIES = ("junk", "duplicate", "stale")  # facts are checked for the other kinds only
_LOOK_AT_CHARS = 2_000
_STATEMENT_CHARS = 400
_DATED = re.compile(r"\d{4}-\d\d|\d:\d\d|\b(?:19|20)\d\d\b|\d{1,2}[./]\d{1,2}[./]\d{2}")
_NOT_ENDING = re.compile(r"n['’]t\b", re.IGNORECASE)
_MEASUREMENTS = 5  # as many different numbers are a log of measurements, not a contradiction
_LOOP_COPIES = 5
_MOST_OPPOSED = 100  # the latest answers to one question that are compared with each other
_WORKING = timedelta(days=2)
_PLAN_GRACE = timedelta(days=1)
_UNUSED = timedelta(days=180)
_UNIMPORTANT = 0.4
_OPPOSED = "cannot all be so at the same time"
_STRANGERS = ("web", "tool")  # whose orders are nobody's wishes
_GOES_ON = re.compile(r"[.!。！\n]\s*\S")
_BREAKS_OFF = Pattern(r"[,:;(\-–—]\s*$|(?:\.\.\.|…)\s*$")
_TEXTS = tomllib.loads((files(__package__) / "audit.toml").read_text("utf-8"))
_SUGGESTIONS: Mapping[AuditKind, str] = _TEXTS["suggestions"]
_JUNK: Mapping[str, str] = _TEXTS["junk"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is wrong with some records, why, and what to do."""

    kind: AuditKind
    ids: tuple[str, ...]  # of duplicates, the first is the one to keep
    reason: str
    evidence: tuple[str, ...] = ()
    suggestion: str = ""

    @property
    def flagged(self) -> tuple[str, ...]:
        """The ids that count as wrong."""
        return self.ids[1:] if self.kind == "duplicate" else self.ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit found among so many memories and facts."""

    memories: int
    facts: int
    findings: tuple[Finding, ...] = ()
    comparisons: int = 0  # of pairs, to find duplicates
    uncompared: int = 0  # pairs that share a rare word and were left out: some may be duplicates

    def of(self, kind: AuditKind) -> tuple[Finding, ...]:
        """The findings of one kind."""
        return tuple(finding for finding in self.findings if finding.kind == kind)

    def flagged(self, *kinds: AuditKind) -> frozenset[str]:
        """The ids of records found wrong in one of these ways, or in any."""
        wanted = kinds or KINDS
        return frozenset(id for one in self.findings if one.kind in wanted for id in one.flagged)

    @property
    def counts(self) -> Mapping[AuditKind, int]:
        """How many records are wrong in each way."""
        return {kind: len(self.flagged(kind)) for kind in KINDS}

    def share(self, kind: AuditKind) -> float:
        """The share of the records checked for this kind that are wrong in this way."""
        asked = self.memories + (0 if kind in _OF_MEMORIES else self.facts)
        return len(self.flagged(kind)) / asked if asked else 0.0

    @property
    def clean(self) -> int:
        """How many records have no finding."""
        return self.memories + self.facts - len(self.flagged())


def audit(
    items: Sequence[MemoryItem], facts: Sequence[Fact], now: datetime, *, grounded: bool = True
) -> Audit:
    """Check the current memories and facts; if `grounded`, they must name their messages too."""
    check_moment(now, "now")
    items = [item for item in items if item.ended_at is None and item.superseded_by is None]
    facts = [fact for fact in facts if fact.known_to is None and fact.superseded_by is None]
    texts, owners = [item.text for item in items], [item.scope.owner for item in items]
    comparison = compare(texts, owners)
    opposed = [*comparison.contradictions, *contradicting_statements(texts, owners)]
    junk = list(_junk(items))
    junk_ids = {finding.ids[0] for finding in junk}
    findings = [
        *junk,
        *(_duplicate([items[place] for place in places]) for places in comparison.duplicates),
        *_stale(items, now),
        *_contradictions(items, opposed, junk_ids),
        *_contradictions(facts, contradicting_facts(facts), set()),
        *_dangers([*items, *facts], grounded, junk_ids),
    ]
    return Audit(
        memories=len(items),
        facts=len(facts),
        findings=tuple(sorted(findings, key=lambda finding: KINDS.index(finding.kind))),
        comparisons=comparison.comparisons,
        uncompared=comparison.skipped,
    )


def _finding(kind: AuditKind, ids: Iterable[str], reason: str, *evidence: str) -> Finding:
    cure = _SUGGESTIONS[kind]
    if "loop" in evidence:
        cure = "read the first, forget the copies, and do not store what was recalled"
    return Finding(kind=kind, ids=tuple(ids), reason=reason, evidence=evidence, suggestion=cure)


def _junk(items: Sequence[MemoryItem]) -> Iterator[Finding]:
    """Memories not worth keeping: by their words, or as copies that a loop of storing made."""
    keys = [(item.scope.owner, " ".join(item.text.casefold().split())) for item in items]
    copies = Counter(keys)
    seen: set[tuple[str, str]] = set()
    for item, key in zip(items, keys, strict=True):
        if family := junk_family(item.text):
            yield _finding("junk", [item.id], _JUNK[family], family)
        elif key in seen and copies[key] >= _LOOP_COPIES:
            yield _finding("junk", [item.id], _JUNK["loop"], "loop", f"{copies[key]} copies")
        seen.add(key)


def junk_family(text: str) -> str | None:
    """The family of junk that a text belongs to by its words alone, if any."""
    start = text[:_LOOK_AT_CHARS].strip()
    for family, (pattern, unless) in _junk_patterns().items():
        if pattern.search(start) and not unless.search(start):
            return family
    empty = _empty_words() | negations()
    words, signals = fold(start).split(), signals_of(start)
    tells = signals.self_reference or _GOES_ON.search(start)
    tells = tells or not _audit_words("first_person").isdisjoint(words)
    if signals.is_question and start.endswith(("?", "？")) and not tells:
        return "question"
    content = [word for word in words if word not in empty]
    if not content:
        return "fragment"
    breaks_off = _BREAKS_OFF.search(start) or words[-1] in _audit_words("never_last")
    return "fragment" if len(content) == 1 < len(words) and breaks_off else None


@cache
def _junk_patterns() -> dict[str, tuple[Pattern, Pattern]]:
    """For each family the pattern of all languages, and that of its exceptions."""

    def any_of(family: str, key: str) -> Pattern:
        written = (data(code, "audit")["junk"].get(family, {}) for code in LANGUAGES)
        patterns = [f"(?:{pattern})" for each in written for pattern in each.get(key, [])]
        return Pattern("|".join(patterns) or r"\z.", ignore_case=True)  # or one that never matches

    return {family: (any_of(family, "patterns"), any_of(family, "unless")) for family in _JUNK}


def _duplicate(copies: Sequence[MemoryItem]) -> Finding:
    """Copies, the one to keep first: the most important, most used, oldest."""
    best = sorted(copies, key=lambda item: (-item.importance, -item.uses, item.created_at))
    exact = len({" ".join(item.text.split()) for item in best}) == 1
    reason = "the same, word for word" if exact else "the same in nearly the same words"
    return _finding("duplicate", [item.id for item in best], reason, f"{len(best)} copies")


def _stale(items: Sequence[MemoryItem], now: datetime) -> Iterator[Finding]:
    for item in items:
        reason, since = _why_stale(item, now)
        if reason:
            evidence = [f"{since.days} day{'s' * (since.days > 1)}"] if since.days > 0 else []
            yield _finding("stale", [item.id], reason, *evidence)


def _why_stale(item: MemoryItem, now: datetime) -> tuple[str, timedelta]:
    if item.expires_at is not None and item.expires_at <= now:
        return "expired, but still there", now - item.expires_at
    if item.kind == "working" and item.created_at + _WORKING <= now:
        return "a working memory past its time", now - item.created_at
    text = item.text[:_LOOK_AT_CHARS]
    planned = resolve(text, item.created_at, lean=1) if _planned_pattern().search(text) else None
    if planned and item.created_at < planned.end <= now - _PLAN_GRACE:
        return "a plan whose date has passed", now - planned.end
    unused = now - (item.used_at or item.created_at)
    if unused >= _UNUSED and item.importance < _UNIMPORTANT:
        return "unimportant, and long unused", unused
    return "", timedelta()


@cache
def _planned_pattern() -> Pattern:
    return Pattern("|".join(data(code, "audit")["planned"] for code in LANGUAGES), ignore_case=True)


def _contradictions(
    records: Sequence[MemoryItem | Fact], opposed: Iterable[Contradiction], junk: set[str]
) -> Iterator[Finding]:
    """Records that cannot all hold; junk contradicts nothing."""
    seen: set[tuple[str, ...]] = set()
    for places, about in opposed:
        ids = tuple(records[place].id for place in places)
        if ids not in seen and junk.isdisjoint(ids):
            yield _finding("contradictory", ids, _OPPOSED, about)
        seen.add(ids)


def _dangers(
    records: Sequence[MemoryItem | Fact], grounded: bool, junk: set[str]
) -> Iterator[Finding]:
    """Secrets, prompt injections, and records that name no source."""
    for record in records:
        if secrets := find_secrets(record.text):
            yield _finding("secret", [record.id], "holds a secret", *secrets)
        commands = injections(record.text, trusted=record.source not in _STRANGERS)
        if commands and not (record.id in junk and commands == ["speaks as the system"]):
            reason = "tries to command the model that reads it"
            yield _finding("injection", [record.id], reason, *commands)
        if grounded and not record.sources:
            yield _finding("ungrounded", [record.id], "names no message it came from")


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
        for polarity, affirmed in merged.items():
            denied = merged.get(_Polarity(True, polarity.numbers), [])
            if denied and not polarity.negated:
                about = "the same words but for a negation"
                result.contradictions.append(Contradiction((affirmed[0], denied[0]), about))
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
    denials = _with_stems(negations())
    # A pair of ideographs that begins with a negation is a negation too.
    plain = [word for word in words if not (word in denials or (word[:1] in denials and word[1:]))]
    negated = len(plain) < len(words)
    plain = [word for word in plain if word[-1:] not in denials]
    content = frozenset("#" if word[0].isdigit() else word for word in plain) - _with_stems(
        _empty_words()
    )
    return content or frozenset(words), _Polarity(negated, tuple(sorted(NUMBER.findall(text))))


@cache
def _empty_words() -> frozenset[str]:
    """Words that say nothing about a person by themselves, folded; negations among them."""
    words = " ".join(stop_words("ranking", "grammar", "subject"))
    return frozenset(fold(words).split())


@cache
def _audit_words(name: str) -> frozenset[str]:
    """The words of a list in the audit's data files, of all languages."""
    return frozenset(
        word for code in LANGUAGES for word in data(code, "audit").get(name, "").split()
    )


@cache
def _with_stems(words: frozenset[str]) -> frozenset[str]:
    return words | frozenset(map(stem, words))


def _gather_similar(
    groups: Sequence[_SameWords], result: Comparison, *, alike_at: float, most: int
) -> list[list[_SameWords]]:
    """Groups with nearly the same words, each list led by the first of them."""
    frequency = Counter(word for group in groups for word in group.words)
    index: dict[tuple[str, str], list[int]] = defaultdict(list)
    similar: list[list[_SameWords]] = []
    for group in groups:
        # So many of its rarest words that any group alike must have one among its own.
        shared = math.ceil(len(group.words) * alike_at / (2 - alike_at) - 1e-9)
        by_rarity = sorted(group.words, key=lambda word: (frequency[word], word))
        rare = by_rarity[: len(group.words) - shared + 1]
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
        latest = places[-_MOST_OPPOSED:]
        objects = {place: fold(facts[place].object).split() for place in latest}
        opposed = {
            place
            for pair in combinations(latest, 2)
            if objects[pair[0]] != objects[pair[1]] and _overlap(*(facts[place] for place in pair))
            for place in pair
        }
        if opposed:
            yield Contradiction(tuple(sorted(opposed)), "facts of one topic")


def _overlap(one: Fact, two: Fact) -> bool:
    """Whether there is a moment at which both facts hold."""
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
            for pair in combinations(list(values)[-_MOST_OPPOSED:], 2)
            if not (pair[0] <= pair[1] or pair[1] <= pair[0])  # Berlin, and Berlin in Germany
            for value in pair
        }
        if opposed:
            yield Contradiction(tuple(sorted(opposed)), f"different answers: {what.split()[0]}")


def _statements(text: str) -> Iterator[tuple[str, str, frozenset[str]]]:
    """What a memory states of whom, where there is one answer at a time, and its answer."""
    empty = _empty_words() - negations()
    for name, pattern in _statement_patterns():
        if not (match := pattern.search(text[:_STATEMENT_CHARS].strip())):
            continue
        parts = match.groupdict()
        who = [word for word in fold(parts["who"]).split() if word not in empty]
        value = frozenset(fold(parts["value"]).split()) - empty
        if value and not set(who) & (_audit_words("unreal") | negations()):
            what = " ".join([name, *fold(parts.get("what") or "").split()])
            yield " ".join(who), what, value


@cache
def _statement_patterns() -> list[tuple[str, Pattern]]:
    return [
        (name, Pattern(written, ignore_case=True))
        for code in LANGUAGES
        for name, written in data(code, "audit")["statements"].items()
    ]
