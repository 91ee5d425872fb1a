"""`python -m benchmarks.transfer`: imports beside the store's own batch append, and their memory.

An export of synthetic conversations is made (`--megabytes`), imported in a process of its own, and
the growth of that process's memory is measured. The same messages are appended to another
store, in batches of 1,000, in the same run: the ratio of the two speeds is what counts.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from memorist import Memory, Message
from memorist.transfer.importing import Progress, run_import
from memorist.transfer.source import Source

WORDS = Path(__file__).read_text().split()
MESSAGES = 20  # of a conversation
BATCH = 1_000


def conversations(megabytes: float) -> Iterator[dict[str, Any]]:
    """Conversations of so many megabytes in all, the same at every call."""
    chance, size, number = random.Random(1), 0.0, 0
    while size < megabytes * 1e6:
        texts = [" ".join(chance.choices(WORDS, k=chance.randint(5, 120))) for _ in range(MESSAGES)]
        roles = ("user", "assistant")
        said = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
        yield {"id": f"c{number}", "created_at": 1.7e9 + 60 * number, "messages": said}
        size += sum(len(text) + 40 for text in texts)
        number += 1


def memory_megabytes(field: str) -> float:
    """What the kernel says of this process: `VmRSS` now, `VmHWM` at most."""
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index(f"{field}:") + 1]) / 1_000


def import_it(database: str, export: str) -> None:
    """Import, and print what it took."""
    steps: list[Progress] = []
    with Memory(database, embedder=None, extraction=None) as memory:
        memory.remember("warm up", user="nobody")
        before, began = memory_megabytes("VmRSS"), time.perf_counter()
        report = run_import(memory, Source(export), user="ada", on_progress=steps.append)
        seconds = time.perf_counter() - began
    result = {"messages": report.added["messages"], "seconds": seconds, "steps": len(steps)}
    most = memory_megabytes("VmHWM")
    print(json.dumps({**result, "grew_by": most - before, "rss": most}))


def append(database: Path, megabytes: float) -> float:
    """Messages a second of the store's own batch append, of the same messages."""
    said = (Message(**one) for talk in conversations(megabytes) for one in talk["messages"])
    count, seconds = 0, 0.0
    with Memory(database, embedder=None, extraction=None) as memory:
        while batch := list(islice(said, BATCH)):
            began = time.perf_counter()
            memory.remember(batch, user="ada", session=f"s{count}")
            seconds += time.perf_counter() - began
            count += len(batch)
    return count / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--only", nargs=2, help="a database and an export to import")
    options = parser.parse_args()
    if options.only:
        import_it(*options.only)
        return
    with tempfile.TemporaryDirectory() as folder:
        export = Path(folder, "export.jsonl")
        with export.open("w") as file:
            file.writelines(f"{json.dumps(talk)}\n" for talk in conversations(options.megabytes))
        command = [sys.executable, "-m", "benchmarks.transfer", "--only"]
        command += [str(Path(folder, "import.db")), str(export)]
        done = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        own = append(Path(folder, "append.db"), options.megabytes)
    speed = done["messages"] / done["seconds"]
    print(f"{options.megabytes:,.0f} MB, {done['messages']:,} messages in {done['seconds']:,.0f} s")
    print(f"import {speed:,.0f}/s, append {own:,.0f}/s: {speed / own:.2f} of it")
    print(f"memory grew by {done['grew_by']:,.0f} MB to {done['rss']:,.0f} MB")
    print(f"the bar moved {done['steps']:,} times")


if __name__ == "__main__":
    main()
