"""The worker: what waits in the queue becomes memories, whatever the model does meanwhile."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect import Memory, Message, ProviderError
from recollect.errors import BadAnswerError, LeaseLostError
from recollect.lifecycle import worker as working
from recollect.lifecycle.thinking import Policy, Thinking
from recollect.lifecycle.worker import JOBS, LEASE_SECONDS, Worker
from recollect.providers.chat_model import Reply
from recollect.records.log import MAX_ATTEMPTS, Job, Source
from recollect.records.scope import Scope
from recollect.store import leases
from recollect.store.sqlite.store import SqliteStore
from recollect.testing.model_server import quote_messages

ADA = Scope(user="ada", agent="tutor", session="talk")
HOME = Scope(user="ada", agent="tutor")
ALL = Policy(share=1.0)
KINDS = ("embed", "derive")


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def skip(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Model:
    """Quotes what it reads, after raising the errors it was given, one a call."""

    name = "quoting"

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.asked: list[str] = []

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        timeout_s: float,
        schema: Mapping[str, Any] | None = None,
    ) -> Reply:
        self.asked.append(messages[-1]["content"])
        if self.errors:
            raise self.errors.pop(0)
        return Reply(json.dumps(quote_messages({"messages": messages})), 100, 50)


class Waiting(Model):
    """Answers when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.let_go = threading.Event()

    def complete(self, *arguments: Any, **settings: Any) -> Reply:
        self.reached.set()
        self.let_go.wait(30)
        return super().complete(*arguments, **settings)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "memory.db", durability="normal", clock=clock) as opened:
        yield opened


def worker_of(store: SqliteStore, model: Model | None = None, **settings: Any) -> Worker:
    thinking = Thinking(model=model, **{"policy": ALL, **settings})
    return Worker(store, thinking, kinds=KINDS, clock=store._clock)


def say(
    store: SqliteStore, *said: str | Message, scope: Scope = ADA, source: Source | None = None
) -> list[str]:
    """Store each by itself, so that each has its own job."""
    messages = [Message("user", one) if isinstance(one, str) else one for one in said]
    for message in messages:
        store.append(scope, [message], source=source)
    return [message.message_id for message in messages]


def finish(worker: Worker) -> None:
    while worker.step():
        pass


def texts(store: SqliteStore, scope: Scope = HOME) -> list[str]:
    return [item.text for item in store.items(scope)]


def about(asked: str) -> list[str]:
    """The messages that a question is about."""
    return [json.loads(line)["text"] for line in asked.splitlines() if line.startswith('{"n"')]


# One call for what belongs together


def test_what_waits_of_one_session_is_asked_about_in_one_call(store: SqliteStore) -> None:
    model = Model()
    said = ["I live in Berlin.", "I play the viola.", "My cat is called Miez."]
    say(store, *said)
    finish(worker_of(store, model))
    assert len(model.asked) == 1
    assert sorted(texts(store)) == sorted(said)
    assert store.backlog(KINDS) == 0


def test_each_session_has_its_own_call(store: SqliteStore) -> None:
    model = Model()
    other = ADA.within(session="other")
    say(store, "I live in Berlin.")
    say(store, "I play the viola.", scope=other)
    say(store, "My cat is called Miez.")
    finish(worker_of(store, model))
    assert sorted(len(about(asked)) for asked in model.asked) == [1, 2]


def test_a_turn_costs_one_call_at_most_and_small_talk_none(store: SqliteStore) -> None:
    model = Model()
    worker = worker_of(store, model)
    store.append(ADA, [Message("user", "I live in Berlin."), Message("assistant", "Noted then.")])
    finish(worker)
    assert len(model.asked) == 1
    say(store, "ok", Message("tool", "12 degrees in Berlin"), Message("system", "Be kind to her."))
    finish(worker)
    assert len(model.asked) == 1


def test_what_others_wrote_is_never_put_beside_the_users_words(store: SqliteStore) -> None:
    model = Model()
    say(store, "I live in Berlin by the canal.")
    say(store, "Berlin has a canal tour.", source="web")
    say(store, "Berlin and its canal please me.")
    worker = worker_of(store, model)
    finish(worker)
    say(store, "The canal in Berlin froze.", "Berlin canal tickets cost 12.", source="web")
    say(store, "Berlin without a canal is no Berlin.")
    finish(worker)
    assert len(model.asked) == 4
    for asked in model.asked:
        others = "tour" in asked or "froze" in asked
        users = "by the canal" in asked or "please" in asked or "without" in asked
        assert others != users, asked
    found = {item.text: item.source for item in store.items(HOME)}
    assert {text for text, source in found.items() if source == "web"} == {
        "Berlin has a canal tour.",
        "The canal in Berlin froze.",
        "Berlin canal tickets cost 12.",
    }
    assert set(found.values()) == {"user", "web"}


def test_a_long_past_is_asked_about_in_several_calls_that_each_count(store: SqliteStore) -> None:
    model = Model()
    for number in range(4):
        words = [f"My friend number{number}x{other} plays chess." for other in range(40)]
        store.append(ADA, [Message("user", word) for word in words])
    worker = worker_of(store, model, calls_per_hour=2)
    finish(worker)
    assert len(model.asked) == 2
    assert store.backlog(KINDS) == 2, "what was paid for is kept"
    assert [len(about(asked)) for asked in model.asked] == [40, 40]


# A model that fails


def waits(log: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in log.records]
    return [text.split(" s:")[0] for text in found if text.startswith("memories wait")]


def test_a_model_that_is_away_is_asked_ever_more_rarely_until_it_answers(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "recollect")
    model = Model(*(ProviderError("away", status=500) for _ in range(8)))
    worker = worker_of(store, model)
    say(store, "I live in Berlin.")
    for _ in range(8):
        assert worker.step()
        assert not worker.step(), "it rests"
        worker._rest_until = 0
    assert waits(caplog) == [
        f"memories wait for {seconds}" for seconds in (1, 2, 4, 8, 16, 32, 60, 60)
    ]
    [job] = store.jobs(ADA)
    assert (job.attempts, job.lease) == (0, None), "that was not the job's fault"
    finish(worker)
    assert texts(store) == ["I live in Berlin."]
    model.errors.append(ProviderError("away again"))
    say(store, "I play the viola.")
    worker.step()
    assert waits(caplog)[-1] == "memories wait for 1", "it answered meanwhile"


@pytest.mark.parametrize(("asked", "waited"), [(7.0, 7), (300.0, 300), (1e9, 3600), (0.0, 1)])
def test_the_wait_a_server_asks_for_is_kept_within_reason(
    store: SqliteStore, caplog: pytest.LogCaptureFixture, asked: float, waited: int
) -> None:
    caplog.set_level(logging.WARNING, "recollect")
    worker = worker_of(store, Model(ProviderError("busy", status=429, retry_after_s=asked)))
    say(store, "I live in Berlin.")
    worker.step()
    assert waits(caplog) == [f"memories wait for {waited}"]
    assert worker._rest_until == pytest.approx(time.monotonic() + waited, abs=1)


def test_a_model_that_goes_away_while_jobs_are_tried_alone_is_left_in_peace(
    store: SqliteStore,
) -> None:
    model = Model(BadAnswerError("nonsense"), *(ProviderError("away") for _ in range(20)))
    worker = worker_of(store, model)
    say(store, *(f"My friend number{number} plays chess." for number in range(10)))
    worker.step()
    assert len(model.asked) == 2
    assert [(job.attempts, job.lease) for job in store.jobs(ADA)] == [(0, None)] * 10


def test_one_bad_message_does_not_take_the_others_with_it(store: SqliteStore) -> None:
    class Picky(Model):
        def complete(self, messages: Sequence[Mapping[str, str]], **settings: Any) -> Reply:
            if "viola" in messages[-1]["content"]:
                raise ProviderError("content filter", status=400)
            return super().complete(messages, **settings)

    say(store, "I live in Berlin.", "I play the viola.", "My cat is called Miez.")
    finish(worker_of(store, Picky()))
    assert sorted(texts(store)) == ["I live in Berlin.", "My cat is called Miez."]
    [job] = store.jobs(ADA)
    assert (job.attempts, job.error) == (1, "content filter")


def test_an_answer_that_never_can_be_used_is_given_up_with_a_reason_and_no_content(
    store: SqliteStore, clock: Clock
) -> None:
    class Babbling(Model):
        def complete(self, messages: Sequence[Mapping[str, str]], **settings: Any) -> Reply:
            super().complete(messages, **settings)
            return Reply("Sure! Berlin, the canal, and }{ more", 100, 50)

    model = Babbling()
    worker = worker_of(store, model)
    say(store, "I live in Berlin by the canal.")
    for attempt in range(1, MAX_ATTEMPTS + 1):
        worker.step()
        assert len(model.asked) == attempt
        worker.step()
        assert len(model.asked) == attempt, "it is tried later, not at once"
        clock.skip(3_600)
    finish(worker)
    assert len(model.asked) == MAX_ATTEMPTS
    assert store.backlog(KINDS) == 0
    [job] = store.jobs(ADA, dead=True)
    assert job.error
    assert "quoting answered badly" in job.error
    assert not any(word in job.error for word in ("Berlin", "canal", "Sure"))
    assert store.history(ADA)[0].message.text == "I live in Berlin by the canal."
    store.retry(ADA, job.id)
    finish(worker_of(store, Model()))
    assert texts(store) == ["I live in Berlin by the canal."]
    assert store.jobs(ADA) == []


def test_a_message_that_thinking_stumbles_over_is_given_up_and_stops_nobody(
    store: SqliteStore, clock: Clock
) -> None:
    class Broken(Model):
        def complete(self, messages: Sequence[Mapping[str, str]], **settings: Any) -> Reply:
            if "viola" in messages[-1]["content"]:
                raise ZeroDivisionError("the viola made me do it")
            return super().complete(messages, **settings)

    worker = worker_of(store, Broken())
    say(store, "I play the viola.", "I live in Berlin.")
    for _ in range(MAX_ATTEMPTS):
        finish(worker)
        clock.skip(3_600)
    assert texts(store) == ["I live in Berlin."]
    [job] = store.jobs(ADA)
    assert job.dead
    assert job.error == "thinking about it raised ZeroDivisionError"


def test_the_rules_stumble_over_no_moment_in_time(store: SqliteStore) -> None:
    last = datetime.max.replace(tzinfo=UTC)
    first = datetime(1, 1, 1, tzinfo=UTC)
    words = (
        "Tomorrow I have a meeting with Ada at 9.",
        "I moved to Berlin three weeks ago and I am currently working on the report.",
        "Remind me next year that I will fly to Rome in 10000 days.",
        "Yesterday, 9999999 years ago, on 31.02.2024, in the year 0000, I lived in Bonn.",
        "I have lived in Paris since 99 September 99999.",
    )
    for moment in (first, last):
        for word in words:
            say(store, Message("user", word, created_at=moment))
    finish(worker_of(store))
    assert [job.error for job in store.jobs(ADA)] == []


# The budget


def test_the_budget_holds_and_the_next_hour_goes_on(store: SqliteStore, clock: Clock) -> None:
    model = Model()
    worker = worker_of(store, model, calls_per_hour=3)
    for hour in range(1, 4):
        for number in range(10):
            scope = ADA.within(session=f"{hour}-{number}")
            say(store, f"My friend number{hour}x{number} plays chess.", scope=scope)
        for _ in range(5):
            worker.step()
            worker._rest_until = 0
        assert len(model.asked) == 3 * hour
        assert store.spent()[0] == 3
        clock.skip(3_600)
    assert store.backlog(KINDS) == 3 * 7
    assert [job.attempts for job in store.jobs(HOME) if job.kind in KINDS] == [0] * 21


def test_what_an_unanswered_call_may_have_cost_is_counted(store: SqliteStore) -> None:
    worker = worker_of(store, Model(ProviderError("no answer in 60 s")), max_tokens=700)
    say(store, "I live in Berlin.")
    worker.step()
    calls, tokens = store.spent()
    assert calls == 1
    assert tokens > 700


def test_a_refused_call_costs_no_tokens(store: SqliteStore) -> None:
    worker = worker_of(store, Model(ProviderError("busy", status=429)))
    say(store, "I live in Berlin.")
    worker.step()
    assert store.spent() == (1, 0)


def test_jobs_of_mixed_trust_get_through_a_budget_of_one_call(
    store: SqliteStore, clock: Clock
) -> None:
    model = Model()
    worker = worker_of(store, model, calls_per_hour=1)
    say(store, "I live in Berlin.")
    say(store, "Rome is the capital of Italy.", source="web")
    for _ in range(3):
        worker.step()
        worker._rest_until = 0
        clock.skip(3_600)
    assert store.backlog(KINDS) == 0
    assert len(model.asked) == 2


# Leases


def test_a_dead_workers_jobs_are_anothers_within_a_minute(store: SqliteStore, clock: Clock) -> None:
    say(store, "I live in Berlin.")
    assert store.claim(kinds=("embed",), limit=JOBS, lease_seconds=LEASE_SECONDS)
    worker = worker_of(store)
    assert not worker.step()
    clock.skip(60)
    finish(worker)
    assert texts(store) == ["I live in Berlin."]


def test_a_job_stays_a_slow_models_for_as_long_as_it_takes(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working, "LEASE_SECONDS", 0.3)
    store._clock = lambda: datetime.now(UTC)
    model = Waiting()
    worker = worker_of(store, model)
    say(store, "I live in Berlin.")
    thread = threading.Thread(target=worker.step)
    thread.start()
    assert model.reached.wait(10)
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
    monkeypatch.setattr(leases, "LONGEST_SECONDS", 0.2)
    store._clock = lambda: datetime.now(UTC)
    say(store, "I live in Berlin.")
    jobs = store.claim(kinds=("embed",), lease_seconds=0.1)
    with leases.kept(store, jobs, 0.1):
        time.sleep(0.5)
        assert store.claim(kinds=("embed",), lease_seconds=1)


def test_a_job_that_another_worker_took_over_leaves_nothing_of_ours(
    store: SqliteStore, clock: Clock
) -> None:
    class Overtaken(Model):
        taken: Sequence[Job] = ()

        def complete(self, messages: Sequence[Mapping[str, str]], **settings: Any) -> Reply:
            if not self.taken:
                clock.skip(LEASE_SECONDS + 1)
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
    assert model.reached.wait(10)
    thread = worker._background._thread
    assert thread is not None
    monkeypatch.setattr(thread, "join", lambda timeout: None)  # seconds nobody needs to wait
    worker.close()
    taken = store.claim(kinds=("embed",), limit=10, lease_seconds=60)
    assert [job.attempts for job in taken] == [1, 1], "as if they had never been taken"
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
    assert model.reached.wait(10)
    store.close()
    worker._background.closing = True
    model.let_go.set()
    thread = worker._background._thread
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
        memory.add_memory("Ada prefers oolong tea", user="ada")
    memory = Memory(path, embedder=None)
    found = memory.recall("oolong", user="ada", deadline_ms=None)
    assert [hit.kind for hit in found.hits] == ["memory"]
    if closing:
        memory.close()
    with Memory(path, embedder=None, thinking=None) as other:
        deadline = time.monotonic() + 10
        while not other.memories(user="ada")[0].uses and time.monotonic() < deadline:
            time.sleep(0.02)
        [item] = other.memories(user="ada")
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
    store.grow(ADA, half.changed(content="I live in Berlin.", unfinished=False))
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


def test_a_message_revised_into_nothing_worth_keeping_leaves_no_memory(
    store: SqliteStore,
) -> None:
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
    assert [worker.catch_up(30) for worker in workers] == [0] * 4
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
    worker_of(store)._release([lost])
    with pytest.raises(LeaseLostError):
        store.renew(lost)
    store.renew(taken)
