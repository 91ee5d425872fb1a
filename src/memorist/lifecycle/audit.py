"""The audit: which memories and facts are junk, duplicate, stale, contradictory or dangerous.

It needs no model and changes nothing. Findings name ids and reasons, never what memories say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Literal, get_args

from memorist.language.dates import resolve
from memorist.language.signals import signals_of
from memorist.language.text import LANGUAGES, data, negations
from memorist.language.unsafe import find_secrets, injections
from memorist.lifecycle.audit_comparison import (
    Contradiction,
    audit_words,
    compare,
    contradicting_facts,
    contradicting_statements,
    empty_words,
)
from memorist.records.memories import Fact, MemoryItem
from memorist.records.values import check_moment, fold

AuditKind = Literal[
    "junk", "duplicate", "stale", "contradictory", "secret", "injection", "ungrounded"
]
KINDS: tuple[AuditKind, ...] = get_args(AuditKind)
_OF_MEMORIES = ("junk", "duplicate", "stale")  # facts are checked for the other kinds only
_LOOK_AT_CHARS = 2_000
_LOOP_COPIES = 5
_WORKING = timedelta(days=2)
_PLAN_GRACE = timedelta(days=1)
_UNUSED = timedelta(days=180)
_UNIMPORTANT = 0.4
_OPPOSED = "cannot all be so at the same time"
_STRANGERS = ("web", "tool")  # whose orders are nobody's wishes
_GOES_ON = re.compile(r"[.!。！\n]\s*\S")
_BREAKS_OFF = re.compile(r"[,:;(\-–—]\s*$|(?:\.\.\.|…)\s*$")
_SUGGESTIONS: Mapping[AuditKind, str] = {
    "junk": "forget it",
    "duplicate": "keep the first, forget the others",
    "stale": "expire it: it stays visible in the past",
    "contradictory": "let the newest supersede the others, or date them",
    "secret": "forget it and the messages it came from, then change the secret",
    "injection": "look at where it came from, and forget that source",
    "ungrounded": "find its source or forget it",
}
# Families of junk by their patterns in the data files; the first that fits names the reason.
_JUNK: Mapping[str, str] = {
    "greeting": "a greeting, thanks or a nod",
    "question": "that something was asked, not what is so",
    "passing": "a passing state, over by now",
    "boilerplate": "words of an assistant, not about anyone",
    "system": "text of a system prompt or a start-up file",
    "instruction": "an instruction to the agent, not about anyone",
    "echo": "an echo of what was recalled",
    "noise": "machine output: a schedule, a heartbeat or a log",
    "vacuous": "says nothing that tells one person from another",
    "fragment": "a fragment without content",
    "loop": "one of many copies, as a loop of recall and storing makes them",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is wrong with some records, why, and what to do.

    Of duplicates the first id is the one to keep.
    """

    kind: AuditKind
    ids: tuple[str, ...]
    reason: str
    evidence: tuple[str, ...] = ()
    suggestion: str = ""

    @property
    def flagged(self) -> tuple[str, ...]:
        """The ids that count as wrong."""
        return self.ids[1:] if self.kind == "duplicate" else self.ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit found among so many memories and facts.

    `comparisons` counts the pairs that were compared to find duplicates; `uncompared` those that
    shared a rare word and were left out: a few duplicates may be missing if it is not 0.
    """

    memories: int
    facts: int
    findings: tuple[Finding, ...] = ()
    comparisons: int = 0
    uncompared: int = 0

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
    """Check the current memories and facts; those that have ended are left alone.

    `grounded` requires each record to name the messages it came from; an import cannot.
    """
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
    empty = empty_words() | negations()
    words, signals = fold(start).split(), signals_of(start)
    tells = signals.self_reference or _GOES_ON.search(start)
    tells = tells or not audit_words("first_person").isdisjoint(words)
    if signals.is_question and start.endswith(("?", "？")) and not tells:
        return "question"
    content = [word for word in words if word not in empty]
    if not content:
        return "fragment"
    breaks_off = _BREAKS_OFF.search(start) or words[-1] in audit_words("never_last")
    return "fragment" if len(content) == 1 < len(words) and breaks_off else None


@cache
def _junk_patterns() -> dict[str, tuple[re.Pattern[str], re.Pattern[str]]]:
    """For each family the pattern of all languages, and that of its exceptions."""

    def any_of(family: str, key: str) -> re.Pattern[str]:
        written = (data(code, "audit")["junk"].get(family, {}) for code in LANGUAGES)
        patterns = [f"(?:{pattern})" for each in written for pattern in each.get(key, [])]
        return re.compile("|".join(patterns) or "(?!)", re.IGNORECASE)

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
            evidence = [f"{since.days} days"] if since >= timedelta(days=1) else []
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
def _planned_pattern() -> re.Pattern[str]:
    return re.compile("|".join(data(code, "audit")["planned"] for code in LANGUAGES), re.IGNORECASE)


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
