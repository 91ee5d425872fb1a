"""Storage speed beside raw SQLite doing the same work: a row and a full-text entry, durably;
and on SQLite and PostgreSQL beside LangGraph's store, and LanceDB where it is installed, one by one
and for many users at once.

Run with `make bench`, or `python -m benchmarks.storage --postgres URL` for a server of yours, in
which a database is made and dropped; without one, a server of this machine is started. Ours and
the other take turns, round by round, so that a busy machine slows both; the ratio is the figure to
look at.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apsw
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore as LangGraphSqliteStore
from rich.console import Console
from rich.progress import track
from rich.table import Table

from memorist import Memory, Message

ROUNDS = {1_000: 8, 10_000: 8, 100_000: 30}  # more where the text index's merges are rarer
ONE_BY_ONE = 200
BATCH = 1_000
BATCHES = 1
READS = 300
USERS = 1_000  # who get a message each, in one call
STORE_ROUNDS = 8


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

    def __init__(self, store: Path | str) -> None:
        self.memory = Memory(store, tenant="bench", embedder=None, extraction=None)
        self.memory.session(user="u", id="s")

    def append(self, batch: list[Message]) -> None:
        self.memory.remember(batch, user="u", session="s")

    def append_many(self, batch: list[Message]) -> None:
        self.memory.remember_many(
            [
                {"user": f"u{number}", "messages": [message], "session": f"s{number}"}
                for number, message in enumerate(batch)
            ]
        )

    def last(self, count: int) -> int:
        return len(self.memory.history(user="u", session="s", last=count))


class LangGraph:
    """The same messages as values of LangGraph's store, which indexes no words."""

    def __init__(self, store: BaseStore) -> None:
        self.store = store

    def append(self, batch: list[Message]) -> None:
        for message in batch:
            value = {"role": message.role, "content": message.content}
            self.store.put(("u", "s"), message.message_id, value)

    def append_many(self, batch: list[Message]) -> None:
        self.store.batch(
            [
                PutOp(
                    (f"u{number}", f"s{number}"), message.message_id, {"content": message.content}
                )
                for number, message in enumerate(batch)
            ]
        )


class Lance:
    """The same messages as rows of a LanceDB table, which indexes no words."""

    def __init__(self, folder: str) -> None:
        lancedb = importlib.import_module("lancedb")
        row = {"user": "", "session": "", "id": "", "role": "", "content": ""}
        self.table = lancedb.connect(folder).create_table("m", [row])

    def append(self, batch: list[Message]) -> None:
        self._add([("u", "s", message) for message in batch])

    def append_many(self, batch: list[Message]) -> None:
        self._add([(f"u{number}", f"s{number}", each) for number, each in enumerate(batch)])

    def _add(self, said: list[tuple[str, str, Message]]) -> None:
        names = ("user", "session", "id", "role", "content")
        rows = [(user, session, it.message_id, it.role, it.content) for user, session, it in said]
        self.table.add([dict(zip(names, row, strict=True)) for row in rows])


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


def append_all(
    side: Ours | Raw | LangGraph | Lance, source: Iterator[str], batch: int, count: int
) -> list[float]:
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


def measure_stores(
    name: str, ours: Ours, other: LangGraph | Lance, source: Iterator[str]
) -> list[Figure]:
    """Appends one by one, and of many users in one call, beside another store."""

    def for_many(side: Ours | LangGraph | Lance) -> list[float]:
        batch = make(source, USERS)
        return [seconds(partial(side.append_many, batch))]

    ours.append(make(source, BATCH))
    single = take_turns(
        partial(append_all, ours, source, 1, ONE_BY_ONE // 2),
        partial(append_all, other, source, 1, ONE_BY_ONE // 2),
        STORE_ROUNDS,
    )
    for_many(ours), for_many(other)  # the users are new once
    many = take_turns(partial(for_many, ours), partial(for_many, other), STORE_ROUNDS // 2)
    mine, bare = (len(times) / sum(times) for times in single)
    many_mine, many_bare = (USERS * len(times) / sum(times) for times in many)
    return [
        Figure(f"{name}, append one by one", mine, bare, "messages/s", "≥ 1.0"),
        Figure(f"{name}, {USERS:,} users in one call", many_mine, many_bare, "messages/s", ""),
    ]


def beside_langgraph(folder: str, url: str, source: Iterator[str]) -> list[Figure]:
    figures = []
    with ExitStack() as opened:
        sqlite = opened.enter_context(
            LangGraphSqliteStore.from_conn_string(f"{folder}/langgraph.db")
        )
        postgres = opened.enter_context(PostgresStore.from_conn_string(url))
        for name, where, other in (
            ("SQLite", f"{folder}/beside.db", sqlite),
            ("PostgreSQL", url, postgres),
        ):
            other.setup()
            ours = Ours(where)
            figures += measure_stores(name, ours, LangGraph(other), source)
            ours.memory.close()
    return figures


def beside_lance(folder: str, source: Iterator[str]) -> list[Figure]:
    ours = Ours(f"{folder}/beside-lance.db")
    figures = measure_stores("SQLite", ours, Lance(f"{folder}/lance"), source)
    ours.memory.close()
    return figures


def grow(ours: Ours, raw: Raw, source: Iterator[str], count: int) -> None:
    for _ in track(range(count // BATCH), "filling", transient=True):
        batch = make(source, BATCH)
        ours.append(batch)
        raw.append(batch)


def show(figures: list[Figure], title: str, other: str) -> None:
    table = Table(title=title)
    for name in ("measure", "ours", other, "unit", "ratio", "aim"):
        table.add_column(name, justify="left" if name in ("measure", "unit") else "right")
    for one in figures:
        table.add_row(
            one.name, f"{one.ours:,.0f}", f"{one.raw:,.0f}", one.unit, f"{one.ratio:.2f}", one.aim
        )
    Console(width=110).print(table)


def beside_raw(folder: str, sizes: list[int], source: Iterator[str]) -> list[Figure]:
    ours, raw = Ours(Path(folder) / "ours.db"), Raw(Path(folder) / "raw.db")
    figures: list[Figure] = []
    held = size = 0
    for size in sizes:
        grow(ours, raw, source, size - held)
        figures += measure_appends(ours, raw, source, size)
        held = size + ROUNDS[size] * (ONE_BY_ONE + BATCHES * BATCH)
    figures.append(measure_history(ours, raw, size))
    ours.memory.close()
    return figures


def main() -> None:
    """Measure, print, and leave the figures in bench-results/storage.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", metavar="URL", help="of a superuser")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(ROUNDS), choices=ROUNDS)
    asked = parser.parse_args()
    source = texts(seed=1)
    with tempfile.TemporaryDirectory(prefix="memorist-bench-") as folder:
        raw = beside_raw(folder, asked.sizes, source)
        show(raw, "Memorist on SQLite beside raw SQLite (WAL, synchronous=FULL)", "raw")
        with postgres_database(asked.postgres) as url:
            stores = beside_langgraph(folder, url, source)
        show(stores, "Memorist beside LangGraph's store", "LangGraph")
        if importlib.util.find_spec("lancedb"):
            lance = beside_lance(folder, source)
            show(lance, "Memorist beside LanceDB", "LanceDB")
            stores += lance
    results = Path("bench-results")
    results.mkdir(exist_ok=True)
    rows = [{**vars(figure), "ratio": figure.ratio} for figure in (*raw, *stores)]
    (results / "storage.json").write_text(json.dumps(rows, indent=2, ensure_ascii=False))


@contextmanager
def postgres_database(url: str | None, *, vector: bool = False) -> Iterator[str]:
    """A database that commits durably, on a server of yours or one that is started for this."""
    from tests.support.postgres import Server, start_server

    server = start_server(vector=vector, durable=True) if url is None else Server(url, False, "")
    try:
        made = server.create_database("bench")
        yield made
        server.drop_database(made)
    finally:
        if url is None:
            server.close()


if __name__ == "__main__":
    main()
