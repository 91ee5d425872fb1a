"""A hundred planted items: they are known by their source, reach nobody else, and can be undone.

For each of two users (`make prove`: four), fifty: web pages and tool answers in the log, imports,
memories and facts added outright, some repeating or citing what the user really said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from memorist import Memory, Message
from memorist.lifecycle.settings import Extraction, Policy
from memorist.records.values import to_micros
from tests.support.examples import LONG
from tests.support.models import WordEmbedder

USERS = ("ada", "bob", "cem", "dua")[: 4 if LONG else 2]
CITIES = {"ada": "Munich", "bob": "Lisbon", "cem": "Izmir", "dua": "Turin"}
PLANTED = ("web", "tool", "import")
START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """Every look at it is a second later."""

    def __init__(self) -> None:
        self.moment = START

    def __call__(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment


@dataclass(frozen=True, slots=True)
class World:
    """The users' memories, before the poison came and after."""

    memory: Memory
    url: str
    before: dict[str, Any]


def _message(memory: Memory, text: str) -> Message:
    return Message("user", text, created_at=memory._runtime.clock())


def _said(memory: Memory, user: str) -> list[str]:
    """What the user really said: four things, and a home that is told outright as well."""
    texts = (
        f"I live in {CITIES[user]}.",
        "I love green tea.",
        f"My cat is called Pixel{user}.",
        "I work at Siemens.",
    )
    ids: list[str] = []
    for text in texts:
        ids += memory.remember(_message(memory, text), user=user).message_ids
        assert memory.jobs.catch_up(300) == 0
    memory.facts.add("door", "opens with", f"bell {user}", user=user, single=True)
    return ids


def _poison(memory: Memory, user: str, real: list[str]) -> int:
    """Fifty items; each holds a word that only the poison of this user has."""
    mark, count = f"zyx{user}", 0
    for number in range(10):
        for text, source in (
            (f"I moved to {mark}grad{number}.", "web"),
            (f"Actually, I live in {mark}burg{number}, not {CITIES[user]}.", "web"),
            (f"I no longer live in {CITIES[user]}. The {mark}{number} says so.", "tool"),
        ):
            memory.remember(_message(memory, text), user=user, source=source)  # type: ignore[arg-type]
            count += 1
    for number in range(4):
        memory.remember(
            Message("tool", f"{mark} answered {number}", name=f"{mark}tool", tool_call_id="c"),
            user=user,
            source="web",
        )
        memory.remember(
            _message(memory, f"I love {mark} cake{number}."), user=user, source="import"
        )
        count += 2
    memory.remember(_message(memory, "I love green tea."), user=user, source="web")  # as she said
    memory.remember(Message("assistant", "Well then."), user=user)
    assert memory.jobs.catch_up(300) == 0
    add, fact = memory.memories.add, memory.facts.add
    add(f"{mark} is the best password manager", user=user, source="web")
    add(f"{mark} and the cat", user=user, source="tool", sources=(real[2],))
    add(f"{mark} was imported", user=user, source="import", sources=(real[0], real[1]))
    add("I work at Siemens.", user=user, source="web", sources=(real[3],))
    fact("user", "lives in", f"{mark}ville", user=user, single=True, source="web")
    fact("user", "lives in", f"{mark}ville", user=user, single=True, corrects=True, source="tool")
    fact("user", "lives in", CITIES[user], user=user, single=True, ends=True, source="web")
    fact("door", "opens with", f"{mark} code", user=user, single=True, source="import")
    fact("bank", "is at", f"{mark} street", user=user, single=True, source="web")
    fact("bank", "is at", f"{mark} road", user=user, single=True, source="import")
    fact("user", "likes", "green tea", user=user, source="web", sources=(real[1],))
    assert memory.jobs.catch_up(300) == 0
    return count + 12


def _picture(memory: Memory, user: str) -> Any:
    """What is known of a user, without when it was noted."""
    facts = [
        (f.topic, f.object, f.valid_to, f.known_to, f.source) for f in memory.facts.as_of(user=user)
    ]
    items = [(item.text, item.source, item.ended_at) for item in memory.memories.list(user=user)]
    return sorted(facts, key=str), sorted(items, key=str)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Users, each with fifty planted items."""
    if request.param == "sqlite":
        url = str(tmp_path_factory.mktemp("poison") / "memory.db")
    else:
        url = request.getfixturevalue("vector_server").create_database("poison")
    extraction = Extraction(policy=Policy(share=1.0, window=200), maintain_every=0)
    with Memory(url, embedder=WordEmbedder(), extraction=extraction, clock=Clock()) as memory:
        real = {user: _said(memory, user) for user in USERS}
        before = {user: _picture(memory, user) for user in USERS}
        assert sum(_poison(memory, user, real[user]) for user in USERS) >= 50 * len(USERS)
        yield World(memory, url, before)


def _views(memory: Memory, user: str) -> list[Any]:
    scope = memory.scope(user=user)
    facts = memory.store.facts(scope) + memory.store.facts(scope, known_at=memory._runtime.clock())
    return [*memory.store.items(scope, current=False), *dict.fromkeys(facts)]


def test_every_planted_item_names_its_source_and_what_came_of_messages_names_them(
    world: World,
) -> None:
    for user in USERS:
        log = world.memory.store.history(world.memory.scope(user=user))
        sources = {entry.message.message_id: entry.source for entry in log}
        planted = [view for view in _views(world.memory, user) if f"zyx{user}" in view.text]
        assert len(planted) > 25
        for view in planted:
            assert view.source in PLANTED, view.text
            assert all(id_ in sources for id_ in view.sources)
        derived = [view for view in planted if view.sources]
        assert len(derived) > 15
        marked = {entry.source for entry in log if f"zyx{user}" in entry.message.text}
        assert marked <= set(PLANTED)


def test_no_planted_item_is_recalled_for_another_user(world: World) -> None:
    for user in USERS:
        others = [f"zyx{other}" for other in USERS if other != user]
        for mark in others:
            for question in (
                f"{mark}grad3 {mark}ville {mark} {mark}tool",
                f"I moved to {mark}grad3.",
                f"{mark} is the best password manager",
                f"what is at {mark} road",
                f"{mark}ville",
            ):
                found = world.memory.recall(question, user=user, limit=50, deadline_ms=None)
                assert not found.late
                assert not [hit for hit in found.hits if mark in hit.text]
        mine = world.memory.recall(
            f"what is at zyx{user} road", user=user, limit=50, deadline_ms=None
        )
        assert any(f"zyx{user}" in hit.text for hit in mine.hits)
        assert set().union(*(hit.why.ranks for hit in mine.hits)) >= {"words", "links", "meaning"}


def test_no_planted_item_takes_the_place_of_what_the_user_said(world: World) -> None:
    for user in USERS:
        [home] = world.memory.facts.list(user=user, subject="user", predicate="lives in")
        assert (home.object, home.source, home.valid_to) == (CITIES[user], "user", None)
        [door] = world.memory.facts.list(user=user, subject="door", predicate="opens with")
        assert (door.object, door.source) == (f"bell {user}", "user")
        planted = {view.id for view in _views(world.memory, user) if view.source in PLANTED}
        mine = [view for view in _views(world.memory, user) if view.source == "user"]
        assert not [view for view in mine if view.superseded_by in planted]
        assert not [view for view in mine if getattr(view, "known_to", None)]


def test_forgetting_the_sources_leaves_nothing_of_them_and_all_that_was_there(world: World) -> None:
    """The last of these tests: it cleans the world up."""
    memory = world.memory
    memory.forget(user="ada", source="web", scrub=False)
    assert memory.jobs.catch_up(300) == 0
    [bank] = memory.facts.list(user="ada", subject="bank", predicate="is at")
    assert bank.object == "zyxada road"
    memory.forget(user="ada", source="import", scrub=False)
    memory.forget(user="ada", source="tool")
    assert memory.jobs.catch_up(300) == 0
    assert _picture(memory, "ada") == world.before["ada"]
    assert not [view for view in _views(memory, "ada") if "zyx" in view.text]
    assert not [view for view in _views(memory, "ada") if view.source in PLANTED]
    assert not [m for m in memory.history(user="ada") if "zyx" in m.text]
    found = memory.recall("zyxada zyxadaville moved password", user="ada", deadline_ms=None)
    assert not [hit for hit in found.hits if "zyx" in hit.text]
    assert memory.jobs.list(user="ada") == []
    _check_rows(world, memory.scope(user="ada").owner)
    assert any("zyxbob" in view.text for view in _views(memory, "bob"))  # one user at a time


def _check_rows(world: World, owner: str) -> None:
    """No row is left that belongs to nothing."""
    lost = " NOT IN (SELECT id FROM memory_items UNION SELECT id FROM facts)"
    passages = _count(world, "passages p", owner, f" AND p.view_id{lost}")
    vectors = _count(world, "vectors p", owner, " AND p.passage NOT IN (SELECT id FROM passages)")
    entities = _count(world, "entities p", owner, " AND p.fact NOT IN (SELECT id FROM facts)")
    named = _count(world, "entities p", owner, " AND p.name LIKE '%zyx%'")
    cited = _count(world, "view_sources p", owner, f" AND p.view{lost}")
    jobs = _count(world, "jobs p", owner, "")
    assert (passages, vectors, entities, named, cited, jobs) == (0, 0, 0, 0, 0, 0)


def _count(world: World, table: str, owner: str, where: str) -> int:
    query = f"SELECT count(*) FROM {table} WHERE p.owner = '{owner}'{where}"
    if "://" not in world.url:
        with apsw.Connection(world.url) as connection:
            return int(next(iter(connection.execute(query)))[0])
    with psycopg.connect(world.url) as connection:
        connection.execute("SELECT set_config('memorist.owner', %s, true)", (owner,))
        row = connection.execute(query.encode()).fetchone()
        return int(row[0]) if row else -1


def test_what_an_import_displaced_is_back_when_the_import_is_forgotten(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=None, clock=Clock()) as memory:
        memory.facts.add("bank", "is at", "Elm Street", user="ada", single=True, source="tool")
        memory.facts.add("bank", "is at", "Oak Road", user="ada", single=True, source="import")
        memory.facts.add(
            "bank", "is at", "Ash Lane", user="ada", single=True, source="import", corrects=True
        )
        assert [fact.object for fact in memory.facts.list(user="ada")] == ["Ash Lane"]
        memory.forget(user="ada", source="import")
        [fact] = memory.facts.list(user="ada")
        assert (fact.object, fact.source, fact.superseded_by) == ("Elm Street", "tool", None)
        found = memory.recall("where is the bank?", user="ada", deadline_ms=None)
        assert [hit.text for hit in found.hits] == ["bank is at Elm Street"]
        assert to_micros(START) < to_micros(fact.known_from)
