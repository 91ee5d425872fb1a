"""Recall as memories grow: one user holding all of them, the same with a fact of every tenth,
and a thousand users sharing them.

Run with `make bench-scale`, or `python -m benchmarks.scale --help`; with `--postgres`, on a server
that is started for it; with `--bulk 1x1000000 10000x1000`, on one that is filled with so many users
of so many messages, which are not remembered but loaded (`scale_bulk`). Texts and vectors are made
up, the time to embed a question is the default model's own. Times are measured by a process of its
own, without a deadline unless it says so; aims stand beside them and nothing fails.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import apsw
import psycopg

from benchmarks import scale_bulk
from benchmarks.report import publish
from benchmarks.scale_corpus import Corpus, TopicEmbedder
from benchmarks.scale_probe import TENANT, Figures, Probe, measure, user_of
from benchmarks.scale_report import grids_of
from benchmarks.storage import postgres_database
from memorist import Fact, Memory, Message, Scope, SqliteStore
from memorist.records.memories import Add
from memorist.store.base import Store
from memorist.store.postgres.store import PostgresStore

SIZES = (1_000, 10_000, 100_000)
MILLION = 1_000_000
USERS = 1_000
LAYOUTS = {
    "one": ("one user", 1, False),
    "facts": ("one user with facts", 1, True),
    "many": (f"{USERS:,} users", USERS, False),
}
SESSION = 200
BUSY_AT = 100_000
WRITES_PER_S = 50


@dataclass(frozen=True, slots=True)
class Layout:
    """A store being filled for one user or many, and the plain index beside it."""

    name: str
    users: int
    where: str  # a file, or the URL of a database
    memory: Memory
    corpus: Corpus
    plain: apsw.Connection | None = None
    facts: bool = False

    def grow(self, start: int, stop: int) -> Figures:
        """Remember these texts, and give each its vector; how long both took."""
        began = time.perf_counter()
        for user, session, numbers in shares(start, stop, self.users):
            said = [Message("user", self.corpus.text(n), message_id=f"m{n}") for n in numbers]
            self.memory.remember(said, user=user, session=session)
            if self.facts:
                self._know(self.memory.scope(user=user, session=session), numbers)
        stored = time.perf_counter()
        while waiting := self.memory.jobs.catch_up(timeout_s=20):
            print(f"{self.name}: {waiting:,} of {stop:,} wait for their vectors", flush=True)
        done = time.perf_counter()
        if isinstance(self.memory.store, PostgresStore):
            with psycopg.connect(self.where) as connection:
                connection.execute("ANALYZE")  # as a server does by itself, within a minute
        if self.plain:
            rows = enumerate(self.corpus.texts(start, stop), start=start)
            with self.plain:
                self.plain.executemany("INSERT INTO plain (rowid, words) VALUES (?, ?)", rows)
        return {
            "remember_per_s": (stop - start) / (stored - began),
            "vectors_per_s": (stop - start) / (done - stored),
            "fill_s": done - began,
        }

    def _know(self, scope: Scope, numbers: range) -> None:
        """Put down the facts that came of these texts."""
        known = [
            Add(Fact(scope=scope, subject=who, predicate="knows", object=what, sources=(f"m{n}",)))
            for n, who, what in self.corpus.facts(numbers)
        ]
        self.memory.store.apply(scope, known)

    def bytes(self) -> int:
        """The size of the database; of a file, with all of its log moved into it."""
        if not isinstance(self.memory.store, SqliteStore):
            return self.memory.store.size()
        db = apsw.Connection(self.where)
        db.set_busy_timeout(10_000)
        db.execute("SELECT 1 FROM sqlite_schema").fetchall()  # until it has read, it sees no log
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        db.close()
        return Path(self.where).stat().st_size


def shares(start: int, stop: int, users: int) -> Iterator[tuple[str, str, range]]:
    """Whose the texts are and in which session; a session's come one after the other."""
    for first in range(start, start + min(users, stop - start)):
        numbers = range(first, stop, users)
        for place in range(0, len(numbers), SESSION):
            part = numbers[place : place + SESSION]
            yield user_of(first, users), f"s{part[0] // users // SESSION}", part


@contextmanager
def open_layout(
    name: str, users: int, *, facts: bool = False, postgres: bool = False
) -> Iterator[Layout]:
    """An empty store, filled with less care for power cuts than a user's would be."""
    corpus = Corpus()
    with tempfile.TemporaryDirectory(prefix="memorist-bench-") as made, ExitStack() as opened:
        folder, where = Path(made), f"{made}/memory.db"
        store: Store = SqliteStore(where, durability="normal")
        if postgres:
            where = opened.enter_context(postgres_database(None, vector=True))
            store = PostgresStore(where)
        memory = Memory(store, tenant=TENANT, embedder=TopicEmbedder(corpus), extraction=None)
        plain = None
        if users == 1 and not facts and not postgres:
            plain = apsw.Connection(str(folder / "plain.db"))
            plain.pragma("journal_mode", "wal")
            tokenizer = "tokenize = 'porter unicode61'"
            plain.execute(f"CREATE VIRTUAL TABLE plain USING fts5 (words, {tokenizer})")
        with memory:
            yield Layout(name, users, where, memory, corpus, plain, facts)


def run(layout: Layout, sizes: list[int], asks: int) -> list[Figures]:
    """Grow through the sizes, and measure at each."""
    found, held = [], 0
    for size in sizes:
        print(f"{layout.name}: filling up to {size:,}", flush=True)
        figures = layout.grow(held, size)
        held = size
        plain = layout.plain.filename if layout.plain else None
        probe = Probe(layout.where, size, layout.users, asks, plain)
        figures |= {"bytes": layout.bytes(), **in_process(measure, probe)}
        if layout.plain and size == BUSY_AT:
            figures["busy"], wrote = under_writes(layout, probe)
            held += wrote
        found.append({"layout": layout.name, "size": size, **figures})
    return found


def in_process(work: Callable[..., Figures], *inputs: Any) -> Figures:
    """Measure in a process of its own, which begins with nothing loaded."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *inputs).result()


def under_writes(layout: Layout, probe: Probe) -> tuple[Figures, int]:
    """The same while this process writes, fifty messages a second; and how many it wrote."""
    stop, wrote = threading.Event(), [0]

    def write() -> None:
        began = time.perf_counter()
        while not stop.wait(max(0.0, began + wrote[0] / WRITES_PER_S - time.perf_counter())):
            text = layout.corpus.text(probe.size + wrote[0])
            said = Message("user", text, message_id=f"m{probe.size + wrote[0]}")
            layout.memory.remember(said, user=user_of(0, 1), session="busy")
            wrote[0] += 1

    writer = threading.Thread(target=write)
    began = time.perf_counter()
    writer.start()
    try:
        figures = in_process(measure, replace(probe, plain=None, cold=False))
    finally:
        stop.set()
        writer.join()
    figures["writes_per_s"] = wrote[0] / (time.perf_counter() - began)
    return figures, wrote[0]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="make bench-scale", description=__doc__)
    made.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N")
    made.add_argument("--million", action="store_true", help="also at 1,000,000")
    made.add_argument("--asks", type=int, default=300, metavar="N", help="recalls per figure")
    made.add_argument("--postgres", action="store_true", help="on PostgreSQL instead of SQLite")
    made.add_argument("--bulk", type=scale_bulk.Size.parse, nargs="+", metavar="USERSxMESSAGES")
    made.add_argument("--users", choices=(*LAYOUTS, "all"), default="all")
    made.add_argument("--out", type=Path, default=Path("bench-results"), metavar="DIR")
    return made


def main() -> None:
    """Measure, print, and leave the figures in the folder of results."""
    options = parser().parse_args()
    if options.bulk:
        loaded = scale_bulk.run(options.bulk, options.asks, in_process)
        publish([scale_bulk.grid_of(loaded)], scale_bulk.NOTES, options.out / "bulk", loaded)
        return
    sizes = sorted({*options.sizes, *([MILLION] if options.million else [])})
    found: list[dict[str, Any]] = []
    for key, (name, users, facts) in LAYOUTS.items():
        if options.users in (key, "all"):
            with open_layout(name, users, facts=facts, postgres=options.postgres) as layout:
                found += run(layout, sizes, options.asks)
    grids, notes = grids_of(found)
    publish(grids, notes, options.out / "scale", found)


if __name__ == "__main__":
    main()
