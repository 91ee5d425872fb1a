"""CircuitBreaker: calls to the memory that may fail or hang without stopping the agent."""

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from memorist.errors import MemoristError
from memorist.forks import fork_safe
from memorist.providers.daemon_pool import DaemonPool, Task
from memorist.records.values import check_seconds

PATIENCE_S = 10.0
TIMEOUTS_TO_OPEN = 2  # in a row: a single slow call proves nothing
FIRST_REST_S, LONGEST_REST_S = 1.0, 30.0

T = TypeVar("T")
log = logging.getLogger("memorist.agents")


class CircuitBreaker:
    """Runs calls in threads, waits `patience_s` for each, and skips calls while the memory hangs.

    Two timeouts of one kind of call, with no success of that kind between them, open it: calls
    are skipped for a second, and for twice as long after each further timeout, up to half a
    minute. A call of that kind that succeeds, even late, closes it again.
    """

    def __init__(
        self, patience_s: float = PATIENCE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        check_seconds("patience_s", patience_s)
        self._pool = DaemonPool()
        self._patience_s = patience_s
        self._clock = clock
        self._lock = fork_safe(threading.Lock())
        self._timeouts: dict[str, int] = {}  # by kind of call: reads may work where writes hang
        self._open_until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether calls are skipped at the moment."""
        return self._clock() < self._open_until

    def start(self, what: str, work: Callable[[], T]) -> Task[T]:
        """Begin work of a kind whose result is taken later."""

        def run() -> T:
            result = work()
            with self._lock:
                if self._timeouts.pop(what, 0) >= TIMEOUTS_TO_OPEN:
                    self._open_until = 0.0
            return result

        task = Task(run)
        self._pool.start(task)
        return task

    def run(self, what: str, work: Callable[[], T], otherwise: T, failed: dict[str, str]) -> T:
        """The result of the work; else `otherwise`, with the reason in `failed`."""
        if self.is_open:
            failed[what] = "skipped, because the memory did not answer in time before"
            return otherwise
        task = self.start(what, work)
        if not task.wait(self._patience_s):
            task.drop()
            with self._lock:
                self._timeouts[what] = self._timeouts.get(what, 0) + 1
                if (further := self._timeouts[what] - TIMEOUTS_TO_OPEN) >= 0:
                    rest_s = min(FIRST_REST_S * 2 ** min(further, 16), LONGEST_REST_S)
                    self._open_until = self._clock() + rest_s
        return self.take(what, task, otherwise, failed)

    def take(self, what: str, task: Task[T], otherwise: T, failed: dict[str, str]) -> T:
        """The result of a task if it has one by now; else `otherwise`, with the reason."""
        if task.succeeded:
            return task.result()
        failed[what] = reason_of(task.error) if task.error else "the memory did not answer in time"
        log.warning("the agent goes on without its memory (%s): %s", what, failed[what])
        return otherwise


def reason_of(error: BaseException) -> str:
    """Why something failed; without the text of other libraries' errors, which may quote a user."""
    kind = type(error).__name__
    return f"{kind}: {error}" if isinstance(error, MemoristError) else kind
