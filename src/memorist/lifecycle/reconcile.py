"""New knowledge meets old: purely, what changes because of what was just said.

Only facts that share subject and predicate are looked at, and nothing less trusted changes
what was said by someone more trusted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memorist.language.likeness import alike, contains
from memorist.lifecycle.candidate import Candidate, Claim
from memorist.lifecycle.settings import DEFAULT_POLICY, Policy
from memorist.lifecycle.tools import is_lesson
from memorist.records.change import Add, Change, Expire, Reinforce, Restore, Retract, Supersede
from memorist.records.fact import FIRST, Fact, topic_of
from memorist.records.ids import new_id
from memorist.records.log import trust_of
from memorist.records.memory_item import MemoryItem
from memorist.records.scope import Scope

SURER = 0.05  # a fact told again


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known that bears on a candidate: like memories, facts on its topics, words said."""

    items: Sequence[MemoryItem] = ()
    facts: Sequence[Fact] = ()
    said: Sequence[str] = ()


def reconcile(
    candidate: Candidate,
    known: Known,
    *,
    scope: Scope,
    now: datetime,
    policy: Policy = DEFAULT_POLICY,
) -> list[Change]:
    """The changes that a candidate asks for, given what is known."""
    if is_echo(candidate, known, policy):
        return []
    if not candidate.text:  # a fact that was given as one
        return list(_claims(candidate, known.facts, scope, now, memory=None))
    twin = _twin(candidate, known.items, policy)
    if twin is not None:
        facts = list(_claims(candidate, known.facts, scope, now, memory=None))
        if not any(isinstance(change, Supersede | Expire | Retract) for change in facts):
            trusted = trust_of(candidate.source) >= trust_of(twin.source)
            return [
                *([_again(twin.id, twin.sources, candidate, policy)] if trusted else []),
                *facts,
            ]
    # Like words that end a fact say something else: "Hamburg, not Berlin", "Berlin, not Hamburg".
    item = _item(candidate, scope, policy)
    return [Add(item), *_claims(candidate, known.facts, scope, now, memory=item.id)]


def is_echo(candidate: Candidate, known: Known, policy: Policy = DEFAULT_POLICY) -> bool:
    """Whether somebody other than the user only repeats what was said or remembered."""
    if candidate.source in ("user", "import") or is_lesson(candidate):
        return False
    texts = (*known.said, *(item.text for item in known.items))
    return any(contains(candidate.text, text) >= policy.echo for text in texts)


def undo(
    record: MemoryItem | Fact, replaced: Sequence[MemoryItem | Fact], now: datetime
) -> list[Change]:
    """The changes that take back the last thing that happened to a record.

    What ended holds again, and what took its place is taken back; else the record itself is
    taken back, and what it replaced holds again.
    """
    if has_ended(record):
        changes: list[Change] = [Restore(id=record.id, reason="undone")]
        if record.superseded_by is not None:
            changes.insert(0, Retract(id=record.superseded_by, reason="undone", at=now))
        return changes
    ended = [old for old in replaced if has_ended(old)] or replaced[-1:]
    return [
        Retract(id=record.id, reason="undone", at=now, by=ended[-1].id if ended else None),
        *(Restore(id=old.id, reason="undone") for old in ended),
    ]


def has_ended(record: MemoryItem | Fact) -> bool:
    """Whether something ended a record; a fact that was told with its end holds as told."""
    taken_back = isinstance(record, Fact) and record.known_to is not None
    return taken_back or record.ended_at is not None


def derived_id(kind: str, sources: Sequence[str], *parts: str) -> str:
    """The same id for the same thought about the same messages, so that twice is once.

    What is told outright comes of no message: told again after it ended, it is another one.
    """
    return _hash(kind, *sources, *parts) if sources else new_id()


def _hash(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:32]


def _twin(candidate: Candidate, items: Sequence[MemoryItem], policy: Policy) -> MemoryItem | None:
    if is_lesson(candidate):  # the same tools with the same end, however long they took
        return next((item for item in items if item.tags == candidate.tags), None)
    best = max(items, key=lambda item: alike(candidate.text, item.text), default=None)
    if best is None or alike(candidate.text, best.text) < policy.alike:
        return None
    return best


def _again(id_: str, cited: Sequence[str], candidate: Candidate, policy: Policy) -> Reinforce:
    room = policy.max_sources - len(cited)
    return Reinforce(id=id_, sources=candidate.sources[: max(room, 0)], at=candidate.said_at)


def _item(candidate: Candidate, scope: Scope, policy: Policy) -> MemoryItem:
    given = candidate.importance
    importance = policy.base_importance if given is None else given
    return MemoryItem(
        id=derived_id("memory", candidate.sources, candidate.text),
        scope=scope,
        text=candidate.text,
        kind=candidate.kind,
        category=candidate.category,
        importance=importance,
        tags=candidate.tags,
        source=candidate.source,
        sources=candidate.sources,
        created_at=candidate.said_at,
        expires_at=candidate.expires_at,
    )


def _claims(
    candidate: Candidate, facts: Sequence[Fact], scope: Scope, now: datetime, memory: str | None
) -> Iterator[Change]:
    for claim in candidate.claims:
        if candidate.text and (claim.valid_from or candidate.said_at) > candidate.said_at:
            continue  # a plan is no fact yet
        topic = topic_of(claim.subject, claim.predicate)
        rivals = [fact for fact in facts if fact.topic == topic and fact.known_to is None]
        changes = settle(claim, rivals, candidate, _fact(claim, candidate, scope, now, memory))
        facts = after(facts, changes)
        yield from changes


def after(facts: Sequence[Fact], changes: Sequence[Change]) -> list[Fact]:
    """The facts as they are once some changes are made; of others, those added."""
    found = {fact.id: fact for fact in facts}
    for change in changes:
        if isinstance(change, Add | Supersede) and isinstance(change.record, Fact):
            found[change.record.id] = change.record
        old = found.get(ended_by(change) or "")
        if old is not None and isinstance(change, Retract):
            found[old.id] = replace(old, known_to=change.at)
        elif old is not None and isinstance(change, Supersede | Expire):
            found[old.id] = replace(old, valid_to=max(change.at, old.valid_from or FIRST))
    return list(found.values())


def ended_by(change: Change) -> str | None:
    """The id of what a change ends, if it ends something."""
    if isinstance(change, Supersede):
        return change.old_id
    return change.id if isinstance(change, Expire | Retract) else None


def settle(claim: Claim, rivals: Sequence[Fact], candidate: Candidate, new: Fact) -> list[Change]:
    """What a claim changes among the facts with its subject and predicate."""
    since = new.valid_from or candidate.said_at
    same = [fact for fact in rivals if fact.is_about(claim.object)]
    if claim.ends:
        ending = [fact for fact in same if _open_at(fact, since) and _may_change(candidate, fact)]
        return [Expire(id=fact.id, at=since, reason="said to be over") for fact in ending]
    if again := next((fact for fact in same if fact.holds(since)), None):
        return _told_again(again, since, candidate, new)
    others = [fact for fact in rivals if claim.replaces and fact not in same]
    holding = [fact for fact in others if _open_at(fact, since) or _gives_way(fact, candidate, new)]
    if not all(_may_change(candidate, fact) for fact in holding):
        return []
    if any(fact.said_at and fact.said_at > candidate.said_at for fact in holding):
        return []  # what was said before does not overthrow what was said since
    if candidate.corrects and holding:
        return _correct(holding, new)
    if holding:
        old, *rest = holding
        why = "something newer was said"
        first = Supersede(old_id=old.id, record=new, at=since, reason=why)
        return [first, *(Expire(id=fact.id, at=since, reason=why) for fact in rest)]
    told = _before_later(new, since, [*others, *same])
    between = next((fact for fact in others if fact.holds(since)), None)
    return [Add(told), *(_cut(between, since, told) if between else [])]


def _cut(fact: Fact, since: datetime, told: Fact) -> list[Change]:
    """A fact of a time gone by, now believed to have ended when another began."""
    why = "told later"
    changes: list[Change] = [Retract(id=fact.id, at=told.known_from, reason=why, by=told.id)]
    if (fact.valid_from or FIRST) < since:
        id_ = derived_id("fact", fact.sources, fact.id, since.isoformat())
        shorter = replace(
            fact,
            id=id_,
            valid_to=since,
            known_from=told.known_from,
            superseded_by=told.id,
            reason=why,
            ended_at=None,
        )
        changes.append(Add(shorter))
    return changes


def _told_again(fact: Fact, since: datetime, candidate: Candidate, new: Fact) -> list[Change]:
    """It is known: surer now, or on better authority; of less trusted it learns nothing."""
    if not _may_change(candidate, fact):
        return []
    if fact.valid_to is None and trust_of(candidate.source) > trust_of(fact.source):
        why = "said by someone more trusted"
        return [Supersede(old_id=fact.id, record=new, at=since, reason=why)]
    surer = min(fact.confidence + SURER, 1.0)
    return [Reinforce(id=fact.id, sources=candidate.sources, importance=surer)]


def _correct(wrong: Sequence[Fact], right: Fact) -> list[Change]:
    """What was wrong was never so: the right one holds for as long as the wrong one seemed to."""
    since = min(fact.valid_from or FIRST for fact in wrong)
    began = replace(right, valid_from=None if since == FIRST else since)
    return [
        *(
            Retract(id=fact.id, at=right.known_from, reason="corrected", by=right.id)
            for fact in wrong
        ),
        Add(began),
    ]


def _before_later(new: Fact, since: datetime, others: Sequence[Fact]) -> Fact:
    """A fact of an earlier time, learnt late, held until the next one began."""
    later = [fact for fact in others if fact.valid_from is not None and fact.valid_from > since]
    if not later:
        return new
    following = min(later, key=lambda fact: fact.valid_from or since)
    if new.valid_to is not None and new.valid_to <= (following.valid_from or since):
        return new
    return replace(
        new, valid_to=following.valid_from, superseded_by=following.id, reason="told later"
    )


def _fact(
    claim: Claim, candidate: Candidate, scope: Scope, now: datetime, memory: str | None
) -> Fact:
    return Fact(
        id=derived_id("fact", candidate.sources, claim.subject, claim.predicate, claim.object),
        scope=scope,
        subject=claim.subject,
        predicate=claim.predicate,
        object=claim.object,
        valid_from=claim.valid_from or candidate.said_at,
        valid_to=claim.valid_to,
        known_from=now,
        said_at=candidate.said_at,
        source=candidate.source,
        sources=candidate.sources,
        memory=memory,
    )


def _open_at(fact: Fact, moment: datetime) -> bool:
    """Whether a fact holds until further notice, and did at the moment."""
    return fact.valid_to is None and (fact.valid_from or FIRST) <= moment


def _gives_way(fact: Fact, candidate: Candidate, new: Fact) -> bool:
    """Whether a fact that began later must not end what someone more trusted says now."""
    began_before = (fact.valid_from or FIRST) <= candidate.said_at
    less = trust_of(fact.source) < trust_of(candidate.source)
    return less and began_before and fact.valid_to is None and new.valid_to is None


def _may_change(candidate: Candidate, fact: Fact) -> bool:
    return trust_of(candidate.source) >= trust_of(fact.source)
