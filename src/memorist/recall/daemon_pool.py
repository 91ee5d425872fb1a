"""A crew: threads for what may hang. One that does costs a thread, never the caller."""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
IDLE_SECONDS = 30.0  # after which a thread goes
EXIT_SECONDS = 1.0  # for which the end waits for what was begun


_crews: weakref.WeakSet[DaemonPool] = weakref.WeakSet()


@atexit.register
def _settle_all() -> None:
    """Let threads come back from a model's own code: Python stopping them there is an abort."""
    deadline = time.monotonic() + EXIT_SECONDS
    for crew in list(_crews):
        while crew.is_busy() and time.monotonic() < deadline:
            time.sleep(0.005)


class Task(Generic[T]):
    """Work for a crew: its result or its error, and how long it took.

    It lets go of the work that it need not do any more: work often knows the task, and what
    refers to itself stays in memory until the garbage collector stops everything to look for it.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Callable[[], T] | None = work
        self._done = threading.Event()
        self._started = time.perf_counter()
        self._result: T
        self.error: BaseException | None = None
        self.took_ms: float | None = None
        self.dropped = False

    @property
    def begun(self) -> bool:
        """Whether somebody works on it, or did."""
        return self._work is None and not self.dropped

    def drop(self) -> None:
        """Nobody waits for it any more: if it was not begun, it need not be."""
        self.dropped = True
        self._work = None

    def run(self) -> None:
        """Do the work, and keep what came of it."""
        work, self._work = self._work, None
        if work is None:
            return
        self._started = time.perf_counter()
        try:
            self._result = work()
        except BaseException as error:  # noqa: BLE001 - a model's panic, too, is for who asks
            self.error = error
        self.took_ms = self.elapsed_ms()
        self._done.set()

    def elapsed_ms(self) -> float:
        """Milliseconds since it was begun, or made."""
        return (time.perf_counter() - self._started) * 1_000

    def wait(self, seconds: float | None) -> bool:
        """Whether it is done within so many seconds."""
        return self._done.wait(seconds)

    @property
    def succeeded(self) -> bool:
        """Whether it is done, and gave something."""
        return self.took_ms is not None and self.error is None

    def given(self, otherwise: T) -> T:
        """What the work gave so far, or else `otherwise`."""
        return self._result if self.succeeded else otherwise

    def result(self) -> T:
        """What the work gave; only when it is done."""
        if self.error is not None:
            raise self.error
        return self._result


class DaemonPool:
    """Up to `size` threads, started when needed. They do not keep the process from ending."""

    def __init__(self, size: int = 16) -> None:
        self._size = size
        self._begin()
        _crews.add(self)

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._lanes: queue.SimpleQueue[tuple[Task[Any], ...] | None] = queue.SimpleQueue()
        self._threads = 0
        self._free = 0  # idle threads; below zero, lanes that wait for one

    def start(self, *tasks: Task[Any]) -> None:
        """Have a thread do tasks one after the other, as soon as one is free.

        While all threads hang, they are not begun at all: then they are late.
        """
        if self._pid != os.getpid():  # threads do not cross a fork
            self._begin()
        with self._lock:
            if self._free <= 0 and self._threads < self._size:
                threading.Thread(target=self._serve, name="memorist-recall", daemon=True).start()
                self._threads += 1
                self._free += 1
            self._free -= 1
            self._lanes.put(tasks)
            if self._free < -self._size:
                self._sweep()

    def is_busy(self) -> bool:
        """Whether a thread of this process is at work."""
        return self._pid == os.getpid() and self._threads > max(self._free, 0)

    def close(self) -> None:
        """Let idle threads go; busy ones go when they have been idle for a while."""
        with self._lock:
            for _ in range(self._free):
                self._lanes.put(None)
            self._threads -= max(self._free, 0)
            self._free = min(self._free, 0)

    def _sweep(self) -> None:
        """Take out lanes that nobody waits for any more: while threads hang, they pile up."""
        kept = []
        with contextlib.suppress(queue.Empty):
            while True:
                lane = self._lanes.get_nowait()
                if lane is None or not all(task.dropped for task in lane):
                    kept.append(lane)
                else:
                    self._free += 1
        for lane in kept:
            self._lanes.put(lane)

    def _serve(self) -> None:
        while True:
            try:
                lane = self._lanes.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if self._leave():
                    return
                continue
            if lane is None:
                return
            for task in lane:
                task.run()
            del lane, task  # an idle thread must not keep what it found
            with self._lock:
                self._free += 1

    def _leave(self) -> bool:
        """Whether an idle thread may go: not if something was put down for it just now."""
        with self._lock:
            if self._free <= 0:
                return False
            self._free -= 1
            self._threads -= 1
            return True
