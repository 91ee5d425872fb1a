"""How fast a memory takes in what it is told: messages a second until every view is ready.

Run with `python -m benchmarks.ingest`; `make bench-ingest` does. Messages of LoCoMo are remembered
one by one, with the defaults, until there are enough; the talks are told again under other names
where they do not suffice. The clock stops when vectors, memories and facts of all are there.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.locomo import Locomo
from memorist import Memory, Message

ROOT = Path(__file__).parent.parent
AIM = 150.0  # messages a second on two processors


def main() -> None:
    options = parser().parse_args()
    dataset = Locomo.load(options.data)
    with Memory(":memory:") as memory:  # the model and the words are read once
        memory.remember("I moved to Berlin in March.", user="ada")
        memory.jobs.catch_up()
    with tempfile.TemporaryDirectory(prefix="memorist-bench-") as folder:
        figures = ingest(Path(folder) / "ingest.db", dataset, options.messages, options.users)
    table = Table("measure", "value", title="ingest", box=None, pad_edge=False)
    for name, value in figures.items():
        table.add_row(name, value)
    Console().print(table)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.ingest", description=__doc__)
    made.add_argument("--data", type=Path, default=ROOT / "../shared/data", metavar="DIR")
    made.add_argument("--messages", type=int, default=10_000, metavar="N")
    made.add_argument("--users", type=int, default=20, metavar="N", help="who share them")
    return made


def ingest(path: Path, dataset: Locomo, count: int, users: int) -> dict[str, str]:
    """Remember so many messages, wait for their views, and report."""
    told = list(itertools.islice(talk(dataset, users), count))
    with Memory(path) as memory:
        began, cpu = time.perf_counter(), time.process_time()
        for user, session, message in told:
            memory.remember(message, user=user, session=session)
        remembered = time.perf_counter() - began
        left = memory.jobs.catch_up()
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        names = sorted({user for user, *_ in told})
        memories = sum(len(memory.memories.list(user=name)) for name in names)
        facts = sum(len(memory.facts.list(user=name)) for name in names)
    return {
        "messages": f"{count:,} of {len(names)} users, {left} jobs left",
        "memories, facts": f"{memories:,}, {facts:,}",
        "remembered in": f"{remembered:.1f} s",
        "all views after": f"{took:.1f} s",
        "messages a second": f"{count / took:.1f} (aim: {AIM:.0f} on two processors)",
        "processor time a message": f"{cpu / count * 1e3:.1f} ms on {os.cpu_count()} processors",
    }


def talk(dataset: Locomo, users: int) -> Iterator[tuple[str, str, Message]]:
    """Who says what in which session: all talks, again and again."""
    talks = list(dict.fromkeys(question.user for question in dataset.questions))
    for number in itertools.count():
        name = talks[number % len(talks)]
        for session, messages in dataset.history(name):
            for message in messages:
                yield f"user {number % users}", f"{number} {session}", message


if __name__ == "__main__":
    main()
