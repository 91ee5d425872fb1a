"""`memorist worker`: vectors and memories for what was stored, until it is told to stop."""

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

from memorist.cli.common import Database, errors, harmless
from memorist.cli.jobs import dead_jobs
from memorist.config import Settings
from memorist.context.compression.summarizer import Summarizer
from memorist.errors import MemoristError
from memorist.lifecycle.settings import DEFAULT_EXTRACTION, Extraction
from memorist.lifecycle.worker import Worker
from memorist.providers.chat_model import open_model
from memorist.providers.embedder import Embedder
from memorist.recall.indexer import Indexer
from memorist.runtime import open_embedder, open_store, open_summarizer, waiting
from memorist.store.base import Store
from memorist.store.job_runner import extraction_kinds

LOOK_SECONDS = 0.1  # between two looks at the signals
TELL_SECONDS = 5.0  # between two lines about the backlog
COUNT_SECONDS = 60.0  # between two counts of dead jobs: every user is asked
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0

Helper = Indexer | Worker | Summarizer
Once = Annotated[bool, typer.Option("--once", help="Do all that is due, and end.")]
Calls = Annotated[int, typer.Option(min=0, help="How often all workers may ask the model.")]
Tokens = Annotated[int, typer.Option(min=0, help="How many tokens that may cost.")]

log = logging.getLogger("memorist")


def worker(
    db: Database = None,
    once: Once = False,
    calls_per_hour: Calls = DEFAULT_EXTRACTION.calls_per_hour or 0,
    tokens_per_hour: Tokens = DEFAULT_EXTRACTION.tokens_per_hour or 0,
) -> None:
    """Make vectors, memories and summaries of what was stored, by any process, on any machine.

    MEMORIST_MODEL, _MODEL_URL and _MODEL_KEY name a model; without, rules do it.
    SIGINT and SIGTERM end it after the job at hand.
    """
    settings = Settings.from_environment()
    named = (settings.model, settings.model_url, settings.model_key)
    extraction = Extraction(
        model=open_model(*named) if settings.model else None,
        calls_per_hour=calls_per_hour,
        tokens_per_hour=tokens_per_hour,
    )
    store = open_store(settings.url if db is None else db, settings.durability)
    embedder = open_embedder(settings.embedder)
    with contextlib.closing(store), _log_shown(), _told_to_stop() as told:
        how = settings.model or "rules"
        log.info("the worker begins; memories by %s, vectors by %s", how, settings.embedder)
        report = Report(store, embedder, extraction)
        shift = Shift(_helpers(store, embedder, extraction))
        with contextlib.closing(shift), report:
            while not (told or shift.broken or (once and shift.idle)):
                report.tell()
                time.sleep(LOOK_SECONDS)
            if told:
                log.info("the worker ends after the job at hand")
        log.info("the worker has ended; %s", report.line())
    if shift.broken:
        raise typer.Exit(1)


def _helpers(store: Store, embedder: Embedder | None, extraction: Extraction) -> list[Helper]:
    if embedder is None:
        kinds = extraction_kinds(has_embedder=False)
        workers: list[Helper] = [Worker(store, extraction, kinds=kinds)]
    else:
        workers = [Indexer(store, embedder), Worker(store, extraction)]
    return [*workers, open_summarizer(store, extraction)]


class Shift:
    """A thread for each helper, at work until the shift is closed."""

    def __init__(self, helpers: Sequence[Helper]) -> None:
        self.broken = False  # whether a thread died of an error that nobody foresaw
        self._helpers = helpers
        self._over = threading.Event()
        self._last_work = object()
        self._idle_since: dict[Helper, object] = {}
        self._threads = [
            threading.Thread(target=self._work, args=(helper,), daemon=True) for helper in helpers
        ]
        for thread in self._threads:
            thread.start()

    @property
    def idle(self) -> bool:
        """Whether nobody finds work, having looked after the last that anybody did."""
        return all(self._idle_since.get(one) is self._last_work for one in self._helpers)

    def close(self) -> None:
        """End after the jobs at hand; the rest of what was taken is given back."""
        self._over.set()
        for helper in self._helpers:
            helper.stop()
        for thread in self._threads:
            thread.join()
        for helper in self._helpers:
            helper.close()

    def _work(self, helper: Helper) -> None:
        pause = FIRST_PAUSE
        try:
            while not self._over.is_set():
                if self._step(helper):
                    pause = FIRST_PAUSE
                else:
                    self._over.wait(pause)
                    pause = min(pause * 2, LONGEST_PAUSE)
        finally:
            self.broken |= not self._over.is_set()

    def _step(self, helper: Helper) -> bool:
        before = self._last_work
        try:
            worked = helper.step()
        except MemoristError as error:
            log.warning("a pause: %s", error)
            worked = False
        if worked:
            self._last_work = object()
        else:
            self._idle_since[helper] = before
        return worked


class Report:
    """What waits, what was given up and what was spent: a live line, or now and then a log's."""

    def __init__(self, store: Store, embedder: Embedder | None, extraction: Extraction) -> None:
        self._store = store
        self._embedder = embedder
        self._extraction = extraction
        self._live = errors.status("") if errors.is_terminal else None
        self._told_at = self._counted_at = float("-inf")
        self._told = ""
        self._dead = 0

    def tell(self) -> None:
        """Say how it stands, if it is time to and something changed."""
        if time.monotonic() - self._told_at < TELL_SECONDS:
            return
        self._told_at, line = time.monotonic(), self.line()
        if self._live is not None:
            self._live.update(Text(line))
        elif line != self._told:
            log.info(line)
        self._told = line

    def line(self) -> str:
        """How it stands now."""
        try:
            left = waiting(self._store, self._embedder)
            if time.monotonic() - self._counted_at > COUNT_SECONDS:
                self._counted_at, self._dead = time.monotonic(), dead_jobs(self._store)
            spent = self._spent() if self._extraction.model else ""
        except MemoristError as error:
            return f"the store does not answer: {error}"
        kinds = ", ".join(f"{kind} {count}" for kind, count in left.items())
        return f"waiting: {kinds}; dead: {self._dead}{spent}"

    def _spent(self) -> str:
        (calls, tokens), may = self._store.spent(), self._extraction
        return (
            f"; this hour: {calls:,} of {may.calls_per_hour:,} calls, "
            f"{tokens:,} of {may.tokens_per_hour:,} tokens"
        )

    def __enter__(self) -> None:
        if self._live is not None:
            self._live.start()

    def __exit__(self, *_: object) -> None:
        self._counted_at = float("-inf")
        if self._live is not None:
            self._live.stop()


@contextlib.contextmanager
def _told_to_stop() -> Iterator[list[int]]:
    """A list that is filled when the process is asked to end; asked twice, it ends at once."""
    told: list[int] = []

    def tell(number: int, _: object) -> None:
        if told:
            raise KeyboardInterrupt
        told.append(number)  # and nothing else: a lock taken here may be held where we were

    before = {number: signal.signal(number, tell) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Shown(logging.Handler):
    """Shows what is logged, each with its time."""

    def emit(self, record: logging.LogRecord) -> None:
        style = "yellow" if record.levelno >= logging.WARNING else ""
        at = datetime.fromtimestamp(record.created).strftime("%H:%M:%S ")
        line = Text.assemble((at, "dim"), (harmless(record.getMessage()), style))
        errors.print(line, soft_wrap=True)


@contextlib.contextmanager
def _log_shown() -> Iterator[None]:
    shown, level = _Shown(), log.level
    log.addHandler(shown)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(shown)
        log.setLevel(level)
