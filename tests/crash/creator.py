"""A process that creates new stores one after the other: `creator FOLDER COUNT`."""

from __future__ import annotations

import sys
from pathlib import Path

from memorist.store.sqlite.store import SqliteStore


def main(folder: str, count: int) -> None:
    for number in range(count):
        SqliteStore(Path(folder, f"{number}.db")).close()
        Path(folder, f"{number}.done").touch()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
