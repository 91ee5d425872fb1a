"""Leases: a job stays a worker's while it works on it, and for less than a minute once it died."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence

from memorist.errors import MemoristError
from memorist.records.log import Job
from memorist.store.base import Store

LONGEST_SECONDS = 3_600.0  # a worker that hangs must not keep its jobs for ever


@contextlib.contextmanager
def kept(store: Store, jobs: Sequence[Job], lease_seconds: float) -> Iterator[None]:
    """Renew the leases of jobs while the block lasts; those that are done are left alone."""
    over = threading.Event()
    if jobs:
        work = (store, tuple(jobs), lease_seconds, over)
        threading.Thread(target=_renew, args=work, name="memorist-leases", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _renew(store: Store, jobs: Sequence[Job], lease_seconds: float, over: threading.Event) -> None:
    for _ in range(int(3 * LONGEST_SECONDS / lease_seconds)):
        if over.wait(lease_seconds / 3):
            return
        for job in jobs:
            with contextlib.suppress(MemoristError):  # done by now, or the store is away
                store.renew(job, lease_seconds=lease_seconds)
