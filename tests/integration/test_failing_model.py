"""A model's server in 13 kinds of trouble: nothing said is lost, and all is made up for later."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memorist import Memory
from memorist.lifecycle import worker as working
from memorist.lifecycle.settings import Extraction, Policy
from memorist.providers.openai_chat import OpenAIChat
from memorist.records.log import MAX_ATTEMPTS
from tests.support.model_server import FAILURES, ModelServer

SAID = [f"My friend Zebulon{number} plays the viola in Bonn." for number in range(20)]
SECRET_WORDS = ("Zebulon", "viola", "Bonn")
CALLS, TOKENS = 400, 600_000
KINDS = ("embed", "derive")
BAD_ANSWERS = ("garbage", "truncated", "empty", "wrong_shape", "wrong_types", "nan", "hostile")


class Clock:
    """The time of day, ahead by as much as it is told."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def skip(self, seconds: float) -> None:
        self.ahead += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(byte_every_s=0.02, retry_after_s=0.2) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits here for seconds; that rests grow is for the worker's own tests."""
    monkeypatch.setattr(working, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(working, "LONGEST_PAUSE", 0.4)


def extraction_with(server: ModelServer, calls: int = CALLS) -> Extraction:
    model = OpenAIChat("any", url=server.url, max_bytes=1_000_000)
    return Extraction(
        model=model,
        timeout_s=0.5,
        calls_per_hour=calls,
        tokens_per_hour=TOKENS,
        policy=Policy(share=1.0, alike=1.01),
        max_tokens=400,
    )


def wait_for(memory: Memory, clock: Clock, seconds: float) -> None:
    """Let the worker do what it can; jobs that are to be tried later are due soon."""
    deadline = time.monotonic() + seconds
    while memory.store.backlog(KINDS) and time.monotonic() < deadline:
        calls, tokens = memory.store.spent()
        assert 0 <= calls <= CALLS
        assert 0 <= tokens <= TOKENS
        clock.skip(5)
        memory.jobs.catch_up(0.1)


@pytest.mark.parametrize("mode", FAILURES)
def test_what_was_said_is_kept_and_thought_about_when_the_model_recovers(
    tmp_path: Path, server: ModelServer, clock: Clock, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    caplog.set_level(logging.DEBUG)
    server.mode = mode  # type: ignore[assignment]
    with Memory(
        tmp_path / "memory.db", embedder=None, extraction=extraction_with(server), clock=clock
    ) as memory:
        for number, text in enumerate(SAID):
            memory.remember(text, user="ada", session=f"talk{number % 4}")
        wait_for(memory, clock, 1.5)
        assert server.requests, "it was asked"
        assert [message.text for message in memory.history(user="ada")] == SAID
        assert memory.memories.list(user="ada") == []
        errors = [job.error for job in memory.jobs.list(user="ada") if job.error]
        server.mode = "ok"
        wait_for(memory, clock, 20)  # a bad answer may still be on its way
        for job in memory.jobs.list(user="ada", dead=True):
            memory.jobs.retry(job.id, user="ada")
        wait_for(memory, clock, 20)
        assert memory.store.backlog(KINDS) == 0
        assert memory.jobs.list(user="ada", dead=True) == []
        assert [message.text for message in memory.history(user="ada")] == SAID
        assert sorted(item.text for item in memory.memories.list(user="ada")) == sorted(SAID)
        check_words([*errors, caplog.text])
        if mode in BAD_ANSWERS:
            assert errors
    assert memory.extraction is not None


def check_words(told: list[str]) -> None:
    """What users said is in no error and in no log."""
    assert not [word for word in SECRET_WORDS for text in told if word in text]


def test_an_answer_that_is_never_good_is_given_up_in_the_end(
    tmp_path: Path, server: ModelServer, clock: Clock
) -> None:
    server.mode = "garbage"
    with Memory(
        tmp_path / "memory.db", embedder=None, extraction=extraction_with(server), clock=clock
    ) as memory:
        memory.remember(SAID[0], user="ada")
        wait_for(memory, clock, 20)
        [job] = memory.jobs.list(user="ada", dead=True)
        assert job.attempts == len(server.requests) == MAX_ATTEMPTS
        assert job.error
        check_words([job.error])


@pytest.mark.parametrize("mode", ["ok", "500", "garbage", "hang"])
def test_no_more_calls_reach_the_server_than_the_hour_allows(
    tmp_path: Path, server: ModelServer, clock: Clock, mode: str
) -> None:
    server.mode = mode  # type: ignore[assignment]
    beginning = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    clock.ahead = beginning - datetime.now(UTC)
    with Memory(
        tmp_path / "memory.db", embedder=None, extraction=extraction_with(server, 3), clock=clock
    ) as memory:
        for number, text in enumerate(SAID):
            memory.remember(text, user="ada", session=f"talk{number}")
        for hour in (1, 2):
            deadline = time.monotonic() + 10
            while len(server.requests) < 3 * hour and time.monotonic() < deadline:
                memory.jobs.catch_up(0.05)
            memory.jobs.catch_up(0.5)
            assert len(server.requests) == 3 * hour
            assert memory.store.spent()[0] == 3
            clock.skip(3_600)


def test_a_server_that_takes_no_schema_is_not_asked_beyond_the_budget_for_long(
    tmp_path: Path, clock: Clock
) -> None:
    with (
        ModelServer(takes_schema=False) as server,
        Memory(
            tmp_path / "memory.db",
            embedder=None,
            extraction=extraction_with(server, 3),
            clock=clock,
        ) as memory,
    ):
        for number, text in enumerate(SAID):
            memory.remember(text, user="ada", session=f"talk{number}")
        memory.jobs.catch_up(1.5)
        assert len(server.requests) == 4, "the first was refused, and cost nothing"
