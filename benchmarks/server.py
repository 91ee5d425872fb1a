"""What `memorist serve` holds on this machine, and what it costs beside an empty handler.

Run with `make bench-server` or `python -m benchmarks.server`. Server processes on a new SQLite
file with default settings, but for the limit of 100 requests a second of one caller, which is
off. One user's messages are stored and indexed before, so that recall has something to do. Each
kind of request is sent flat out first, in turns with an empty Starlette handler on a uvicorn of
the same settings; then at a steady rate, counted from when each request was due, with `/health`
asked beside it. The load runs on the same machine, which is part of what it measures.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from rich.console import Console
from rich.table import Table

from benchmarks.load import Requests, Took, flat_out, in_turn, request, steady
from benchmarks.scale_corpus import Corpus
from memorist import Memory

CORPUS = Corpus()
SESSIONS = 20  # that appends go to
SHARE = 0.7  # of what it does flat out, to begin with
TRIAL_S = 5.0
HEALTH_PER_S = 20.0
MAY_LAG = 1.05  # a rate is held if the last answer is no later than this times the time
DRAIN_S = 600.0
console = Console(width=120)


@dataclass(frozen=True)
class Server:
    """Our server, and what it is asked."""

    url: str
    kinds: dict[str, Requests]


@dataclass(frozen=True)
class Held:
    """A rate, and how it went, with `/health` beside it."""

    name: str
    rate: float
    took: Took
    health: Took

    def good(self, seconds: float) -> bool:
        return not self.took.errors and self.took.lasted_s <= MAY_LAG * seconds + 1


def main() -> None:
    """Fill, serve, measure, print, and leave the figures in bench-results/server.json."""
    options = parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="memorist-bench-") as folder:
        path = Path(folder) / "memory.db"
        fill(path, options.messages)
        ours = ["memorist", "serve", "--port", "0", "--rate", "0", "--user", "ada"]
        ours += ["--workers", str(options.workers), "--db", str(path)]
        with running(*ours) as url, running("benchmarks.server_empty") as empty:
            server = Server(url, asked(url, options.messages))
            most = asyncio.run(compare(server, empty, options))
            show_most(most, options)
            held = [hold(server, name, most, options) for name in (*KINDS, "mix")]
            show_held(held, options)
    save(most, held)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.server", description=__doc__)
    made.add_argument("--seconds", type=float, default=60, help="that each rate is held")
    made.add_argument("--rate", type=float, help="requests a second; else one that holds is found")
    made.add_argument("--messages", type=int, default=10_000, help="stored before")
    made.add_argument("--workers", type=int, default=1, help="processes that serve")
    made.add_argument("--connections", type=int, default=8)
    made.add_argument("--rounds", type=int, default=4, help="of each kind flat out, 2 s each")
    return made


def fill(path: Path, count: int) -> None:
    """One user's messages, with all that recall looks at."""
    began = time.perf_counter()
    with Memory(path) as memory:
        for start in range(0, count, 500):
            texts = list(CORPUS.texts(start, min(start + 500, count)))
            memory.remember(texts, user="ada", agent="bench", session=f"before{start}")
        memory.jobs.catch_up()
    console.print(f"{count:,} messages stored and indexed in {time.perf_counter() - began:,.0f} s")


@contextmanager
def running(*command: str, pid: list[int] | None = None) -> Iterator[str]:
    """The address of a server that runs as a process of its own, once it answers; its id."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("MEMORIST_")}
    start = [sys.executable, "-m", *command]
    with subprocess.Popen(
        start,
        text=True,
        env=known,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # it tells of each late recall; we count them
    ) as child:
        try:
            assert child.stdout is not None
            if pid is not None:
                pid.append(child.pid)
            lines = (line.split() for line in child.stdout)
            url = next(words[1] for words in lines if words[:1] == ["page"])
            while not _answers(url):
                time.sleep(0.1)
            yield url
        finally:
            child.terminate()


def _answers(url: str) -> bool:
    try:
        with urlopen(f"{url}/health") as answer:
            return bool(answer.status == 200)
    except URLError:
        return False


def append(url: str, _: list[str], number: int) -> bytes:
    said = {"role": "user", "content": CORPUS.text(number), "session": f"s{number % SESSIONS}"}
    return request(url, "POST", "/api/messages", json.dumps(said).encode())


def recall(url: str, questions: list[str], number: int) -> bytes:
    sought = {"question": questions[number % len(questions)]}
    return request(url, "POST", "/api/recall", json.dumps(sought).encode())


def chat(url: str, questions: list[str], number: int) -> bytes:
    said = {"message": questions[number % len(questions)], "agent_id": "bench"}
    return request(url, "POST", "/api/chat", json.dumps(said).encode())


KINDS = {"append": append, "recall": recall, "chat": chat}


def asked(url: str, count: int) -> dict[str, Requests]:
    """Requests of each kind without end; texts go on where those stored before ended."""
    questions = [question for _, question in CORPUS.questions(count, 500, seed=5)]
    kinds: dict[str, Requests] = {
        name: map(partial(make, url, questions), itertools.count(count))
        for name, make in KINDS.items()
    }
    kinds["health"] = itertools.repeat(request(url, "GET", "/health"))
    kinds["mix"] = in_turn(*(kinds[name] for name in KINDS))
    return kinds


async def compare(server: Server, empty: str, options: argparse.Namespace) -> dict[str, Took]:
    """Everything flat out, round by round, so that a busy machine slows all alike."""
    most = {name: Took() for name in ("empty", "health", *KINDS)}
    nothing: Requests = itertools.repeat(request(empty, "GET", "/health"))
    for _ in range(options.rounds):
        for name, took in most.items():
            url, requests = server.url, server.kinds.get(name)
            if requests is None:
                url, requests = empty, nothing
            took.more(await flat_out(url, requests, connections=options.connections, seconds=2))
        drain(server)
    return most


def drain(server: Server) -> None:
    """Wait until what was stored is indexed, so that it does not slow what comes next."""
    limit = time.monotonic() + DRAIN_S
    while time.monotonic() < limit:
        with urlopen(f"{server.url}/api/waiting") as answer:
            if not any(json.load(answer)["waiting"].values()):
                return
        time.sleep(0.2)
    console.print("what was stored is still being indexed; the next figures suffer from it")


def hold(server: Server, name: str, most: dict[str, Took], options: argparse.Namespace) -> Held:
    """The rate given, or the first that holds for all of the time; a short trial goes before."""
    rate = options.rate or round(SHARE * flat_rate(name, most), 1)
    while True:
        for seconds in (options.seconds,) if options.rate else (TRIAL_S, options.seconds):
            found = asyncio.run(at_rate(server, name, rate, seconds, options.connections))
            drain(server)
            if not found.good(seconds):
                console.print(f"{name}: {rate} a second did not hold for {seconds:.0f} s")
                break
        else:
            return found
        if options.rate or rate < 1:
            return found
        rate = round(rate * SHARE, 1)


def flat_rate(name: str, most: dict[str, Took]) -> float:
    """What one kind does a second flat out; of a mix, as one after another."""
    names = KINDS if name == "mix" else [name]
    return statistics.harmonic_mean([most[one].per_s for one in names])


async def at_rate(server: Server, name: str, rate: float, seconds: float, connections: int) -> Held:
    """One kind at a steady rate, and `/health` beside it."""
    load = steady(
        server.url, server.kinds[name], rate=rate, connections=connections, seconds=seconds
    )
    beside = steady(
        server.url, server.kinds["health"], rate=HEALTH_PER_S, connections=1, seconds=seconds
    )
    took, health = await asyncio.gather(load, beside)
    return Held(name, rate, took, health)


def show_most(most: dict[str, Took], options: argparse.Namespace) -> None:
    console.print(
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
        f"Python {platform.python_version()}, server processes: {options.workers}, with default "
        f"settings, rate limit off; messages: {options.messages:,}, connections: "
        f"{options.connections}"
    )
    table = Table(title="Flat out, beside an empty Starlette handler")
    columns = ("request", "a second", "p50 ms", "p99 ms", "errors", "late", "of the empty handler")
    for column in columns:
        table.add_column(column, justify="left" if column == "request" else "right")
    for name, took in most.items():
        ratio = took.per_s / most["empty"].per_s
        table.add_row(
            name,
            f"{took.per_s:,.0f}",
            f"{took.ms(50):.1f}",
            f"{took.ms(99):.1f}",
            str(len(took.errors)),
            _late(took),
            f"{ratio:.3f}",
        )
    console.print(table)


def show_held(held: list[Held], options: argparse.Namespace) -> None:
    table = Table(title=f"Held for {options.seconds:.0f} s, with /health beside it")
    columns = ("request", "a second", "answers", "errors", "late", "p50 ms", "p95 ms", "p99 ms")
    for column in (*columns, "held", "/health p50", "/health p99"):
        table.add_column(column, justify="left" if column == "request" else "right")
    for one in held:
        times = [f"{one.took.ms(percent):.1f}" for percent in (50, 95, 99)]
        health = [f"{one.health.ms(percent):.1f}" for percent in (50, 99)]
        table.add_row(
            one.name,
            f"{one.rate:,.1f}",
            f"{len(one.took.seconds):,}",
            str(len(one.took.errors)),
            _late(one.took),
            *times,
            "yes" if one.good(options.seconds) else "no",
            *health,
        )
    console.print(table)
    for wrong in {error for one in held for error in (*one.took.errors, *one.health.errors)}:
        console.print(wrong, markup=False)


def _late(took: Took) -> str:
    """The share of recalls that named a channel as late: they answer with what they have."""
    return f"{took.late / len(took.seconds):.0%}" if took.late else "-"


def save(most: dict[str, Took], held: list[Held]) -> None:
    results = Path("bench-results")
    results.mkdir(exist_ok=True)
    figures = {
        "flat_out": {name: _figures(took) for name, took in most.items()},
        "held": {
            one.name: {"rate": one.rate, **_figures(one.took), "health": _figures(one.health)}
            for one in held
        },
    }
    (results / "server.json").write_text(json.dumps(figures, indent=2))


def _figures(took: Took) -> dict[str, float]:
    times = {f"p{percent}_ms": round(took.ms(percent), 2) for percent in (50, 95, 99)}
    counts = {"errors": len(took.errors), "late": took.late}
    return {"per_s": round(took.per_s, 1), **counts, **times}


if __name__ == "__main__":
    main()
