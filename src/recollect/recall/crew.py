"""A crew: threads for what may hang. One that does costs a thread, never the caller."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Task(Generic[T]):
    """Work handed to a crew: its result or its error, and how long it took."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._done = threading.Event()
        self._started = time.perf_counter()
        self._result: T
        self.error: Exception | None = None
        self.took_ms: float | None = None

    def run(self) -> None:
        try:
            self._result = self._work()
        except Exception as error:  # noqa: BLE001 - it is given to whoever asks for the result
            self.error = error
        self.took_ms = self.elapsed_ms()
        self._done.set()

    def elapsed_ms(self) -> float:
        """Milliseconds since it was handed over."""
        return (time.perf_counter() - self._started) * 1_000

    def wait(self, seconds: float | None) -> bool:
        """Whether it is done within so many seconds."""
        return self._done.wait(seconds)

    def result(self) -> T:
        """What the work gave; only when it is done."""
        if self.error is not None:
            raise self.error
        return self._result


class Crew:
    """Up to `size` threads, started when needed. They do not keep the process from ending."""

    def __init__(self, size: int = 16) -> None:
        self._size = size
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._tasks: queue.SimpleQueue[Task[object] | None] = queue.SimpleQueue()
        self._threads = self._free = 0

    def start(self, work: Callable[[], T]) -> Task[T]:
        """Hand work over. While all threads hang, it is never done, and so it is late."""
        if self._pid != os.getpid():  # threads do not cross a fork
            self._begin()
        task = Task(work)
        with self._lock:
            if self._free == 0 and self._threads == self._size:
                return task
            if self._free == 0:
                self._threads += 1
                threading.Thread(target=self._serve, name="recollect-recall", daemon=True).start()
            else:
                self._free -= 1
            self._tasks.put(task)  # type: ignore[arg-type]
        return task

    def close(self) -> None:
        """Let idle threads go."""
        with self._lock:
            for _ in range(self._free):
                self._tasks.put(None)
            self._threads -= self._free
            self._free = 0

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None:
            task.run()
            del task  # an idle thread must not keep what it found
            with self._lock:
                self._free += 1
