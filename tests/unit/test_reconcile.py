"""New knowledge meets old: single decisions, and what holds after any sequence of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memorist.errors import ConflictError
from memorist.language.text import single_valued_predicates
from memorist.lifecycle.meant import in_new_dates
from memorist.lifecycle.neighbours import Neighbours, applied_to, neighbours_of
from memorist.lifecycle.reconcile import keep, reconcile
from memorist.lifecycle.settings import DEFAULT_POLICY
from memorist.lifecycle.undoing import undo
from memorist.records.log import trust_of
from memorist.records.memories import (
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
)
from memorist.records.scope import Scope
from memorist.records.values import new_id
from memorist.store.sqlite.store import SqliteStore
from tests.support.examples import examples

ADA = Scope(user="ada")
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def _claim(city: str, day: float = 0, **about: Any) -> Claim:
    named = {"valid_from": START + day * DAY, "single": True, **about}
    return Claim(subject="Ada", predicate="lives in", object=city, **named)


def _told(*claims: Claim, text: str = "", day: float = 0, **about: Any) -> Candidate:
    named: dict[str, Any] = {"sources": (new_id(),), "said_at": START + day * DAY, **about}
    return Candidate(text=text, claims=claims, **named)


def _lives(city: str, day: float = 0, **about: Any) -> Fact:
    named = {"valid_from": START + day * DAY, "known_from": START, **about}
    return Fact(scope=ADA, subject="Ada", predicate="lives in", object=city, **named)


def _changes(candidate: Candidate, *facts: Fact, items: Sequence[MemoryItem] = ()) -> list[Change]:
    known = Neighbours(items=items, facts=facts)
    return reconcile(candidate, known, scope=ADA, now=START + 50 * DAY)


def test_every_predicate_that_the_audit_calls_single_valued_supersedes_by_itself() -> None:
    predicates = single_valued_predicates() | {"favourite tea", "Job_Title"}
    assert {"employer", "phone", "job", "manager", "status"} < predicates
    for predicate in predicates:
        old = Fact(scope=ADA, subject="Ada", predicate=predicate, object="one", known_from=START)
        claim = Claim(subject="Ada", predicate=predicate, object="two")
        [change] = _changes(_told(claim, day=5), old)
        assert isinstance(change, Supersede)
        [added] = _changes(_told(replace(claim, single=False), day=5), old)
        assert isinstance(added, Add)


def test_something_newer_takes_the_place_of_what_held() -> None:
    munich = _lives("Munich")
    [change] = _changes(_told(_claim("Berlin", 5), day=5), munich)
    assert isinstance(change, Supersede)
    assert (change.old_id, change.at) == (munich.id, START + 5 * DAY)
    assert isinstance(change.record, Fact)
    assert (change.record.object, change.record.valid_from) == ("Berlin", START + 5 * DAY)


def test_what_may_hold_beside_others_ends_nothing() -> None:
    [change] = _changes(_told(_claim("Berlin", 5, single=False)), _lives("Munich"))
    assert isinstance(change, Add)


def test_only_facts_with_the_same_subject_and_predicate_are_looked_at() -> None:
    others = (
        replace(_lives("Munich"), subject="Bob"),
        replace(_lives("Munich"), predicate="works in"),
    )
    [change] = _changes(_told(_claim("Berlin", 5)), *others)
    assert isinstance(change, Add)
    [change] = _changes(_told(_claim("Berlin", 5)), replace(_lives("Munich"), subject=" ADA "))
    assert isinstance(change, Supersede)


def test_the_same_however_written_is_reinforced_with_its_evidence() -> None:
    berlin, told = _lives("Berlin", confidence=0.98), _told(_claim(" BERLIN ", 5))
    [change] = _changes(told, berlin)
    assert change == replace(_reinforce(change), id=berlin.id, sources=told.sources, importance=1.0)


def test_a_correction_takes_back_and_links_what_is_right() -> None:
    wrong = _lives("Berlin", 3)
    retract, add = _changes(_told(_claim("Hamburg", 9), corrects=True, day=9), wrong)
    assert isinstance(add, Add)
    assert isinstance(retract, Retract)
    assert (retract.id, retract.by) == (wrong.id, add.record.id)
    assert isinstance(add.record, Fact)
    assert add.record.valid_from == wrong.valid_from


def test_a_correction_that_names_its_own_date_holds_since_then() -> None:
    wrong = _lives("Berlin", 3)
    _, add = _changes(_told(_claim("Hamburg", 7), corrects=True, day=9), wrong)
    assert isinstance(add, Add)
    assert isinstance(add.record, Fact)
    assert add.record.valid_from == START + 7 * DAY


def test_an_end_ends_what_holds_and_nothing_else() -> None:
    berlin, munich = _lives("Berlin"), _lives("Munich")
    [change] = _changes(_told(_claim("Berlin", 9, ends=True)), berlin, munich)
    assert isinstance(change, Expire)
    assert (change.id, change.at) == (berlin.id, START + 9 * DAY)
    assert _changes(_told(_claim("Oslo", 9, ends=True, single=False)), berlin, munich) == []
    dated = replace(berlin, said_at=START + DAY)
    assert _changes(_told(_claim("Berlin", -9, ends=True), day=5), dated) == []


def test_what_is_said_to_be_over_is_a_fact_of_the_past() -> None:
    [change] = _changes(_told(_claim("Oslo", -9, ends=True)), _lives("Berlin"))
    assert isinstance(change, Add)
    assert isinstance(change.record, Fact)
    assert (change.record.valid_from, change.record.valid_to) == (None, START - 9 * DAY)
    [undated] = _changes(_told(_claim("Oslo", 9, ends=True), day=9), _lives("Berlin", 3))
    assert isinstance(undated, Add)
    assert isinstance(undated.record, Fact)
    assert undated.record.valid_to == START + 3 * DAY, "she lived there before Berlin"


@pytest.mark.parametrize("about", [{}, {"corrects": True}], ids=["newer", "correction"])
def test_the_less_trusted_change_nothing_of_the_more_trusted(about: dict[str, Any]) -> None:
    sources = ["web", "tool", "import", "assistant", "user", "system", "a stranger"]
    for held in sources:
        for new in sources:
            fact = _lives("Munich", source=held)
            for claim in (_claim("Minsk", 5), _claim("Munich", 5), _claim("Munich", 5, ends=True)):
                changes = _changes(_told(claim, source=new, **about), fact)
                if trust_of(new) < trust_of(held):
                    assert changes == [], (held, new, claim)
                else:
                    assert changes != [], (held, new, claim)


def test_a_twin_is_reinforced_and_adds_no_memory() -> None:
    item = MemoryItem(scope=ADA, text="I love green tea", sources=("m1",))
    told = _told(text="I love green tea!")
    [change] = _changes(told, items=[item])
    assert (change.id, change.sources) == (item.id, told.sources)  # type: ignore[union-attr]


def test_like_words_that_end_a_fact_are_another_memory() -> None:
    item = MemoryItem(scope=ADA, text="It is Hamburg, not Berlin")
    fact = _lives("Hamburg", memory=item.id)
    said_at = _claim("Berlin", 5).valid_from
    told = _told(
        _claim("Berlin", 5), text="It is Berlin, not Hamburg", corrects=True, said_at=said_at
    )
    changes = _changes(told, fact, items=[item])
    added = [change.record for change in changes if isinstance(change, Add)]
    assert [type(record) for record in added] == [MemoryItem, Fact]
    assert isinstance(added[1], Fact)
    assert added[1].memory == added[0].id


def test_a_memory_cites_no_more_messages_than_it_may() -> None:
    cited = tuple(f"m{number}" for number in range(DEFAULT_POLICY.max_sources))
    item = MemoryItem(scope=ADA, text="I love green tea", sources=cited)
    [change] = _changes(_told(text="I love green tea!"), items=[item])
    assert _reinforce(change).sources == ()


def test_numbers_and_negations_make_texts_differ() -> None:
    item = MemoryItem(scope=ADA, text="The meeting is at 5 pm in the big room")
    for text in (
        "The meeting is at 6 pm in the big room",
        "The meeting is not at 5 pm in the big room",
    ):
        [change] = _changes(_told(text=text), items=[item])
        assert isinstance(change, Add)


def test_a_draft_decides_each_in_the_light_of_those_before() -> None:
    munich, changes = _lives("Munich"), list[Change]()
    for day, city in ((5, "Berlin"), (6, "Oslo"), (7, "Oslo")):
        known = applied_to(Neighbours(facts=[munich]), changes)
        told = _told(_claim(city, day), day=day)
        changes += reconcile(told, known, scope=ADA, now=START + 9 * DAY)
    kinds = [type(change) for change in changes]
    assert kinds == [Supersede, Supersede, Reinforce]


def test_undoing_takes_back_the_last_that_happened() -> None:
    now, fact = START + 9 * DAY, _lives("Berlin")
    assert undo(fact, [], now) == [Retract(id=fact.id, reason="undone", at=now)]
    ended = replace(fact, valid_to=now, ended_at=now, superseded_by="next")
    assert undo(ended, [], now) == [
        Retract(id="next", reason="undone", at=now),
        Restore(id=fact.id, reason="undone"),
    ]
    span = replace(fact, valid_to=now)
    assert undo(span, [], now) == [Retract(id=fact.id, reason="undone", at=now)]
    assert undo(fact, [ended], now)[1:] == [Restore(id=ended.id, reason="undone")]


CITIES = st.sampled_from(["Munich", "Berlin", "Hamburg"])
DAYS = st.integers(0, 9)


@st.composite
def tellings(draw: st.DrawFn) -> Candidate:
    """Something told of where Ada lives: a move, a correction, an end, early or late."""
    said, since = draw(DAYS), draw(DAYS)
    several = draw(st.integers(1, 2))
    claims = [_claim(draw(CITIES), since, ends=draw(st.booleans())) for _ in range(several)]
    return _told(
        *claims,
        day=said,
        corrects=draw(st.booleans()),
        text=draw(st.sampled_from(["", "Home"])),
        source=draw(st.sampled_from(["user", "user", "web"])),
    )


@pytest.fixture(scope="module")
def store() -> Iterator[SqliteStore]:
    with SqliteStore(":memory:") as opened:
        yield opened


def _keep(store: SqliteStore, scope: Scope, told: Candidate, day: int = 20) -> list[Change]:
    return keep(store, scope, told, DEFAULT_POLICY, lambda: START + day * DAY)


def _open(store: SqliteStore, scope: Scope) -> list[tuple[str, str]]:
    return sorted((fact.id, fact.object) for fact in store.facts(scope) if fact.valid_to is None)


RANDOM = settings(
    max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck)
)


@RANDOM
@given(st.lists(tellings(), max_size=8))
def test_whatever_is_told_one_home_is_open_and_none_is_lost(
    store: SqliteStore, told: list[Candidate]
) -> None:
    scope, added = Scope(user="ada", tenant=new_id()), set()
    for day, one in enumerate(told, start=20):
        for change in _keep(store, scope, one, day):
            if isinstance(change, Add | Supersede):
                added.add(change.record.id)
        assert len(_open(store, scope)) <= 1
    kept = store.records(scope, sorted(added))
    assert {record.id for record in kept} == added
    for fact in kept:
        if isinstance(fact, Fact) and fact.known_to != fact.known_from:
            assert fact in store.facts(scope, known_at=fact.known_from)


@RANDOM
@given(st.lists(tellings(), min_size=1, max_size=6))
def test_the_same_told_twice_by_the_same_message_changes_nothing(
    store: SqliteStore, told: list[Candidate]
) -> None:
    scope = Scope(user="ada", tenant=new_id())
    for one in told[:-1]:
        _keep(store, scope, one)
    version, last = store.version(scope), told[-1]
    known = neighbours_of(store, scope, last)
    changes = reconcile(last, known, scope=scope, now=START + 20 * DAY)
    store.apply(scope, changes, base_version=version)
    before = (store.items(scope, current=False), store.facts(scope))
    if changes:  # a worker that died after it was done: the version tells the next one
        with pytest.raises(ConflictError):
            store.apply(scope, changes, base_version=version)
    adds = [change for change in changes if not isinstance(change, Reinforce)]
    store.apply(scope, adds)
    assert (store.items(scope, current=False), store.facts(scope)) == before


@RANDOM
@given(st.lists(tellings(), min_size=1, max_size=6))
def test_undoing_a_change_brings_back_what_was_open_before(
    store: SqliteStore, told: list[Candidate]
) -> None:
    scope = Scope(user="ada", tenant=new_id())
    *earlier, last = told
    for day, one in enumerate(earlier, start=20):
        _keep(store, scope, one, day)
    before = _open(store, scope)
    changes = _keep(store, scope, replace(last, claims=last.claims[:1], text=""), 40)
    if _undo_last(store, scope, changes):
        assert _open(store, scope) == before


def _undo_last(store: SqliteStore, scope: Scope, changes: Sequence[Change]) -> bool:
    """Undo the change of a telling that added or ended a fact."""
    for change in changes:
        if isinstance(change, Add | Supersede):
            id_ = change.record.id
        elif isinstance(change, Expire):
            id_ = change.id
        else:
            continue
        [record] = store.records(scope, [id_])
        store.apply(scope, undo(record, store.superseded_by(scope, id_), START + 41 * DAY))
        return True
    return False


@st.composite
def statements(draw: st.DrawFn) -> list[Candidate]:
    """Where Ada says that she lives, on several days; some name dates in the past."""
    days = sorted(draw(st.lists(DAYS, min_size=1, max_size=5, unique=True)))
    earlier = draw(st.sampled_from([[0], [0, 0, 2, 5]]))
    names = ["Munich", "Berlin", "Hamburg", "Oslo", "Rome"]
    cities = names if len(earlier) > 1 else [draw(CITIES) for _ in names]
    return [
        _told(_claim(city, day - draw(st.sampled_from(earlier))), text=city, day=day)
        for city, day in zip(cities, days, strict=False)
    ]


@RANDOM
@given(statements(), st.randoms())
def test_the_last_statement_holds_in_whatever_order_they_are_derived(
    store: SqliteStore, told: list[Candidate], random: Random
) -> None:
    undated = [one.claims[0].valid_from == one.said_at for one in told]
    results = []
    for order in (told, random.sample(told, len(told))):
        scope = Scope(user="ada", tenant=new_id())
        for day, one in enumerate(order, start=20):
            _keep(store, scope, one, day)
        open_ = [fact.object for fact in store.facts(scope) if fact.valid_to is None]
        assert len(open_) == 1
        results.append((open_, {item.text for item in store.items(scope)}))
        if all(undated[:-1]):
            assert open_ == [told[-1].claims[0].object]
            assert {item.text for item in store.items(scope)} == set(open_)
    assert results[0] == results[1]


def _reinforce(change: Change) -> Reinforce:
    assert isinstance(change, Reinforce)
    return change


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("dentist on the 12th [12 May 2026]", "dentist on the 21st [12 May 2026]", "[21 May 2026]"),
        ("order in Oslo [ref 12]", "order in Bergen [ref 12]", "[ref 12]"),
    ],
)
def test_a_memory_put_right_says_its_new_dates_and_keeps_brackets_of_the_users(
    before: str, after: str, says: str
) -> None:
    at = datetime(2026, 5, 1, tzinfo=UTC)
    item = MemoryItem(scope=ADA, text=before, created_at=at)
    assert in_new_dates(item, after) == f"{after.rpartition(' [')[0]} {says}"
