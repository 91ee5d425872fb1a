"""`memorist worker`: makes vectors, memories and summaries of what was stored, until stopped."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated

import typer
from rich.text import Text

from memorist.cli.options import LocalDatabase, database_url
from memorist.cli.render import errors, escape_controls
from memorist.config import Settings
from memorist.context.compression.summarizer import Summarizer
from memorist.errors import MemoristError
from memorist.lifecycle.settings import DEFAULT_EXTRACTION, Extraction
from memorist.lifecycle.worker import Worker
from memorist.memory import Memory
from memorist.namespaces import Jobs
from memorist.providers.chat_model import open_model
from memorist.recall.indexer import Indexer
from memorist.runtime import open_embedder, open_store, open_summarizer

POLL_SECONDS = 0.1  # between two looks at the signals
REPORT_SECONDS = 5.0  # between two lines about the queue
COUNT_SECONDS = 60.0  # between two counts of dead jobs, which cost more
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0

Runner = Indexer | Worker | Summarizer
Once = Annotated[bool, typer.Option("--once", help="Do all jobs that are due, and end.")]
Calls = Annotated[
    int, typer.Option(min=0, help="How often all workers may ask the model in an hour.")
]
Tokens = Annotated[int, typer.Option(min=0, help="How many tokens that may cost in an hour.")]

log = logging.getLogger("memorist")


def worker(
    db: LocalDatabase = None,
    once: Once = False,
    calls_per_hour: Calls = DEFAULT_EXTRACTION.calls_per_hour or 0,
    tokens_per_hour: Tokens = DEFAULT_EXTRACTION.tokens_per_hour or 0,
) -> None:
    """Make vectors, memories and summaries of what any process has stored.

    MEMORIST_MODEL, _MODEL_URL and _MODEL_KEY name a model; without one, rules make the memories.
    SIGINT and SIGTERM end it after the current job.
    """
    settings = Settings.from_environment()
    url = database_url(db, settings, "worker")
    model = None
    if settings.model:
        model = open_model(settings.model, settings.model_url, settings.model_key)
    extraction = Extraction(
        model=model, calls_per_hour=calls_per_hour, tokens_per_hour=tokens_per_hour
    )
    store = open_store(url, settings.durability)
    embedder = open_embedder(settings.embedder)
    runners: list[Runner] = [open_summarizer(store, extraction)]
    if embedder is None:  # vectors stay queued for a process that has an embedder
        runners.append(Worker(store, extraction, kinds=("embed", "derive")))
    else:
        runners += [Indexer(store, embedder), Worker(store, extraction)]
    memory = Memory(store, tenant=settings.tenant, embedder=embedder, extraction=None)
    with memory, _log_on_stderr(), _stop_signals() as signals:
        makers = (settings.model or "rules", settings.embedder)
        log.info("the worker starts; memories by %s, vectors by %s", *makers)
        report = QueueReport(memory.jobs, extraction)
        threads = JobThreads(runners)
        with contextlib.closing(threads), report:
            while not (signals or threads.broken or (once and threads.idle)):
                report.show()
                time.sleep(POLL_SECONDS)
            if signals:
                log.info("the worker ends after the current job")
        log.info("the worker has ended; %s", report.line())
    if threads.broken:
        raise typer.Exit(1)


class JobThreads:
    """A thread for each job runner, until closed."""

    def __init__(self, runners: Sequence[Runner]) -> None:
        self.broken = False  # whether a thread died of an unexpected error
        self._runners = runners
        self._closing = threading.Event()
        self._last_work = object()
        self._idle_since: dict[Runner, object] = {}
        self._threads = [
            threading.Thread(target=self._run, args=(runner,), daemon=True) for runner in runners
        ]
        for thread in self._threads:
            thread.start()

    @property
    def idle(self) -> bool:
        """Whether no runner finds a job, having looked after the last one that any of them did."""
        return all(self._idle_since.get(runner) is self._last_work for runner in self._runners)

    def close(self) -> None:
        """End after the current jobs; the others that were taken are given back."""
        self._closing.set()
        for runner in self._runners:
            runner.stop()
        for thread in self._threads:
            thread.join()
        for runner in self._runners:
            runner.close()

    def _run(self, runner: Runner) -> None:
        pause = FIRST_PAUSE
        try:
            while not self._closing.is_set():
                if self._step(runner):
                    pause = FIRST_PAUSE
                else:
                    self._closing.wait(pause)
                    pause = min(pause * 2, LONGEST_PAUSE)
        finally:
            self.broken |= not self._closing.is_set()

    def _step(self, runner: Runner) -> bool:
        before = self._last_work
        try:
            worked = runner.step()
        except MemoristError as error:
            log.warning("paused: %s", error)
            worked = False
        if worked:
            self._last_work = object()
        else:
            self._idle_since[runner] = before
        return worked


class QueueReport:
    """What waits, what was given up and what was spent: a live line, or a log line on change."""

    def __init__(self, jobs: Jobs, extraction: Extraction) -> None:
        self._jobs = jobs
        self._thinking = extraction
        self._live = errors.status("") if errors.is_terminal else None
        self._shown_at = self._counted_at = float("-inf")
        self._shown = ""
        self._dead = 0

    def show(self) -> None:
        """Show the line, if it is time to and it changed."""
        if time.monotonic() - self._shown_at < REPORT_SECONDS:
            return
        self._shown_at, line = time.monotonic(), self.line()
        if self._live is not None:
            self._live.update(Text(line))
        elif line != self._shown:
            log.info(line)
        self._shown = line

    def line(self) -> str:
        """The state of the queue now."""
        try:
            waiting = self._jobs.waiting()
            if time.monotonic() - self._counted_at > COUNT_SECONDS:
                self._counted_at, self._dead = time.monotonic(), self._jobs.dead()
            spent = self._spent() if self._thinking.model else ""
        except MemoristError as error:
            return f"the store does not answer: {error}"
        kinds = ", ".join(f"{kind} {count}" for kind, count in waiting.items())
        return f"waiting: {kinds}; dead: {self._dead}{spent}"

    def _spent(self) -> str:
        (calls, tokens), limits = self._jobs.spent(), self._thinking
        return (
            f"; this hour: {calls:,} of {limits.calls_per_hour:,} calls, "
            f"{tokens:,} of {limits.tokens_per_hour:,} tokens"
        )

    def __enter__(self) -> None:
        if self._live is not None:
            self._live.start()

    def __exit__(self, *_: object) -> None:
        self._counted_at = float("-inf")
        if self._live is not None:
            self._live.stop()


@contextlib.contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """A list that is filled when the process is asked to end; asked twice, it ends at once."""
    received: list[int] = []

    def receive(number: int, _: object) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)  # and nothing else: a lock taken here may be held by our thread

    before = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _StderrHandler(logging.Handler):
    """Shows log records on standard error, each with its time."""

    def emit(self, record: logging.LogRecord) -> None:
        style = "yellow" if record.levelno >= logging.WARNING else ""
        at = datetime.fromtimestamp(record.created).strftime("%H:%M:%S ")
        line = Text.assemble((at, "dim"), (escape_controls(record.getMessage()), style))
        errors.print(line, soft_wrap=True)


@contextlib.contextmanager
def _log_on_stderr() -> Iterator[None]:
    handler, level = _StderrHandler(), log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
