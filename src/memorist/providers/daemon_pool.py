"""A pool of daemon threads for work that may hang: it costs a thread, never the caller."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from memorist.forks import ProcessPart, fork_safe

T = TypeVar("T")
IDLE_SECONDS = 30.0  # after which a thread ends


class Task(Generic[T]):
    """Work for a pool: its result or its error, and how long it took.

    A task that is done or dropped forgets its work. Work often refers to its task, and such a
    cycle would stay in memory until the garbage collector pauses the process.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = [work]  # a list, from which one thread alone takes it
        self._undone = threading.Lock()  # held until it is done; takes far less than an Event
        self._undone.acquire()
        self._started = time.perf_counter()
        self._result: T
        self.error: BaseException | None = None
        self.took_ms: float | None = None
        self.dropped = False

    @property
    def begun(self) -> bool:
        """Whether a thread works on it, or did."""
        return not self._work and not self.dropped

    def drop(self) -> None:
        """Give it up: work that has not begun is never done."""
        self.dropped = True
        self._work.clear()

    def run(self) -> None:
        """Do the work, and keep its result or its error."""
        try:
            work = self._work.pop()
        except IndexError:
            return
        self._started = time.perf_counter()
        try:
            self._result = work()
        except BaseException as error:  # noqa: BLE001 - also a model's panic
            self.error = error
        self.took_ms = self.elapsed_ms()
        self._undone.release()

    def elapsed_ms(self) -> float:
        """Milliseconds since the work began or, before that, since the task was made."""
        return (time.perf_counter() - self._started) * 1_000

    def wait(self, seconds: float | None) -> bool:
        """Wait for at most so many seconds; whether it is done."""
        is_done = self._undone.acquire(timeout=-1 if seconds is None else max(seconds, 0))
        if is_done:
            self._undone.release()
        return is_done

    @property
    def succeeded(self) -> bool:
        """Whether it is done, without an error."""
        return self.took_ms is not None and self.error is None

    def result_or(self, otherwise: T) -> T:
        """The result if there is one by now, else `otherwise`."""
        return self._result if self.succeeded else otherwise

    def result(self) -> T:
        """The result of a task that is done; raises its error."""
        if self.error is not None:
            raise self.error
        return self._result


class DaemonPool(ProcessPart):
    """Up to `size` daemon threads, started when needed; each runs a sequence of tasks at a time.

    The process waits for `native` work when it ends: stopped in native code, Python aborts.
    """

    def __init__(self, size: int = 16, *, native: bool = True, name: str = "memorist-pool") -> None:
        self._size = size
        self._native = native
        self._name = name
        self._lock = fork_safe(threading.Lock())
        self._reset()
        self.watch_process()

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:  # threads do not cross a fork
            self._reset()

    def await_exit(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._native and self.is_busy() and time.monotonic() < deadline:
            time.sleep(0.005)

    def _reset(self) -> None:
        self._sequences: queue.SimpleQueue[tuple[Task[Any], ...] | None] = queue.SimpleQueue()
        self._threads = 0
        self._free = 0  # idle threads; below zero, sequences that wait for one

    def start(self, *tasks: Task[Any], at_once: bool = False) -> bool:
        """Have one thread run the tasks one after the other, as soon as a thread is free.

        While all threads hang, no task begins; with `at_once`, it is refused then: False.
        """
        with self._lock:
            if at_once and self._free <= 0 and self._threads >= self._size:
                return False
            if self._free <= 0 and self._threads < self._size:
                threading.Thread(target=self._serve, name=self._name, daemon=True).start()
                self._threads += 1
                self._free += 1
            self._free -= 1
            self._sequences.put(tasks)
            if self._free < -self._size:
                self._sweep()
        return True

    def is_busy(self) -> bool:
        """Whether a thread is at work in this process."""
        return self._threads > max(self._free, 0)

    def close(self) -> None:
        """End idle threads; busy ones end when they have been idle for a while."""
        with self._lock:
            for _ in range(self._free):
                self._sequences.put(None)
            self._threads -= max(self._free, 0)
            self._free = min(self._free, 0)

    def _sweep(self) -> None:
        """Remove sequences of dropped tasks only, which pile up while threads hang."""
        kept = []
        with contextlib.suppress(queue.Empty):
            while True:
                tasks = self._sequences.get_nowait()
                if tasks is None or not all(task.dropped for task in tasks):
                    kept.append(tasks)
                else:
                    self._free += 1
        for tasks in kept:
            self._sequences.put(tasks)

    def _serve(self) -> None:
        while True:
            try:
                tasks = self._sequences.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if self._leave():
                    return
                continue
            if tasks is None:
                return
            for task in tasks:
                task.run()
            del tasks, task  # an idle thread must not keep a result alive
            with self._lock:
                self._free += 1

    def _leave(self) -> bool:
        """Whether an idle thread may end: not if it was just given something to do."""
        with self._lock:
            if self._free <= 0:
                return False
            self._free -= 1
            self._threads -= 1
            return True
