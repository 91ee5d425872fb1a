"""`memorist worker`: makes vectors, memories and summaries of what was stored, until stopped."""

import contextlib
import logging
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Annotated

import typer
from rich.text import Text

from memorist.cli.options import Database, database_url
from memorist.cli.render import errors, escape_controls
from memorist.config import Settings
from memorist.errors import MemoristError
from memorist.lifecycle.settings import DEFAULT_EXTRACTION, Extraction
from memorist.memory import Memory
from memorist.namespaces import Jobs
from memorist.runtime import open_embedder, open_extraction, open_runners, open_store, work

REPORT_SECONDS = 5.0  # between two lines about the queue

Once = Annotated[bool, typer.Option("--once", help="Do all jobs that are due, and end.")]
Calls = Annotated[
    int, typer.Option(min=0, help="How often all workers may ask the model in an hour.")
]
Tokens = Annotated[int, typer.Option(min=0, help="How many tokens that may cost in an hour.")]

log = logging.getLogger("memorist")


def worker(
    db: Database = None,
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
    extraction = open_extraction(settings)
    extraction = replace(extraction, calls_per_hour=calls_per_hour, tokens_per_hour=tokens_per_hour)
    store = open_store(url, settings.durability)
    embedder = open_embedder(settings.embedder)
    runners = open_runners(store, extraction, embedder, settings)
    memory = Memory(store, tenant=settings.tenant, embedder=embedder, extraction=None)
    with memory, _log_on_stderr(), _stop_signals() as signals:
        makers = (settings.model or "rules", settings.embedder)
        log.info("the worker starts; memories by %s, vectors by %s", *makers)
        report = QueueReport(memory.jobs, extraction)
        with report.live or contextlib.nullcontext():
            finished = work(runners, report.show, signals, once=once)
        log.info("the worker has ended; %s", report.line())
    if not finished:
        raise typer.Exit(1)


class QueueReport:
    """What waits, what was given up and what was spent: a live line, or a log line on change."""

    def __init__(self, jobs: Jobs, extraction: Extraction) -> None:
        self._jobs = jobs
        self._extraction = extraction
        self.live = errors.status("") if errors.is_terminal else None
        self._shown_at = float("-inf")
        self._shown = ""

    def show(self) -> None:
        """Show the line, if it is time to and it changed."""
        if time.monotonic() - self._shown_at < REPORT_SECONDS:
            return
        self._shown_at, line = time.monotonic(), self.line()
        if self.live is not None:
            self.live.update(Text(line))
        elif line != self._shown:
            log.info(line)
        self._shown = line

    def line(self) -> str:
        """The state of the queue now."""
        try:
            waiting = self._jobs.waiting()
            spent = self._spent() if self._extraction.model else ""
        except MemoristError as error:
            return f"the store does not answer: {error}"
        dead = waiting.pop("dead")
        kinds = ", ".join(f"{kind} {count}" for kind, count in waiting.items())
        return f"waiting: {kinds}; dead: {dead}{spent}"

    def _spent(self) -> str:
        (calls, tokens), limits = self._jobs.spent(), self._extraction
        return (
            f"; this hour: {calls:,} of {limits.calls_per_hour:,} calls, "
            f"{tokens:,} of {limits.tokens_per_hour:,} tokens"
        )


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
