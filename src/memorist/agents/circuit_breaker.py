"""Careful: work on the memory that may fail or hang, and never takes the agent with it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, MutableMapping
from typing import TypeVar

from memorist.errors import MemoristError
from memorist.recall.daemon_pool import DaemonPool, Task

PATIENCE_SECONDS = 5.0
REST_SECONDS = 30.0  # after a hang, the memory is left alone for so long

T = TypeVar("T")
log = logging.getLogger("memorist.agents")


class Careful:
    """Runs work in threads, waits so long and no longer, and notes what went wrong."""

    def __init__(self, patience_s: float = PATIENCE_SECONDS, rest_s: float = REST_SECONDS) -> None:
        self._pool = DaemonPool()
        self._patience_s = patience_s
        self._rest_s = rest_s
        self._resting_until = 0.0

    def start(self, work: Callable[[], T]) -> Task[T]:
        """Begin work that somebody will ask for later."""
        task = Task(work)
        self._pool.start(task)
        return task

    def run(
        self, what: str, work: Callable[[], T], otherwise: T, failed: MutableMapping[str, str]
    ) -> T:
        """What the work gives, or else `otherwise`, and `failed` says why."""
        if time.monotonic() < self._resting_until:
            failed[what] = "the memory did not answer a while ago, and is left alone for now"
            return otherwise
        task = self.start(work)
        if not task.wait(self._patience_s):
            task.drop()
            self._resting_until = time.monotonic() + self._rest_s
        return self.take(what, task, otherwise, failed)

    def take(self, what: str, task: Task[T], otherwise: T, failed: MutableMapping[str, str]) -> T:
        """What a task gave, if it is done and gave anything."""
        if task.succeeded:
            return task.result()
        failed[what] = reason_of(task.error) if task.error else "the memory did not answer in time"
        log.warning("the agent goes on without its memory (%s): %s", what, failed[what])
        return otherwise


def reason_of(error: BaseException) -> str:
    """Why, in our own words: those of others may quote what a user said."""
    kind = type(error).__name__
    return f"{kind}: {error}" if isinstance(error, MemoristError) else kind
