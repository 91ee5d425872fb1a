"""A process that appends and says so: `python -m tests.crash.writer TARGET NAME [COUNT]`.

It says "ready" and waits for a line before it opens the store. After each append that returned
it writes the append's number. Without COUNT it goes on until killed.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterable

from memorist.records.log import Batch
from tests.crash.evidence import OTHER, SCOPE, batch, open_store


def main(target: str, name: str, count: int | None = None) -> None:
    numbers: Iterable[int] = itertools.count() if count is None else range(count)
    os.write(1, b"ready\n")
    sys.stdin.readline()
    with open_store(target) as store:
        for number in numbers:
            if number % 2:  # with another user's, in one transaction
                both = [Batch(SCOPE, batch(name, number)), Batch(OTHER, batch(name, number))]
                store.append_each(both)
            else:
                store.append(SCOPE, batch(name, number))
            os.write(1, b"%d\n" % number)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
