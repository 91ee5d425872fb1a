"""Worker processes die between claim and commit; each message is thought about in the end, once.

Each process's clock is a minute ahead of the one before it: what was in the hands of one that
died must be free by then.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from memorist import Memory, Message
from memorist.lifecycle.worker import Worker
from memorist.recall.indexer import Indexer
from memorist.records.values import now
from memorist.store.base import Store
from memorist.store.jobs import DIED, MAX_DEATHS
from tests.crash.evidence import SCOPE, USER, open_store
from tests.crash.processes import read_line, start, tell
from tests.crash.thinker import KINDS
from tests.support.models import WordEmbedder

if TYPE_CHECKING:
    from memorist.providers.embedder import Vectors

SEED = 20_261_116
POINTS = ("claimed", "answered", "committing", "at random")
NOWHERE = "nowhere"
IN_ROW = 6  # thinkers that are killed before one lives
MINUTE = 60.0


def test_no_lease_is_longer_than_a_minute() -> None:
    assert Worker.lease_seconds < MINUTE
    assert Indexer.lease_seconds < MINUTE


def test_killed_thinkers_lose_no_job_do_none_twice_and_keep_none(target: str) -> None:
    die_and_recover(target, kills=8)


@pytest.mark.prove
def test_a_hundred_killed_thinkers_lose_no_job_do_none_twice_and_keep_none(target: str) -> None:
    die_and_recover(target, kills=100)


def test_of_two_thinkers_at_once_one_is_killed_and_each_job_is_done_once(target: str) -> None:
    with open_store(target) as store:
        said = say(store, 0, 40)
        doomed, other = Nursery(target), Nursery(target)
        doomed.bear("committing", after=2)
        other.bear(NOWHERE)
        doomed.follow_to("committing", times=2)
        doomed.kill()
        deadline = time.monotonic() + 20
        while held(store) != store.backlog(KINDS) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert store.backlog(KINDS), "what died holds its jobs yet"
        other.kill()
        other.finish(later=MINUTE)
        check(store, said, "two at once")


class Deadly(WordEmbedder):
    """Kills its process at the nth call, or at a text."""

    def __init__(self, *, at_call: int = 0, text: str = "nothing") -> None:
        super().__init__("new")
        self._at_call, self._text = at_call, text

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self.batches + 1 == self._at_call or any(self._text in text for text in texts):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().embed(texts)


def embed_in_child(target: str, embedder: Deadly, later: float) -> bool:
    """Whether a process that embeds what waits lives to its end."""
    child = os.fork()
    if not child:
        try:
            signal.alarm(60)
            with open_store(target) as store:
                store._clock = lambda: now() + timedelta(seconds=later)
                indexer = Indexer(store, embedder)
                while indexer.step():
                    pass
                os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status == 0


def test_a_change_of_embedder_under_kills_gets_every_vector(target: str) -> None:
    with open_store(target) as store:
        for part in range(2):
            words = [Message("user", f"message {part} {number}") for number in range(300)]
            store.append(SCOPE.within(session=f"talk{part}"), words)
    kills = 2 * MAX_DEATHS
    for number in range(kills):  # now it dies at once, now after some of the work
        assert not embed_in_child(target, Deadly(at_call=1 + number % 2), number * MINUTE)
    assert embed_in_child(target, Deadly(), kills * MINUTE)
    with open_store(target) as store:
        assert store.unembedded(USER, "new", limit=9) == {}
        assert store.jobs(USER, dead=True) == []


def test_a_job_that_kills_every_process_is_set_aside_and_told_of(target: str) -> None:
    with open_store(target) as store:
        store.append(SCOPE, [Message("user", "so that the embedder knows this user")])
        assert embed_in_child(target, Deadly(), 0)
        for number in range(20):
            store.append(SCOPE, [Message("user", "poison" if number == 7 else f"fine {number}")])
    deaths = 0
    while not embed_in_child(target, Deadly(text="poison"), deaths * MINUTE):
        deaths += 1
    assert deaths == MAX_DEATHS, "the others do not die with it"
    with open_store(target) as store, Memory(store, embedder=Deadly()) as memory:
        assert list(store.unembedded(USER, "new", limit=9).values()) == ["poison"]
        assert memory.jobs.catch_up(300) == memory.jobs.dead() == 1
        assert memory.jobs.waiting()["dead"] == 1
        [dead] = memory.jobs.list(user=USER.user, dead=True)
        assert dead.error == DIED


class Nursery:
    """Where thinkers come from, one at a time."""

    def __init__(self, target: str) -> None:
        self._mother = start("thinker", target)
        assert read_line(self._mother) == "ready"
        self._child = 0

    def bear(self, point: str, *, after: int = 1, later: float = 0) -> None:
        tell(self._mother, f"{point} {after} {later}")
        word, pid = read_line(self._mother).split()
        assert word == "born"
        self._child = int(pid)

    def follow_to(self, point: str, *, times: int = 1) -> list[str]:
        """Hear how far it is until it is there."""
        lines: list[str] = []
        while lines.count(point) < times:
            lines.append(read_line(self._mother))
            assert not lines[-1].startswith("ended"), lines
        return lines

    def kill(self) -> list[str]:
        """`kill -9`; return the lines it wrote since last heard, unless it had ended well."""
        with contextlib.suppress(ProcessLookupError):  # it had ended, and was buried
            os.kill(self._child, signal.SIGKILL)
        lines = [read_line(self._mother)]
        while not lines[-1].startswith("ended"):
            lines.append(read_line(self._mother))
        assert lines.pop() in (f"ended {-signal.SIGKILL}", "ended 0")
        return lines

    def finish(self, *, later: float) -> None:
        """A thinker that lives does what is left at once, without waiting for anybody."""
        began = time.monotonic()
        self.bear(NOWHERE, later=later)
        while not (line := read_line(self._mother)).startswith("ended"):
            pass
        assert line == "ended 0"
        assert time.monotonic() - began < Worker.lease_seconds - 10, "it had to wait for a lease"


def die_and_recover(target: str, kills: int) -> None:
    """Kill so many thinkers, a few in a row, each time with new messages; then look."""
    chance = random.Random(SEED)
    nursery = Nursery(target)
    said: list[str] = []
    met: Counter[str] = Counter()
    later = 0.0
    with open_store(target) as store:
        for number in range(kills):
            said += say(store, number, chance.randint(1, 6))
            lines = live_and_die(nursery, POINTS[number % len(POINTS)], chance, later)
            met[lines[-1] if lines else "nowhere"] += 1
            later += MINUTE
            if number % IN_ROW == IN_ROW - 1 or number == kills - 1:
                nursery.finish(later=later)
                later += MINUTE
                check(store, said, f"{number + 1} kills of seed {SEED}: {met}")
    assert {"claimed", "answered", "committing"} <= set(met)


def live_and_die(nursery: Nursery, point: str, chance: random.Random, later: float) -> list[str]:
    """Let a thinker live until a point, or for any while; return how far it came."""
    if point == "at random":
        nursery.bear(NOWHERE, later=later)
        time.sleep(chance.uniform(0, 0.08))
        return nursery.kill()
    nursery.bear(point, later=later)
    return nursery.follow_to(point) + nursery.kill()


def say(store: Store, first: int, count: int) -> list[str]:
    """Store so many messages, each with its own job, in two sessions; return what they say."""
    said = [f"My friend number{first}x{number} plays chess in Bonn." for number in range(count)]
    for number, text in enumerate(said):
        store.append(SCOPE.within(session=f"talk{number % 2}"), [Message("user", text)])
    return said


def held(store: Store) -> int:
    return sum(job.lease is not None for job in store.jobs(USER, dead=False) if job.kind in KINDS)


def check(store: Store, said: list[str], why: str) -> None:
    """Every message is there, each has one memory, and nothing waits or was given up."""
    entries = store.history(USER)
    assert Counter(entry.message.text for entry in entries) == Counter(said), why
    items = store.items(USER, current=False)
    assert Counter(item.text for item in items) == Counter(said), why
    texts = {entry.message.message_id: entry.message.text for entry in entries}
    cited = [[texts[id_] for id_ in item.sources] for item in items]
    assert cited == [[item.text] for item in items], why
    assert [item.uses for item in items] == [0] * len(items), f"some were made twice; {why}"
    assert store.backlog(KINDS) == 0, why
    assert [job for job in store.jobs(USER) if job.dead] == [], why
