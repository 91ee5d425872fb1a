"""Recall in a PostgreSQL database of millions of messages: `make bench-scale ARGS="--bulk …"`.

The rows are loaded by COPY (`scale_rows`). Each size is measured by a process of its own, on a
server that was just started and of whose files the system holds none in memory: first on users
nobody asked about, then, when these were answered without a deadline, on the same users with other
questions.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from tests.support.postgres import Server, start_server

from benchmarks.metrics import percentiles
from benchmarks.report import Grid
from benchmarks.scale_corpus import Corpus, QueryEmbedder
from benchmarks.scale_probe import LIMIT, TENANT, WARM_UP, Asked, Figures, real_model
from benchmarks.scale_rows import Loader, Talk, scope_of
from memorist import Memory
from memorist.store.postgres.store import PostgresStore

SETTINGS = {
    "shared_buffers": "2GB",
    "max_wal_size": "4GB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",  # what it does is done after each lot
}
NOTES = [
    "cold: users whom nobody asked about since the server started; warm: the same, answered once",
    "CPU: milliseconds of the client and of the server for a recall; load: of the machine",
]
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Size:
    """So many users with so many messages each."""

    users: int
    each: int

    @classmethod
    def parse(cls, text: str) -> Size:
        users, each = map(int, text.split("x"))
        return cls(users, each)

    def __str__(self) -> str:
        return f"{self.users:,} × {self.each:,}"


def run(sizes: Sequence[Size], asks: int, in_process: Callable[..., Figures]) -> list[Figures]:
    """Load one size after the other into one database, and measure each."""
    found, held = [], Counter[int]()
    with bulk_server() as server:
        url, talk = server.create_database("bench"), Talk(Corpus())
        PostgresStore(url).close()
        for size in sizes:
            print(f"loading {size}", flush=True)
            began = time.perf_counter()
            with Loader(url, talk) as loader:
                loader.add(size.each, range(held[size.each], size.users))
            held[size.each] = size.users
            figures = {"size": str(size), "load_s": time.perf_counter() - began}
            with psycopg.connect(url) as db:
                row = db.execute("SELECT pg_database_size(current_database())").fetchone()
            chill(server)
            figures |= {"bytes": row and row[0], "load": os.getloadavg()[0]}
            found.append(figures | in_process(measure, url, size, asks, server.processes()[0]))
    return found


@contextmanager
def bulk_server() -> Iterator[Server]:
    server = start_server(vector=True, durable=True)
    try:
        with psycopg.connect(server.url, autocommit=True) as db:
            for name, value in SETTINGS.items():
                db.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        server.stop()
        server.start()
        yield server
    finally:
        server.close()


def chill(server: Server) -> None:
    """Start the server again, with nothing of its files in memory."""
    [data] = {Path(os.readlink(f"/proc/{server.processes()[0]}/cwd"))}
    server.stop()
    os.sync()
    for path in filter(Path.is_file, data.rglob("*")):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    server.start()


def measure(url: str, size: Size, asks: int, server: int) -> Figures:
    """What recalls take, in a process that has not seen the store before."""
    corpus, chance = Corpus(), np.random.default_rng(23)
    embedder = QueryEmbedder(corpus, real_model())
    first = corpus.questions(size.users * size.each, asks + WARM_UP, seed=size.users)
    again = [about_another(corpus, size, number, chance) for number, _ in first]
    embedder.prepare([text for _, text in (*first, *again)])
    with Memory(url, tenant=TENANT, embedder=embedder, extraction=None) as memory:

        def ask(one: tuple[int, str], **how: Any) -> tuple[float, Any]:
            number, text = one
            began = time.perf_counter()
            user = scope_of(size.each, number // size.each).user
            recall = memory.recall(text, user=user, limit=LIMIT, **how)
            return (time.perf_counter() - began) * 1_000, recall

        begun = [ask(one, deadline_ms=None)[0] for one in first[:WARM_UP]]
        cold = asked(ask, first[WARM_UP:], server)
        for one in first[WARM_UP:]:  # until all is read: what is late is given up
            ask(one, deadline_ms=None)
        warm = asked(ask, again[WARM_UP:], server)
        return {"first_ms": begun[0], "cold": cold, "warm": warm}


def about_another(
    corpus: Corpus, size: Size, number: int, chance: np.random.Generator
) -> tuple[int, str]:
    """A question about another text of the same user."""
    while True:
        other = number - number % size.each + int(chance.integers(size.each))
        if question := corpus.question(other, chance):
            return other, question


def asked(ask: Callable[..., tuple[float, Any]], questions: Asked, server: int) -> Figures:
    """The time of each recall at the default deadline, and what processors spent on it."""
    client, theirs = time.process_time(), server_seconds(server)
    answers = [ask(one) for one in questions]
    late = Counter(name for _, recall in answers for name in recall.late)
    return {
        **percentiles([took for took, _ in answers]),
        "late": sum(bool(recall.late) for _, recall in answers) / len(answers),
        "late_channels": dict(late),
        "hits": float(np.mean([len(recall.hits) for _, recall in answers])),
        "client_ms": (time.process_time() - client) / len(answers) * 1_000,
        "server_ms": (server_seconds(server) - theirs) / len(answers) * 1_000,
    }


def server_seconds(process: int) -> float:
    """The processor time of a server and all of its children so far."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if stat.parent.name == str(process):
            ticks += sum(map(int, fields[11:15]))  # its own, and those of children that ended
        elif fields[1] == str(process):
            ticks += sum(map(int, fields[11:13]))
    return ticks / TICKS_PER_S


def grid_of(found: Sequence[Figures]) -> Grid:
    rest = ("p95", "late", "CPU")
    columns: tuple[str, ...] = (
        "users × messages",
        "GB",
        "load s",
        "first recall ms",
        "cold: p50",
        *rest,
    )
    columns += ("warm: p50", *rest, "load")
    rows = [
        (
            one["size"],
            f"{one['bytes'] / 1e9:.1f}",
            f"{one['load_s']:,.0f}",
            f"{one['first_ms']:,.0f}",
            *cells(one["cold"]),
            *cells(one["warm"]),
            f"{one['load']:.1f}",
        )
        for one in found
    ]
    return Grid("Recall of bulk-loaded users, default deadline", columns, rows)


def cells(figures: Figures) -> tuple[str, ...]:
    cpu = f"{figures['client_ms']:.1f} + {figures['server_ms']:.1f}"
    return f"{figures['p50']:.1f}", f"{figures['p95']:.1f}", f"{figures['late']:.0%}", cpu
