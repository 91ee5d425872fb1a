"""Workers die with jobs in their hands; each job is done in the end, and once."""

from __future__ import annotations

import random
import time
from collections import Counter
from datetime import datetime, timedelta

import pytest

from recollect.errors import LeaseLostError
from recollect.records.change import Add
from recollect.records.ids import now
from recollect.records.log import MAX_ATTEMPTS, Job
from recollect.records.memory_item import MemoryItem
from recollect.store.sql_store import SqlStore
from tests.crash.evidence import SCOPE, batch, batch_ids, open_store
from tests.crash.processes import finish, kill, read_line, start

SEED = 20_260_919
KILLS = 10


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.moment = now()

    def __call__(self) -> datetime:
        return self.moment

    def forward(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


def test_jobs_of_killed_workers_come_back_after_their_lease_and_are_done_once(
    target: str,
) -> None:
    lease_seconds = 2.5
    fill(target, KILLS)
    workers = [start("worker", target, lease_seconds, 60) for _ in range(KILLS)]
    claimed = [read_line(worker).removeprefix("claimed ") for worker in workers]
    last_claim = time.monotonic()
    for worker in workers:
        assert kill(worker) == [], "each holds one job"
    survivors = [start("worker", target, 30, 0.01) for _ in range(2)]
    lines = [line for survivor in survivors for line in finish(survivor)]
    assert time.monotonic() - last_claim > lease_seconds * 0.9, "not before the lease ran out"
    done = Counter(line.removeprefix("done ") for line in lines if line.startswith("done "))
    assert done == Counter(set(claimed)) == Counter(claimed)
    check_done_once(target, KILLS)


def test_workers_killed_at_any_moment_do_no_job_twice_and_lose_none(target: str) -> None:
    chance = random.Random(SEED)
    appends = 80
    fill(target, appends)
    for _ in range(KILLS):
        worker = start("worker", target, 0.2, 0.002)
        read_line(worker)
        kill(worker, chance.uniform(0, 0.03))
    finish(start("worker", target, 30, 0))
    check_done_once(target, appends)


def test_a_worker_whose_lease_ran_out_loses_the_job_and_its_changes(target: str) -> None:
    clock = Clock()
    fill(target, 1)
    with open_store(target) as store:
        store._clock = clock
        (slow,) = store.claim(lease_seconds=10)
        assert store.claim(lease_seconds=10) == [], "it is taken"
        clock.forward(11)
        (quick,) = store.claim(lease_seconds=10)
        assert (quick.id, quick.attempts) == (slow.id, 2)
        with pytest.raises(LeaseLostError):
            store.apply(SCOPE, [memory("slow")], done=slow)
        with pytest.raises(LeaseLostError):
            store.fail(slow, "too slow")
        assert store.items(SCOPE) == []
        store.apply(SCOPE, [memory("quick")], done=quick)
        with pytest.raises(LeaseLostError):
            store.apply(SCOPE, [memory("quick, again")], done=quick)
        assert [item.text for item in store.items(SCOPE)] == ["quick"]
        assert store.jobs(SCOPE) == []


def test_a_job_that_no_worker_survives_is_set_aside_and_can_be_retried(target: str) -> None:
    clock = Clock()
    fill(target, 1)
    with open_store(target) as store:
        store._clock = clock
        for attempt in range(1, MAX_ATTEMPTS + 1):
            assert [job.attempts for job in store.claim(lease_seconds=10)] == [attempt]
            clock.forward(11)
        assert store.claim() == []
        (dead,) = store.jobs(SCOPE, dead=True)
        store.retry(SCOPE, dead.id)
        (revived,) = store.claim()
        store.apply(SCOPE, [memory("at last")], done=revived)
        assert store.jobs(SCOPE) == []


def test_jobs_claimed_by_many_at_once_go_to_one_each(target: str) -> None:
    fill(target, 40)
    workers = [start("worker", target, 30, 0) for _ in range(4)]
    lines = [line for worker in workers for line in finish(worker)]
    done = [line for line in lines if line.startswith("done ")]
    assert len(done) == len(set(done)) == 40
    check_done_once(target, 40)


def memory(text: str) -> Add:
    return Add(MemoryItem(scope=SCOPE, text=text))


def fill(target: str, appends: int) -> None:
    """Append to a new store: as many jobs."""
    with open_store(target) as store:
        for number in range(appends):
            store.append(SCOPE, batch("writer", number))
        assert len(waiting(store)) == appends


def waiting(store: SqlStore) -> list[Job]:
    return store.jobs(SCOPE, dead=False)


def check_done_once(target: str, appends: int) -> None:
    """No job is left, none is dead, and each message was thought about exactly once."""
    with open_store(target) as store:
        assert store.jobs(SCOPE) == []
        sources = Counter(source for item in store.items(SCOPE) for source in item.sources)
    assert sources == Counter(batch_ids("writer", appends))
