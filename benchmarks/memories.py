"""What the model-free pipeline makes of LoCoMo: how many memories, how many twins, of which kind.

Run with `python -m benchmarks.memories`; `make bench` does. Whether recall gains or loses by
them is told by `make bench-recall`, with and without `--no-memories`.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.asking import told
from benchmarks.locomo import Locomo
from memorist import Memory, MemoryItem

ROOT = Path(__file__).parent.parent
MOST_MEMORIES = 0.25  # of the messages
MOST_TWINS = 0.01  # of the memories


def main() -> None:
    """Put every conversation in, wait, and count what came of it."""
    options = parser().parse_args()
    dataset = Locomo.load(options.data)
    users = list(dict.fromkeys(question.user for question in dataset.questions))
    with (
        tempfile.TemporaryDirectory(prefix="memorist-bench-") as folder,
        Memory(Path(folder) / "locomo.db", embedder=None) as memory,
    ):
        messages = 0
        started = time.perf_counter()
        for user in told(users, "remembering"):
            for session, said in dataset.history(user):
                messages += memory.remember(said, user=user, session=session).added
        memory.jobs.catch_up()
        took = time.perf_counter() - started
        report(Console(), memory, users, messages, took)
        if options.show:
            show(memory, users, options.show)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.memories", description=__doc__)
    made.add_argument("--data", type=Path, default=ROOT / "../shared/data", metavar="DIR")
    made.add_argument("--show", type=int, default=0, metavar="N", help="print so many of them")
    return made


def report(console: Console, memory: Memory, users: list[str], messages: int, took: float) -> None:
    """The figures, beside the aims."""
    items = [item for user in users for item in memory.memories.list(user=user)]
    facts = sum(len(memory.facts.as_of(user=user, valid=datetime.now(UTC))) for user in users)
    audits = [memory.memories.audit(user=user) for user in users]
    twins = sum(len(audit.flagged("duplicate")) for audit in audits)
    table = Table(title="LoCoMo, without a model", box=None, pad_edge=False)
    for name in ("measure", "value", "aim"):
        table.add_column(name)
    share, doubled = len(items) / messages, twins / max(len(items), 1)
    table.add_row("messages", f"{messages:,}")
    table.add_row("memories", f"{len(items):,}")
    table.add_row("memories a message", f"{share:.3f}", f"<= {MOST_MEMORIES}")
    table.add_row("near-duplicates", f"{doubled:.2%}", f"< {MOST_TWINS:.0%}")
    table.add_row("facts that hold", f"{facts:,}")
    for name, counted in (
        ("category", Counter(item.category for item in items)),
        ("kind", Counter(item.kind for item in items)),
        ("audit", sum((Counter(audit.counts) for audit in audits), Counter())),
    ):
        told = ", ".join(f"{value} {count}" for value, count in counted.most_common())
        table.add_row(name, told or "nothing")
    table.add_row("messages a second", f"{messages / took:,.0f}")
    console.print(table)


def show(memory: Memory, users: list[str], count: int) -> None:
    """Some memories, to be read."""
    items: list[MemoryItem] = [item for user in users for item in memory.memories.list(user=user)]
    for item in random.Random(1).sample(items, min(count, len(items))):
        print(f"{item.kind:10} {item.category:17} {item.text}")


if __name__ == "__main__":
    main()
