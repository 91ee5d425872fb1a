"""Maintenance: what is promoted, what goes, and what nobody may touch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from memorist.errors import InvalidError
from memorist.lifecycle.policy import Maintained, plan
from memorist.lifecycle.settings import Extraction, Policy, Retention
from memorist.records.memories import Expire, MemoryItem, Promote
from memorist.records.scope import Scope
from tests.support.lives import DAY, NEW_YEAR, Life, Lives

ADA = Scope(user="ada")


@pytest.fixture
def lives() -> Iterator[Lives]:
    """Opens lives, and closes them at the end."""
    opened: list[Life] = []

    def live(store: str = ":memory:", **extraction: Any) -> Life:
        opened.append(Life(store, Extraction(**extraction)))
        return opened[-1]

    yield live
    for life in opened:
        life.memory.close()


def test_short_term_memory_is_bounded_and_the_message_stays(lives: Lives) -> None:
    ada = lives(policy=Policy(short_term=2, promote_importance=1.0), maintain_every=0)
    texts = ["I love green tea.", "I live in Munich.", "I work at Siemens."]
    ids = [ada.says(text) for text in texts]
    tea = ada.memory.memories.list(user="ada")[0]
    ada.memory.store.touch(ada.memory.scope(user="ada"), [tea.id])  # the oldest, but in use
    assert ada.memory.memories.maintain(user="ada").expired == 1
    assert ada.memories() == ["I love green tea.", "I work at Siemens."]
    history = ada.memory.history(user="ada")
    assert [message.message_id for message in history] == ids
    assert "I live in Munich." in ada.recalls("Munich", "message")


def test_what_weighs_much_or_is_used_over_time_is_promoted(lives: Lives) -> None:
    ada = lives(maintain_every=0)
    for text, importance in (("Heavy as lead", 0.9), ("Often used tool", 0.5), ("A trifle", 0.5)):
        ada.memory.memories.add(text, user="ada", importance=importance)
    for _ in range(2):
        ada.recalls("often used tool", "memory")
        ada.says("Hm.")
    ada.clock.on()
    # At once, not only by maintenance: when it is kept, and when it was used often enough.
    tiers = {item.text: item.tier for item in ada.memory.memories.list(user="ada")}
    assert tiers == {"Heavy as lead": "long", "Often used tool": "long", "A trifle": "short"}
    assert ada.memory.memories.maintain(user="ada").changes == ()


RULES = {
    "age": Retention(max_age=30 * DAY),
    "count": Retention(max_count=2),
    "category": Retention(category="solutions", max_count=0),
    "importance": Retention(min_importance=0.6),
    "half-life": Retention(min_importance=0.3, half_life=30 * DAY),
}
KEPT = {
    "age": {"new"},
    "count": {"heavy", "fixed"},
    "category": {"old", "heavy", "new"},
    "importance": {"heavy", "fixed"},
    "half-life": {"heavy", "fixed", "new"},
}


@pytest.mark.parametrize("rule", RULES)
def test_retention_first_tells_and_then_does_what_its_rule_says(lives: Lives, rule: str) -> None:
    ada = lives(retention=(RULES[rule],), maintain_every=0)
    add = ada.memory.memories.add
    add("old", user="ada", importance=0.5)
    add("heavy", user="ada", importance=0.9)
    add("fixed", user="ada", importance=0.8, category="solutions")
    ada.clock.on(40 * DAY)
    add("new", user="ada", importance=0.5)
    planned = ada.memory.memories.maintain(user="ada", dry_run=True)
    assert planned.dry_run
    assert len(ada.memories()) == 4
    done = ada.memory.memories.maintain(user="ada")
    assert done.changes == planned.changes
    assert set(ada.memories()) == KEPT[rule]


def _item(text: str, **about: Any) -> MemoryItem:
    return MemoryItem(scope=ADA, text=text, created_at=NEW_YEAR, **about)


def _ends(planned: Sequence[Promote | Expire]) -> dict[str, str]:
    return {change.id: change.reason for change in planned if isinstance(change, Expire)}


def test_a_plan_promotes_expires_and_makes_room_with_a_reason_each() -> None:
    policy = Policy(short_term=1)
    heavy, late = _item("heavy", importance=0.9), _item("late", expires_at=NEW_YEAR)
    old, new = _item("old", id="1"), _item("new", id="2")
    planned = plan([heavy, late, old, new], NEW_YEAR, Extraction(policy=policy))
    assert [change.id for change in planned if isinstance(change, Promote)] == [heavy.id]
    assert _ends(planned) == {late.id: "its time is over", "1": "made room for newer ones"}
    made = Maintained(changes=tuple(planned))
    assert (made.promoted, made.expired) == (1, 2)


def test_a_long_term_memory_never_makes_room() -> None:
    items = [_item(f"{number}", tier="long") for number in range(9)]
    assert plan(items, NEW_YEAR, Extraction(policy=Policy(short_term=0))) == []


def test_what_is_to_go_is_not_promoted_first() -> None:
    extraction = Extraction(retention=(Retention(max_count=0),))
    planned = plan([_item("heavy", importance=1.0)], NEW_YEAR, extraction)
    assert [type(change) for change in planned] == [Expire]


def test_of_several_rules_each_takes_its_share() -> None:
    rules = (Retention(kind="episode", max_count=0), Retention(tier="short", min_importance=0.4))
    items = [_item("a", kind="episode"), _item("b", importance=0.3), _item("c")]
    planned = plan(items, NEW_YEAR, Extraction(retention=rules))
    assert set(_ends(planned)) == {items[0].id, items[1].id}


def test_use_keeps_a_memory_from_fading() -> None:
    rule = Retention(min_importance=0.3, half_life=30 * DAY)
    idle, used = _item("idle"), _item("used", used_at=NEW_YEAR + 35 * DAY)
    assert set(rule.over([idle, used], NEW_YEAR + 40 * DAY)) == {idle.id}
    assert rule.weight(idle, NEW_YEAR + 30 * DAY) == pytest.approx(0.25)
    assert rule.weight(idle, NEW_YEAR - DAY) == 0.5  # a clock that was set back


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"half_life": DAY},
        {"max_count": -1},
        {"max_age": timedelta(0)},
        {"min_importance": 0.5, "half_life": -DAY},
    ],
)
def test_a_rule_that_says_nothing_or_nonsense_is_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(InvalidError):
        Retention(**rule)


def test_a_worker_tidies_by_itself_after_so_many_changes(lives: Lives) -> None:
    ada = lives(maintain_every=2, retention=(Retention(category="user_preferences", max_count=0),))
    ada.says("I love green tea.")
    ada.says("I prefer tea over coffee.")
    ada.says("I love long walks.")
    assert len(ada.memories()) < 3


def test_what_a_memory_states_beside_what_was_announced_to_end_goes_on(lives: Lives) -> None:
    ada = lives(maintain_every=0)
    ada.says("I'm Ken, I live in Hull and I have a dog called Rex.")
    ada.says("I'm moving to Frome on 27 February.")
    ada.clock.on(80 * DAY)
    assert ada.memory.memories.maintain(user="ada").expired > 0
    assert not any("Hull" in text for text in ada.memories())
    facts = {fact.text for fact in ada.memory.facts.list(user="ada")}
    assert facts >= {"user lives in Frome", "user has pet Rex"}
    assert "user lives in Hull" not in facts
