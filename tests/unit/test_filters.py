"""Filters and scopes through recall: what they let through is found, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memorist import InvalidError, Memory, Message
from memorist.records.memories import Add, Fact, MemoryItem, Retract, Supersede
from memorist.records.query import Filters, Recall
from memorist.records.scope import Scope
from memorist.store.sqlite.store import SqliteStore
from tests.support.models import WordEmbedder

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)
ADA = Scope(user="ada")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    store = SqliteStore(tmp_path / "memory.db", durability="normal")
    with Memory(store, embedder=WordEmbedder(), clock=lambda: MARCH + 30 * DAY) as opened:
        yield opened


def texts(found: Recall) -> set[str]:
    assert (found.late, found.failed) == ((), {})
    return {hit.text for hit in found.hits}


def test_filters_are_made_of_names_or_several_of_them() -> None:
    assert Filters.of() == Filters()
    one, several = Filters.of(kind="fact"), Filters.of(kind=("fact", "note"))
    assert (one.kinds, several.kinds) == (("fact",), ("fact", "note"))
    assert Filters.of(tags="hot", role=("user",)) == Filters(tags=("hot",), roles=("user",))


def test_as_of_and_before_bound_together() -> None:
    early, late = MARCH, MARCH + DAY
    assert Filters.of(as_of=early).before == early
    assert Filters.of(as_of=early, before=late).before == early
    assert Filters.of(as_of=late, before=early).before == early
    assert Filters.of(after=early) == Filters(after=early)


def test_moments_of_other_zones_mean_the_same_moment(memory: Memory) -> None:
    memory.remember(Message("user", "berlin", created_at=MARCH), user="ada")
    tokyo = datetime.fromisoformat("2026-03-01T09:00:00+09:00")
    for moment, count in ((tokyo, 1), (tokyo + TICK, 0)):
        found = memory.recall("berlin", user="ada", after=moment, deadline_ms=None)
        assert len(found.hits) == count
    with pytest.raises(InvalidError, match="time zone"):
        memory.recall("berlin", user="ada", after=tokyo.replace(tzinfo=None))


def test_every_filter_holds_for_every_hit(memory: Memory) -> None:
    store = memory.store
    tutor, coach = ADA.within(agent="tutor", session="t"), ADA.within(agent="coach", session="c")
    for scope in (tutor, coach):
        for day, role in enumerate(("user", "assistant", "tool")):
            message = Message(role, f"tea {role} {scope.agent}", created_at=MARCH + day * DAY)
            store.append(scope, [message])
    items = [
        MemoryItem(
            scope=tutor, text="tea item", category="drinks", tags=("hot", "green"), created_at=MARCH
        ),
        MemoryItem(
            scope=ADA,
            text="cold tea item",
            category="drinks",
            tags=("cold",),
            created_at=MARCH + DAY,
        ),
    ]
    store.apply(ADA, [*map(Add, items)])
    store.write_note(ADA.within(agent="tutor"), "tea note", base_version=0)
    assert memory.jobs.catch_up(300) == 0

    def found(**only: object) -> set[str]:
        asked = memory.recall("tea", user="ada", deadline_ms=None, limit=99, **only)  # type: ignore[arg-type]
        return texts(asked)

    assert len(found()) == 9
    assert found(kind="note") == {"tea note"}
    assert found(role="tool") == {"tea tool tutor", "tea tool coach"}
    assert found(role="tool", agent="coach") == {"tea tool coach"}
    assert found(category="drinks") == {"tea item", "cold tea item"}
    assert found(tags=("green", "hot")) == {"tea item"}
    assert found(tags=["green", "cold"]) == set()
    assert found(kind="message", session="c", before=MARCH) == {"tea user coach"}
    assert found(kind=("message", "memory"), as_of=MARCH, agent="tutor") == {
        "tea user tutor",
        "tea item",
    }
    assert found(after=MARCH + DAY, before=MARCH + DAY) == {
        "tea assistant tutor",
        "tea assistant coach",
        "cold tea item",
    }
    assert found(kind="fact") == found(category="unheard of") == set()
    assert found(role="user", category="drinks") == set()


def test_a_small_set_is_found_among_thousands_that_fit_better(memory: Memory) -> None:
    store = memory.store
    crowd = [Message("assistant", "apple apple", created_at=MARCH) for _ in range(2_000)]
    store.append(ADA.within(session="loud"), crowd)
    few = [
        Message("user", f"an apple, with much else beside it: {name}", created_at=MARCH + DAY)
        for name in ("one", "two", "three")
    ]
    store.append(ADA.within(session="quiet"), few)
    assert memory.jobs.catch_up(300) == 0
    wanted = {message.text for message in few}
    for only in ({"role": "user"}, {"after": MARCH + TICK, "role": "user"}, {"session": "quiet"}):
        found = memory.recall("apple", user="ada", deadline_ms=None, limit=3, **only)
        assert texts(found) == wanted
        assert all({"words", "meaning"} <= hit.why.ranks.keys() for hit in found.hits)


def test_a_small_set_of_links_is_found_among_many(memory: Memory) -> None:
    facts = [
        Fact(
            scope=ADA,
            subject="Ada",
            predicate="knows",
            object=f"person {number}",
            known_from=MARCH if number < 24 else MARCH - DAY,
        )
        for number in range(25)
    ]
    memory.store.apply(ADA, [*map(Add, facts)])
    filters = Filters(before=MARCH - DAY)
    assert len(memory.store.match_links(ADA, ["ada"], limit=3, filters=filters)) == 1


def test_what_very_many_facts_are_about_links_nothing(memory: Memory) -> None:
    facts = [
        Fact(scope=ADA, subject="Ada", predicate="knows", object=f"person {number}")
        for number in range(26)
    ]
    memory.store.apply(ADA, [*map(Add, facts)])
    assert memory.store.match_links(ADA, ["ada"], limit=3) == []
    assert len(memory.store.match_links(ADA, ["person 3"], limit=3)) == 1


def test_links_lead_to_facts_and_to_the_words_they_came_from(memory: Memory) -> None:
    said = Message("user", "they hired me at last!", created_at=MARCH)
    memory.remember([said, *(f"so it goes {number}" for number in range(15))], user="ada")
    works = Fact(scope=ADA, subject="Ada", predicate="works at", object="Acme Corp",
                 sources=(said.message_id,))  # fmt: skip
    lies = Fact(scope=ADA, subject="Acme Corp", predicate="lies in", object="Wedding")
    memory.store.apply(ADA, [Add(works), Add(lies)])
    assert memory.jobs.catch_up(300) == 0
    whole: dict[str, Any] = {"deadline_ms": None, "limit": 99, "min_score": 0}
    found = memory.recall("What about Acme Corp, Ada?", user="ada", **whole)
    by_text = {hit.text: hit for hit in found.hits}
    assert by_text["Ada works at Acme Corp"].why.ranks["links"] in (1, 2)
    assert "links" in by_text["they hired me at last!"].why.ranks
    assert by_text["they hired me at last!"].why.parts["links"] >= 0
    found = memory.recall("How is Ada?", user="ada", **whole)
    assert "links" in {hit.text: hit for hit in found.hits}["Acme Corp lies in Wedding"].why.ranks
    assert "links" in str(by_text["Ada works at Acme Corp"].why)


def test_what_no_longer_holds_is_not_recalled(memory: Memory) -> None:
    munich, berlin, paris = (
        Fact(scope=ADA, subject="Ada", predicate="lives in", object=city)
        for city in ("Munich", "Berlin", "Paris")
    )
    memory.store.apply(ADA, [Add(munich), Add(paris)])
    assert memory.jobs.catch_up(300) == 0
    before = memory.recall("where does Ada live?", user="ada", deadline_ms=None)
    assert texts(before) == {"Ada lives in Munich", "Ada lives in Paris"}
    memory.store.apply(ADA, [Supersede(old_id=munich.id, record=berlin), Retract(id=paris.id)])
    assert memory.jobs.catch_up(300) == 0
    after = memory.recall("where does Ada live?", user="ada", deadline_ms=None)
    assert texts(after) == {"Ada lives in Berlin"}
    assert memory.recall("where does Ada live?", user="eve", deadline_ms=None).hits == ()


def test_a_brief_memory_is_not_recalled_when_its_time_is_over(memory: Memory) -> None:
    over = MemoryItem(scope=ADA, text="brief tea", expires_at=MARCH)
    memory.store.apply(ADA, [Add(over), Add(MemoryItem(scope=ADA, text="lasting tea"))])
    assert texts(memory.recall("tea", user="ada", deadline_ms=None)) == {"lasting tea"}


def test_importance_lifts_one_memory_over_another(memory: Memory) -> None:
    items = [
        MemoryItem(scope=ADA, text="tea item", importance=importance, created_at=MARCH)
        for importance in (1.0, 0.0)
    ]
    memory.store.apply(ADA, [*map(Add, items)])
    hits = memory.recall("tea", user="ada", deadline_ms=None).hits
    assert [hit.id for hit in hits] == [item.id for item in items]
    assert "importance" in str(hits[0].why)


def test_a_filter_loses_no_match_to_a_rarer_word(memory: Memory) -> None:
    busy = [Message("user", f"deploy number {number}") for number in range(8_500)]
    memory.remember([*busy, Message("user", "a xylophone")], user="ada")
    memory.store.write_note(ADA, "deploy on fridays", base_version=0)
    terms = [("deploy",), ("xylophone",)]
    found = memory.store.match_text(ADA, terms, limit=9, filters=Filters(kinds=("note",)))
    assert [it.text for it in memory.store.read(ADA, [it.passage for it in found])] == [
        "deploy on fridays"
    ]
