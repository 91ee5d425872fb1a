"""KGMemory, read in the order of the Memory Module document."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memorist import (
    BadAnswerError,
    BaseMemory,
    Extraction,
    InvalidError,
    Memory,
    Message,
    MessageError,
    NotFoundError,
    Policy,
    ProviderError,
    RecordError,
)
from memorist.providers.openai_chat import OpenAIChat
from memorist.views.knowledge import KGMemory
from tests.support.model_server import ModelServer

SYSTEM = {"role": "system", "content": "You are a travel agent"}
PARIS = ("Paris", "is capital of", "France")


def contents(wires: list[dict[str, Any]]) -> list[str]:
    return [wire["content"] for wire in wires]


@pytest.fixture
def store() -> Iterator[Memory]:
    with Memory(":memory:", embedder=None) as memory:
        yield memory


@pytest.fixture
def memory(store: Memory) -> KGMemory:
    return KGMemory(description="You are a travel agent", memory=store)


# What is said becomes facts


def test_it_keeps_the_contract_of_every_memory(memory: KGMemory) -> None:
    assert isinstance(memory, BaseMemory)
    assert memory.retrieve_all() == [SYSTEM]


def test_what_is_added_is_stored_at_once_and_its_facts_follow(
    memory: KGMemory, store: Memory
) -> None:
    message_id = memory.add(role="user", content="I moved to Berlin.")

    assert memory.retrieve_by_id(message_id) == {"role": "user", "content": "I moved to Berlin."}
    store.jobs.catch_up(300)
    assert contents(memory.retrieve_recent()) == ["user lives in Berlin"]


def test_a_text_is_stored_and_its_facts_returned(memory: KGMemory, store: Memory) -> None:
    (fact,) = memory.extract_and_update_from_text("I moved to Berlin.")

    assert (fact["subject"], fact["predicate"], fact["object"]) == ("user", "lives in", "Berlin")
    assert (fact["role"], fact["content"]) == ("user", "user lives in Berlin")
    assert memory.retrieve_all() == [SYSTEM, fact]
    assert [m.content for m in store.history(user="me", role="user")] == ["I moved to Berlin."]


def test_a_fact_told_again_is_the_same_fact(memory: KGMemory) -> None:
    (first,) = memory.extract_and_update_from_text("I live in Berlin.")
    (again,) = memory.extract_and_update_from_text("As I said, I live in Berlin.")

    assert again == first
    assert len(memory.retrieve_by_role("user")) == 1


def test_a_newer_fact_takes_the_place_of_the_older_one(memory: KGMemory, store: Memory) -> None:
    (munich,) = memory.extract_and_update_from_text("I live in Munich.")
    before = store.facts.list(user="me")[0].valid_from
    (berlin,) = memory.extract_and_update_from_text("I moved to Berlin.")

    assert memory.retrieve_all() == [SYSTEM, berlin]
    assert memory.retrieve_by_id(munich["id"]) == berlin
    assert [fact.object for fact in store.facts.as_of(user="me", valid=before)] == ["Munich"]


def test_small_talk_states_nothing(memory: KGMemory) -> None:
    assert memory.extract_and_update_from_text("Thanks, that was great!") == []
    assert memory.retrieve_all() == [SYSTEM]


def test_a_memory_of_its_own_keeps_every_fact_it_is_told() -> None:
    cities = ["Berlin", "Paris", "Rome", "Oslo", "Madrid", "Vienna", "Prague", "Dublin"]
    with KGMemory() as memory:
        for city in cities:
            memory.add(role="user", content=f"I love {city}.")
        deadline = time.monotonic() + 30
        while len(memory.retrieve_all()) < len(cities) and time.monotonic() < deadline:
            time.sleep(0.05)

        assert {fact["object"] for fact in memory.retrieve_all()} == set(cities)


def test_facts_are_found_by_meaning() -> None:
    with KGMemory() as memory:
        memory.extract_and_update_from_text("I moved to Berlin. My sister is called Eva.")
        memory._memory.jobs.catch_up(300)

        found = memory.recall("Which town is home?", deadline_ms=None)
        assert {hit.kind for hit in found.hits} == {"fact"}
        assert found.hits[0].text == "user lives in Berlin"


def test_closing_ends_the_threads_of_a_memory_of_its_own() -> None:
    before = set(threading.enumerate())
    with KGMemory() as memory:
        memory.extract_and_update_from_text("I moved to Berlin.")

    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert "memorist-extraction" not in left


def test_closing_leaves_a_memory_that_was_given_open(store: Memory) -> None:
    with KGMemory(memory=store) as memory:
        memory.add_fact(*PARIS)

    assert len(store.facts.list(user="me")) == 1


# Facts told outright


def test_a_fact_comes_back_with_its_triple(memory: KGMemory) -> None:
    fact_id = memory.add_fact(*PARIS)

    assert memory.retrieve_by_id(fact_id) == {
        "role": "user",
        "content": "Paris is capital of France",
        "id": fact_id,
        "subject": "Paris",
        "predicate": "is capital of",
        "object": "France",
    }


def test_a_fact_added_twice_is_there_once(memory: KGMemory) -> None:
    assert memory.add_fact(*PARIS) == memory.add_fact("paris", "is capital of", "FRANCE")
    assert len(memory.retrieve_recent(10)) == 1


def test_a_fact_that_ended_can_be_true_again(memory: KGMemory) -> None:
    for city in ("Munich", "Berlin", "Munich"):
        memory.add_fact("Ada", "lives in", city, single=True)

    assert contents(memory.retrieve_recent(10)) == ["Ada lives in Munich"]


def test_a_fact_without_a_subject_is_refused(memory: KGMemory) -> None:
    with pytest.raises(RecordError, match="subject"):
        memory.add_fact(" ", "is", "empty")
    assert memory.retrieve_all() == [SYSTEM]


def test_a_less_trusted_role_does_not_change_what_the_user_said(memory: KGMemory) -> None:
    memory.add_fact("Ada", "lives in", "Berlin", single=True)

    assert memory.add_fact("Ada", "lives in", "Mallorca", role="tool", single=True) == ""
    assert contents(memory.retrieve_recent(5)) == ["Ada lives in Berlin"]


# Retrieval


def test_facts_are_found_by_recency_and_by_role(memory: KGMemory) -> None:
    memory.add_fact("Ada", "likes", "tea")
    memory.add_fact("Ada", "has booked", "a flight", role="assistant")
    memory.add_fact("the flight", "leaves at", "noon", role="tool")

    assert contents(memory.retrieve_recent(2)) == [
        "Ada has booked a flight",
        "the flight leaves at noon",
    ]
    assert memory.retrieve_recent(0) == []
    assert len(memory.retrieve_recent(100)) == 3
    assert contents(memory.retrieve_by_role("assistant")) == ["Ada has booked a flight"]
    assert contents(memory.retrieve_by_role("tool")) == ["the flight leaves at noon"]
    assert memory.retrieve_by_role("system") == [SYSTEM]
    assert memory.retrieve_by_id("unknown_id") is None
    with pytest.raises(InvalidError, match="negative"):
        memory.retrieve_recent(-1)


def test_what_the_web_said_is_not_taken_for_the_users_words(memory: KGMemory) -> None:
    memory.add_fact("Ada", "likes", "tea", role="web")

    assert memory.retrieve_by_role("user") == []
    assert contents(memory.retrieve_by_role("tool")) == ["Ada likes tea"]


# Updates and removal


def test_an_updated_fact_answers_to_its_old_id_however_often(memory: KGMemory) -> None:
    fact_id = memory.add_fact("Ada", "likes", "tea")
    memory.update(fact_id, object="coffee")
    memory.update(fact_id, predicate="loves")

    assert contents(memory.retrieve_recent(10)) == ["Ada loves coffee"]
    found = memory.retrieve_by_id(fact_id)
    assert found is not None
    assert found["content"] == "Ada loves coffee"


@pytest.mark.parametrize("fields", [{"mood": "good"}, {"object": ""}, {"object": 3}])
def test_an_update_to_a_wrong_shape_changes_nothing(
    memory: KGMemory, fields: dict[str, Any]
) -> None:
    fact_id = memory.add_fact(*PARIS)
    with pytest.raises(InvalidError, match=next(iter(fields))):
        memory.update(fact_id, **fields)
    assert contents(memory.retrieve_recent(10)) == ["Paris is capital of France"]


def test_what_a_changed_fact_said_stays_in_the_past(store: Memory) -> None:
    old = store.facts.add("Ada", "likes", "tea", user="me", agent="tutor")
    [tea] = store.facts.list(user="me")
    new = store.facts.change(old, user="me", object="coffee")

    assert [fact.id for fact in store.facts.list(user="me", agent="tutor")] == [new]
    assert [fact.object for fact in store.facts.as_of(user="me", valid=tea.valid_from)] == ["tea"]
    with pytest.raises(InvalidError, match="no longer"):
        store.facts.change(old, user="me", object="water")
    with pytest.raises(NotFoundError):
        store.facts.change(new, user="somebody else", object="water")


def test_an_update_of_an_unknown_id_is_a_message_error(memory: KGMemory) -> None:
    with pytest.raises(MessageError, match="message_id"):
        memory.update("unknown_id", content="New")


def test_an_updated_message_is_thought_about_again(memory: KGMemory, store: Memory) -> None:
    message_id = memory.add(role="user", content="Hello")
    store.jobs.catch_up(300)
    memory.update(message_id, content="I moved to Berlin.")
    store.jobs.catch_up(300)

    assert contents(memory.retrieve_recent(5)) == ["user lives in Berlin"]


def test_a_removed_fact_is_gone_and_may_come_back(memory: KGMemory) -> None:
    fact_id = memory.add_fact(*PARIS)

    assert memory.remove(fact_id) is True
    assert memory.remove(fact_id) is False
    assert memory.retrieve_all() == [SYSTEM]
    memory.add_fact(*PARIS)
    assert len(memory.retrieve_recent(5)) == 1


def test_a_removed_message_takes_its_facts_along(memory: KGMemory, store: Memory) -> None:
    message_id = memory.add(role="user", content="I moved to Berlin.")
    store.jobs.catch_up(300)

    assert memory.remove(message_id) is True
    assert memory.retrieve_all() == [SYSTEM]
    assert store.memories.list(user="me") == []


# Reset


def test_a_reset_keeps_the_system_message_and_the_log(memory: KGMemory, store: Memory) -> None:
    memory.extract_and_update_from_text("I moved to Berlin.")
    memory.add_fact(*PARIS)
    session = memory.session_id
    memory.reset_memory()

    assert memory.retrieve_all() == [SYSTEM]
    assert store.facts.as_of(user="me") == []
    assert "I moved to Berlin." in [m.content for m in store.history(user="me", session=session)]


def test_what_was_still_waiting_does_not_come_after_a_reset(
    memory: KGMemory, store: Memory
) -> None:
    memory.add(role="user", content="I moved to Berlin.")
    memory.reset()
    store.jobs.catch_up(300)

    assert memory.retrieve_all() == [SYSTEM]


def test_after_a_reset_the_same_may_be_said_again(memory: KGMemory) -> None:
    memory.extract_and_update_from_text("I moved to Berlin.")
    memory.reset()
    memory.extract_and_update_from_text("I moved to Berlin.")

    assert contents(memory.retrieve_recent(5)) == ["user lives in Berlin"]


# With a model


def stated(text: str, *claims: tuple[str, str, str]) -> dict[str, Any]:
    """What a model answers about the first message of a question."""
    parts = ("subject", "predicate", "object")
    rest = {"single": False, "ends": False, "valid_from": None, "valid_to": None}
    made = [dict(zip(parts, claim, strict=True)) | rest for claim in claims]
    memory = {"text": text, "kind": "fact", "importance": 0.5, "tags": [], "messages": [1]}
    return {"memories": [{**memory, "corrects": False, "claims": made}]}


def test_a_model_finds_the_facts() -> None:
    text = "Paris is the capital of France"
    with (
        ModelServer([stated(text, PARIS)]) as server,
        KGMemory(model=OpenAIChat("any", url=server.url)) as memory,
    ):
        (fact,) = memory.extract_and_update_from_text(text)

        assert (fact["subject"], fact["predicate"], fact["object"]) == PARIS
        assert len(server.requests) == 1


def test_a_text_whose_extraction_fails_is_kept_and_waits() -> None:
    with (
        ModelServer(mode="500") as server,
        KGMemory(model=OpenAIChat("any", url=server.url)) as memory,
    ):
        with pytest.raises(ProviderError, match="kept"):
            memory.extract_and_update_from_text("I moved to Berlin.", timeout_s=1)

        said = memory._memory.history(user="me")
        assert [message.content for message in said] == ["I moved to Berlin."]
        assert len(memory._memory.jobs.list(user="me")) == 1


def test_a_text_that_was_given_up_says_so() -> None:
    hours = itertools.count()
    clock = lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=next(hours))  # noqa: E731
    with Memory(":memory:", embedder=None, extraction=None, clock=clock) as store:
        memory = KGMemory(memory=store)

        def give_up() -> None:
            while not store.jobs.list(user="me", dead=True):
                for job in store.store.claim(limit=1, lease_seconds=9e6):
                    store.store.fail(job, "the model answered badly")

        worker = threading.Thread(target=give_up)
        worker.start()
        with pytest.raises(BadAnswerError, match="the model answered badly"):
            memory.extract_and_update_from_text("I moved to Berlin.", timeout_s=10)
        worker.join()
        assert len(store.history(user="me")) == 1


@pytest.mark.parametrize("model", ["gpt", 5, object()])
def test_what_is_no_model_is_refused(model: Any) -> None:
    with pytest.raises(InvalidError, match="model"):
        KGMemory(model=model)


def test_a_memory_that_is_given_has_its_own_model(store: Memory) -> None:
    with pytest.raises(InvalidError, match="Extraction"):
        KGMemory(model=OpenAIChat("any", url="http://127.0.0.1:9"), memory=store)


# Shared memory


def test_two_processes_on_one_file_share_the_facts_of_an_agent(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    with Memory(path, embedder=None) as here, Memory(path, embedder=None) as there:
        one = KGMemory(memory=here, user="ada", agent="tutor")
        other = KGMemory(memory=there, user="ada", agent="tutor")
        one.extract_and_update_from_text("I moved to Berlin.")
        fact_id = other.add_fact("Ada", "likes", "tea")
        one.update(fact_id, object="coffee")

        assert contents(one.retrieve_all()) == ["user lives in Berlin", "Ada likes coffee"]
        assert other.retrieve_all() == one.retrieve_all()


def test_other_agents_and_users_have_facts_of_their_own(store: Memory) -> None:
    tutor = KGMemory(memory=store, user="ada", agent="tutor")
    others = [
        KGMemory(memory=store, user="ada", agent="cook"),
        KGMemory(memory=store, user="ada"),
        KGMemory(memory=store, user="bob", agent="tutor"),
    ]
    said = tutor.add(role="user", content="I moved to Berlin.")
    fact_id = tutor.add_fact(*PARIS)
    store.jobs.catch_up(300)

    for other in others:
        assert other.retrieve_all() == []
        assert other.retrieve_by_id(fact_id) is None
        assert other.retrieve_by_id(said) is None
        assert other.remove(fact_id) is False
        with pytest.raises(MessageError):
            other.update(fact_id, object="stolen")
        other.add_fact(*PARIS)
        other.reset()
    assert contents(tutor.retrieve_all()) == ["Paris is capital of France", "user lives in Berlin"]


def test_agents_share_what_a_shared_policy_makes(tmp_path: Path) -> None:
    extraction = Extraction(policy=Policy(shared=True))
    path = tmp_path / "shared.db"
    with (
        Memory(path, embedder=None, extraction=extraction) as here,
        Memory(path, embedder=None, extraction=extraction) as there,
    ):
        tutor = KGMemory(memory=here, user="ada", agent="tutor")
        cook = KGMemory(memory=there, user="ada", agent="cook")
        tutor.extract_and_update_from_text("I am vegetarian. I moved to Berlin.")
        cook.add_fact("Ada", "likes", "tea")

        assert "user lives in Berlin" in contents(cook.retrieve_all())
        assert cook.retrieve_all() == tutor.retrieve_all()
        assert KGMemory(memory=here, user="bob", agent="tutor").retrieve_all() == []


def test_what_no_agent_in_particular_was_told_is_seen_by_all_and_outlives_their_resets(
    store: Memory,
) -> None:
    everyone = KGMemory(memory=store, user="ada")
    tutor = KGMemory(memory=store, user="ada", agent="tutor")
    everyone.add_fact("Ada", "likes", "tea")
    tutor.add_fact("Ada", "learns", "Greek")

    assert contents(tutor.retrieve_all()) == ["Ada likes tea", "Ada learns Greek"]
    assert contents(everyone.retrieve_all()) == ["Ada likes tea"]
    tutor.reset()
    assert contents(tutor.retrieve_all()) == ["Ada likes tea"]


def test_facts_outlive_the_process_that_learnt_them(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=None) as store:
        KGMemory(memory=store, user="ada").extract_and_update_from_text("I moved to Berlin.")

    with Memory(tmp_path / "m.db", embedder=None) as store:
        again = KGMemory(memory=store, user="ada")
        assert contents(again.retrieve_all()) == ["user lives in Berlin"]


def test_a_message_made_before_is_taken_as_it_is(memory: KGMemory) -> None:
    message = Message("user", "I moved to Berlin.")

    assert memory.add(message) == message.message_id
    with pytest.raises(MessageError, match="role"):
        memory.add(content="orphan")
