"""The worker process of a server: it makes vectors, memories and summaries, so that requests need
not share a processor with that.

The server holds one end of a pipe. A byte in it says that there is something to do; when the last
server process is gone, however it ended, the pipe ends, and so does the worker. What it had in hand
is free for the next one when its leases run out.
"""

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any, Self

from memorist import metrics
from memorist.config import Settings
from memorist.errors import MemoristError
from memorist.runtime import open_embedder, open_extraction, open_runners, open_store, work
from memorist.server.observe import set_up_logging

NICE = 5  # requests go first where processors are few
END_S = 2.0  # that the job at hand may take when the server ends
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0  # before it is started again
LONG_LIFE_S = 60.0  # after which it is started again as soon as at first
_spawn = multiprocessing.get_context("spawn")

log = logging.getLogger("memorist.server")


class WorkerLink:
    """What a server process has of the worker: it wakes it, and knows how it fares."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        # In memory that the processes share: the process id, how often it died, and its counters.
        self.state: Any = _spawn.RawArray("d", 2 + len(metrics.COUNTERS))

    def wake(self) -> None:
        """Have the worker look for jobs now; a full pipe wakes it, too."""
        with contextlib.suppress(OSError):
            os.write(self._pipe.fileno(), b"\n")

    def watch(self) -> None:
        """Show the worker among the metrics of this process."""
        metrics.watch("memorist.worker.up", self.read_up)
        metrics.watch("memorist.worker.deaths", self.read_deaths)
        metrics.add_counters(lambda: self.state[2:])  # of all workers of this server, so far

    @property
    def is_up(self) -> bool:
        """Whether the worker runs."""
        return bool(self.state[0])

    def read_up(self) -> Mapping[str, float]:
        return {"": self.is_up}

    def read_deaths(self) -> Mapping[str, float]:
        """How often it ended though nobody had asked it to."""
        return {"": self.state[1]}


class WorkerProcess:
    """Runs the worker beside a server, and starts it again when it ends."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # Kept here too: what is in the pipe when one worker dies is for the next.
        self._read_end, self._write_end = _spawn.Pipe(duplex=False)
        os.set_blocking(self._write_end.fileno(), False)
        self.link = WorkerLink(self._write_end)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memorist-worker", daemon=True)
        self._child: Any = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._write_end.close()
        self._thread.join(2 * END_S)
        if self._thread.is_alive():
            self._child.kill()
        self._read_end.close()

    def _watch(self) -> None:
        """Start a worker, wait for its end, and so on, ever more slowly if it dies young."""
        pause_s = FIRST_PAUSE_S
        while not self._closing.is_set():
            began = time.monotonic()
            arguments = self._settings, self._read_end, self.link.state
            self._child = _spawn.Process(target=run_worker, args=arguments, daemon=True)
            with without_interrupts():
                self._child.start()
            self.link.state[0] = self._child.pid
            self._child.join()
            self.link.state[0] = 0
            if self._closing.is_set():
                return
            self.link.state[1] += 1
            if time.monotonic() - began > LONG_LIFE_S:
                pause_s = FIRST_PAUSE_S
            code = self._child.exitcode
            if code not in (0, -signal.SIGTERM):  # a service manager ends the whole group at once
                log.warning("the worker ended (%s); it is started again in %g s", code, pause_s)
            self._closing.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


@contextlib.contextmanager
def without_interrupts() -> Iterator[None]:
    """Processes that are started within get no Ctrl-C of a terminal: the server ends them."""
    resource_tracker.ensure_running()  # when it is started, it unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run_worker(settings: Settings, pipe: Connection, state: Any) -> None:
    """Do the jobs until the pipe ends or a signal comes; the main function of the process."""
    signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    os.nice(NICE)
    set_up_logging(settings)
    try:
        _work(settings, pipe, state, signals)
    except MemoristError as error:  # a setting is wrong, or the store is away
        log.error("the worker: %s", error)
        raise SystemExit(1) from None


def _work(settings: Settings, pipe: Connection, state: Any, signals: list[int]) -> None:
    """Do the jobs with a store, an embedder and an extraction of its own."""
    before = list(state[2:])

    def share_counters() -> None:
        state[2:] = [old + new for old, new in zip(before, metrics.counters(), strict=True)]

    embedder = open_embedder(settings.embedder)
    # What a power cut takes of its work is done again: it does not hold the disk for each commit.
    store = open_store(settings.url, "normal", settings.max_message_bytes)
    with contextlib.closing(store):
        runners = open_runners(store, open_extraction(settings), embedder, settings, alone=True)
        listening = pipe, runners[0].wake, signals
        threading.Thread(target=_listen, args=listening, daemon=True).start()
        if not work(runners, share_counters, signals, wait_s=END_S):
            raise SystemExit(1)


def _listen(pipe: Connection, wake: Callable[[], None], signals: list[int]) -> None:
    """Wake the first runner at each byte, and end the process when the last server is gone."""
    while os.read(pipe.fileno(), 65_536):
        wake()
    signals.append(signal.SIGTERM)
