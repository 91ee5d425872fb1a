"""What the memory adds to an agent's turn, beside the same agent without it, in one run.

Run with `python -m benchmarks.middleware`. The model answers at once, so that all there is to
measure is ours. The middleware may add 30 ms to a turn beyond the deadline of recall.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage

from benchmarks.scale_corpus import Corpus
from memorist import Memory
from memorist.agents.middleware import MemoristMiddleware

CORPUS = Corpus()
DEADLINE_MS = 50.0
MAY_ADD_MS = 30.0
WARM = 5
CPU = ("without, CPU", "with, CPU")  # which other programs of a busy machine hardly change


def main() -> None:
    """Ask in turns with and without a memory, and print what it adds."""
    options = parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="memorist-bench-") as folder:
        embedder: dict[str, Any] = {} if options.vectors else {"embedder": None}
        with Memory(Path(folder) / "memory.db", extraction=None, **embedder) as memory:
            fill(memory, options.messages)
            report(measure(memory, options), options)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.middleware", description=__doc__)
    made.add_argument("--messages", type=int, default=2_000, help="remembered before")
    made.add_argument("--turns", type=int, default=100)
    made.add_argument("--vectors", action="store_true", help="with the local embedder")
    made.add_argument("--hurried", action="store_true", help="no turn waits for what the last left")
    return made


def fill(memory: Memory, count: int) -> None:
    """Other sessions of the same user, with all that recall looks at."""
    for start in range(0, count, 500):
        memory.remember(list(CORPUS.texts(start, start + 500)), user="ada", agent="bench")
    memory.jobs.catch_up()
    memory.warm_up()


def measure(memory: Memory, options: argparse.Namespace) -> dict[str, list[float]]:
    """Milliseconds of turns, both agents in turn, so that noise meets them alike.

    A model takes seconds, in which what the last turn said gets its vectors; ours takes none, so
    that is waited for between turns, unless they are `hurried`.
    """
    middleware = MemoristMiddleware(memory, user="ada", agent="bench", session="now")
    agents: dict[str, Any] = {
        "without": create_agent(FakeListChatModel(responses=["Yes."])),
        "with": create_agent(FakeListChatModel(responses=["Yes."]), middleware=[middleware]),
    }
    took: dict[str, list[float]] = {name: [] for name in (*agents, *CPU, "recall")}
    for number, (_, question) in enumerate(CORPUS.questions(1_000, options.turns + WARM, seed=3)):
        for name, agent in agents.items():
            before, cpu_before = time.perf_counter(), time.process_time()
            agent.invoke({"messages": [HumanMessage(question)]})
            if number >= WARM:
                took[name].append((time.perf_counter() - before) * 1_000)
                took[f"{name}, CPU"].append((time.process_time() - cpu_before) * 1_000)
        if not options.hurried:
            memory.jobs.catch_up()
        receipt = middleware.last_receipt
        if number >= WARM and receipt is not None:
            took["recall"].append(receipt.timings_ms.get("total", 0.0))
    return took


def report(took: dict[str, list[float]], options: argparse.Namespace) -> None:
    how = f"vectors: {options.vectors}, hurried: {options.hurried}"
    print(f"{options.messages:,} messages, {options.turns} turns, {how}")
    print("| turn | p50 ms | p95 ms |\n|---|---:|---:|")
    for name, times in took.items():
        print(f"| {name} | {statistics.median(times):.1f} | {p95(times):.1f} |")
    added = [one - other for one, other in zip(took["with"], took["without"], strict=True)]
    print(f"| added | {statistics.median(added):.1f} | {p95(added):.1f} |")
    ratio = statistics.median(took[CPU[1]]) / statistics.median(took[CPU[0]])
    print(
        f"a turn takes {ratio:.1f} times the CPU of one without; aim: p50 added {MAY_ADD_MS:.0f} ms"
    )
    beyond = p95(added) - DEADLINE_MS
    print(f"p95 beyond recall's deadline: {beyond:.1f} ms, aim at most {MAY_ADD_MS:.0f}")


def p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


if __name__ == "__main__":
    main()
