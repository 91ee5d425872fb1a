"""The daemon pool: threads for work that may hang. It costs a thread, never the caller."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from memorist.providers import daemon_pool
from memorist.providers.daemon_pool import DaemonPool, Task
from tests.support.waiting import until

SOON = 20.0  # seconds that nothing here takes, on however busy a machine


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Opened at the end, so that no thread hangs for ever."""
    event = threading.Event()
    yield event
    event.set()


def idle(pool: DaemonPool) -> bool:
    return pool._free == pool._threads


def done(pool: DaemonPool, work: Callable[[], object]) -> object:
    task = Task(work)
    pool.start(task)
    assert task.wait(SOON)
    return task.result()


def test_a_task_gives_its_result_and_how_long_it_took() -> None:
    pool, task = DaemonPool(), Task(lambda: 6 * 7)
    assert task.took_ms is None
    pool.start(task)
    assert task.wait(SOON)
    assert task.result() == 42
    assert task.took_ms is not None
    assert 0 <= task.took_ms <= task.elapsed_ms()


def test_a_task_that_panics_ends_neither_its_thread_nor_the_wait_for_it() -> None:
    pool, task = DaemonPool(1), Task(sys.exit)
    pool.start(task)
    assert task.wait(SOON)
    assert type(task.error) is SystemExit
    assert done(pool, lambda: 42) == 42


def test_a_task_gives_its_error_to_whoever_asks() -> None:
    pool, task = DaemonPool(), Task(lambda: 1 // 0)
    pool.start(task)
    assert task.wait(SOON)
    assert isinstance(task.error, ZeroDivisionError)
    assert task.took_ms is not None
    with pytest.raises(ZeroDivisionError):
        task.result()
    assert done(pool, lambda: "the thread goes on") == "the thread goes on"


def test_tasks_of_a_sequence_are_done_in_their_order_by_one_thread() -> None:
    threads: list[int] = []
    tasks = [Task(lambda: threads.append(threading.get_ident())) for _ in range(5)]
    DaemonPool().start(*tasks)
    assert tasks[-1].wait(SOON)
    assert all(task.took_ms is not None for task in tasks)
    assert len(set(threads)) == 1


def test_sequences_are_done_side_by_side() -> None:
    pool, meet = DaemonPool(), threading.Barrier(4)
    tasks = [Task(lambda: meet.wait(SOON)) for _ in range(4)]
    for task in tasks:
        pool.start(task)
    assert all(task.wait(SOON) and task.error is None for task in tasks)


def test_a_task_that_hangs_is_late_and_may_be_asked_again(gate: threading.Event) -> None:
    pool, task = DaemonPool(), Task(lambda: gate.wait())
    pool.start(task)
    assert not task.wait(0.001)
    assert task.took_ms is None
    assert task.elapsed_ms() > 0
    gate.set()
    assert task.wait(SOON)
    assert task.result() is True


def test_while_all_threads_hang_nothing_is_begun_and_nobody_is_kept(gate: threading.Event) -> None:
    pool = DaemonPool(2)
    hung = [Task(lambda: gate.wait()) for _ in range(2)]
    for task in hung:
        pool.start(task)
    late = Task(lambda: "late")
    pool.start(late)
    assert not late.wait(0.001)
    gate.set()
    assert late.wait(SOON)
    assert late.result() == "late"
    assert pool._threads == 2


def test_what_nobody_waits_for_any_more_is_neither_done_nor_kept(gate: threading.Event) -> None:
    ran: list[int] = []
    pool = DaemonPool(2)
    for _ in range(2):
        pool.start(Task(lambda: gate.wait()))
    for number in range(100):
        task = Task(partial(ran.append, number))
        pool.start(task)
        task.drop()
    assert pool._sequences.qsize() <= 3
    last = Task(lambda: ran.append(-1))
    pool.start(last)
    gate.set()
    assert last.wait(SOON)
    assert ran == [-1]
    until(lambda: idle(pool))


def test_many_callers_share_few_threads_and_none_is_forgotten() -> None:
    given: list[int] = []
    pool = DaemonPool(3)
    tasks = [Task(partial(given.append, number)) for number in range(300)]

    def start(mine: list[Task[None]]) -> None:
        for task in mine:
            pool.start(task)

    callers = [threading.Thread(target=start, args=(tasks[first::6],)) for first in range(6)]
    for caller in callers:
        caller.start()
    assert all(task.wait(SOON) for task in tasks)
    assert sorted(given) == list(range(300))
    until(lambda: idle(pool))
    assert pool._threads <= 3


def test_threads_are_used_again() -> None:
    pool, threads = DaemonPool(), set()
    for _ in range(20):
        threads.add(done(pool, threading.get_ident))
        until(lambda: idle(pool))
    assert len(threads) == 1


def test_an_idle_thread_keeps_nothing_of_what_it_did() -> None:
    class Large:
        pass

    pool, task = DaemonPool(), Task(Large)
    pool.start(task)
    assert task.wait(SOON)
    kept = weakref.ref(task.result())
    del task
    until(lambda: idle(pool))
    gc.collect()
    assert kept() is None


def test_close_lets_idle_threads_go_and_the_pool_can_begin_again() -> None:
    pool = DaemonPool()
    thread = done(pool, threading.current_thread)
    assert isinstance(thread, threading.Thread)
    until(lambda: idle(pool))
    pool.close()
    thread.join(SOON)
    assert not thread.is_alive()
    assert done(pool, lambda: "again") == "again"
    pool.close()
    pool.close()


def test_close_does_not_wait_for_a_thread_that_hangs(gate: threading.Event) -> None:
    pool, task = DaemonPool(), Task(lambda: gate.wait())
    pool.start(task)
    pool.close()
    assert task.took_ms is None
    gate.set()
    assert task.wait(SOON)


def test_a_thread_that_was_idle_for_long_goes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_pool, "IDLE_SECONDS", 0.01)
    pool = DaemonPool()
    thread = done(pool, threading.current_thread)
    assert isinstance(thread, threading.Thread)
    thread.join(SOON)
    assert not thread.is_alive()
    assert pool._threads == pool._free == 0
    assert done(pool, lambda: "again") == "again"


FORK = """
import os
from memorist.providers.daemon_pool import DaemonPool, Task

def done(pool, work):
    task = Task(work)
    pool.start(task)
    assert task.wait(20)
    return task.result()

pool = DaemonPool(1)
assert done(pool, os.getpid) == os.getpid()
child = os.fork()
if child == 0:
    os._exit(7 if done(pool, os.getpid) == os.getpid() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert done(pool, os.getpid) == os.getpid()
"""


def test_a_pool_works_in_a_forked_child_and_goes_on_in_its_parent() -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr


def test_a_pool_does_not_keep_the_process_from_ending() -> None:
    hang = "import threading; from memorist.providers.daemon_pool import *; c = DaemonPool(); "
    hang += "c.start(Task(threading.Event().wait)); print('ended')"
    command = [sys.executable, "-c", hang]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "ended\n"


class Circle:
    """Work that knows its own task, as a search does."""

    def __init__(self) -> None:
        self.task = Task(self.work)

    def work(self) -> None:
        pass


@pytest.mark.parametrize("end", [Task.run, Task.drop])
def test_what_is_over_is_freed_at_once_and_not_when_garbage_is_collected(
    end: Callable[[Task[None]], None],
) -> None:
    circle = Circle()
    gone = weakref.ref(circle)
    gc.disable()
    try:
        end(circle.task)
        del circle
        assert gone() is None
    finally:
        gc.enable()


def test_only_native_work_is_waited_for_when_the_process_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    let_go, waits = threading.Event(), list[float]()
    for native in (True, False):
        pool = DaemonPool(native=native)
        pool.start(Task(let_go.wait))
        monkeypatch.setattr("memorist.providers.daemon_pool.time.sleep", waits.append)
        pool.await_exit(0.02)
        assert bool(waits) == native
        waits.clear()
    let_go.set()
