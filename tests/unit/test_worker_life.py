"""The worker's life: its leases and its end, and what it does about revisions, tools and use."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memorist import Memory, Message, ToolCallMsg
from memorist.errors import LeaseLostError
from memorist.lifecycle.settings import Policy
from memorist.lifecycle.worker import Worker
from memorist.providers.chat_model import Reply
from memorist.records.log import Job
from memorist.store import runner
from memorist.store.sqlite.store import SqliteStore
from tests.support.extraction import (
    ADA,
    HOME,
    Clock,
    Model,
    Waiting,
    about,
    finish,
    say,
    texts,
    worker_of,
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "memory.db", durability="normal", clock=clock) as opened:
        yield opened


# Leases


def test_a_dead_workers_jobs_are_anothers_within_a_minute(store: SqliteStore, clock: Clock) -> None:
    say(store, "I live in Berlin.")
    assert store.claim(
        kinds=("embed",), limit=Worker.batch_size, lease_seconds=Worker.lease_seconds
    )
    worker = worker_of(store)
    assert not worker.step()
    clock.skip(60)
    finish(worker)
    assert texts(store) == ["I live in Berlin."]


def test_a_job_stays_a_slow_models_for_as_long_as_it_takes(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Worker, "lease_seconds", 0.3)
    store._clock = lambda: datetime.now(UTC)
    model = Waiting()
    worker = worker_of(store, model)
    say(store, "I live in Berlin.")
    thread = threading.Thread(target=worker.step)
    thread.start()
    assert model.reached.wait(60)
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        assert store.claim(kinds=("embed",), lease_seconds=1) == []
        time.sleep(0.02)
    model.let_go.set()
    thread.join()
    assert texts(store) == ["I live in Berlin."]
    assert store.jobs(ADA) == []


def test_a_worker_that_hangs_does_not_keep_its_jobs_for_ever(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "LONGEST_RENEWAL", 0.2)
    store._clock = lambda: datetime.now(UTC)
    say(store, "I live in Berlin.")
    jobs = store.claim(kinds=("embed",), lease_seconds=0.1)
    with runner.renewing(store, jobs, 0.1):
        time.sleep(0.5)
        assert store.claim(kinds=("embed",), lease_seconds=1)


def test_a_job_that_another_worker_took_over_leaves_nothing_of_ours(
    store: SqliteStore, clock: Clock
) -> None:
    class Overtaken(Model):
        taken: Sequence[Job] = ()

        def complete(self, messages: Sequence[Mapping[str, str]], **settings: Any) -> Reply:
            if not self.taken:
                clock.skip(Worker.lease_seconds + 1)
                self.taken = store.claim(kinds=("embed",), limit=1, lease_seconds=60)
            return super().complete(messages, **settings)

    model = Overtaken()
    say(store, "I live in Berlin.", "I play the viola.")
    worker_of(store, model).step()
    assert texts(store) == ["I play the viola."], "one was lost, the other done alone"
    store.apply(HOME, [], done=model.taken)
    assert store.jobs(ADA) == []


# Its end


def test_close_returns_soon_and_gives_back_what_is_not_done(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Waiting()
    worker = worker_of(store, model)
    say(store, "I live in Berlin.")
    say(store, "I play the viola.", scope=ADA.within(session="other"))
    worker.wake()
    assert model.reached.wait(60)
    thread = worker._thread
    assert thread is not None
    monkeypatch.setattr(thread, "join", lambda timeout: None)  # seconds nobody needs to wait
    worker.close()
    taken = store.claim(kinds=("embed",), limit=10, lease_seconds=60)
    assert [job.attempts for job in taken] == [0, 0], "as if they had never been taken"
    model.let_go.set()
    monkeypatch.undo()
    thread.join(10)
    assert not thread.is_alive()
    assert texts(store) == [], "another has it by now"
    store.apply(HOME, [], done=taken)


def test_a_store_that_is_closed_beneath_a_worker_ends_quietly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = Waiting()
    store = SqliteStore(tmp_path / "closed.db")
    worker = worker_of(store, model)
    say(store, "I live in Berlin.")
    worker.wake()
    assert model.reached.wait(60)
    store.close()
    worker.stop()
    model.let_go.set()
    thread = worker._thread
    assert thread is not None
    thread.join(10)
    assert not thread.is_alive()
    worker.close()
    with SqliteStore(tmp_path / "closed.db") as again:
        assert [entry.message.text for entry in again.history(ADA)] == ["I live in Berlin."]
        assert len(again.jobs(ADA, dead=False)) == 1
    assert caplog.records == []


# What was recalled


@pytest.mark.parametrize("closing", [True, False])
def test_uses_are_counted_also_where_nothing_else_happens(tmp_path: Path, closing: bool) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory:
        memory.memories.add("Ada prefers oolong tea", user="ada")
    memory = Memory(path, embedder=None)
    found = memory.recall("oolong", user="ada", deadline_ms=None)
    assert [hit.kind for hit in found.hits] == ["memory"]
    if closing:
        memory.close()
    with Memory(path, embedder=None, extraction=None) as other:
        deadline = time.monotonic() + 10
        while not other.memories.list(user="ada")[0].uses and time.monotonic() < deadline:
            time.sleep(0.02)
        [item] = other.memories.list(user="ada")
    memory.close()
    assert item.uses == 1
    assert item.used_at is not None


def test_memories_are_tidied_after_so_many(store: SqliteStore) -> None:
    policy = Policy(share=1.0, short_term=3, promote_importance=2.0)
    worker = worker_of(store, Model(), policy=policy, maintain_every=10)
    for number in range(9):
        say(store, f"My friend number{number} plays chess.")
    finish(worker)
    assert len(store.items(HOME)) == 9
    say(store, "I live in Berlin.")
    finish(worker)
    assert len(store.items(HOME)) == 3


# What is still being written, and what is written anew


def test_unfinished_messages_are_not_thought_about(store: SqliteStore) -> None:
    half = Message("user", "I live in Ber", unfinished=True)
    store.append(ADA, [half, Message("user", "I play the viola.")])
    model = Model()
    worker = worker_of(store, model)
    finish(worker)
    assert texts(store) == ["I play the viola."]
    assert "Ber" not in model.asked[0]
    store.append_text(ADA, half.changed(content="I live in Berlin.", unfinished=False))
    finish(worker)
    assert sorted(texts(store)) == ["I live in Berlin.", "I play the viola."]


def test_a_revised_message_takes_back_what_its_old_words_said(store: SqliteStore) -> None:
    worker = worker_of(store)
    [id_] = say(store, "I live in Munich.")
    finish(worker)
    [old] = store.items(HOME)
    assert [fact.object for fact in store.facts(HOME)] == ["Munich"]
    store.revise(ADA, Message("user", "I live in Berlin.", message_id=id_))
    finish(worker)
    assert [item.text for item in store.items(HOME)] != [old.text]
    assert len(store.items(HOME)) == 1
    moment = store._clock()
    assert [fact.object for fact in store.facts(HOME, known_at=moment)] == ["Berlin"]
    assert store.items(HOME, current=False)[0].reason == "its message was revised"


def test_a_small_correction_of_a_message_shows_in_its_memory(store: SqliteStore) -> None:
    worker = worker_of(store, Model())
    [id_] = say(store, "My train to the conference in Berlin leaves on platform 9 at noon.")
    finish(worker)
    right = "My train to the conference in Berlin leaves on platform 8 at noon."
    store.revise(ADA, Message("user", right, message_id=id_))
    finish(worker)
    assert texts(store) == [right]


def test_a_message_revised_into_nothing_worth_keeping_leaves_no_memory(store: SqliteStore) -> None:
    worker = worker_of(store)
    [id_] = say(store, "I live in Munich.")
    finish(worker)
    assert store.items(HOME)
    store.revise(ADA, Message("user", "Never mind.", message_id=id_))
    finish(worker)
    assert store.items(HOME) == []
    assert store.facts(HOME, known_at=store._clock()) == []


def test_words_that_come_back_bring_their_memory_back(store: SqliteStore) -> None:
    worker = worker_of(store)
    [id_] = say(store, "I live in Munich.")
    finish(worker)
    before = texts(store)
    for words in ("I live in Berlin.", "I live in Munich."):
        store.revise(ADA, Message("user", words, message_id=id_))
        finish(worker)
    assert texts(store) == before
    assert [fact.object for fact in store.facts(HOME, known_at=store._clock())] == ["Munich"]


def test_a_revision_that_changes_no_words_changes_no_memory(store: SqliteStore) -> None:
    worker = worker_of(store)
    [id_] = say(store, "I live in Munich.")
    finish(worker)
    before = store.items(HOME, current=False)
    store.revise(ADA, Message("user", "I live in Munich.", message_id=id_, structured_data={}))
    finish(worker)
    after = store.items(HOME, current=False)
    assert [(one.id, one.ended_at) for one in after] == [(one.id, None) for one in before]


def test_what_several_messages_say_survives_the_revision_of_one(store: SqliteStore) -> None:
    worker = worker_of(store)
    first, _ = say(store, "I live in Munich.", "I live in Munich.")
    finish(worker)
    before = texts(store)
    store.revise(ADA, Message("user", "Never mind.", message_id=first))
    finish(worker)
    assert texts(store) == before


def test_words_that_come_back_after_none_bring_their_memory_back(store: SqliteStore) -> None:
    worker = worker_of(store)
    [id_] = say(store, "I live in Munich.")
    finish(worker)
    before = texts(store)
    for words in ("Never mind.", "I live in Munich."):
        store.revise(ADA, Message("user", words, message_id=id_))
        finish(worker)
    assert texts(store) == before


def stated(store: SqliteStore) -> set[tuple[str, str]]:
    return {(fact.predicate, fact.object) for fact in store.facts(HOME) if not fact.valid_to}


TAKES_THE_PLACE = (
    ("I work at Siemens.", "I work at Meta."),
    ("I work at Siemens.", "Actually it's Meta, not Siemens."),
    ("I work at Siemens.", "I no longer work at Siemens."),
    ("I hate cocoa.", "I like cocoa."),
)


@pytest.mark.parametrize("how", ["revised", "forgotten"])
@pytest.mark.parametrize(("older", "newer"), TAKES_THE_PLACE)
def test_what_a_message_took_the_place_of_holds_again(
    store: SqliteStore, older: str, newer: str, how: str
) -> None:
    worker = worker_of(store)
    say(store, older)
    finish(worker)
    before = texts(store), stated(store)
    [id_] = say(store, newer)
    finish(worker)
    assert stated(store) != before[1]
    if how == "revised":
        store.revise(ADA, Message("user", "Never mind.", message_id=id_))
    else:
        store.forget(ADA, message_id=id_)
    finish(worker)
    assert (texts(store), stated(store)) == before


def test_what_a_revised_message_took_the_place_of_held_until_what_came_next(
    store: SqliteStore,
) -> None:
    worker = worker_of(store)
    said = list[str]()
    for words in ("I live in Rome.", "I live in Oslo.", "I live in Graz."):
        said += say(store, words)
        finish(worker)
    store.revise(ADA, Message("user", "Never mind.", message_id=said[1]))
    finish(worker)
    graz, rome = sorted(store.facts(HOME), key=lambda fact: fact.object)
    assert (rome.object, rome.valid_to, rome.superseded_by) == ("Rome", graz.valid_from, graz.id)
    assert (graz.object, graz.valid_to) == ("Graz", None)


def test_what_a_revised_message_says_in_other_words_goes_on(store: SqliteStore) -> None:
    worker = worker_of(store)
    say(store, "I live in Rome.")
    [id_] = say(store, "We decided to use Postgres for the tea shop, and I moved to Oslo.")
    finish(worker)
    before, known = stated(store), [fact.id for fact in store.facts(HOME)]
    words = "We decided to use Postgres for the coffee shop, and I moved to Oslo."
    store.revise(ADA, Message("user", words, message_id=id_))
    finish(worker)
    assert stated(store) == before
    assert [fact.id for fact in store.facts(HOME)] == known


def test_a_fact_without_a_memory_goes_when_its_message_is_revised(store: SqliteStore) -> None:
    worker = worker_of(store)
    [id_] = say(store, "My rent is 900 euros.")
    finish(worker)
    assert stated(store) == {("rent", "900 euros")}
    store.revise(ADA, Message("user", "Never mind.", message_id=id_))
    finish(worker)
    assert stated(store) == set()


def test_a_correction_goes_when_what_it_corrected_is_revised(store: SqliteStore) -> None:
    worker = worker_of(store)
    [id_] = say(store, "My wife Mia lives in Berlin.")
    say(store, "Actually it's Munich, not Berlin.")
    finish(worker)
    assert texts(store) == ["My wife Mia lives in Munich."]
    store.revise(ADA, Message("user", "Never mind.", message_id=id_))
    finish(worker)
    assert texts(store) == []


def test_what_a_copy_in_another_session_still_says_survives_a_revision(store: SqliteStore) -> None:
    worker = worker_of(store)
    copies = [ADA.within(session=name) for name in ("one", "two")]
    for scope in copies:
        store.append(scope, [Message("user", "I live in Oslo.", message_id="m")])
        finish(worker)
    for scope, left in zip(copies, (["I live in Oslo."], []), strict=True):
        store.revise(scope, Message("user", "Never mind.", message_id="m"))
        finish(worker)
        assert texts(store) == left


def test_what_a_person_made_of_a_message_stays_when_that_is_revised(store: SqliteStore) -> None:
    with Memory(store, embedder=None) as memory:
        memory.remember(Message("user", "I live in Munch.", "m"), user="ada", session="one")
        memory.jobs.catch_up()
        [fact] = memory.facts.list(user="ada")
        memory.facts.change(fact.id, user="ada", object="Munich")
        scope = memory.scope(user="ada", session="one")
        for words, home in (("I live in Munch now.", "Munich"), ("I live in Berlin.", "Berlin")):
            memory.messages.revise(scope, Message("user", words, "m"))
            memory.jobs.catch_up()
            assert [it.object for it in memory.facts.list(user="ada")] == [home]


def test_undoing_that_something_is_over_brings_it_back(store: SqliteStore) -> None:
    with Memory(store, embedder=None) as memory:
        for words in ("I work at Siemens.", "I no longer work at Siemens."):
            memory.remember(words, user="ada")
            memory.jobs.catch_up()
        [over] = memory.memories.list(user="ada")
        memory.memories.undo(over.id, user="ada")
        assert [item.text for item in memory.memories.list(user="ada")] == ["I work at Siemens."]
        [fact] = memory.facts.list(user="ada")
        memory.memories.retract(fact.id, user="ada")
        memory.memories.undo(fact.id, user="ada")
        assert [it.object for it in memory.facts.list(user="ada")] == ["Siemens"]


@pytest.mark.parametrize("other", ["My sister Nora visited me.", "Nobody visited me."])
def test_whom_a_later_she_means_is_told_by_the_message_as_it_is(
    store: SqliteStore, other: str
) -> None:
    worker = worker_of(store)
    names, _ = say(store, "My sister Lena visited me.", "She lives in Rome.")
    finish(worker)
    before = sorted(texts(store))
    for words in (other, "My sister Lena visited me."):
        store.revise(ADA, Message("user", words, message_id=names, created_at=store._clock()))
        finish(worker)
        about_her = [text for text in texts(store) if "Rome" in text]
        assert about_her == [f"{name} lives in Rome." for name in _named(words)]
    assert sorted(texts(store)) == before


def test_a_revision_without_a_date_was_said_when_the_message_was(clock: Clock) -> None:
    with Memory(":memory:", embedder=None, extraction=None, clock=clock) as memory:
        memory.remember(Message("user", "I live in Munich.", message_id="m"), user="ada")
        clock.skip(3_600)
        scope = memory.scope(user="ada")
        memory.messages.revise(scope, Message("user", "I live in Berlin.", message_id="m"))
        [old], [new] = memory.messages.revisions(scope, "m"), memory.history(user="ada")
        assert (new.created_at, new.text) == (old.created_at, "I live in Berlin.")
        memory.messages.revise(scope, new.changed(created_at=clock()))
        assert memory.history(user="ada")[0].created_at == clock()


def _named(words: str) -> list[str]:
    return [words.removesuffix(" visited me.")] if "sister" in words else []


# A clock that was far ahead


@pytest.mark.parametrize(
    ("said", "now", "held"),
    [
        ("I live in Rome.", "I live in Oslo.", ["user lives in Oslo"]),
        ("I like tea.", "I no longer like tea.", []),
        ("I like tea.", "I like tea.", ["user likes tea"]),
    ],
)
def test_what_a_clock_far_ahead_has_dated_loses_to_what_is_said_later(
    store: SqliteStore, clock: Clock, said: str, now: str, held: list[str]
) -> None:
    worker, years = worker_of(store), 14 * 365 * 86_400
    clock.skip(years)
    store.append(ADA, [Message("user", said, created_at=clock())])
    finish(worker)
    clock.skip(-years)
    store.append(ADA, [Message("user", now, created_at=clock())])
    finish(worker)
    assert texts(store) == [now]
    for _ in range(2):  # at once, and when that clock would be right
        assert [fact.text for fact in store.facts(HOME, valid_at=clock())] == held
        clock.skip(years + 86_400)


# Tools


def call(name: str, **told: Any) -> Message:
    return Message("tool", json.dumps(told), name=name)


def test_tools_teach_once_a_turn_though_each_message_comes_by_itself(store: SqliteStore) -> None:
    worker = worker_of(store)
    turn = [
        Message("user", "Which report is the newest?"),
        call("search", success=True, duration_ms=120),
        call("read_file", success=True, duration_ms=30),
        Message("assistant", "It is the one of May."),
        Message("user", "And who wrote it?"),
        call("search", success=False, error="timeout after 5 s"),
        Message("assistant", "I could not find out."),
        Message("user", "Never mind."),
    ]
    for message in turn:
        say(store, message)
        finish(worker)
    items = {item.tags[0]: item for item in store.items(HOME) if "search" in item.tags}
    assert set(items) == {"tool_usage", "task_execution", "tool_failure"}
    done, chain, failed = (items[t] for t in ("tool_usage", "task_execution", "tool_failure"))
    assert done.text == "Successfully used tools: search, read_file (total time: 150ms)"
    assert (done.category, done.importance, done.source) == ("task_history", 0.7, "tool")
    assert failed.text == "Failed tools: search (timeout after 5 s)"
    assert (failed.category, failed.importance) == ("error_patterns", 0.8)
    assert "search → read_file" in chain.text
    assert [item.uses for item in items.values()] == [0, 0, 0], "each was learnt once"
    assert done.sources == (turn[1].message_id, turn[2].message_id)


def test_a_turn_is_not_learnt_again_when_jobs_around_it_come_late(
    store: SqliteStore, clock: Clock
) -> None:
    worker = worker_of(store)
    [_, *_] = say(store, "I live in Berlin.")
    [late] = store.claim(kinds=("embed",), lease_seconds=60)
    say(store, call("search", success=True), Message("assistant", "It is there."))
    finish(worker)
    store.release(late)
    say(store, "I play the viola.")
    finish(worker)
    [lesson] = [item for item in store.items(HOME) if "search" in item.tags]
    assert lesson.uses == 0


# Many workers


def test_workers_that_share_a_store_do_each_job_once(store: SqliteStore) -> None:
    for number in range(60):
        scope = ADA.within(session=f"talk{number % 7}")
        say(store, f"My friend number{number} plays chess.", scope=scope)
    models = [Model() for _ in range(4)]
    workers = [worker_of(store, model) for model in models]
    for worker in workers:
        worker.wake()
    assert [worker.catch_up(300) for worker in workers] == [0] * 4
    for worker in workers:
        worker.close()
    asked = [text for model in models for asked in model.asked for text in about(asked)]
    assert sorted(asked) == sorted(set(asked)), "nobody was asked twice about one message"
    assert len(texts(store)) == 60


def test_a_lost_lease_cannot_be_released_by_its_former_owner(
    store: SqliteStore, clock: Clock
) -> None:
    say(store, "I live in Berlin.")
    [lost] = store.claim(kinds=("embed",), lease_seconds=10)
    clock.skip(11)
    [taken] = store.claim(kinds=("embed",), lease_seconds=10)
    worker_of(store).release([lost])
    with pytest.raises(LeaseLostError):
        store.renew(lost)
    store.renew(taken)


# Weights


def test_weights_are_the_policys_own_also_where_rules_do_the_extraction(store: SqliteStore) -> None:
    say(store, "I live in Berlin.", "I prefer tea to coffee.")
    light = Policy(share=1.0, base_importance=0.3, boosts={"user_preferences": 0.2})
    finish(worker_of(store, policy=light))
    assert sorted(item.importance for item in store.items(HOME)) == [0.3, 0.5]


def test_what_is_said_beside_a_tool_call_is_of_the_tasks_history(store: SqliteStore) -> None:
    call = ToolCallMsg("c1", "c1", "function", "search", "{}")
    say(store, Message("assistant", "We decided to go with the blue one.", tool_calls=[call]))
    finish(worker_of(store))
    [item] = store.items(HOME)
    assert (item.category, item.importance) == ("task_history", 0.6)
