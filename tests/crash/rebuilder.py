"""A process that rebuilds what was derived: `python -m tests.crash.rebuilder TARGET LATER`.

It says "ready", and "done" at its end. Its clock is LATER seconds ahead.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from memorist import Memory
from memorist.lifecycle.settings import Extraction
from memorist.records.values import now
from tests.crash.evidence import open_store
from tests.support.models import WordEmbedder

if TYPE_CHECKING:
    from memorist.providers.embedder import Vectors

EXTRACTION = Extraction(maintain_every=0)


class SlowEmbedder(WordEmbedder):
    """Takes its time, so that a process can be killed meanwhile."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        time.sleep(0.01 * len(texts))
        return super().embed(texts)


def main(target: str, later: str) -> None:
    store = open_store(target)
    store._clock = lambda: now() + timedelta(seconds=float(later))
    with Memory(store, embedder=SlowEmbedder(), extraction=EXTRACTION) as memory:
        os.write(1, b"ready\n")
        memory.jobs.rebuild(user="ada")
        assert memory.jobs.catch_up() == 0
    os.write(1, b"done\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
