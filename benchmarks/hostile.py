"""What one user's hostile messages cost another user of the same server.

Run with `make bench-hostile` or `python -m benchmarks.hostile`. One server process on a new
SQLite file with default settings, but for the limit of requests, which is off. Mallory sends
1,000 messages of 64 kB as fast as four connections take them, of shapes that take other programs
seconds each; meanwhile Ada appends and recalls at a steady rate, and `/health` is asked. What Ada
waits is compared with what she waits on the same server when nobody disturbs her.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.load import Connection, Took, connected, request, steady, timed
from benchmarks.server import running

SHAPES = [
    "我昨天晚上和我的几个好朋友一起去看了一部非常精彩的电影",
    "Ich mag Äpfel, Birnen, Brot, Käse, ",
    "We don't love a, a, a, ",
    "aGVsbG8gd29ybGQ d29ybGQ ",
    "e\u0301\u0323\u0301",
    "\u0301",
    "I like the I like the ",
    "password password is ",
    "((((((((",
    "[image:[image:",
    "```\n~~~",
    "“«„「",
    "a.b/c.d/",
    "4111 1111 ",
    "My wife Anna works at Google in Berlin since May. ",
]
CONNECTIONS = 4
PER_S = 10.0  # of Ada's appends and recalls each, and of /health


@dataclass
class Run:
    """What Ada and `/health` waited, and what Mallory sent, in one run."""

    append: Took
    recall: Took
    health: Took
    hostile: Took


def main() -> None:
    """Measure Ada alone, then beside Mallory, and print both."""
    options = parser().parse_args()
    pid: list[int] = []
    with tempfile.TemporaryDirectory(prefix="memorist-hostile-") as folder:
        path = Path(folder) / "memory.db"
        keys = {user: _key(path, user) for user in ("ada", "mallory")}
        command = ["memorist", "serve", "--port", "0", "--rate", "0", "--create", "--db", str(path)]
        with running(*command, pid=pid) as url:
            alone = asyncio.run(measure(url, keys, options, hostile=0))
            before = _resident_mb(pid[0])
            beside = asyncio.run(measure(url, keys, options, hostile=options.messages))
            after = _resident_mb(pid[0])
    show(alone, beside, before, after)


def _key(path: Path, user: str) -> str:
    create = [sys.executable, "-m", "memorist", "keys", "create", "--user", user, "--db", str(path)]
    shown = subprocess.run(create, capture_output=True, text=True, check=True).stdout
    return next(word for word in shown.split() if word.startswith("mk_"))


def _resident_mb(pid: int) -> float:
    """The most memory that a process had, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1_000


async def measure(
    url: str, keys: dict[str, str], options: argparse.Namespace, *, hostile: int
) -> Run:
    """Ada's appends and recalls and `/health` at a steady rate, until Mallory is through."""
    hostile_took, stop = Took(), asyncio.Event()

    def append(number: int) -> bytes:
        said = {"role": "user", "content": f"On day {number} I planted {number} trees in Graz."}
        return request(url, "POST", "/api/messages", json.dumps(said).encode(), keys["ada"])

    def recall(number: int) -> bytes:
        sought = {"question": f"How many trees did I plant on day {number % 50}?"}
        return request(url, "POST", "/api/recall", json.dumps(sought).encode(), keys["ada"])

    health = itertools.repeat(request(url, "GET", "/health"))
    kinds = [map(append, itertools.count()), map(recall, itertools.count()), health]
    tooks = [Took() for _ in kinds]

    async def steadily(requests: Iterator[bytes], took: Took) -> None:
        while not stop.is_set():
            took.more(await steady(url, requests, rate=PER_S, connections=4, seconds=2.0))

    asking = [asyncio.create_task(steadily(*pair)) for pair in zip(kinds, tooks, strict=True)]
    if hostile:
        await send(url, _hostile(url, keys["mallory"], options), hostile, hostile_took)
    else:
        await asyncio.sleep(options.seconds)
    stop.set()
    await asyncio.gather(*asking)
    append_took, recall_took, health_took = tooks
    return Run(append_took, recall_took, health_took, hostile_took)


def _hostile(url: str, key: str, options: argparse.Namespace) -> Iterator[bytes]:
    size = options.kilobytes * 1_000
    for number, shape in enumerate(itertools.cycle(SHAPES)):
        text = f"{number} {shape * (size // len(shape.encode()))}"
        said = {"role": "user", "content": text}
        yield request(url, "POST", "/api/messages", json.dumps(said).encode(), key)


async def send(url: str, requests: Iterator[bytes], count: int, took: Took) -> None:
    """So many requests, as fast as a few connections take them."""
    left = itertools.islice(requests, count)

    async def work(connection: Connection) -> None:
        for sent in left:
            await timed(connection, sent, time.perf_counter(), took)

    began = time.perf_counter()
    async with connected(url, CONNECTIONS) as pool:
        await asyncio.gather(*map(work, pool))
    took.lasted_s = time.perf_counter() - began


def show(alone: Run, beside: Run, before: float, after: float) -> None:
    """Print what was measured."""
    table = Table("request", "alone p50", "p99 ms", "beside p50", "p99 ms", "longest", "errors")
    for name in ("append", "recall", "health"):
        one, two = getattr(alone, name), getattr(beside, name)
        longest = max(two.seconds, default=0.0) * 1_000
        figures = [one.ms(50), one.ms(99), two.ms(50), two.ms(99), longest]
        table.add_row(name, *(f"{figure:,.1f}" for figure in figures), str(len(two.errors)))
    console = Console(width=100)
    console.print(table)
    sent = beside.hostile
    console.print(
        f"{len(sent.seconds):,} hostile messages stored in {sent.lasted_s:,.0f} s, "
        f"{len(sent.errors)} refused; most memory: {before:,.0f} MB before, {after:,.0f} MB after"
    )


def parser() -> argparse.ArgumentParser:
    """The options of the command line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--messages", type=int, default=1_000)
    options.add_argument("--kilobytes", type=int, default=64)
    options.add_argument("--seconds", type=float, default=20.0, help="that Ada is measured alone")
    return options


if __name__ == "__main__":
    main()
