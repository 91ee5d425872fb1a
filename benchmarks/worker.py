"""What extraction costs whoever speaks: `remember` beside a model in trouble, and the rules' speed.

Run with `python -m benchmarks.worker`. A memory whose model fails and one that leaves extraction
to others take turns, message by message, so that a busy machine slows both; the ratio of the
medians is the figure to look at. It should stay below 1.2.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.support.model_server import FAILURES, ModelServer

from memorist import Memory
from memorist.lifecycle.settings import Extraction
from memorist.providers.openai_chat import OpenAIChat

MESSAGES = 300
PAUSE_S = 0.005  # people do not speak without a break: the worker gets its turns
SESSIONS = 5
RULED = 2_000
AIM = 1.2
SAYINGS = (
    "I moved to Berlin in March, flat number {}.",
    "Could you look up the timetable of tram {} for me?",
    "I prefer tea number {} over coffee.",
    "The build {} failed with a timeout; raising the limit fixed it.",
    "Thanks, that is all for today, number {}.",
)


def main() -> None:
    logging.getLogger("memorist").setLevel(logging.ERROR)  # that the model fails is known
    table = Table("model", "remember, ms", "without extraction, ms", "ratio", title="remember")
    with tempfile.TemporaryDirectory() as folder:
        for mode in ("none", "ok", *FAILURES):
            mine, plain = remember_beside(Path(folder), mode)
            ratio = mine / plain
            figures = (f"{mine * 1e3:.2f}", f"{plain * 1e3:.2f}", f"{ratio:.2f}")
            table.add_row(mode, *figures, style="" if ratio < AIM else "bold red")
        rate, made = think_by_rules(Path(folder))
    console = Console()
    console.print(table)
    console.print(f"by rules: {rate:,.0f} messages a second, {made} memories of {RULED:,} messages")


def remember_beside(folder: Path, mode: str) -> tuple[float, float]:
    """The median seconds of `remember` with a model in this mode, and without any extraction.

    With the mode "none", there is extraction by rules.
    """
    with served("ok" if mode == "none" else mode) as url:
        model = None if mode == "none" else OpenAIChat("any", url=url)
        extraction = Extraction(model=model, timeout_s=2.0)
        with (
            Memory(folder / f"{mode}.db", embedder=None, extraction=extraction) as mine,
            Memory(folder / f"{mode}-plain.db", embedder=None, extraction=None) as plain,
        ):
            times: tuple[list[float], list[float]] = ([], [])
            for number in range(MESSAGES):
                for memory, taken in zip((mine, plain), times, strict=True):
                    taken.append(_timed(memory, number))
                    time.sleep(PAUSE_S)
    return statistics.median(times[0]), statistics.median(times[1])


@contextlib.contextmanager
def served(mode: str) -> Iterator[str]:
    """The address of a server in a process of its own: what it does is not ours to pay."""
    processes = multiprocessing.get_context("spawn")
    ours, theirs = processes.Pipe()
    process = processes.Process(target=_serve, args=(mode, theirs), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send("done")
        process.join()


def _serve(mode: str, told: Connection) -> None:
    with ModelServer(mode=mode) as server:  # type: ignore[arg-type]
        told.send(server.url)
        told.recv()


def _timed(memory: Memory, number: int) -> float:
    text = SAYINGS[number % len(SAYINGS)].format(number)
    began = time.perf_counter()
    memory.remember(text, user="ada", session=f"talk{number % SESSIONS}")
    return time.perf_counter() - began


def think_by_rules(folder: Path) -> tuple[float, int]:
    """Messages a second that the rules make memories of, and how many memories that gives."""
    path = folder / "rules.db"
    with Memory(path, embedder=None, extraction=None) as memory:
        for number in range(RULED):
            text = SAYINGS[number % len(SAYINGS)].format(number)
            memory.remember(text, user=f"user{number % 20}")
    with Memory(":memory:", embedder=None) as memory:  # the words are read once
        memory.remember(SAYINGS[0], user="ada")
        memory.jobs.catch_up()
    with Memory(path, embedder=None) as memory:
        began = time.perf_counter()
        memory.jobs.catch_up()
        took = time.perf_counter() - began
        made = sum(len(memory.memories.list(user=f"user{number}")) for number in range(20))
    return RULED / took, made


if __name__ == "__main__":
    main()
