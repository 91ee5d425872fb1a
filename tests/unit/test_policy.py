"""The controller: what may become a memory, what it weighs, how long it stays."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memorist.lifecycle.policy import classified, has_room, may_become_memory, plan, surplus
from memorist.lifecycle.settings import DEFAULT_POLICY, Extraction, Policy, should_promote
from memorist.records.memories import Candidate, Expire, MemoryItem
from memorist.records.message import Message
from memorist.records.scope import Scope

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
SECRET = "my key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


def _may_become(text: str, place: int = 5, **numbers: Any) -> bool:
    return may_become_memory(Message("user", text), place=place, policy=Policy(**numbers))


def _candidate(text: str, **about: Any) -> Candidate:
    return Candidate(text=text, sources=("m1",), said_at=NOW, **about)


def _category(text: str, **about: Any) -> str:
    return classified(_candidate(text), **about).category


def _importance(category: str, policy: Policy = DEFAULT_POLICY) -> float | None:
    return classified(_candidate("x", category=category), policy=policy).importance


def _item(text: str = "x", **about: Any) -> MemoryItem:
    return MemoryItem(scope=Scope(user="ada"), text=text, created_at=NOW, **about)


def test_what_matters_for_now_at_the_end_of_time_ends_there() -> None:
    last = datetime.max.replace(tzinfo=UTC)
    candidate = replace(_candidate("x", kind="working"), said_at=last)
    assert classified(candidate).expires_at == last


def test_an_ordinary_message_may_become_a_memory() -> None:
    assert _may_become("I live in Berlin.")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("I live in Berlin.", {"place": 2, "min_messages": 3}),
        ("Hm.", {}),
        ("Berlin", {"min_chars": 7}),
        ("", {"min_chars": 1}),
        ("Berlin " * 1_000, {}),
        ("Berlin", {"max_chars": 5}),
        (SECRET, {}),
    ],
)
def test_what_comes_too_soon_or_is_no_thought_or_a_secret_becomes_none(
    text: str, numbers: dict[str, Any]
) -> None:
    assert not _may_become(text, **numbers)


def test_the_numbers_are_bounds_that_may_be_reached() -> None:
    assert _may_become("Berlin", place=3, min_messages=3, min_chars=6, max_chars=6)


def test_of_the_last_messages_no_more_than_a_share_becomes_memories() -> None:
    assert [has_room(made) for made in (0, 4, 5)] == [True, True, False]
    assert not has_room(1, Policy(share=0.1, window=10))


def test_what_is_still_being_written_waits() -> None:
    message = Message("assistant", "I live in", unfinished=True)
    assert not may_become_memory(message, place=5)


CATEGORIES = {
    "error_patterns": "The build fails with an exception: TypeError in the traceback.",
    "code_context": "The function parse_date lives in the module utils.py",
    "solutions": "We solved it: the fix was to restart.",
    "user_preferences": "I prefer tea over coffee.",
    "knowledge": "The Rhine flows through Basel.",
}


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_text_has_the_category_of_its_words(category: str) -> None:
    assert _category(CATEGORIES[category]) == category


def test_categories_have_their_order_of_precedence() -> None:
    names = ["error_patterns", "code_context", "solutions", "user_preferences"]
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            both = f"{CATEGORIES[second]} {CATEGORIES[first]}"
            assert _category(both) == first, (first, second)


def test_tool_calls_make_it_task_history_unless_words_say_more() -> None:
    assert _category(CATEGORIES["knowledge"], has_tools=True) == "task_history"
    assert _category(CATEGORIES["solutions"], has_tools=True) == "solutions"


def test_each_category_weighs_what_the_specification_says() -> None:
    weights = {
        "error_patterns": 0.8,
        "code_context": 0.7,
        "solutions": 0.8,
        "user_preferences": 0.6,
        "task_history": 0.6,
        "knowledge": 0.5,
        "anything else": 0.5,
    }
    assert {name: _importance(name) for name in weights} == weights


def test_every_weight_is_a_setting_and_none_goes_over_one() -> None:
    policy = Policy(base_importance=0.9, boosts={"solutions": 0.3})
    assert _importance("solutions", policy) == 1.0
    assert _importance("error_patterns", policy) == 0.9


def test_judging_gives_category_weight_and_tags_and_takes_none_away() -> None:
    found = classified(_candidate(CATEGORIES["solutions"], tags=("mine",), importance=0.95))
    assert (found.category, found.importance) == ("solutions", 0.95)
    assert found.tags[0] == "mine"
    assert classified(_candidate("I solved it.", importance=0.2)).importance == 0.2
    light = Policy(base_importance=0.3, boosts={})
    assert classified(_candidate(CATEGORIES["solutions"]), policy=light).importance == 0.3
    kept = classified(_candidate("Green tea", category="user_preferences"))
    assert (kept.category, kept.importance) == ("user_preferences", 0.6)


def test_working_memory_gets_an_end_and_keeps_one_it_has() -> None:
    assert (
        classified(_candidate("x", kind="working")).expires_at == NOW + DEFAULT_POLICY.working_for
    )
    assert classified(_candidate("x", kind="working", expires_at=NOW)).expires_at == NOW
    assert classified(_candidate("x")).expires_at is None


def test_a_memory_is_over_from_its_end_on() -> None:
    item = _item(expires_at=NOW)
    assert plan([item], NOW - timedelta(microseconds=1), Extraction()) == []
    assert [type(change) for change in plan([item], NOW, Extraction())] == [Expire]
    assert plan([_item()], NOW + 9_999 * DAY, Extraction()) == []


@pytest.mark.parametrize(
    ("about", "days", "earned"),
    [
        ({"importance": 0.7}, 0, True),
        ({"importance": 0.69}, 9, False),
        ({"uses": 2}, 1, True),
        ({"uses": 2}, 0.9, False),
        ({"uses": 1}, 9, False),
        ({"importance": 1.0, "kind": "working"}, 9, False),
        ({"importance": 1.0, "tier": "long"}, 9, False),
    ],
)
def test_promotion_is_earned_by_weight_or_by_use_over_time(
    about: dict[str, Any], days: float, earned: bool
) -> None:
    assert should_promote(_item(**about), NOW + days * DAY) == earned


def test_the_least_recently_used_make_room_first() -> None:
    items = [
        _item("used lately", used_at=NOW + 3 * DAY),
        _item("never used"),
        _item("used once", used_at=NOW + DAY),
        _item("long", tier="long"),
    ]
    gone = surplus(items, Policy(short_term=1))
    assert [item.text for item in gone] == ["never used", "used once"]
    assert surplus(items, Policy(short_term=3)) == []
    assert len(surplus(items, Policy(short_term=0))) == 3
