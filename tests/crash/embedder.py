"""A process with an embedder: `python -m tests.crash.embedder PATH NAME COUNT`.

It says "ready" and waits for a line. Then it remembers and recalls, and its background threads
work until nothing is left. Each error that it or one of its threads meets is written as a line.
"""

from __future__ import annotations

import logging
import os
import sys

from memorist import Memory
from tests.support.models import WordEmbedder


def main(path: str, name: str, count: str) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stdout)
    os.write(1, b"ready\n")
    sys.stdin.readline()
    with Memory(path, embedder=WordEmbedder()) as memory:
        for number in range(int(count)):
            memory.remember(f"{name} moved to town {number}.", user=name)
            memory.recall("where is the town?", user=name)
        assert memory.jobs.catch_up(timeout_s=120) == 0


if __name__ == "__main__":
    main(*sys.argv[1:])
