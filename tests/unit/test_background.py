"""The background: a thread that works while there is work, in whichever process it finds itself."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from memorist import Message, StoreError
from memorist.records.log import Job
from memorist.records.scope import Scope
from memorist.store.runner import JobRunner
from memorist.store.sqlite.store import SqliteStore
from tests.support.waiting import until


class Runner(JobRunner):
    """A runner whose steps are a function's."""

    name = "testing"

    def __init__(self, step: Callable[[], bool]) -> None:
        super().__init__(SqliteStore(":memory:"), ())
        self.step = step  # type: ignore[method-assign]


def idle(steps: list[int]) -> Callable[[], bool]:
    """A step that finds nothing to do, and notes in which process."""

    def step() -> bool:
        steps.append(os.getpid())
        return False

    return step


def test_it_works_for_as_long_as_there_is_work_and_then_sleeps() -> None:
    left = [1] * 100
    background = Runner(lambda: bool(left and left.pop()))
    background.wake()
    until(lambda: not left)
    background.close()
    thread = background._thread
    assert thread is not None
    assert not thread.is_alive()


def test_it_is_woken_from_a_long_sleep() -> None:
    steps: list[int] = []
    background = Runner(idle(steps))
    background.wake()
    time.sleep(1.0)  # by now its pauses are long
    slept = len(steps)
    background.wake()
    until(lambda: len(steps) > slept)
    background.close()
    assert slept < 10


def test_an_error_of_ours_is_told_and_the_thread_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "memorist")
    steps: list[int] = []

    def step() -> bool:
        steps.append(1)
        if len(steps) < 3:
            raise StoreError("the disk is away")
        return False

    background = Runner(step)
    background.wake()
    until(lambda: len(steps) >= 3)
    background.close()
    assert [record.getMessage() for record in caplog.records] == [
        "testing pauses: the disk is away"
    ] * 2


def test_a_thread_that_fell_over_is_replaced_at_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fallen: list[type[BaseException] | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda told: fallen.append(told.exc_type))
    steps: list[int] = []

    def step() -> bool:
        steps.append(1)
        if len(steps) == 1:
            raise ZeroDivisionError
        return False

    background = Runner(step)
    background.wake()
    until(lambda: bool(fallen))
    until(lambda: not background.is_running())
    background.wake()
    until(lambda: len(steps) > 1)
    background.close()
    assert fallen == [ZeroDivisionError]


def test_it_runs_once_however_many_wake_it() -> None:
    inside, most = threading.Semaphore(1), []

    def step() -> bool:
        most.append(inside.acquire(blocking=False))
        time.sleep(0.001)
        inside.release()
        return False

    background = Runner(step)
    callers = [threading.Thread(target=background.wake) for _ in range(50)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    until(lambda: bool(most))
    background.close()
    assert all(most)


def test_after_close_nothing_wakes_it() -> None:
    steps: list[int] = []
    background = Runner(idle(steps))
    background.close()
    background.wake()
    assert background._thread is None
    assert steps == []


def test_waiting_ends_with_the_work_the_time_or_the_end(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "memory.db") as store:
        runner = Releasing(store, ("embed",))
        assert runner.catch_up() == 0
        store.append(Scope(user="ada", session="talk"), [Message("user", "hello")])
        assert runner.catch_up(0) == 1
        assert runner.catch_up(0.1) == 1
        runner.close()
        assert runner.catch_up() == 1
        [job] = store.claim(kinds=("embed",), lease_seconds=60)
        assert job.attempts == 0, "as if it had never been taken"


class Releasing(JobRunner):
    """Gives every job back."""

    def do(self, jobs: Sequence[Job]) -> None:
        self.release(jobs)


def in_a_fork(work: Callable[[], bool]) -> int:
    """The exit code of a forked child that does some work: 0 if it says so, in ten seconds."""
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    status = 1
    try:
        signal.alarm(10)
        status = 0 if work() else 2
    finally:
        os._exit(status)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("held", [False, True])
def test_a_forked_child_gets_a_thread_of_its_own(held: bool) -> None:
    steps: list[int] = []
    background = Runner(idle(steps))
    background.wake()
    until(lambda: bool(steps))

    def work() -> bool:
        background.wake()
        until(lambda: os.getpid() in steps)
        background.close()
        return not background.is_running()

    locks = [background._lock, background._woken._cond] if held else []  # type: ignore[attr-defined]
    for lock in locks:  # as another thread might at the moment of a fork
        lock.acquire()
    try:
        assert in_a_fork(work) == 0
    finally:
        for lock in locks:
            lock.release()
    before = len(steps)
    background.wake()
    until(lambda: len(steps) > before)
    background.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_may_close_what_its_parent_uses() -> None:
    steps: list[int] = []
    background = Runner(idle(steps))
    background.wake()
    until(lambda: bool(steps))

    def work() -> bool:
        background.close()
        return True

    with background._woken._cond:  # type: ignore[attr-defined]
        assert in_a_fork(work) == 0
    before = len(steps)
    background.wake()
    until(lambda: len(steps) > before)
    background.close()
