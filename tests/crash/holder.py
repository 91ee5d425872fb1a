"""A process that holds a SQLite file's write lock until it reads a line: `holder PATH`."""

from __future__ import annotations

import os
import sys

import apsw


def main(path: str) -> None:
    connection = apsw.Connection(path)
    connection.execute("BEGIN IMMEDIATE")
    os.write(1, b"held\n")
    sys.stdin.readline()
    connection.execute("ROLLBACK")
    connection.close()


if __name__ == "__main__":
    main(sys.argv[1])
