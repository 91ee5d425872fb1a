"""A process whose disk goes wrong: `python -m tests.crash.faulty PATH TROUBLE LIMIT`.

`die` and `tear` kill it at its write number LIMIT, `tear` after half of that write. `full`
refuses to write, from the first write of an append to the LIMIT-th, a new place at each append.
It writes a line after each append that returned; `die` and `tear` also how often they had
written when the store was open, and at the end.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

import apsw

from memorist.errors import StoreFullError
from memorist.store.sqlite.store import SqliteStore
from tests.crash.disk import Disk
from tests.crash.evidence import SCOPE, batch


def die(write: Callable[[bytes], None], data: bytes) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def tear(write: Callable[[bytes], None], data: bytes) -> None:
    write(data[: len(data) // 2])
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(write: Callable[[bytes], None], data: bytes) -> None:
    if data:
        raise apsw.FullError("no space left on this device")


def write_until_dead(path: str, disk: Disk) -> None:
    """Create a store, append to it, close it."""
    with SqliteStore(path) as store:
        os.write(1, b"opened %d\n" % disk.writes)
        for number in range(5):
            store.append(SCOPE, batch("writer", number))
            os.write(1, b"%d\n" % number)
    os.write(1, b"closed %d\n" % disk.writes)


def write_on_a_full_disk(path: str, disk: Disk, places: int) -> None:
    """Run into a full disk at each place of an append; make room, append again."""
    with SqliteStore(path) as store:
        for number in range(places):
            disk.limit = disk.writes + 1 + number
            try:
                store.append(SCOPE, batch("writer", number))
            except StoreFullError:
                found = store.find(
                    SCOPE, [message.message_id for message in batch("writer", number)]
                )
                assert not found
                disk.limit = None
                store.append(SCOPE, batch("writer", number))
                os.write(1, b"full\n")
            os.write(1, b"%d\n" % number)
        disk.limit = None


def main(path: str, trouble: str, limit: int) -> None:
    if trouble == "full":
        write_on_a_full_disk(path, Disk(refuse), limit)
    else:
        write_until_dead(path, Disk({"die": die, "tear": tear}[trouble], limit))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
