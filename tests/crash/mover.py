"""A process that restores or promotes: `python -m tests.crash.mover WHAT SOURCE TARGET`.

It works in small steps, says "step" after each, and "done" at its end.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from memorist import Memory, archive
from memorist.runtime import open_store
from memorist.store.base import Store

restore = Store.restore


def restore_and_tell(*args: Any, **named: Any) -> Any:
    """Restore a batch, and say so."""
    outcomes = restore(*args, **named)
    os.write(1, b"step\n")
    return outcomes


def main(what: str, source: str, target: str) -> None:
    archive.BATCH = 4
    Store.restore = restore_and_tell  # type: ignore[method-assign]
    with open_store(target) as store, Memory(store, embedder=None, extraction=None) as memory:
        if what == "restore":
            with open(source, "rb") as file:
                memory.restore(file)
        else:
            with open_store(source) as old:
                outcomes = {outcome for _, outcome in archive.promote(old, store)}
                assert outcomes <= {"same", "copied"}, outcomes
    os.write(1, b"done\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
