"""What a memory runs on: store, search, background jobs and summaries, shared by its tenants."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from memorist import metrics
from memorist.config import Settings
from memorist.context.window import Window
from memorist.errors import ConfigError, MemoristError, naming_setting, needs_extra
from memorist.language.text import synonyms_of
from memorist.lifecycle.settings import DEFAULT_EXTRACTION, Extraction
from memorist.providers.embedder import Embedder
from memorist.providers.minilm import MiniLM
from memorist.recall.channels import no_synonyms
from memorist.recall.fusion import Ranking
from memorist.recall.indexer import Indexer
from memorist.recall.search import Searcher
from memorist.records.message import UNSET
from memorist.records.query import MIN_SCORE, Query, Recall, check_deadline
from memorist.records.values import check_type, now
from memorist.store.base import Store
from memorist.store.indexing import MAX_MESSAGE_BYTES
from memorist.store.jobs import LATER, STAGES, embedding_kinds, extraction_kinds
from memorist.store.runner import ForegroundGate, JobRunner, Scrubber
from memorist.store.sqlite.store import SqliteStore

if TYPE_CHECKING:  # imported where it is used: `import memorist` stays light
    from memorist.context.compression.compress import Summarizer
    from memorist.context.tokens import TokenCounter
    from memorist.lifecycle.worker import Worker
    from memorist.providers.chat_model import ChatModel

MAX_COUNTERS = 16
POLL_SECONDS = 0.1  # between two looks at the signals
LONGEST_PAUSE = 2.0  # between two looks at the queue of all processes

log = logging.getLogger("memorist")


class Runtime:
    """The parts of one open memory. `Memory` adds a tenant to it and speaks to users.

    What is not given is what the settings name.
    """

    def __init__(
        self,
        store: Store | str | os.PathLike[str] | None,
        embedder: Embedder | None,
        ranking: Ranking,
        extraction: Extraction | None,
        clock: Callable[[], datetime],
        settings: Settings,
        wake_worker: Callable[[], None] | None,
    ) -> None:
        check_type(ranking, Ranking, "ranking")
        most = settings.max_message_bytes
        if store is None:
            store = open_store(settings.url, settings.durability, most, clock)
        elif isinstance(store, str | os.PathLike):
            store = open_store(os.fspath(store), "full", most, clock)
        self.store = store
        self.embedder = open_embedder(settings.embedder) if embedder is UNSET else embedder
        self.extraction = open_extraction(settings) if extraction is UNSET else extraction
        self.clock = clock
        self._settings = settings
        self._wake_worker = wake_worker
        self._searcher = Searcher(
            store=store,
            embedder=self.embedder,
            ranking=ranking,
            synonyms_of=no_synonyms if self.embedder is None else synonyms_of,
        )
        self._gate = ForegroundGate()
        self.scrubber = Scrubber(store, self._gate)
        self.scrubber.stopped |= wake_worker is not None
        with suppress(MemoristError):  # the store may be away
            if store.unscrubbed_s() is not None:  # a process ended before it came to that
                self.scrubber.start()
        self.worker = self._open_worker()
        self.indexer = self._open_indexer()
        self._counters: dict[tuple[str, int], TokenCounter] = {}
        self._summarizer: Summarizer | None = None
        metrics.watch("memorist.queue.depth", self.waiting)
        metrics.watch("memorist.store.size", self.size)

    @property
    def extraction_settings(self) -> Extraction:
        """How memories are extracted here, or by default where that is left to others."""
        return self.extraction or DEFAULT_EXTRACTION

    def search(self, query: Query) -> Recall:
        """Search while background work stands back, and note which memories were used."""
        if self.indexer is not None:
            self.indexer.start()
        with self._gate:
            recall = self._searcher.search(query)
        self.scrubber.start()
        if self.worker is not None and recall.hits:
            hits = [(hit.kind, hit.id) for hit in recall.hits if hit.score >= MIN_SCORE]
            self.worker.recalled.append((query.scope.whole_user(), hits))
            self.worker.start()
        return recall

    def summarizer(self) -> Summarizer:
        """Makes summaries, with the extraction model within its budget, or without one."""
        if self._summarizer is None:
            self._summarizer = open_summarizer(self.store, self.extraction, self._settings)
        return self._summarizer

    def counter(self, window: Window) -> TokenCounter:
        """The token counter of a window, which remembers what it has counted."""
        from memorist.context.tokens import TokenCounter

        tokenizer = window.counts_with()
        # Tokenizers that callers bring may share a name; one that is counted with stays alive.
        key = tokenizer.name, id(tokenizer) if window.tokenizer is not None else 0
        while key not in self._counters and len(self._counters) >= MAX_COUNTERS:
            self._counters.pop(next(iter(self._counters)), None)
        return self._counters.setdefault(key, TokenCounter(tokenizer))

    def warm_up(self) -> None:
        """Load what the first recall or context of a process would otherwise wait for."""
        self.counter(Window()).text("ready")
        self._searcher.load()
        if self.embedder is not None:
            self.embedder.embed_query("")

    def wake(self) -> None:
        """Start the background work that new messages need, and scrubs that others left."""
        with self._gate:  # storing is a request, too
            self.scrubber.start()  # another process may forget, and end before it scrubs
        first = self.indexer or self.worker  # the indexer wakes the worker when it is done
        if first is not None:
            first.wake()

    def size(self) -> dict[str, float]:
        """The bytes that the database takes."""
        return {"": self.store.size()}

    def waiting(self, of_user: Mapping[str, int] | None = None) -> dict[str, int]:
        """How many jobs of each kind wait or run, and how many are dead: all, or a user's own."""
        kinds: dict[str, tuple[str, ...]] = {name: (name, name + LATER) for name in STAGES}
        kinds["embed"] += ("index",)
        if self.embedder is not None:
            kinds["vectors"] += embedding_kinds(self.embedder.name)[-1:]
        if of_user is not None:
            every = {**kinds, "dead": ("dead",)}
            return {name: sum(of_user.get(kind, 0) for kind in every[name]) for name in every}
        counts = {name: self.store.backlog(names) for name, names in kinds.items()}
        names = [kind for names in kinds.values() for kind in names]
        return {**counts, "dead": self.store.backlog(names, dead=True)}

    def catch_up(self, timeout_s: float | None) -> int:
        """Wait until no job is left but dead ones, or the time is over; return how many are."""
        began, left = time.monotonic(), dict[object, int]()
        # The indexer comes twice: memories that the worker makes need vectors too.
        for helper in (self.indexer, self.worker, self.indexer, self._summarizer):
            if helper is not None:
                spent = time.monotonic() - began
                left[helper] = helper.catch_up(
                    None if timeout_s is None else max(timeout_s - spent, 0)
                )
        return sum(left.values())

    def close(self) -> None:
        """Stop the background work and close the store; what waits stays in the queue."""
        for helper in (self.worker, self.indexer, self._summarizer, self.scrubber):
            if helper is not None:
                helper.close()
        self._searcher.close()
        self.store.close()

    def _open_worker(self) -> Worker | None:
        from memorist.lifecycle.worker import Worker, WorkerElsewhere

        if self._wake_worker is not None:
            name = "" if self.embedder is None else self.embedder.name
            kinds = (*embedding_kinds(name), *extraction_kinds(has_embedder=True))
            return WorkerElsewhere(
                self._wake_worker,
                self.store,
                self.extraction_settings,
                kinds=kinds,
                clock=self.clock,
                gate=self._gate,
            )
        if self.extraction is None:
            return None
        kinds = extraction_kinds(has_embedder=self.embedder is not None)
        return Worker(self.store, self.extraction, kinds=kinds, clock=self.clock, gate=self._gate)

    def _open_indexer(self) -> Indexer | None:
        if self.embedder is None or self._wake_worker is not None:
            return None
        then = self.worker.wake if self.worker is not None else lambda: None
        indexer = Indexer(self.store, self.embedder, then, self._gate)
        if self.worker is not None:
            self.worker.then = indexer.wake
        return indexer


# Addresses, also with a slash too few, of which SQLite would make a file with the password in its
# name; its own URIs, whose "?mode=ro" would be a part of the name.
_NO_PATH = re.compile(
    r"\w[\w+.-]*://|\w[\w+.-]+:/|(?:postgres(?:ql)?|file):|(?:host|dbname|user|password|service) ?="
)


def open_store(
    url: str,
    durability: str = "full",
    max_message_bytes: int = MAX_MESSAGE_BYTES,
    clock: Callable[[], datetime] = now,
) -> Store:
    """The store that a URL or path names."""
    if url.startswith(("postgresql://", "postgres://")):
        with needs_extra("postgres"):
            from memorist.store.postgres.store import PostgresStore
        return PostgresStore(url, clock=clock, max_message_bytes=max_message_bytes)
    path = os.path.expanduser(url.removeprefix("sqlite:///"))
    if not path or _NO_PATH.match(path):
        raise ConfigError(
            "the store (MEMORIST_URL, --db) is a path, :memory:, sqlite:///path or "
            "postgresql://…; for the http:// address of a server use memorist.connect(url)"
        )
    return SqliteStore(
        path,
        durability="normal" if durability == "normal" else "full",
        clock=clock,
        max_message_bytes=max_message_bytes,
    )


def open_extraction(settings: Settings) -> Extraction:
    """How memories are made by default: by rules, or by the model that the settings name."""
    if not settings.model:
        return DEFAULT_EXTRACTION
    from memorist.providers.opening import open_model

    with naming_setting("MEMORIST_MODEL"):
        return Extraction(model=open_model(settings.model, settings.model_url, settings.model_key))


def open_embedder(name: str) -> Embedder | None:
    """One of the embedders that need no key, by its name in MEMORIST_EMBEDDER."""
    if name == "static":
        from memorist.providers.minilm import StaticEmbedder

        return StaticEmbedder()
    return MiniLM() if name == "minilm" else None


def deadline_of(deadline_ms: float | None, settings: Settings) -> float | None:
    """The deadline of a recall, which is that of the settings if none is given."""
    given = settings.recall_deadline_ms if deadline_ms is UNSET else deadline_ms
    check_deadline(given)
    return given


_USUAL = Window()
_WINDOW_SETTINGS = {
    "compress_at": "memory_compression_threshold_pct",
    "keep_last": "messages_to_keep",
    "summary_tokens": "memory_compression_target_tokens",
    "summary_prompt": "summary_prompt",
    "summary_prefix": "summary_prefix",
    "move_at": "larger_model_threshold_pct",
}


def window_of(window: Window | None, settings: Settings) -> Window:
    """A window, with the settings for what it leaves at its default; percent become shares."""
    window, changed = window or _USUAL, {}
    check_type(window, Window, "window")
    for name, setting in _WINDOW_SETTINGS.items():
        value = getattr(settings, setting)
        if getattr(window, name) == getattr(_USUAL, name):
            changed[name] = value / 100 if setting.endswith("_pct") else value
    return replace(window, **changed)


def open_summarizer(store: Store, extraction: Extraction | None, settings: Settings) -> Summarizer:
    """Makes summaries, with the extraction model within its budget, or without one."""
    from memorist.context.compression.compress import Summarizer, style_of
    from memorist.context.tokens import TokenCounter

    model = summary_model(store, extraction)
    window = Window(model=model.name if model is not None else "")
    window = window_of(window, settings)
    style = style_of(window, TokenCounter(window.counts_with()))
    timeout_s = (extraction or DEFAULT_EXTRACTION).timeout_s
    return Summarizer(store, replace(style, timeout_s=timeout_s), model)


def open_runners(
    store: Store,
    extraction: Extraction,
    embedder: Embedder | None,
    settings: Settings,
    *,
    alone: bool = False,
) -> list[JobRunner]:
    """What does the jobs of any process, for `work`; the first is to be woken for new messages.

    Without an embedder, vectors stay queued for a process that has one, unless it is `alone`.
    """
    from memorist.lifecycle.worker import Worker

    others: list[JobRunner] = [open_summarizer(store, extraction, settings)]
    others += [Scrubber(store)] if store.scrubs else []
    if embedder is None:
        every = extraction_kinds(has_embedder=False)
        kinds = [kind for kind in every if alone or kind[:7] != "vectors"]
        return [Worker(store, extraction, kinds=kinds), *others]
    worker = Worker(store, extraction)
    indexer = Indexer(store, embedder, worker.wake)
    worker.then = indexer.wake
    return [indexer, worker, *others]


def work(
    runners: Sequence[JobRunner],
    show: Callable[[], None],
    signals: Sequence[int],
    *,
    once: bool = False,
    wait_s: float | None = None,
) -> bool:
    """Run the runners until a signal or, with `once`, until all are idle; False if one crashed."""
    for runner in runners:
        runner.longest_pause = LONGEST_PAUSE  # other processes queue jobs and wake nobody here
        runner.start()
    try:
        while not signals and not (once and _all_idle(runners)):
            if not all(runner.is_running() for runner in runners):
                return False
            show()
            time.sleep(POLL_SECONDS)
        if signals:
            log.info("the worker ends after the current job")
        return True
    finally:
        for runner in runners:
            runner.stop()
        for runner in runners:
            runner.close(wait_s)


def _all_idle(runners: Sequence[JobRunner]) -> bool:
    """Whether no runner finds a job, having looked after the last one that any of them did."""
    return min(it.idle_at for it in runners) > max(it.worked_at for it in runners)


def summary_model(store: Store, extraction: Extraction | None) -> ChatModel | None:
    """The extraction model within its hourly budget, for summaries; None without one."""
    from memorist.lifecycle.model import BudgetedModel

    if extraction is None or extraction.model is None:
        return None
    return BudgetedModel(extraction.model, store, extraction)
