"""A rebuild: all that was derived is thrown away, and comes back from the log as it was."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memorist import Memory, Message
from memorist.lifecycle.settings import Extraction
from memorist.records.memories import EDITED, Add, Fact, MemoryItem
from tests.support.models import WordEmbedder

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
PLACES = ("Berlin", "Munich", "Graz", "Oslo", "Lisbon")
FIRMS = ("Google", "Meta", "Lumen", "Siemens")
DRINKS = ("tea", "coffee", "cocoa", "juice")
SAYINGS = (
    "I live in {place}.",
    "I moved to {place} in March.",
    "Actually it's {place}, not {other}.",
    "I work at {firm}.",
    "I joined {firm} last week, and I moved to {place}.",
    "I like {drink}.",
    "I hate {drink}.",
    "I prefer {drink} over {drink2}.",
    "My sister is called Anna and lives in {place}.",
    "My name is Ada.",
    "I'm vegetarian.",
    "I am going to the dentist today at five.",
    "I have a meeting in {place} tomorrow.",
    "We decided to use Postgres for the {drink} shop.",
    "What is the weather in {place}?",
    "Thanks, that helps!",
)
ANSWERS = ("You live in {place}.", "Noted.", "The build failed; raising the limit fixed it.")


def told(number: int, count: int = 60) -> Iterator[tuple[str, list[Message]]]:
    """A random log: a few sessions that take turns, told in pieces of one or more messages."""
    chance = random.Random(number)
    at, ids = START, 0
    while ids < count:
        session, messages = f"session {chance.randrange(3)}", []
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            at += timedelta(minutes=chance.choice((1, 30, 600, 3_000)))
            of_user = chance.random() < 0.8
            place, other = chance.sample(PLACES, 2)
            drink, drink2 = chance.sample(DRINKS, 2)
            words = {"place": place, "other": other, "drink": drink, "drink2": drink2}
            saying = chance.choice(SAYINGS if of_user else ANSWERS)
            messages.append(
                Message(
                    "user" if of_user else "assistant",
                    saying.format(**words, firm=chance.choice(FIRMS)),
                    message_id=f"m{ids}",
                    created_at=at,
                )
            )
            ids += 1
        yield session, messages


def opened(target: str, **options: Any) -> Memory:
    options.setdefault("extraction", Extraction(maintain_every=0))
    return Memory(target, embedder=WordEmbedder(), **options)


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "memory.db")
    url: str = request.getfixturevalue("postgres_with_tables")
    return url


def views(memory: Memory, user: str = "ada") -> dict[str, MemoryItem | Fact]:
    """All memories and facts there ever were, by id."""
    scope = memory.scope(user=user)
    rows = memory.store._engine.read(
        scope.owner, lambda db: db.rows("views_in", agent=None, session_id=None)
    )
    return {record.id: record for record in memory.store.records(scope, [id_ for (id_,) in rows])}


def found(memory: Memory, user: str = "ada") -> list[tuple[str, str, str, str]]:
    """What is recalled, best first, and that nothing is without its vector."""
    assert not memory.store.unembedded(memory.scope(user=user), "by-words", limit=1)
    return [
        (hit.kind, hit.id, hit.text, hit.over)
        for question in ("where do I live?", "what do I drink?", "dentist")
        for hit in memory.recall(question, user=user, deadline_ms=None, limit=20).hits
    ]


def tell(memory: Memory, number: int) -> None:
    """Remember a random log, and now and then let the background catch up."""
    chance = random.Random(number)
    for session, messages in told(number):
        memory.remember(messages, user="ada", session=session)
        if chance.random() < 0.3:
            memory.jobs.catch_up()
    assert memory.jobs.catch_up() == 0


def check_rebuilt(target: str, number: int) -> None:
    with opened(target) as memory:
        tell(memory, number)
        recalled = found(memory)
    with opened(target) as memory:  # that these were used is noted by now
        before = views(memory)
        assert {type(record) for record in before.values()} == {MemoryItem, Fact}
        assert memory.jobs.rebuild(user="ada") == 1
        assert memory.jobs.catch_up() == 0
        assert views(memory) == before
        assert found(memory) == recalled


@pytest.mark.parametrize(
    "number", [*range(2), *(pytest.param(n, marks=pytest.mark.prove) for n in range(2, 10))]
)
def test_a_random_log_gives_the_same_views_again(tmp_path: Path, number: int) -> None:
    check_rebuilt(str(tmp_path / "memory.db"), number)


def test_so_it_does_in_postgres(postgres_with_tables: str) -> None:
    check_rebuilt(postgres_with_tables, 10)


def test_what_a_person_decided_stays_so(target: str) -> None:
    with opened(target) as memory:
        memory.remember("I live in Oslo.", user="ada")
        memory.remember("I like tea.", user="ada")
        memory.remember("I like cocoa.", user="ada")
        memory.remember("I like juice.", user="ada")
        memory.jobs.catch_up()
        memory.remember("I moved to Graz.", user="ada")  # and that is undone
        memory.jobs.catch_up()
        facts = {fact.object: fact for fact in memory.facts.list(user="ada")}
        memory.memories.undo(facts["Graz"].id, user="ada")
        memory.facts.change(facts["tea"].id, user="ada", object="green tea")
        memory.memories.retract(facts["cocoa"].memory or "", user="ada", reason="a joke")
        memory.forget(user="ada", memory=facts["juice"].memory or "")
        memory.facts.add("user", "plays", "the viola", user="ada")
        memory.memories.add("The key is under the mat.", user="ada")
        memory.notes(user="ada", agent="tutor").write("Be brief.")
        memory.jobs.catch_up()
        before = views(memory)
        assert {fact.object for fact in memory.facts.list(user="ada")} == {
            "Oslo",
            "green tea",
            "the viola",
        }
        for _ in range(2):
            memory.jobs.rebuild(user="ada")
            assert memory.jobs.catch_up() == 0
            assert views(memory) == before
        assert memory.notes(user="ada", agent="tutor").read() == "Be brief."
        hits = memory.recall("where is the key?", user="ada", deadline_ms=None).hits
        assert "The key is under the mat." in [hit.text for hit in hits]


@pytest.mark.parametrize("is_derived", [True, False], ids=["derived", "not_derived_yet"])
def test_a_correction_that_was_undone_does_not_come_back(target: str, is_derived: bool) -> None:
    with opened(target) as memory:
        memory.remember("I live in Oslo.", user="ada")
        memory.jobs.catch_up()
        [oslo] = memory.memories.list(user="ada")
        said = memory.remember("I live in Graz.", user="ada").message_ids[0]
        graz = memory.memories.change(oslo.id, user="ada", text="I live in Graz.", said_in=said)
        if is_derived:
            memory.jobs.catch_up()
        memory.memories.undo(graz, user="ada")
        memory.remember("I like tea.", user="ada")
        for _ in range(2):
            assert memory.jobs.catch_up() == 0
            texts = {item.text for item in memory.memories.list(user="ada")}
            assert texts == {"I live in Oslo.", "I like tea."}
            assert {fact.object for fact in memory.facts.list(user="ada")} == {"Oslo", "tea"}
            memory.jobs.rebuild(user="ada")


@pytest.mark.parametrize("kind", ["memory", "fact"])
def test_an_edited_memory_is_forgotten_in_all_its_words_with_its_facts(
    target: str, kind: str
) -> None:
    with opened(target) as memory:
        memory.remember("I live in Rome.", user="ada")
        assert memory.jobs.catch_up() == 0
        [old], [fact] = memory.memories.list(user="ada"), memory.facts.list(user="ada")
        new = memory.memories.change(old.id, user="ada", text="I dwell in Rome.")
        new = memory.memories.change(new, user="ada", text="I dwell in the old city.")
        assert [fact.object for fact in memory.facts.list(user="ada")] == ["Rome"]
        gone = memory.forget(user="ada", memory=new if kind == "memory" else fact.id)
        assert (gone.counts["memories"], gone.counts["facts"]) == (3, 1)
        assert views(memory) == {}
        memory.jobs.rebuild(user="ada")
        assert memory.jobs.catch_up() == 0
        assert views(memory) == {}


@pytest.mark.parametrize("kind", ["memory", "fact"])
def test_what_was_corrected_does_not_hold_again_where_what_is_right_is_forgotten(
    target: str, kind: str
) -> None:
    with opened(target) as memory:
        for said in ("I live in Graz.", "I moved to Berlin.", "Actually it's Oslo, not Berlin."):
            memory.remember(said, user="ada")
            assert memory.jobs.catch_up() == 0
        listed: Any = memory.memories.list if kind == "memory" else memory.facts.list
        [right] = listed(user="ada")
        gone = memory.forget(user="ada", memory=right.id)
        assert (gone.counts["memories"], gone.counts["facts"]) == (2, 2)
        for _ in range(2):
            assert [item.text for item in memory.memories.list(user="ada")] == ["I live in Graz."]
            assert [fact.object for fact in memory.facts.list(user="ada")] == ["Graz"]
            memory.jobs.rebuild(user="ada")
            assert memory.jobs.catch_up() == 0


def test_forms_of_an_edited_memory_that_lead_nowhere_or_in_a_circle_are_forgotten(
    target: str,
) -> None:
    with opened(target) as memory:
        scope = memory.scope(user="ada")
        edited: dict[str, Any] = {"reason": EDITED, "ended_at": START}
        forms = [
            MemoryItem(scope=scope, text=f"Rome {place}", id=id_, superseded_by=by, **edited)
            for place, (id_, by) in enumerate([("a", "b"), ("b", "a"), ("c", "gone")])
        ]
        for form in forms:
            fact = Fact(scope=scope, subject="x", predicate="is", object=form.text, memory=form.id)
            memory.store.apply(scope, [Add(form), Add(fact)])
            memory.forget(user="ada", memory=fact.id)
        assert views(memory) == {}


def test_a_fact_added_by_hand_yields_again_to_what_was_said_later(target: str) -> None:
    with opened(target) as memory:
        memory.facts.add("user", "lives in", "Oslo", user="ada", valid_from=START)
        memory.remember("I moved to Graz yesterday.", user="ada")
        memory.jobs.catch_up()
        before = views(memory)
        assert [fact.object for fact in memory.facts.list(user="ada")] == ["Graz"]
        memory.jobs.rebuild(user="ada")
        memory.jobs.catch_up()
        assert views(memory).keys() == before.keys()
        assert [fact.object for fact in memory.facts.list(user="ada")] == ["Graz"]


def test_recall_answers_from_messages_while_views_are_rebuilt(target: str) -> None:
    with opened(target) as memory:
        memory.remember("I live in Oslo.", user="ada")
        memory.jobs.catch_up()
    with Memory(target, embedder=None, extraction=None) as memory:  # nothing runs beside it
        assert memory.jobs.rebuild(user="ada") == 1
        assert memory.jobs.rebuild(user="ada") == 1, "it is not queued twice"
        memory.store.rebuild(memory.scope(user="ada"))
        assert memory.memories.list(user="ada") == []
        hits = memory.recall("who lives in Oslo?", user="ada", deadline_ms=None).hits
        assert [(hit.kind, hit.text) for hit in hits] == [("message", "I live in Oslo.")]
        assert memory.jobs.waiting(user="ada")["rebuild"] == 1
    with opened(target) as memory:
        assert memory.jobs.catch_up() == 0
        assert [item.text for item in memory.memories.list(user="ada")] == ["I live in Oslo."]
        assert memory.jobs.waiting()["rebuild"] == 0


def test_all_users_of_the_tenant_are_rebuilt_and_no_others(target: str) -> None:
    with opened(target) as memory:
        others = memory.tenant("others")
        for number in range(3):
            memory.remember(f"I live in Oslo, number {number}.", user=f"user {number}")
        others.remember("I live in Graz.", user="zoe")
        memory.jobs.catch_up()
        before = [views(memory, f"user {number}") for number in range(3)]
        memory.jobs.rebuild()
        assert not any(job.kind == "rebuild" for job in others.jobs.list(user="zoe"))
        assert memory.jobs.catch_up() == 0
        assert [views(memory, f"user {number}") for number in range(3)] == before


def test_a_message_that_was_revised_meanwhile_is_indexed_by_its_new_words(target: str) -> None:
    with Memory(target, embedder=None, extraction=None) as memory:  # nothing runs beside it
        memory.remember(Message("user", "I live in Oslo.", message_id="m"), user="ada")
        scope = memory.scope(user="ada")
        memory.jobs.rebuild(user="ada")
        memory.store.rebuild(scope)
        [job] = [job for job in memory.jobs.list(user="ada") if job.kind == "index"]
        read = memory.store.history

        def read_and_revise(*args: Any, **kwargs: Any) -> Any:
            entries = read(*args, **kwargs)
            memory.messages.revise(scope, Message("user", "I live in Graz.", message_id="m"))
            return entries

        memory.store.history = read_and_revise  # type: ignore[method-assign]
        memory.store.reindex(job)
        hits = memory.recall("who lives in Graz?", user="ada", deadline_ms=None).hits
        assert [hit.text for hit in hits] == ["I live in Graz."]


def test_a_revision_leaves_what_a_rebuild_makes(target: str) -> None:
    said: tuple[str, ...] = (
        "I live in Rome.",
        "I work at Lumen.",
        "I moved to Oslo.",
        "My rent is 900 euros.",
    )
    said += ("I no longer work at Lumen.",)
    with opened(target) as memory:
        for number, words in enumerate(said):
            at = START + timedelta(days=number)
            message = Message("user", words, message_id=f"m{number}", created_at=at)
            memory.remember(message, user="ada", session="one")
            assert memory.jobs.catch_up() == 0
        for number in (2, 3, 4):
            message = Message("user", "Never mind.", message_id=f"m{number}")
            memory.messages.revise(memory.scope(user="ada", session="one"), message)
        for _ in range(2):
            assert memory.jobs.catch_up() == 0
            facts = {fact.object for fact in memory.facts.list(user="ada")}
            texts = {item.text for item in memory.memories.list(user="ada")}
            assert (facts, texts) == ({"Rome", "Lumen"}, {*said[:2]})
            memory.jobs.rebuild(user="ada")
