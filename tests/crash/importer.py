"""A process that imports: `python -m tests.crash.importer TARGET EXPORT`.

It says "writing" when it begins to write, and "done" at its end.
"""

from __future__ import annotations

import os
import sys

from memorist import Memory
from memorist.transfer.importing import Progress, run_import
from memorist.transfer.source import Source
from tests.crash.evidence import open_store


def main(target: str, export: str) -> None:
    told: list[bool] = []

    def tell(progress: Progress) -> None:
        if progress.writing and not told:
            told.append(True)
            os.write(1, b"writing\n")

    with Memory(open_store(target), embedder=None, extraction=None) as memory:
        run_import(memory, Source(export), user="ada", on_progress=tell)
    os.write(1, b"done\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
