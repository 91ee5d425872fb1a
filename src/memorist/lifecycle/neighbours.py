"""What a new statement is compared with: similar memories, facts on its topics, earlier texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from memorist.errors import TooLargeError
from memorist.language.likeness import content_stems
from memorist.language.people import NOBODY, People
from memorist.language.text import stems
from memorist.records.memories import (
    COUPLES,
    FIRST,
    PLANS,
    Add,
    Candidate,
    Change,
    Expire,
    Fact,
    MemoryItem,
    Restore,
    Retract,
    Supersede,
)
from memorist.records.scope import Scope
from memorist.store.base import Store
from memorist.store.views import age

MOST_SIMILAR = 12  # memories that a candidate is compared with
MOST_WORDS = 40
MOST_PLANS = 200  # the newest: nearly all that people say they have done is compared with them
MOST_GONE = 10  # facts that name a thing which is gone
PAGE, PAGE_BYTES = 500, 8 * 1024 * 1024  # of a list that is gone through
AHEAD = timedelta(days=1)  # of now: what was said later than that was dated by a wrong clock
UNDATED = FIRST  # in the place of such a date
R = TypeVar("R", bound=MemoryItem | Fact)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """What a candidate is compared with: similar memories, facts on its topics, earlier texts.

    `people` are those that facts name: a claim about one of them is one about all their names.
    """

    items: Sequence[MemoryItem] = ()
    facts: Sequence[Fact] = ()
    texts: Sequence[str] = ()
    people: People = NOBODY

    def before(self, said_at: datetime, now: datetime) -> Neighbours:
        """The same for a statement of this moment, before which all of them were made.

        Where a clock far ahead has dated one, nobody knows by how much: a fact is `UNDATED` then,
        and so the oldest of all.
        """
        latest = now + AHEAD
        if said_at > latest:  # by that clock
            return self
        items = [
            it if it.created_at <= latest else replace(it, created_at=said_at) for it in self.items
        ]
        facts = list[Fact]()
        for fact in self.facts:
            if (fact.said_at or FIRST) <= latest:
                facts.append(fact)
            elif fact.valid_to is None:
                facts.append(replace(fact, said_at=UNDATED, valid_from=None))
        return replace(self, items=items, facts=facts)


def neighbours_of(
    store: Store,
    home: Scope,
    candidate: Candidate,
    texts: Sequence[str] = (),
    pending: Sequence[Change] = (),
    before: Sequence[str] = (),
) -> Neighbours:
    """What a candidate is compared with, once pending changes are made.

    `before` are the ids of the messages that a correction may mean.
    """
    people = People.of(after(store.naming(home), pending))
    topics = {
        (subject, predicate): None
        for claim in candidate.claims
        if not claim.gone
        for subject in people.same(people.told(claim.subject))
        for predicate in claim.concerns
    }
    facts = [
        fact
        for subject, predicate in topics
        for fact in store.facts(
            home,
            subject=subject,
            predicate=predicate,
            newest_first=predicate in PLANS,
            limit=MOST_PLANS if predicate in PLANS else None,
        )
    ]
    if any(claim.ends and claim.predicate in COUPLES for claim in candidate.claims):
        facts += (it for who in people.partners() for it in store.facts(home, subject=who))
    for claim in candidate.claims:
        if claim.gone:
            at = candidate.said_at
            facts += store.facts(home, text=claim.object, valid_at=at, limit=MOST_GONE)
    said = candidate.text or " ".join(claim.object for claim in candidate.claims if claim.ends)
    items = similar_memories(store, home, said, candidate.said_at)
    if candidate.corrects and candidate.instead:
        facts += every(partial(store.facts, home, valid_at=candidate.said_at))
        recent = store.records(home, store.derived(home, before))
        items += [one for one in recent if isinstance(one, MemoryItem) and one.ended_at is None]
    back = [change.id for change in pending if isinstance(change, Restore)]
    for one in store.records(home, back) if back else ():
        if isinstance(one, Fact):
            facts.append(one)
        else:
            items.append(replace(one, ended_at=None, superseded_by=None))
    neighbours = Neighbours(items=items, facts=facts, texts=texts, people=people)
    return applied_to(neighbours, pending)


def similar_memories(store: Store, home: Scope, text: str, at: datetime) -> list[MemoryItem]:
    """The memories that share the most telling words with a text, unexpired at a moment."""
    words = sorted(content_stems(text) or set(stems(text)), key=lambda it: (-len(it), it))
    return store.similar(home, words[:MOST_WORDS], limit=MOST_SIMILAR, at=at)


def applied_to(neighbours: Neighbours, changes: Sequence[Change]) -> Neighbours:
    """The neighbours as they are once some changes are made."""
    facts = after(neighbours.facts, changes)
    ended = {ended_by(change) for change in changes if not getattr(change, "planned", False)}
    ended |= {fact.memory for fact in facts if fact.id in ended}  # a memory ends with its fact
    added = (change.record for change in changes if isinstance(change, Add | Supersede))
    items = {one.id: one for one in (*neighbours.items, *added) if isinstance(one, MemoryItem)}
    current = [item for item in items.values() if item.id not in ended]
    return replace(neighbours, items=current, facts=facts)


def after(facts: Sequence[Fact], changes: Sequence[Change]) -> list[Fact]:
    """The facts as they are once some changes are made, with those that are added."""
    result = {fact.id: fact for fact in facts}
    for change in changes:
        if isinstance(change, Add | Supersede) and isinstance(change.record, Fact):
            result[change.record.id] = change.record
        old = result.get(ended_by(change) or "")
        if old is not None and isinstance(change, Retract):
            result[old.id] = replace(old, known_to=change.at)
        elif old is not None and isinstance(change, Supersede | Expire):
            by = change.record.id if isinstance(change, Supersede) else change.by
            end = max(change.at, old.valid_from or FIRST)
            result[old.id] = replace(old, valid_to=end, superseded_by=by)
        elif isinstance(change, Restore) and (old := result.get(change.id)):
            until = old.valid_to if old.known_to else None
            result[old.id] = replace(old, known_to=None, valid_to=until, superseded_by=None)
    return list(result.values())


def ended_by(change: Change) -> str | None:
    """The id of what a change ends, if it ends something."""
    if isinstance(change, Supersede):
        return change.old_id
    return change.id if isinstance(change, Expire | Retract) else None


def every(read: Callable[..., list[R]]) -> Iterator[R]:
    """The memories or facts of a list, read a page at a time."""
    after: tuple[datetime, str] | None = None
    while page := read(after=after, limit=PAGE, max_bytes=PAGE_BYTES):
        yield from page
        after = age(page[-1])


def read_all(
    store: Store, scope: Scope, now: datetime, max_bytes: int | None
) -> tuple[list[MemoryItem], list[Fact]]:
    """The memories that have not ended and the facts that hold, if they are not too many."""
    items = store.items(scope, current=False, max_bytes=max_bytes)
    facts = store.facts(scope, valid_at=now, max_bytes=max_bytes)
    more: list[object] = []
    if max_bytes is not None and items:
        more += store.items(scope, current=False, limit=1, after=age(items[-1]))
    if max_bytes is not None and facts:
        more += store.facts(scope, valid_at=now, limit=1, after=age(facts[-1]))
    if more:
        raise TooLargeError("there is too much to audit at once; audit the agents one by one")
    return [item for item in items if item.ended_at is None], facts
