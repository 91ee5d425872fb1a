"""A process that works off the queue: `python -m tests.crash.worker TARGET LEASE HOLD`.

It says "ready" and waits for a line. For each job it writes "claimed ID TIME", ponders for up to
HOLD seconds, remembers one thing for each message of the job, and writes "done ID TIME". It ends
when the queue is empty.
"""

from __future__ import annotations

import os
import random
import sys
import time

from memorist.errors import LeaseLostError
from memorist.records.log import Job
from memorist.records.memories import Add, MemoryItem
from memorist.store.base import Store
from tests.crash.evidence import SCOPE, open_store


def derive(store: Store, job: Job) -> list[Add]:
    """One memory, with an id of its own, of each message: twice done would be twice there."""
    entries = [e for e in store.history(SCOPE) if job.first_seq <= e.seq <= job.last_seq]
    return [
        Add(MemoryItem(scope=SCOPE, text=f"memory of {id_}", sources=(id_,)))
        for id_ in (entry.message.message_id for entry in entries)
    ]


def say(what: str, job: Job) -> None:
    os.write(1, f"{what} {job.id} {time.time()}\n".encode())


def main(target: str, lease_seconds: float, hold_seconds: float) -> None:
    with open_store(target) as store:
        os.write(1, b"ready\n")
        sys.stdin.readline()
        while store.jobs(SCOPE, dead=False):
            for job in store.claim(kinds=("embed",), lease_seconds=lease_seconds):
                say("claimed", job)
                time.sleep(random.uniform(hold_seconds / 2, hold_seconds))
                try:
                    store.apply(SCOPE, derive(store, job), done=job)
                    say("done", job)
                except LeaseLostError:
                    say("late", job)
            time.sleep(0.01)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
