"""Memories and facts that are added outright, reconciled with what there is at once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from memorist.errors import ConflictError, LeaseLostError, NotFoundError
from memorist.lifecycle.candidate import Candidate, Claim
from memorist.lifecycle.reconcile import Neighbours, has_ended, reconcile, undo
from memorist.lifecycle.settings import Policy
from memorist.records.memories import Change, Fact, MemoryItem, topic_of
from memorist.records.message import Job
from memorist.records.query import Filters
from memorist.records.scope import Scope
from memorist.records.values import fold
from memorist.store.base import Store

ATTEMPTS = 20  # while other processes change the same user's memories
BACKOFF_SECONDS = 0.01  # longer with each attempt
MOST_SIMILAR = 12  # memories that a candidate is compared with
MOST_WORDS = 40
MOMENT = timedelta(microseconds=1)
_MEMORIES = Filters(kinds=("memory",))

T = TypeVar("T", bound=Change)


def keep(
    store: Store, scope: Scope, candidate: Candidate, policy: Policy, clock: Callable[[], datetime]
) -> list[Change]:
    """Apply the changes that a candidate makes, and return them."""
    home = Scope(user=scope.user, tenant=scope.tenant, agent=scope.agent or "")

    def decide() -> list[Change]:
        meant = completed(store, home, candidate)
        neighbours = neighbours_of(store, home, meant)
        return reconcile(meant, neighbours, scope=scope, now=clock(), policy=policy)

    return apply_changes(store, home, decide)


def apply_changes(
    store: Store, home: Scope, decide: Callable[[], list[T]], done: Sequence[Job] = ()
) -> list[T]:
    """Apply the changes decided upon; decide again where another process was quicker."""
    for attempt in range(ATTEMPTS):
        time.sleep(random.uniform(0, BACKOFF_SECONDS * attempt))
        version = store.version(home)
        try:
            changes = decide()
            store.apply(home, changes, done=done, base_version=version)
        except LeaseLostError:
            raise
        except (ConflictError, NotFoundError):
            continue
        return changes
    raise ConflictError("this user's memories keep changing; try again later")


def completed(store: Store, home: Scope, candidate: Candidate) -> Candidate:
    """A correction that names only what is wrong and what is right, with the claim it means."""
    if candidate.claims or candidate.instead is None or not candidate.corrects:
        return candidate
    right, wrong = candidate.instead
    meant = [fact for fact in store.facts(home, valid_at=candidate.said_at) if fact.is_about(wrong)]
    if len({fact.topic for fact in meant}) != 1:
        return candidate  # no fact says so, or several do
    subject, predicate, since = meant[0].subject, meant[0].predicate, candidate.said_at
    claim = Claim(subject=subject, predicate=predicate, object=right, single=True, valid_from=since)
    return replace(candidate, claims=(claim,))


def undone(store: Store, scope: Scope, id_: str, now: datetime) -> list[Change]:
    """The changes that undo the last thing that happened to a fact, or to a memory's facts."""
    changes: list[Change] = []
    known = store.records(scope, [id_])
    if not known:
        raise NotFoundError("no memory or fact with this id for this user")
    records: Sequence[MemoryItem | Fact] = facts_of(store, scope, known[0]) or known
    for one in records:
        successors = store.records(scope, [one.superseded_by] if one.superseded_by else [])
        if has_ended(one) and any(successor.superseded_by for successor in successors):
            raise ConflictError("what replaced it was replaced itself; undo that first")
        changes += undo(one, store.superseded_by(scope, one.id), now)
    return changes


def facts_of(store: Store, scope: Scope, record: MemoryItem | Fact) -> list[Fact]:
    """The facts that a memory states: those that hold, or those that ended with it."""
    if isinstance(record, Fact):
        return []
    moments = [None, record.ended_at - MOMENT] if record.ended_at else [None]
    facts = [fact for moment in moments for fact in store.facts(scope, known_at=moment)]
    mine = {fact.id: fact for fact in facts if fact.memory == record.id}
    return [fact for fact in mine.values() if has_ended(fact) == has_ended(record)]


def neighbours_of(
    store: Store, home: Scope, candidate: Candidate, texts: Sequence[str] = ()
) -> Neighbours:
    """What a candidate is compared with: similar memories, and facts of its topics."""
    topics = {topic_of(claim.subject, claim.predicate) for claim in candidate.claims}
    facts = [fact for topic in sorted(topics) for fact in store.facts(home, topic=topic)]
    items = similar_memories(store, home, candidate.text)
    return Neighbours(items=items, facts=facts, texts=texts)


def similar_memories(store: Store, home: Scope, text: str) -> list[MemoryItem]:
    """The memories that share the longest words with a text."""
    words = sorted(dict.fromkeys(fold(text).split()), key=len, reverse=True)[:MOST_WORDS]
    if not words:
        return []
    terms = [(word,) for word in words]
    hits = store.match_text(home, terms, limit=MOST_SIMILAR, filters=_MEMORIES)
    matches = store.read(home, [hit.passage for hit in hits])
    records = store.records(home, [match.id for match in matches])
    return [one for one in records if isinstance(one, MemoryItem)]
