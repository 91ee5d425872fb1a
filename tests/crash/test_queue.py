"""Workers die with jobs in their hands; each job is done in the end, and once."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta

import pytest

from memorist.errors import LeaseLostError
from memorist.records.log import Job
from memorist.records.memories import Add, MemoryItem
from memorist.records.values import now
from memorist.store.base import Store
from memorist.store.jobs import MAX_DEATHS
from tests.crash.evidence import SCOPE, batch, batch_ids, open_store
from tests.crash.processes import Forked, finish, kill, read_line, start, tell
from tests.support.examples import LONG

SEED = 20_260_919
KILLS = 10 if LONG else 5


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.moment = now()

    def __call__(self) -> datetime:
        return self.moment

    def forward(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


def test_jobs_of_killed_workers_come_back_after_their_lease_and_are_done_once(target: str) -> None:
    fill(target, KILLS)
    doomed = ready_workers(target, KILLS, lease_seconds=1.5, hold_seconds=60)
    for worker in doomed:
        tell(worker)
    claimed = [read_line(worker).split()[1] for worker in doomed]
    assert len(set(claimed)) == KILLS, "each holds a job of its own"
    with open_store(target) as store:
        leases = {str(job.id): job.run_at.timestamp() for job in waiting(store)}
    assert [line for worker in doomed for line in kill(worker)] == []
    reports = let_finish(ready_workers(target, 2, lease_seconds=30, hold_seconds=0.01))
    taken = {id_: float(moment) for what, id_, moment in reports if what == "claimed"}
    assert all(taken[id_] >= lease for id_, lease in leases.items()), "none before its lease ended"
    assert Counter(id_ for what, id_, _ in reports if what == "done") == Counter(claimed)
    check_done_once(target, KILLS)


def test_workers_killed_at_any_moment_do_no_job_twice_and_lose_none(target: str) -> None:
    chance = random.Random(SEED)
    appends = 80
    fill(target, appends)
    for worker in ready_workers(target, KILLS, lease_seconds=1, hold_seconds=0.002):
        tell(worker)
        read_line(worker)
        kill(worker, chance.uniform(0, 0.03))
    let_finish(ready_workers(target, 1, lease_seconds=30, hold_seconds=0))
    check_done_once(target, appends)


def test_jobs_claimed_by_many_at_once_go_to_one_each(target: str) -> None:
    fill(target, 40)
    reports = let_finish(ready_workers(target, 4, lease_seconds=30, hold_seconds=0))
    done = [id_ for what, id_, _ in reports if what == "done"]
    assert len(done) == len(set(done)) == 40
    check_done_once(target, 40)


def test_a_worker_whose_lease_ran_out_loses_the_job_and_its_changes(target: str) -> None:
    fill(target, 1)
    clock = Clock()
    with open_store(target) as store:
        store._clock = clock
        (slow,) = store.claim(lease_seconds=10)
        assert store.claim(lease_seconds=10) == [], "it is taken"
        clock.forward(11)
        (quick,) = store.claim(lease_seconds=10)
        assert (quick.id, quick.attempts) == (slow.id, 0)
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
    fill(target, 1)
    clock = Clock()
    with open_store(target) as store:
        store._clock = clock
        for _ in range(MAX_DEATHS):
            assert [job.attempts for job in store.claim(lease_seconds=10)] == [0]
            clock.forward(11)
        assert store.claim() == []
        (dead,) = store.jobs(SCOPE, dead=True)
        store.retry(SCOPE, dead.id)
        (revived,) = store.claim()
        store.apply(SCOPE, [memory("at last")], done=revived)
        assert store.jobs(SCOPE) == []


def memory(text: str) -> Add:
    return Add(MemoryItem(scope=SCOPE, text=text))


def fill(target: str, appends: int) -> None:
    """Append to a new store: as many jobs."""
    with open_store(target) as store:
        for number in range(appends):
            store.append(SCOPE, batch("writer", number))
        assert len(waiting(store)) == appends


def waiting(store: Store) -> list[Job]:
    return store.jobs(SCOPE, dead=False)


def ready_workers(
    target: str, count: int, *, lease_seconds: float, hold_seconds: float
) -> list[Forked]:
    """Workers that have opened the store and wait to be told to go."""
    workers = [start("worker", target, lease_seconds, hold_seconds) for _ in range(count)]
    for worker in workers:
        assert read_line(worker) == "ready"
    return workers


def let_finish(workers: list[Forked]) -> list[list[str]]:
    """Let workers empty the queue; return what they report, word by word."""
    for worker in workers:
        tell(worker)
    return [line.split() for worker in workers for line in finish(worker)]


def check_done_once(target: str, appends: int) -> None:
    """No job is left, none is dead, and each message was thought about exactly once."""
    with open_store(target) as store:
        assert store.jobs(SCOPE) == []
        sources = Counter(source for item in store.items(SCOPE) for source in item.sources)
    assert sources == Counter(batch_ids("writer", appends))
