"""Storage speed beside raw SQLite doing the same work: a row and a full-text entry, durably.

Run with `make bench`. Ours and raw take turns, round by round, so that a busy machine slows
both; the ratio is the figure to look at.
"""

from __future__ import annotations

import itertools
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apsw
from rich.console import Console
from rich.progress import track
from rich.table import Table

from memorist import Memory, Message, SqliteStore

ROUNDS = {1_000: 8, 10_000: 8, 100_000: 30}  # more where the text index's merges are rarer
ONE_BY_ONE = 200
BATCH = 1_000
BATCHES = 1
READS = 300


@dataclass(frozen=True)
class Figure:
    """A measure of ours beside the raw one; a rate, or a time if lower is better."""

    name: str
    ours: float
    raw: float
    unit: str
    aim: str

    @property
    def ratio(self) -> float:
        return self.ours / self.raw


class Raw:
    """A table, an index to read a session's end, and a full-text index. WAL, FULL."""

    def __init__(self, path: Path) -> None:
        self.db = apsw.Connection(str(path))
        self.db.pragma("journal_mode", "wal")
        self.db.pragma("synchronous", "full")
        self.db.execute(
            "CREATE TABLE m (id INTEGER PRIMARY KEY, session, message_id, role, content, at);"
            "CREATE INDEX m_session ON m (session, id);"
            "CREATE VIRTUAL TABLE f USING fts5 (content, tokenize = 'porter unicode61')"
        )

    def append(self, batch: list[Message]) -> None:
        now = time.time_ns() // 1_000
        self.db.execute("BEGIN IMMEDIATE")
        first = (self.db.execute("SELECT max(id) FROM m").get or 0) + 1
        rows = [
            (first + n, "s", message.message_id, "user", message.content, now)
            for n, message in enumerate(batch)
        ]
        self.db.executemany("INSERT INTO m VALUES (?, ?, ?, ?, ?, ?)", rows)
        entries = [(row[0], row[4]) for row in rows]
        self.db.executemany("INSERT INTO f (rowid, content) VALUES (?, ?)", entries)
        self.db.execute("COMMIT")

    def last(self, count: int) -> int:
        query = (
            "SELECT id, message_id, role, content, at FROM m"
            " WHERE session = ? ORDER BY id DESC LIMIT ?"
        )
        return len(self.db.execute(query, ("s", count)).fetchall())


class Ours:
    """The same through the public door."""

    def __init__(self, path: Path) -> None:
        self.memory = Memory(SqliteStore(path), tenant="bench", embedder=None, extraction=None)
        self.memory.session(user="u", id="s")

    def append(self, batch: list[Message]) -> None:
        self.memory.remember(batch, user="u", session="s")

    def last(self, count: int) -> int:
        return len(self.memory.history(user="u", session="s", last=count))


def texts(seed: int) -> Iterator[str]:
    """Sentences of about 150 characters over a vocabulary with a long tail."""
    chance = random.Random(seed)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 10))) for _ in range(20_000)]
    weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(words))))
    while True:
        yield " ".join(chance.choices(words, cum_weights=weights, k=25))


def make(source: Iterator[str], size: int) -> list[Message]:
    return [Message("user", text) for text in itertools.islice(source, size)]


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def take_turns(
    ours: Callable[[], list[float]], raw: Callable[[], list[float]], rounds: int
) -> tuple[list[float], list[float]]:
    """The seconds of each call of ours and of raw, over rounds in which each has its turn."""
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in track(range(rounds), transient=True):
        taken[0].extend(ours())
        taken[1].extend(raw())
    return taken


def measure_appends(ours: Ours, raw: Raw, source: Iterator[str], size: int) -> list[Figure]:
    """Rates over all appends: the text index merges itself now and then, and that is work too."""
    figures = []
    for name, batch, count, aim in (
        ("one by one", 1, ONE_BY_ONE, "≥ 0.70"),
        (f"batches of {BATCH:,}", BATCH, BATCHES, "≥ 0.50"),
    ):
        taken = take_turns(
            partial(append_all, ours, source, batch, count),
            partial(append_all, raw, source, batch, count),
            ROUNDS[size],
        )
        mine, bare = (batch * len(times) / sum(times) for times in taken)
        figures.append(Figure(f"append at {size:,}, {name}", mine, bare, "messages/s", aim))
        if batch == 1:
            middle, bare = (statistics.median(times) * 1e6 for times in taken)
            figures.append(Figure(f"append at {size:,}, the median", middle, bare, "µs", ""))
    return figures


def append_all(side: Ours | Raw, source: Iterator[str], batch: int, count: int) -> list[float]:
    batches = [make(source, batch) for _ in range(count)]  # before the clock starts
    return [seconds(partial(side.append, batch)) for batch in batches]


def measure_history(ours: Ours, raw: Raw, size: int) -> Figure:
    taken = take_turns(
        lambda: [seconds(partial(ours.last, 20)) for _ in range(READS)],
        lambda: [seconds(partial(raw.last, 20)) for _ in range(READS)],
        ROUNDS[size],
    )
    mine, bare = (statistics.median(times) * 1e6 for times in taken)
    return Figure(f"last 20 of {size:,}, the median", mine, bare, "µs", "≤ 3.0")


def grow(ours: Ours, raw: Raw, source: Iterator[str], count: int) -> None:
    for _ in track(range(count // BATCH), "filling", transient=True):
        batch = make(source, BATCH)
        ours.append(batch)
        raw.append(batch)


def show(figures: list[Figure]) -> None:
    table = Table(title="Memorist on SQLite beside raw SQLite (WAL, synchronous=FULL)")
    for name in ("measure", "ours", "raw", "unit", "ratio", "aim"):
        table.add_column(name, justify="left" if name in ("measure", "unit") else "right")
    for one in figures:
        table.add_row(
            one.name, f"{one.ours:,.0f}", f"{one.raw:,.0f}", one.unit, f"{one.ratio:.2f}", one.aim
        )
    Console(width=110).print(table)


def main() -> None:
    """Measure, print, and leave the figures in bench-results/storage.json."""
    source = texts(seed=1)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="memorist-bench-") as folder:
        ours, raw = Ours(Path(folder) / "ours.db"), Raw(Path(folder) / "raw.db")
        held = 0
        for size in ROUNDS:
            grow(ours, raw, source, size - held)
            figures += measure_appends(ours, raw, source, size)
            held = size + ROUNDS[size] * (ONE_BY_ONE + BATCHES * BATCH)
        figures.append(measure_history(ours, raw, size))
        ours.memory.close()
    show(figures)
    results = Path("bench-results")
    results.mkdir(exist_ok=True)
    rows = [{**vars(figure), "ratio": figure.ratio} for figure in figures]
    (results / "storage.json").write_text(json.dumps(rows, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
