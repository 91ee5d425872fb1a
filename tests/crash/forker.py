"""A process that forks with a store open: `python -m tests.crash.forker SCENE PATH`.

It writes a line `NAME NUMBER` after each append that returned, in the parent as in the child.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial

from memorist.store.sqlite.store import SqliteStore
from tests.crash.evidence import SCOPE, batch


def write(store: SqliteStore, name: str, first: int, stop: int) -> None:
    for number in range(first, stop):
        store.append(SCOPE, batch(name, number))
        os.write(1, f"{name} {number}\n".encode())


def fork(work: Callable[[], None]) -> int:
    """Run work in a forked child, which dies after ten seconds if it hangs."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        signal.alarm(10)
        work()
        status = 0
    except Exception:  # noqa: BLE001 - a fork must not go on in its parent's frames
        traceback.print_exc()
    finally:
        os._exit(status)


def wait_for(child: int) -> None:
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        sys.exit(f"the forked child ended with {status}")


def both_write(store: SqliteStore) -> None:
    """Parent and child write and read at the same time, and the child closes its copy."""

    def work() -> None:
        write(store, "child", 0, 100)
        assert len(store.history(SCOPE, last=100)) == 100
        store.close()

    write(store, "parent", 0, 10)
    assert store.history(SCOPE)
    child = fork(work)
    write(store, "parent", 10, 110)
    wait_for(child)
    write(store, "parent", 110, 120)


def parent_closes_first(store: SqliteStore) -> None:
    """The parent closes the store while the child still uses it."""
    heard, say = os.pipe()
    resumed, resume = os.pipe()

    def work() -> None:
        write(store, "child", 0, 5)
        os.write(say, b".")
        os.read(resumed, 1)
        write(store, "child", 5, 10)

    write(store, "parent", 0, 5)
    child = fork(work)
    os.read(heard, 1)
    store.close()
    os.write(resume, b".")
    wait_for(child)


def thread_writes(store: SqliteStore) -> None:
    """Forks happen while another thread of the parent is in the middle of writing."""
    stop = threading.Event()

    def keep_writing() -> None:
        number = 0
        while not stop.is_set():
            write(store, "parent", number, number + 1)
            number += 1

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        for number in range(10):
            wait_for(fork(partial(write, store, f"child{number}", 0, 2)))
    finally:
        stop.set()
        writer.join()


def main(scene: str, path: str) -> None:
    scenes = {made.__name__: made for made in (both_write, parent_closes_first, thread_writes)}
    with SqliteStore(path) as store:
        scenes[scene](store)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
