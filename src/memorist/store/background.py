"""A thread that does what waits in the queue, and sleeps while nothing does."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence

from memorist.errors import MemoristError
from memorist.store.base import Store

LONGEST_PAUSE = 15.0
EXIT_SECONDS = 5.0  # for which the end waits for a step that was begun
PATIENCE_SECONDS = 0.1  # for which work steps aside
GATHER_SECONDS = 0.05  # what is stored together is worked on together, and writers go first

log = logging.getLogger("memorist")


_running: weakref.WeakSet[Background] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """Stop before Python does: a thread it stops inside a model's own code ends in an abort."""
    deadline = time.monotonic() + EXIT_SECONDS
    running = list(_running)
    for one in running:
        one.close(wait_s=0)
    for one in running:
        one.close(wait_s=max(deadline - time.monotonic(), 0))


class Courtesy:
    """Lets work in the background step aside while somebody waits for an answer.

    Python runs one thread at a time and takes its time to hand over: whoever answers holds
    this as a context, and whoever works asks `wait` between two pieces of work.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answering = 0
        self._free = threading.Event()
        self._free.set()

    def __enter__(self) -> None:
        with self._lock:
            self._answering += 1
            self._free.clear()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._answering -= 1
            if not self._answering:
                self._free.set()

    def wait(self) -> None:
        """Go on when nobody waits any more, or at any rate soon."""
        self._free.wait(PATIENCE_SECONDS)


class Background:
    """Calls `step` again and again: at once while it says that there was work, else ever later."""

    def __init__(self, step: Callable[[], bool], work: str) -> None:
        self._step = step
        self._work = work
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self.closing = False

    def wake(self) -> None:
        """There may be work."""
        self.start()
        self._woken.set()

    def start(self) -> None:
        """See to it that the thread runs."""
        if self._pid != os.getpid():  # a fork has no threads, and locks that they may have held
            self._pid, self._thread = os.getpid(), None
            self._woken, self._lock = threading.Event(), threading.Lock()
        if not self._runs():
            self._begin()

    def wait_for(self, store: Store, kinds: Sequence[str], timeout_s: float | None) -> int:
        """Wait until no job of these kinds is left; return how many are."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self.wake()
        while left := store.backlog(kinds):
            if self.closing or (deadline is not None and time.monotonic() >= deadline):
                return left
            time.sleep(0.05)
        return 0

    def close(self, wait_s: float = EXIT_SECONDS) -> None:
        """Stop after the step at hand; what is left stays in the queue."""
        self.closing = True
        if self._pid != os.getpid():
            return
        self._woken.set()
        with self._lock:  # one that is just being begun is waited for too
            thread = self._thread
        if thread is not None:
            thread.join(timeout=wait_s)

    def _runs(self) -> bool:
        thread = self._thread
        return thread is not None and thread.is_alive()

    def _begin(self) -> None:
        with self._lock:
            if self.closing or self._runs():
                return
            self._thread = threading.Thread(
                target=self._run, name=f"memorist-{self._work}", daemon=True
            )
            self._thread.start()
            _running.add(self)

    def _run(self) -> None:
        pause = GATHER_SECONDS
        while not self.closing:
            try:
                worked = self._step()
            except MemoristError as error:
                if not self.closing:
                    log.warning("%s pauses: %s", self._work, error)
                worked = False
            pause = GATHER_SECONDS if worked else min(pause * 2, LONGEST_PAUSE)
            if not worked and self._woken.wait(pause):
                self._woken.clear()
                pause = GATHER_SECONDS
                time.sleep(pause)
