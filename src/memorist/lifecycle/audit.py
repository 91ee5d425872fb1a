"""The audit: which memories and facts are junk, duplicate, stale, contradictory or dangerous.

It needs no model and changes nothing. Findings name ids and reasons, never what memories say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Literal, NamedTuple, get_args

from memorist.language.dates import resolve
from memorist.language.injection import injections
from memorist.language.secrets import find_secrets
from memorist.language.signals import signals_of
from memorist.language.text import LANGUAGES, data, negations, single_valued_predicates
from memorist.lifecycle.audit_comparison import (
    Comparison,
    compare,
    contradicting_facts,
    contradicting_statements,
    empty_words,
)
from memorist.records.memories import Fact, MemoryItem
from memorist.records.values import check_moment, check_share, fold

AuditKind = Literal[
    "junk", "duplicate", "stale", "contradictory", "secret", "injection", "ungrounded"
]
KINDS: tuple[AuditKind, ...] = get_args(AuditKind)
_OF_MEMORIES = ("junk", "duplicate", "stale")  # facts are checked for the other kinds only
_LOOK_AT_CHARS = 2_000
_OPPOSED = "cannot all be so at the same time"
_STRANGERS = ("web", "tool")  # whose orders are nobody's wishes
_TELLS = re.compile(r"[.!。！\n]\s*\S|\b(?:i|me|ich|mir|yo|me|я|мне)\b", re.IGNORECASE)
_BREAKS_OFF = re.compile(r"[,:;(\-–—]\s*$|(?:\.\.\.|…)\s*$")
_NEVER_LAST = frozenset(
    "a an the and or but of with because der die das und oder el la y и".split()
)
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
class AuditSettings:
    """Every number that the audit goes by.

    `grounded` requires each record to name the messages it came from; an import cannot.
    """

    alike_at: float = 0.85
    most_compared: int = 64
    loop_copies: int = 5
    working: timedelta = timedelta(days=2)
    plan_grace: timedelta = timedelta(days=1)
    unused: timedelta = timedelta(days=180)
    unimportant: float = 0.4
    single_predicates: frozenset[str] = field(default_factory=single_valued_predicates)
    grounded: bool = True

    def __post_init__(self) -> None:
        check_share(self.alike_at, "alike_at")
        check_share(self.unimportant, "unimportant")


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
    items: Sequence[MemoryItem],
    facts: Sequence[Fact],
    now: datetime,
    settings: AuditSettings | None = None,
) -> Audit:
    """Check the current memories and facts; those that have ended are left alone."""
    check_moment(now, "now")
    settings = settings or AuditSettings()
    items = [item for item in items if item.ended_at is None and item.superseded_by is None]
    facts = [fact for fact in facts if fact.known_to is None and fact.superseded_by is None]
    texts, owners = [item.text for item in items], [item.scope.owner for item in items]
    comparison = compare(texts, owners, alike_at=settings.alike_at, most=settings.most_compared)
    junk = list(_junk(items, settings))
    junk_ids = {finding.ids[0] for finding in junk}
    findings = [
        *junk,
        *_duplicates(items, comparison),
        *_stale(items, now, settings),
        *_contradictions(items, comparison, junk_ids),
        *(
            _finding("contradictory", opposed.ids_of(facts), _OPPOSED, opposed.about)
            for opposed in contradicting_facts(facts, settings.single_predicates)
        ),
        *_dangers([*items, *facts], settings, junk_ids),
    ]
    return Audit(
        memories=len(items),
        facts=len(facts),
        findings=tuple(sorted(findings, key=lambda one: KINDS.index(one.kind))),
        comparisons=comparison.comparisons,
        uncompared=comparison.skipped,
    )


def _finding(kind: AuditKind, ids: Sequence[str], reason: str, *evidence: str) -> Finding:
    suggestion = _SUGGESTIONS[kind]
    if "loop" in evidence:
        suggestion = "read the first, forget the copies, and do not store what was recalled"
    return Finding(
        kind=kind, ids=tuple(ids), reason=reason, evidence=evidence, suggestion=suggestion
    )


def _junk(items: Sequence[MemoryItem], settings: AuditSettings) -> Iterator[Finding]:
    """Memories not worth keeping: by their words, or as copies that a loop of storing made."""
    keys = [(item.scope.owner, " ".join(item.text.casefold().split())) for item in items]
    copies = Counter(keys)
    seen: set[tuple[str, str]] = set()
    for item, key in zip(items, keys, strict=True):
        if family := junk_family(item.text):
            yield _finding("junk", [item.id], _JUNK[family], family)
        elif key in seen and copies[key] >= settings.loop_copies:
            yield _finding("junk", [item.id], _JUNK["loop"], "loop", f"{copies[key]} copies")
        seen.add(key)


def junk_family(text: str) -> str | None:
    """The family of junk that a text belongs to by its words alone, if any."""
    start = text[:_LOOK_AT_CHARS].strip()
    if family := next((one.name for one in _junk_patterns() if one.matches(start)), None):
        return family
    if _only_asks(start):
        return "question"
    return "fragment" if _is_fragment(start) else None


class _JunkPatterns(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None

    def matches(self, text: str) -> bool:
        if not self.pattern.search(text):
            return False
        return self.unless is None or not self.unless.search(text)


@cache
def _junk_patterns() -> tuple[_JunkPatterns, ...]:
    families = [
        (name, [data(code, "audit")["junk"].get(name, {}) for code in LANGUAGES])
        for name in _JUNK
        if name not in ("fragment", "loop")
    ]
    return tuple(
        _JunkPatterns(name, _any_of(written, "patterns"), _any_of(written, "unless"))
        for name, written in families
    )


def _any_of(written: Sequence[Mapping[str, list[str]]], key: str) -> Any:
    """One pattern for those of all languages, or None for none."""
    patterns = [f"(?:{pattern})" for each in written for pattern in each.get(key, [])]
    return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None


def _only_asks(text: str) -> bool:
    """Whether it is one question that says nothing about the person who asks."""
    signals = signals_of(text)
    asks = signals.is_question and text[-1:] in "?？"
    return asks and not signals.self_reference and not _TELLS.search(text)


def _is_fragment(text: str) -> bool:
    """Whether no word has content, or one does in a sentence that breaks off."""
    words = fold(text).split()
    content = [word for word in words if word not in empty_words() | negations()]
    if not content:
        return True
    breaks_off = bool(_BREAKS_OFF.search(text)) or words[-1] in _NEVER_LAST
    return len(content) == 1 and len(words) > 1 and breaks_off


def _duplicates(items: Sequence[MemoryItem], comparison: Comparison) -> Iterator[Finding]:
    """Copies, the one to keep first: the most important, most used, oldest."""
    for places in comparison.duplicates:
        best = sorted(
            (items[place] for place in places),
            key=lambda item: (-item.importance, -item.uses, item.created_at),
        )
        exact = len({" ".join(item.text.split()) for item in best}) == 1
        reason = "the same, word for word" if exact else "the same in nearly the same words"
        yield _finding("duplicate", [item.id for item in best], reason, f"{len(best)} copies")


def _stale(
    items: Sequence[MemoryItem], now: datetime, settings: AuditSettings
) -> Iterator[Finding]:
    for item in items:
        reason, since = _why_stale(item, now, settings)
        if reason:
            evidence = [f"{since.days} days"] if since >= timedelta(days=1) else []
            yield _finding("stale", [item.id], reason, *evidence)


def _why_stale(item: MemoryItem, now: datetime, settings: AuditSettings) -> tuple[str, timedelta]:
    if item.expires_at is not None and item.expires_at <= now:
        return "expired, but still there", now - item.expires_at
    if item.kind == "working" and item.created_at + settings.working <= now:
        return "a working memory past its time", now - item.created_at
    if (planned := _planned_for(item)) and planned + settings.plan_grace <= now:
        return "a plan whose date has passed", now - planned
    unused = now - (item.used_at or item.created_at)
    if unused >= settings.unused and item.importance < settings.unimportant:
        return "unimportant, and long unused", unused
    return "", timedelta()


def _planned_for(item: MemoryItem) -> datetime | None:
    """When the date of a plan has passed; None for a memory that is no plan."""
    text = item.text[:_LOOK_AT_CHARS]
    if not _planned_pattern().search(text):
        return None
    span = resolve(text, item.created_at, lean=1)
    return None if span is None or span.end <= item.created_at else span.end


@cache
def _planned_pattern() -> re.Pattern[str]:
    return re.compile("|".join(data(code, "audit")["planned"] for code in LANGUAGES), re.IGNORECASE)


def _contradictions(
    items: Sequence[MemoryItem], comparison: Comparison, junk: set[str]
) -> Iterator[Finding]:
    """Memories that cannot all hold; junk contradicts nothing."""
    texts, owners = [item.text for item in items], [item.scope.owner for item in items]
    seen: set[tuple[str, ...]] = set()
    for opposed in [*comparison.contradictions, *contradicting_statements(texts, owners)]:
        ids = opposed.ids_of(items)
        if ids not in seen and not junk & set(ids):
            yield _finding("contradictory", ids, _OPPOSED, opposed.about)
        seen.add(ids)


def _dangers(
    records: Sequence[MemoryItem | Fact], settings: AuditSettings, junk: set[str]
) -> Iterator[Finding]:
    """Secrets, prompt injections, and records that name no source."""
    for record in records:
        if secrets := find_secrets(record.text):
            yield _finding("secret", [record.id], "holds a secret", *secrets)
        commands = injections(record.text, trusted=record.source not in _STRANGERS)
        if commands and not (record.id in junk and commands == ["speaks as the system"]):
            reason = "tries to command the model that reads it"
            yield _finding("injection", [record.id], reason, *commands)
        if settings.grounded and not record.sources:
            yield _finding("ungrounded", [record.id], "names no message it came from")
