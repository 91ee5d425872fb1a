"""A process that forks with a store open: `python -m tests.crash.forker SCENE TARGET`.

It writes a line `NAME NUMBER` after each append that returned, in the parent as in the child.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial

from memorist.language.text import stem
from memorist.records.values import new_id
from memorist.store.base import Store
from tests.crash.evidence import SCOPE, batch, open_store

LETTERS = str.maketrans("0123456789abcdef", "абвгдежзиклмнопр")  # a stemmer with a lock


def write(store: Store, name: str, first: int, stop: int) -> None:
    for number in range(first, stop):
        store.append(SCOPE, batch(name, number))
        os.write(1, f"{name} {number}\n".encode())


def new_word() -> str:
    """A word that was not stemmed yet."""
    return new_id().replace("-", "")[16:].translate(LETTERS)


def fork(work: Callable[[], None]) -> int:
    """Run work in a forked child, which dies after twenty seconds if it hangs."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        faulthandler.dump_traceback_later(20, exit=True)
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


def both_write(store: Store) -> None:
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


def parent_closes_first(store: Store) -> None:
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


def threads_write(store: Store) -> None:
    """Forks happen while other threads of the parent write, and hold every lock there is."""
    stop = threading.Event()

    def keep_writing(name: str) -> None:
        number = 0
        while not stop.is_set():
            write(store, name, number, number + 1)
            number += 1

    def stem_and_write(name: str) -> None:
        stem(new_word())
        write(store, name, 0, 2)

    def keep_busy() -> None:
        while not stop.is_set():
            stem(new_word())

    writers = [threading.Thread(target=keep_writing, args=(f"parent{n}",)) for n in range(3)]
    threads = [*writers, threading.Thread(target=keep_busy)]
    write(store, "first", 0, 1)  # Python itself hangs a child that is forked amid an import
    for thread in threads:
        thread.start()
    try:
        for number in range(12):
            wait_for(fork(partial(stem_and_write, f"child{number}")))
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def main(scene: str, target: str) -> None:
    scenes = {made.__name__: made for made in (both_write, parent_closes_first, threads_write)}
    with open_store(target) as store:
        scenes[scene](store)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
