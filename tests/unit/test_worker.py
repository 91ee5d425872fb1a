"""The worker: what waits in the queue becomes memories, whatever the model does meanwhile."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memorist import Message, ProviderError
from memorist.errors import BadAnswerError
from memorist.lifecycle.settings import Extraction
from memorist.lifecycle.worker import Worker
from memorist.providers.chat_model import Reply
from memorist.records.log import MAX_ATTEMPTS
from memorist.store.sqlite.store import SqliteStore
from tests.support.extraction import (
    ADA,
    ALL,
    HOME,
    KINDS,
    Clock,
    Model,
    about,
    finish,
    press,
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
    caplog.set_level(logging.WARNING, "memorist")
    model = Model(*(ProviderError("away", status=500) for _ in range(8)))
    worker = worker_of(store, model)
    say(store, "I live in Berlin.")
    for _ in range(8):
        assert worker.step()
        assert not worker.step(), "it rests"
        worker._paused_until = 0
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
    caplog.set_level(logging.WARNING, "memorist")
    worker = worker_of(store, Model(ProviderError("busy", status=429, retry_after_s=asked)))
    say(store, "I live in Berlin.")
    worker.step()
    assert waits(caplog) == [f"memories wait for {waited}"]
    assert worker._paused_until == pytest.approx(time.monotonic() + waited, abs=1)


def test_a_model_that_talks_nonsense_is_asked_ever_more_rarely_and_no_job_is_lost_to_it(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "memorist")
    model = Model(*(BadAnswerError("nonsense") for _ in range(6)))
    worker = worker_of(store, model)
    say(store, *(f"My friend number{number} plays chess." for number in range(10)))
    for _ in range(3):
        worker.step()
        assert not worker.step(), "it rests"
        worker._paused_until = 0
    assert len(model.asked) == 6, "for all together, then for the first alone, three times"
    assert waits(caplog) == [f"memories wait for {seconds}" for seconds in (1, 2, 4)]
    assert sorted(job.attempts for job in store.jobs(ADA)) == [0] * 7 + [1] * 3


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
    press(worker_of(store, Picky()))
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
        press(worker)
        assert len(model.asked) == attempt, "it is tried later, not at once"
        clock.skip(3_600)
    press(worker)
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


def test_a_message_that_extraction_stumbles_over_is_given_up_and_stops_nobody(
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
        press(worker)
        clock.skip(3_600)
    assert texts(store) == ["I live in Berlin."]
    [job] = store.jobs(ADA)
    assert job.dead
    assert job.error == "the model raised ZeroDivisionError"


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
            worker._paused_until = 0
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


def test_a_call_that_ends_in_the_next_hour_lends_it_nothing(
    store: SqliteStore, clock: Clock
) -> None:
    class Late(Model):
        def complete(self, messages: Sequence[Mapping[str, str]], **settings: Any) -> Reply:
            clock.skip(3_600)
            return super().complete(messages, **settings)

    say(store, "I live in Berlin.")
    worker_of(store, Late(), max_tokens=5_000).step()
    assert store.spent() == (0, 0)


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
        worker._paused_until = 0
        clock.skip(3_600)
    assert store.backlog(KINDS) == 0
    assert len(model.asked) == 2


# A message that takes too long


def test_a_message_that_takes_too_long_is_set_aside_and_the_others_go_on(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    seconds = itertools.count()  # each look at the time takes a second
    extraction = Extraction(policy=ALL, seconds_per_message=5)
    worker = Worker(
        store, extraction, kinds=KINDS, clock=store._clock, timer=lambda: float(next(seconds))
    )
    endless = " ".join(f"Sentence number {number} is long." for number in range(20))
    say(store, "I live in Berlin.", endless, "My dog is called Rex.")
    finish(worker)
    say(store, "My cat is called Miez.")
    finish(worker)
    said = ["I live in Berlin.", "My cat is called Miez.", "My dog is called Rex."]
    assert sorted(texts(store)) == said
    [dead] = store.jobs(HOME, dead=True)
    assert dead.error == "a message took more than 5 s of processor time"
    assert (dead.attempts, store.backlog(KINDS)) == (1, 0)
    assert "is set aside" in caplog.text
    assert "Sentence" not in caplog.text


def test_deciding_has_a_time_too_and_waiting_for_a_model_takes_none_of_it(
    store: SqliteStore,
) -> None:
    spent = [0.0]

    class Slow(Model):
        def complete(self, *arguments: Any, **settings: Any) -> Reply:
            spent[0] += 2  # processor time of another thread is not ours; this one's reading is
            return super().complete(*arguments, **settings)

    extraction = Extraction(model=Slow(), policy=ALL, seconds_per_message=1)
    worker = Worker(store, extraction, kinds=KINDS, clock=store._clock, timer=lambda: spent[0])
    say(store, "I live in Berlin.")
    finish(worker)
    assert texts(store) == ["I live in Berlin."]

    def late() -> float:
        spent[0] += 2
        return spent[0]

    worker = Worker(store, extraction, kinds=KINDS, clock=store._clock, timer=late)
    say(store, "I play the viola.")
    finish(worker)
    assert len(store.jobs(HOME, dead=True)) == 1
