"""`memorist doctor`: a real round trip, and what is slow, missing or wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import typer
from rich.table import Table
from rich.text import Text

from memorist.cli.common import Database, console, harmless, open_memory
from memorist.cli.jobs import dead_jobs
from memorist.config import Settings
from memorist.errors import MemoristError, ProviderError, StoreDamagedError
from memorist.lifecycle.settings import DEFAULT_EXTRACTION
from memorist.memory import Memory
from memorist.providers.chat_model import open_model
from memorist.records.ids import new_id
from memorist.records.query import Recall

SLOW_MS = {"remember": 50.0, "recall": 50.0, "history": 20.0, "forget": 50.0}
PATIENCE_MS = 5_000.0  # what is slow is told from what fails

Verdict = Literal["ok", "slow", "warning", "fails"]
_STYLES = {"ok": "green", "slow": "yellow", "warning": "yellow", "fails": "red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    name: str
    verdict: Verdict
    detail: str


def doctor(db: Database = None) -> None:
    """Check that memory works, by using it: remember, recall, read back, forget."""
    findings = list(examine(db))
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        verdict = Text(finding.verdict, style=_STYLES[finding.verdict])
        table.add_row(verdict, finding.name, Text(finding.detail))
    console.print(table)
    if any(finding.verdict == "fails" for finding in findings):
        raise typer.Exit(1)


def examine(database: str | None) -> Iterator[Finding]:
    """Look at the settings and the store, then make the round trip."""
    try:
        memory, settings = open_memory(database)
    except MemoristError as error:
        yield Finding("store", "fails", f"{type(error).__name__}: {error}")
        return
    with memory:
        try:
            yield from _about_store(memory)
            yield _about_embedder(memory)
            yield _about_model(memory, settings)
            yield _about_queue(memory)  # before the round trip, which sets work going
            yield from _round_trip(memory)
        except MemoristError as error:
            yield Finding("store", "fails", f"{type(error).__name__}: {error}")


def _about_store(memory: Memory) -> Iterator[Finding]:
    for name, value in memory.store.check().items():
        if name == "integrity" and value != "ok":
            raise StoreDamagedError("the file is damaged; restore it from a backup")
        elif name == "synchronous" and value in ("normal", "off"):
            yield Finding(name, "warning", f"{value}: a power cut may take the last messages")
        elif name == "vectors" and "crashed" in value:
            yield Finding(name, "warning", f"{value}; install a build for this processor")
        else:
            yield Finding(name, "ok", value)


def _about_embedder(memory: Memory) -> Finding:
    if memory.embedder is None:
        memory.warm_up()
        return Finding("embedder", "ok", "none: recall goes by words and links")
    try:
        loaded, asked = (_took_ms(memory.warm_up) for _ in range(2))
    except ProviderError as error:
        return Finding("embedder", "warning", f"recall goes by words and links: {error}")
    waiting = memory.store.backlog(("embed", "vectors"))
    detail = f"{memory.embedder.name}: loaded in {loaded:.0f} ms, a question in {asked:.1f} ms"
    return Finding("embedder", "ok", f"{detail}, {waiting} jobs waiting")


def _about_model(memory: Memory, settings: Settings) -> Finding:
    """Whether the model can be opened, and what it cost. It is not asked: that would cost too."""
    if not settings.model:
        return Finding("model", "ok", "none: memories are made by rules")
    try:
        open_model(settings.model, settings.model_url, settings.model_key)
    except MemoristError as error:
        return Finding("model", "fails", f"{type(error).__name__}: {error}")
    (calls, tokens), may = memory.store.spent(), DEFAULT_EXTRACTION
    cost = (
        f"{calls:,} of {may.calls_per_hour:,} calls and "
        f"{tokens:,} of {may.tokens_per_hour:,} tokens spent this hour"
    )
    return Finding("model", "ok", f"{harmless(settings.model)}: {cost}; `memorist worker` asks it")


def _about_queue(memory: Memory) -> Finding:
    by_kind = memory.jobs.waiting()
    dead = dead_jobs(memory.store)
    kinds = ", ".join(f"{kind} {count}" for kind, count in by_kind.items())
    detail = f"{sum(by_kind.values())} waiting, {dead} dead ({kinds})"
    if dead:
        return Finding("queue", "warning", f"{detail}; see `memorist jobs --dead --everyone`")
    return Finding("queue", "ok", detail)


def _took_ms(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1_000


def _round_trip(memory: Memory) -> Iterator[Finding]:
    user = f"doctor-{new_id()}"  # nobody's, so that nobody's memory is touched
    word = f"canary{new_id().replace('-', '')}"
    steps: list[tuple[str, Callable[[], bool]]] = [
        ("remember", lambda: memory.remember(f"a {word} sings", user=user).added == 1),
        ("recall", lambda: f"a {word} sings" in _texts(_recall(memory, word, user))),
        ("history", lambda: memory.history(user=user)[0].content == f"a {word} sings"),
        ("forget", lambda: _forget(memory, user) == 1),
    ]
    try:
        for name, step in steps:
            started = time.perf_counter()
            worked = step()
            took = (time.perf_counter() - started) * 1_000
            if not worked:
                yield Finding(name, "fails", "the answer was not what had been stored")
            else:
                yield Finding(name, "slow" if took > SLOW_MS[name] else "ok", f"{took:.1f} ms")
    finally:
        _forget(memory, user)


def _recall(memory: Memory, word: str, user: str) -> Recall:
    return memory.recall(word, user=user, deadline_ms=PATIENCE_MS)


def _texts(found: Recall) -> list[str]:
    return [hit.text for hit in found.hits]


def _forget(memory: Memory, user: str) -> int:
    gone = memory.forget(user=user, everything=True, scrub=False)
    return gone.counts.get("messages", 0)
