"""The audit: what in a memory is junk, said twice, over, at odds, secret or dangerous.

It reads and judges; it changes nothing and needs no model. Findings name ids and reasons,
never what the memories say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Literal, get_args

from memorist.language.dates import resolve
from memorist.language.secrets import find_secrets
from memorist.lifecycle.audit_clashes import clashing_facts, clashing_statements, single_predicates
from memorist.lifecycle.audit_junk import data, injections, junk_of
from memorist.lifecycle.audit_twins import Twins, find_twins
from memorist.records.fact import Fact
from memorist.records.ids import check_moment
from memorist.records.memory_item import MemoryItem, check_share

AuditKind = Literal[
    "junk", "duplicate", "stale", "contradictory", "secret", "injection", "ungrounded"
]
KINDS: tuple[AuditKind, ...] = get_args(AuditKind)
_OF_MEMORIES = ("junk", "duplicate", "stale")  # the rest is asked of facts too
_LOOK_AT_CHARS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """Every number the audit goes by.

    `grounded` asks that each record names the messages it came from; an export cannot.
    """

    alike_at: float = 0.85
    most_compared: int = 64
    loop_copies: int = 5
    working: timedelta = timedelta(days=2)
    plan_grace: timedelta = timedelta(days=1)
    unused: timedelta = timedelta(days=180)
    unimportant: float = 0.4
    single_predicates: frozenset[str] = field(default_factory=single_predicates)
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

    `comparisons` is the work that finding duplicates took; `uncompared` counts the pairs that
    met in a rare word but were left out, so a few duplicates may be missing if it is not 0.
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
        """Which share of all records that could be is wrong in this way."""
        asked = self.memories + (0 if kind in _OF_MEMORIES else self.facts)
        return len(self.flagged(kind)) / asked if asked else 0.0

    @property
    def clean(self) -> int:
        """How many records nothing was found against."""
        return self.memories + self.facts - len(self.flagged())


def audit(
    items: Sequence[MemoryItem],
    facts: Sequence[Fact],
    now: datetime,
    settings: AuditSettings | None = None,
) -> Audit:
    """Judge the memories and facts that are current; what has ended is history, and fine."""
    check_moment(now, "now")
    settings = settings or AuditSettings()
    items = [item for item in items if item.ended_at is None and item.superseded_by is None]
    facts = [fact for fact in facts if fact.known_to is None and fact.superseded_by is None]
    texts, owners = [item.text for item in items], [item.scope.owner for item in items]
    twins = find_twins(texts, owners, alike_at=settings.alike_at, most=settings.most_compared)
    junk = [*_junk(items), *_loops(items, settings)]
    findings = [
        *_once(junk),
        *_duplicates(items, twins),
        *(one for item in items if (one := _stale(item, now, settings))),
        *_contradictions(items, twins, {id for one in junk for id in one.ids}),
        *_clashes(facts, settings),
        *_dangers([*items, *facts], settings),
    ]
    return Audit(
        memories=len(items),
        facts=len(facts),
        findings=tuple(sorted(findings, key=lambda one: KINDS.index(one.kind))),
        comparisons=twins.comparisons,
        uncompared=twins.skipped,
    )


def _junk(items: Sequence[MemoryItem]) -> Iterator[Finding]:
    for item in items:
        if found := junk_of(item.text):
            yield Finding(
                kind="junk",
                ids=(item.id,),
                reason=found.reason,
                evidence=(found.family,),
                suggestion="forget it",
            )


def _loops(items: Sequence[MemoryItem], settings: AuditSettings) -> Iterator[Finding]:
    """The same words again and again: a recall that was stored and recalled, not a person."""
    keys = [(item.scope.owner, " ".join(item.text.casefold().split())) for item in items]
    copies = Counter(keys)
    seen: set[tuple[str, str]] = set()
    for item, key in zip(items, keys, strict=True):
        if key in seen and copies[key] >= settings.loop_copies:
            yield Finding(
                kind="junk",
                ids=(item.id,),
                reason="one of many copies, as a loop of recall and storing makes them",
                evidence=("loop", f"{copies[key]} copies"),
                suggestion="read the first, forget the copies, and do not store what was recalled",
            )
        seen.add(key)


def _once(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The first finding for each memory."""
    first: dict[tuple[str, ...], Finding] = {}
    for finding in findings:
        first.setdefault(finding.ids, finding)
    yield from first.values()


def _duplicates(items: Sequence[MemoryItem], twins: Twins) -> Iterator[Finding]:
    for places in twins.same:
        best = sorted((items[place] for place in places), key=_worth)
        exact = len({" ".join(item.text.split()) for item in best}) == 1
        yield Finding(
            kind="duplicate",
            ids=tuple(item.id for item in best),
            reason="the same, word for word" if exact else "the same in nearly the same words",
            evidence=(f"{len(best)} copies",),
            suggestion="keep the first, forget the others",
        )


def _worth(item: MemoryItem) -> tuple[float, int, datetime]:
    """The one to keep sorts first: it weighs most, is used most, and was there before."""
    return -item.importance, -item.uses, item.created_at


def _stale(item: MemoryItem, now: datetime, settings: AuditSettings) -> Finding | None:
    """Whether its time is over, though it is still there."""
    reason, over = _over(item, now, settings)
    if not reason:
        return None
    evidence = (f"{over.days} days",) if over >= timedelta(days=1) else ()
    return Finding(
        kind="stale",
        ids=(item.id,),
        reason=reason,
        evidence=evidence,
        suggestion="expire it: it stays visible in the past",
    )


def _over(item: MemoryItem, now: datetime, settings: AuditSettings) -> tuple[str, timedelta]:
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
    """When what a memory plans is over."""
    text = item.text[:_LOOK_AT_CHARS]
    if not _plans().search(text):
        return None
    span = resolve(text, item.created_at, lean=1)
    # What was over when it was said is a tale, not a plan.
    return None if span is None or span.end <= item.created_at else span.end


@cache
def _plans() -> re.Pattern[str]:
    return re.compile(data()["plans"]["planned"], re.IGNORECASE)


def _contradictions(items: Sequence[MemoryItem], twins: Twins, junk: set[str]) -> Iterator[Finding]:
    """Memories that cannot both hold; junk contradicts nothing."""
    texts, owners = [item.text for item in items], [item.scope.owner for item in items]
    found = [(one.places, f"the same words but for a {one.differ_in}") for one in twins.opposite]
    found += [
        (clash.places, f"different answers: {clash.about}")
        for clash in clashing_statements(texts, owners)
    ]
    seen: set[tuple[str, ...]] = set()
    for places, evidence in found:
        ids = tuple(items[place].id for place in places)
        if ids not in seen and not junk & set(ids):
            yield _contradiction(ids, evidence)
        seen.add(ids)


def _clashes(facts: Sequence[Fact], settings: AuditSettings) -> Iterator[Finding]:
    for clash in clashing_facts(facts, settings.single_predicates):
        yield _contradiction(tuple(facts[place].id for place in clash.places), clash.about)


def _contradiction(ids: tuple[str, ...], evidence: str) -> Finding:
    return Finding(
        kind="contradictory",
        ids=ids,
        reason="cannot all be so at the same time",
        evidence=(evidence,),
        suggestion="let the newest supersede the others, or date them",
    )


def _dangers(records: Sequence[MemoryItem | Fact], settings: AuditSettings) -> Iterator[Finding]:
    """Secrets, commands, and records that nobody can trace."""
    for record in records:
        if secrets := find_secrets(record.text):
            yield Finding(
                kind="secret",
                ids=(record.id,),
                reason="holds a secret",
                evidence=tuple(secrets),
                suggestion="forget it and the messages it came from, then change the secret",
            )
        if commands := injections(record.text):
            yield Finding(
                kind="injection",
                ids=(record.id,),
                reason="tries to command whoever reads it",
                evidence=tuple(commands),
                suggestion="look at where it came from, and forget that source",
            )
        if settings.grounded and not record.sources:
            yield Finding(
                kind="ungrounded",
                ids=(record.id,),
                reason="names no message it came from",
                suggestion="find its source or forget it",
            )
