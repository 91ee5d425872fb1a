"""The circuit breaker: when calls to a memory that hangs are skipped, and when they go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from memorist.agents.circuit_breaker import CircuitBreaker
from memorist.errors import StoreError


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(patience_s=0.05, clock=clock)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    gate = threading.Event()
    yield gate
    gate.set()


def hang(breaker: CircuitBreaker, gate: threading.Event) -> str:
    """Why a call that waits for the gate failed."""
    failed: dict[str, str] = {}
    assert breaker.run("store", lambda: gate.wait(60), False, failed) is False
    return failed["store"]


def test_one_slow_call_does_not_open_it(breaker: CircuitBreaker, gate: threading.Event) -> None:
    assert hang(breaker, gate) == "the memory did not answer in time"
    assert not breaker.is_open


def test_it_rests_longer_after_each_further_timeout(
    breaker: CircuitBreaker, clock: Clock, gate: threading.Event
) -> None:
    hang(breaker, gate)
    for rest_s in (1, 2, 4, 8, 16, 30, 30):
        assert hang(breaker, gate) == "the memory did not answer in time"
        assert "skipped" in hang(breaker, gate)
        clock.now += rest_s - 0.5
        assert breaker.is_open
        clock.now += 0.5
        assert not breaker.is_open


def test_a_late_success_closes_it(breaker: CircuitBreaker, gate: threading.Event) -> None:
    hang(breaker, gate)
    task = breaker.start("store", lambda: gate.wait(60))
    hang(breaker, gate)
    assert breaker.is_open
    gate.set()
    assert task.wait(60)
    assert not breaker.is_open


def test_errors_do_not_open_it(breaker: CircuitBreaker) -> None:
    def fail() -> bool:
        raise StoreError("the disk is full")

    for _ in range(5):
        failed: dict[str, str] = {}
        assert not breaker.run("store", fail, False, failed)
        assert failed["store"] == "StoreError: the disk is full"
    assert not breaker.is_open


def test_reads_that_work_do_not_hide_that_writes_hang(
    breaker: CircuitBreaker, gate: threading.Event
) -> None:
    for _ in range(2):
        hang(breaker, gate)
        if not breaker.is_open:
            assert breaker.run("recall", lambda: "hits", "", {}) == "hits"
    assert breaker.is_open
