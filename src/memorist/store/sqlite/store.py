"""SqliteStore: everything in one file, nothing to run."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from typing import Literal

from memorist.records.ids import now
from memorist.store.base import Store
from memorist.store.sqlite.engine import SqliteEngine


class SqliteStore(Store):
    """A Store in one SQLite file, which several processes may open at once.

    `durability="full"`: what was acknowledged survives a power cut. `"normal"`: two to three
    times as many writes a second, and a power cut (never a crash of the process) may take the
    last of them, always from the end, without damage to the rest.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Literal["full", "normal"] = "full",
        patience_seconds: float = 10,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._file = SqliteEngine(os.fspath(path), durability, patience_seconds)
        super().__init__(self._file, clock)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy all that is committed into a new file, while this one is in use."""
        self._file.backup(os.fspath(path))
