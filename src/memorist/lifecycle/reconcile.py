"""Reconciliation: what a new statement changes in the memories and facts there are.

A claim is compared with facts of the same subject and predicate only, and a less trusted source
never changes what a more trusted one said.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from memorist.language.lexicon import plain
from memorist.language.likeness import alike, contains, is_inflected, is_same_task, is_same_thing
from memorist.language.people import names_someone
from memorist.language.text import is_single_valued
from memorist.lifecycle.meant import (
    end_of,
    in_new_dates,
    is_mistaken,
    meant_by,
    named,
    other_versions,
    partly,
    put_off,
    redated,
)
from memorist.lifecycle.neighbours import UNDATED, Neighbours, after, neighbours_of
from memorist.lifecycle.settings import DEFAULT_POLICY, Policy, should_promote
from memorist.lifecycle.tools import is_lesson
from memorist.records.log import trust_of
from memorist.records.memories import (
    CORRECTED,
    COUPLES,
    FIRST,
    PLANS,
    Add,
    Candidate,
    Change,
    Claim,
    Expire,
    Fact,
    MemoryItem,
    Reinforce,
    Restore,
    Retract,
    Supersede,
    plain_text,
    topic_of,
)
from memorist.records.scope import Scope
from memorist.records.values import new_id
from memorist.store.base import Store

NEWER = "something newer was said"
OFF = "the plan has changed"
_WITHOUT = ("avoids", "dislikes")  # predicates of things that may well be gone
SHORTLY = timedelta(days=7)  # within which a place may lie in the one named before
MORE_CONFIDENT = 0.05  # of a fact that is stated again


def reconcile(
    candidate: Candidate,
    neighbours: Neighbours,
    *,
    scope: Scope,
    now: datetime,
    policy: Policy = DEFAULT_POLICY,
) -> list[Change]:
    """The changes that a candidate makes among its neighbours."""
    neighbours = neighbours.before(candidate.said_at, now)
    if is_echo(candidate, neighbours, policy):
        return []
    named = (replace(it, subject=neighbours.people.told(it.subject)) for it in candidate.claims)
    candidate = replace(candidate, claims=tuple(named))
    for claim in candidate.claims:
        if claim.moves:
            older = put_off(claim, _open(neighbours.facts, candidate), candidate)
            candidate = redated(candidate, claim, older)
    if candidate.corrects and candidate.instead:
        changes = _corrected(candidate, candidate.instead, neighbours, scope, now)
        if changes or candidate.only_corrects:
            return changes  # it is no memory of its own
    claims = partial(_claims, candidate, neighbours, scope, now)
    if not candidate.text:  # a fact that was added outright
        return list(claims(None))
    duplicate = None if candidate.id else duplicate_of(candidate, neighbours.items, policy)
    if duplicate is not None:
        may_change = _may_change(candidate, duplicate)
        is_late = candidate.said_at < duplicate.created_at
        facts = list(claims(duplicate.id if may_change and not is_late else None))
        if not any(isinstance(change, Supersede | Expire | Retract) for change in facts):
            sources = candidate.sources[: max(policy.max_sources - len(duplicate.sources), 0)]
            again = Reinforce(id=duplicate.id, sources=sources, at=candidate.said_at)
            return [again, *facts] if may_change else facts
    # Similar words that end a fact say something else: "Hamburg, not Berlin".
    item = _item(candidate, scope, policy)
    said = claims(item.id)  # what is over since the memory says so is linked to it
    facts = [replace(it, by=it.by or item.id) if isinstance(it, Expire) else it for it in said]
    return [Add(_overtaken(item, candidate, facts, neighbours.facts)), *facts]


def _corrected(
    candidate: Candidate,
    instead: tuple[str, str],
    neighbours: Neighbours,
    scope: Scope,
    now: datetime,
) -> list[Change]:
    """The newest memory that a correction can mean and its facts, with what is right in them.

    Nothing where what is right is a statement of its own: "scratch that, Postgres it is, no Redis".
    """
    is_named = any(instead[0].endswith(claim.object) for claim in candidate.claims)
    if not is_named and _wrong(candidate, neighbours.facts, now):
        return []
    facts = _open(neighbours.facts, candidate)
    stating = {fact.memory for fact in facts if fact.is_about(instead[1])}
    items = [item for item in neighbours.items if item.created_at <= candidate.said_at]
    items.sort(key=lambda item: (item.id in stating, item.created_at), reverse=True)
    for item in items:
        stated = [fact for fact in facts if fact.memory == item.id]
        right, wrong = meant_by(candidate, instead, item, stated)
        text = named(wrong).sub(right, item.text) if wrong else item.text
        if text == item.text or not _may_change(candidate, item):
            continue
        text = in_new_dates(item, text)
        told = replace(candidate, sources=tuple(dict.fromkeys((*item.sources, *candidate.sources))))
        id_ = derived_id("memory", told.sources, text)
        new = replace(item, id=id_, text=text, sources=told.sources, created_at=told.said_at)
        changes: list[Change] = [Add(new)]
        for fact in stated:
            thing = named(wrong).sub(right, fact.object)
            end = end_of(thing, fact, candidate)
            claim = Claim(
                subject=fact.subject, predicate=fact.predicate, object=thing, valid_to=end
            )
            if thing != fact.object:
                changes += _correct([fact], _fact(claim, told, scope, now, id_))
        at = candidate.said_at
        only = Supersede(old_id=item.id, record=new, reason=CORRECTED, at=at, alone=True)
        return changes if changes[1:] else [only]
    meant = [fact for fact in facts if fact.is_about(instead[1])]
    if candidate.claims or len({fact.topic for fact in meant}) != 1:
        return []  # it states something itself, or no fact says what is wrong, or several do
    claim = Claim(subject=meant[0].subject, predicate=meant[0].predicate, object=instead[0])
    return _correct(meant, _fact(claim, candidate, scope, now, None))


def _wrong(candidate: Candidate, facts: Sequence[Fact], now: datetime) -> list[Change]:
    """Retractions of facts on a claim's topic whose object a correction names as wrong."""
    _, wrong = candidate.instead if candidate.corrects and candidate.instead else ("", "")
    topics = {topic_of(claim.subject, claim.predicate) for claim in candidate.claims if wrong}
    return [
        Retract(id=fact.id, at=now, reason=CORRECTED)
        for fact in facts
        if fact.topic in topics and fact.is_about(wrong) and _is_open(fact, candidate)
    ]


def _open(facts: Sequence[Fact], candidate: Candidate) -> list[Fact]:
    return [fact for fact in facts if _is_open(fact, candidate)]


def _is_open(fact: Fact, candidate: Candidate) -> bool:
    goes_on = fact.valid_to is None or fact.valid_to > candidate.said_at
    return fact.known_to is None and goes_on and _may_change(candidate, fact)


def is_echo(candidate: Candidate, neighbours: Neighbours, policy: Policy = DEFAULT_POLICY) -> bool:
    """Whether an assistant, tool or web page only repeats what was said or remembered."""
    if candidate.source in ("user", "import") or is_lesson(candidate):
        return False
    own = [item for item in neighbours.items if item.sources and item.sources == candidate.sources]
    texts = (*neighbours.texts, *(item.text for item in neighbours.items if item not in own))
    return any(contains(candidate.text, text) >= policy.echo for text in texts)


def derived_id(kind: str, sources: Sequence[str], *parts: str) -> str:
    """The same id for the same statement of the same messages; a new one where none is named."""
    stated = "\x00".join((kind, *sources, *parts))
    return hashlib.sha256(stated.encode()).hexdigest()[:32] if sources else new_id()


def duplicate_of(
    candidate: Candidate, items: Sequence[MemoryItem], policy: Policy
) -> MemoryItem | None:
    """The memory that says the same as a candidate."""
    if is_lesson(candidate):  # the same tools with the same end, however long they took
        return next((item for item in items if item.tags == candidate.tags), None)
    scored = [(alike(candidate.text, item.text), item) for item in items]
    score, best = max(scored, key=lambda pair: pair[0], default=(0.0, None))
    return best if score >= policy.alike else None


def _item(candidate: Candidate, scope: Scope, policy: Policy) -> MemoryItem:
    given = candidate.importance
    item = MemoryItem(
        id=candidate.id or derived_id("memory", candidate.sources, candidate.text),
        scope=scope,
        text=candidate.text,
        kind=candidate.kind,
        category=candidate.category,
        importance=policy.base_importance if given is None else given,
        tags=candidate.tags,
        source=candidate.source,
        sources=candidate.sources,
        created_at=candidate.said_at,
        expires_at=candidate.expires_at,
    )
    return replace(item, tier="long") if should_promote(item, item.created_at, policy) else item


def _overtaken(
    item: MemoryItem, candidate: Candidate, changes: Sequence[Change], facts: Sequence[Fact]
) -> MemoryItem:
    """The memory; one that states what a later statement has ended is over from the start."""
    known = {fact.id: fact for fact in after(facts, changes)}
    stated = [known[change.id] for change in changes if isinstance(change, Reinforce)]
    stated += [fact for fact in known.values() if fact.memory == item.id and fact.reason == NEWER]
    over = next((fact for fact in stated if fact.valid_to and fact.predicate not in PLANS), None)
    lasting = [claim for claim in candidate.claims if claim.predicate not in PLANS]
    if over is None or over.valid_to is None or any(claim.valid_to for claim in lasting):
        return item
    heir = known.get(over.superseded_by or "")
    by, ended_at = heir.memory if heir else None, max(over.valid_to, item.created_at)
    is_planned = heir is not None and heir.valid_to is None and _said_at(heir) < ended_at
    item = replace(item, superseded_by=by, reason=over.reason)
    return replace(item, expires_at=ended_at) if is_planned else replace(item, ended_at=ended_at)


def _claims(
    candidate: Candidate, neighbours: Neighbours, scope: Scope, now: datetime, memory: str | None
) -> Iterator[Change]:
    facts: Sequence[Fact] = neighbours.facts

    def made(changes: list[Change]) -> list[Change]:
        nonlocal facts
        facts = after(facts, changes)
        return changes

    yield from made(_wrong(candidate, facts, now))
    yield from made(_called_off([it for it in candidate.claims if it.off], facts, candidate, now))
    for claim in candidate.claims:
        if claim.gone:
            yield from made(_gone(claim, facts, candidate))
        if claim.off or claim.gone or is_mistaken(claim, candidate, neighbours.people):
            continue
        new = _fact(claim, candidate, scope, now, memory)
        if claim.moves and (older := put_off(claim, _open(facts, candidate), candidate)):
            yield from made(_replaced(older, candidate.said_at, new))
            continue
        subjects = neighbours.people.same(claim.subject)
        topics = {topic_of(subject, each) for subject in subjects for each in claim.concerns}
        rivals = [
            fact
            for fact in facts
            if fact.topic in topics
            and fact.known_to is None
            and (claim.is_any or is_same_thing(fact.object, claim.object, claim.predicate))
        ]
        yield from made(resolve_claim(claim, rivals, candidate, new, neighbours.items))
        if claim.ends and claim.predicate in COUPLES:
            partners = [plain_text(one) for one in neighbours.people.partners()]
            if claim.is_any or plain_text(claim.object) in partners:
                theirs = [fact for fact in facts if plain_text(fact.subject) in partners]
                yield from made(_ended(theirs, new.valid_from or candidate.said_at, candidate))


def resolve_claim(
    claim: Claim,
    rivals: Sequence[Fact],
    candidate: Candidate,
    new: Fact,
    items: Sequence[MemoryItem] = (),
) -> list[Change]:
    """What a claim changes among the facts with its subject and predicate, told in some memories.

    Where one object holds at a time, what was said last holds now, whatever the dates it names; a
    change that is planned holds from its day on, unless something else is said until then.
    """
    said, since = candidate.said_at, new.valid_from or candidate.said_at
    same = [fact for fact in rivals if _is_meant(claim, fact)] or partly(claim, rivals, items)
    replaces = is_single_valued(claim.predicate) if claim.single is None else claim.single
    if claim.ends:
        return _resolve_end(claim, same, rivals, candidate, new, is_single=replaces)
    ahead, is_past = since > said, new.valid_to is not None and new.valid_to <= said
    moments = {since} if is_past else {since, max(since, said)}
    known = next((fact for fact in same if all(map(fact.holds, moments))), None)
    changes_plan = known is not None if candidate.corrects else ahead or not (known or is_past)
    if replaces and changes_plan:
        stale = [fact for fact in rivals if _is_planned(fact, candidate)]
        stale = [fact for fact in stale if fact not in same or fact.valid_from != since]
        if dropped := list(_dropped(stale, rivals, candidate, new.known_from, new.id)):
            left = [fact for fact in after(rivals, dropped) if fact.known_to is None]
            return [*dropped, *resolve_claim(claim, left, candidate, new)]
    if known is not None:
        return _restated(known, since, candidate, new)
    if ahead and (newer := [fact for fact in rivals if replaces and _began_since(fact, candidate)]):
        return [Add(replace(new, valid_to=since, superseded_by=newer[-1].id, reason=NEWER))]
    compared = rivals if replaces else [*same, *other_versions(claim, rivals, candidate)]
    if is_past:
        return [Add(_until_next(new, since, compared))]
    if later := [fact for fact in rivals if replaces and _follows(fact, since, candidate)]:
        return _inserted(new, since, candidate, rivals, later)
    holding = [fact for fact in compared if fact.valid_to is None]
    if replaces and not is_single_valued(claim.predicate):  # of several meetings, the last
        holding = sorted(holding, key=_said_at)[-1:]
    if not all(_may_change(candidate, fact) for fact in holding):
        return []
    if claim.within and any(said - _said_at(fact) < SHORTLY for fact in holding):
        return []  # "The flat is in Neukölln", after "I moved to Berlin"
    if candidate.corrects and holding:
        return _correct(holding, new, is_dated=since != said)
    between = [fact for fact in compared if fact.valid_to is not None and fact.holds(since)]
    return [
        *_replaced(holding, since, new, planned=ahead),
        *(change for fact in between for change in _shortened(fact, since, new)),
    ]


def _resolve_end(
    claim: Claim,
    same: Sequence[Fact],
    rivals: Sequence[Fact],
    candidate: Candidate,
    new: Fact,
    *,
    is_single: bool,
) -> list[Change]:
    """What a claim changes that something holds no longer."""
    since = new.valid_from or candidate.said_at
    if claim.predicate in PLANS or claim.is_any:  # what a message tells as over is not its news
        same = [fact for fact in same if {*fact.sources}.isdisjoint(candidate.sources)]
    ended = _ended(same, since, candidate)
    is_named = is_single and not claim.is_any
    return _past(new, since, rivals) if is_named and not ended else ended


def _replaced(
    holding: Sequence[Fact], since: datetime, new: Fact, *, planned: bool = False
) -> list[Change]:
    """The new fact in the place of those that hold; it is linked to the first."""
    when: dict[str, Any] = {"at": since, "reason": NEWER, "planned": planned}
    if not holding:
        return [Add(new)]
    ended = [Expire(id=fact.id, by=new.id, **when) for fact in holding[1:]]
    return [Supersede(old_id=holding[0].id, record=new, **when), *ended]


def _is_meant(claim: Claim, fact: Fact) -> bool:
    """Whether a claim is about a fact's object; a plan is done or cancelled in other words."""
    if claim.ends and claim.predicate in PLANS:
        return is_same_task(fact.object, claim.object)
    if claim.ends and claim.predicate == "prefers":  # "answers in bullet points"
        return is_inflected(fact.object, claim.object, at_end=True)
    if claim.ends:  # "my notice at Southmead" is one at "Southmead hospital"
        partly = is_single_valued(claim.predicate)
        return claim.means(plain(fact.object)) or is_inflected(
            fact.object, claim.object, partly=partly
        )
    return fact.is_about(claim.object)


def _ended(same: Sequence[Fact], since: datetime, candidate: Candidate) -> list[Change]:
    """The ends of facts that are said to hold no longer."""
    return [
        Expire(id=fact.id, at=since, reason="said to be over", planned=since > candidate.said_at)
        for fact in same
        if (fact.valid_to is None or (_may_end_earlier(fact) and fact.valid_to > since))
        and _said_at(fact) <= candidate.said_at
        and not _stays(fact, since, candidate)
        and _may_change(candidate, fact)
    ]


def _may_end_earlier(fact: Fact) -> bool:
    """Whether a fact's end is a day that was announced, and not when another one began."""
    return fact.ended_at is not None or fact.predicate in PLANS


def _called_off(
    claims: Sequence[Claim], facts: Sequence[Fact], candidate: Candidate, now: datetime
) -> list[Change]:
    """The end of plans that are called off, by their words, and of what their memories state."""
    topics = {topic_of(claim.subject, claim.predicate) for claim in claims}
    facts = [fact for fact in facts if fact.known_to is None]
    meant = [fact for fact in facts if any(_is_off(claim, fact, candidate) for claim in claims)]
    memories = {fact.memory for fact in meant if fact.memory}
    beside = [it for it in facts if it.memory in memories and it.topic in topics]
    gone = [it for it in facts if it in meant or (it in beside and _is_to_come(it, candidate))]
    plans = [fact for fact in gone if fact.predicate in PLANS]
    planned = [fact for fact in gone if fact.predicate not in PLANS]
    return [*_ended(plans, candidate.said_at, candidate), *_dropped(planned, facts, candidate, now)]


def _is_off(claim: Claim, fact: Fact, candidate: Candidate) -> bool:
    """Whether a plan is called off, or a home was none: "we're not moving to Mansfield"."""
    if fact.topic != topic_of(claim.subject, claim.predicate):
        return False
    if not _is_to_come(fact, candidate):
        is_home = fact.predicate == "lives in" and fact.valid_to is None
        return is_home and fact.is_about(claim.object)
    if claim.is_any:
        return claim.predicate not in PLANS  # other plans stay
    return is_same_task(fact.object, claim.object)


def _is_to_come(fact: Fact, candidate: Candidate) -> bool:
    return fact.predicate in PLANS or _is_planned(fact, candidate)


def _gone(claim: Claim, facts: Sequence[Fact], candidate: Candidate) -> list[Change]:
    """The end of what is known of a thing that is gone, if that is one fact."""
    named = plain_text(claim.object).split()
    meant = [
        fact
        for fact in facts
        if fact.predicate not in (*PLANS, *_WITHOUT)
        and not names_someone(fact.predicate)
        and {*fact.sources}.isdisjoint(candidate.sources)
        and fact.holds(candidate.said_at)
        and {*named} <= {*plain_text(fact.object).split()}
    ]
    is_clear = len({fact.id for fact in meant}) == 1
    return _ended(meant, candidate.said_at, candidate) if is_clear else []


def _is_planned(fact: Fact, candidate: Candidate) -> bool:
    """Whether a fact was a plan when something was said later."""
    began, said = fact.valid_from or FIRST, candidate.said_at
    return fact.valid_to is None and began > said >= _said_at(fact)


def _dropped(
    plans: Sequence[Fact],
    rivals: Sequence[Fact],
    candidate: Candidate,
    now: datetime,
    by: str | None = None,
) -> Iterator[Change]:
    """The end of plans that come to nothing; what they were to end goes on."""
    for plan in plans:
        if _may_change(candidate, plan):
            yield Retract(id=plan.id, at=now, reason=OFF, by=by)
            yield from (
                Restore(id=fact.id, reason=OFF)
                for fact in rivals
                if fact.superseded_by == plan.id and fact.valid_to == plan.valid_from
            )


def _began_since(fact: Fact, candidate: Candidate) -> bool:
    """Whether a fact is of after a plan was made, though the plan is derived after it."""
    first = min(_said_at(fact), fact.valid_from or FIRST)
    return fact.valid_to is None and first > candidate.said_at


def _past(new: Fact, until: datetime, rivals: Sequence[Fact]) -> list[Change]:
    """A fact that is learnt when it is over, if nothing was known of it."""
    if any(fact.is_about(new.object) for fact in rivals):
        return []
    starts = [fact.valid_from for fact in rivals if fact.valid_to is None and fact.valid_from]
    return [Add(replace(new, valid_from=None, valid_to=min([until, *starts])))]


def _inserted(
    new: Fact, since: datetime, candidate: Candidate, rivals: Sequence[Fact], later: Sequence[Fact]
) -> list[Change]:
    """What holds from before other facts, though it is derived after them: until they began."""
    end, following = min(
        ((max(fact.valid_from or FIRST, since), fact) for fact in later),
        key=lambda pair: (pair[0], _said_at(pair[1])),
    )
    added = replace(new, valid_to=end, superseded_by=following.id, reason=NEWER)
    between = [
        fact
        for fact in rivals
        if _said_at(fact) <= candidate.said_at
        and (fact.holds(since) or fact.superseded_by == following.id)
        and not fact.is_about(new.object)
    ]
    if not all(_may_change(candidate, fact) for fact in between):
        return []
    if candidate.corrects and between:
        return _correct(between, added)
    return [Add(added), *(change for fact in between for change in _shortened(fact, since, added))]


def _said_at(fact: Fact) -> datetime:
    return fact.said_at or FIRST


def _follows(fact: Fact, since: datetime, candidate: Candidate) -> bool:
    """Whether a fact overtakes a claim: it was said later, or holds from a later date."""
    if _stays(fact, since, candidate):
        return True
    is_dated, began = since != candidate.said_at, fact.valid_from or FIRST
    if _said_at(fact) <= candidate.said_at or (is_dated and began < since):
        return False
    was_present = fact.valid_to is None or fact.superseded_by is not None
    return was_present and trust_of(fact.source) >= trust_of(candidate.source)


def _stays(fact: Fact, since: datetime, candidate: Candidate) -> bool:
    """Whether a fact holds from a later date than a claim, one that was named."""
    is_dated = fact.said_at is not None and fact.valid_from != fact.said_at
    began = fact.valid_from or FIRST
    yields = trust_of(fact.source) < trust_of(candidate.source) and began <= candidate.said_at
    return fact.valid_to is None and is_dated and began > since and not yields


def _shortened(fact: Fact, since: datetime, following: Fact) -> list[Change]:
    """A fact of the past, now believed to have ended when another one began."""
    why, by, known_from = "told later", following.id, following.known_from
    changes: list[Change] = [Retract(id=fact.id, at=known_from, reason=why, by=by)]
    if (fact.valid_from or FIRST) < since:
        id_ = derived_id("fact", fact.sources, fact.id, since.isoformat())
        shorter = replace(fact, id=id_, valid_to=since, known_from=known_from, ended_at=None)
        changes.append(Add(replace(shorter, superseded_by=by, reason=why)))
    return changes


def _restated(fact: Fact, since: datetime, candidate: Candidate, new: Fact) -> list[Change]:
    """A known fact gets more confident, or a more trusted source; never from a less trusted one."""
    if candidate.id or not _may_change(candidate, fact):
        return []
    trusted = trust_of(candidate.source) > trust_of(fact.source)
    if fact.valid_to is None and (trusted or fact.said_at == UNDATED):
        why = "said by someone more trusted" if trusted else "said again"
        return [Supersede(old_id=fact.id, record=new, at=since, reason=why)]
    confidence = min(fact.confidence + MORE_CONFIDENT, 1.0)
    sources, at = candidate.sources, candidate.said_at
    return [Reinforce(id=fact.id, sources=sources, importance=confidence, at=at)]


def _correct(wrong: Sequence[Fact], right: Fact, *, is_dated: bool = False) -> list[Change]:
    """Retract wrong facts; the right one holds since its date, or as long as they seemed to."""
    since = min(fact.valid_from or FIRST for fact in (right, *wrong))
    since = right.valid_from or since if is_dated else since
    at, by = right.known_from, right.id
    retracted = [Retract(id=fact.id, at=at, reason=CORRECTED, by=by) for fact in wrong]
    return [*retracted, Add(replace(right, valid_from=None if since == FIRST else since))]


def _until_next(new: Fact, since: datetime, others: Sequence[Fact]) -> Fact:
    """A fact of an earlier time that is learnt late: it held until the next one began."""
    later = [(fact.valid_from, fact.id) for fact in others if (fact.valid_from or since) > since]
    began, id_ = min(later, key=lambda pair: pair[0] or since, default=(None, None))
    if began is None or (new.valid_to is not None and new.valid_to <= began):
        return new
    return replace(new, valid_to=began, superseded_by=id_, reason="told later")


def _fact(
    claim: Claim, candidate: Candidate, scope: Scope, now: datetime, memory: str | None
) -> Fact:
    stated = (claim.subject, claim.predicate, claim.object)
    return Fact(
        id=candidate.id or derived_id("fact", candidate.sources, *stated),
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


def _may_change(candidate: Candidate, record: MemoryItem | Fact) -> bool:
    return trust_of(candidate.source) >= trust_of(record.source)


def keep(
    store: Store, scope: Scope, candidate: Candidate, policy: Policy, clock: Callable[[], datetime]
) -> list[Change]:
    """Apply the changes that a candidate makes, and return them."""
    home = Scope(user=scope.user, tenant=scope.tenant, agent=scope.agent or "")

    def decide() -> list[Change]:
        neighbours = neighbours_of(store, home, candidate)
        return reconcile(candidate, neighbours, scope=scope, now=clock(), policy=policy)

    return store.change(home, decide, by_hand=True)
