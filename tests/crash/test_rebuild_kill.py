"""Processes that rebuild are killed; the last one goes on, and all is as it was before."""

from __future__ import annotations

import random

import pytest

from memorist import Memory
from tests.crash.evidence import open_store
from tests.crash.processes import finish, kill, read_line, start
from tests.crash.rebuilder import EXTRACTION
from tests.integration.test_rebuild import tell, views
from tests.support.models import WordEmbedder

MINUTE = 60  # after which the jobs of a process that died are free


def test_a_rebuild_that_is_killed_goes_on(target: str) -> None:
    kill_and_resume(target, seed=1, kills=2)


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(10))
def test_ten_rebuilds_that_are_killed_go_on(target: str, seed: int) -> None:
    kill_and_resume(target, seed=seed, kills=5)


def kill_and_resume(target: str, seed: int, kills: int) -> None:
    chance = random.Random(seed)
    with Memory(open_store(target), embedder=WordEmbedder(), extraction=EXTRACTION) as memory:
        tell(memory, seed)
        before = views(memory)
    cut_short = 0
    for number in range(kills):
        child = start("rebuilder", target, MINUTE * number)
        assert read_line(child) == "ready"
        kill(child, chance.uniform(0, 0.5))
        with open_store(target) as store:
            cut_short += store.backlog(("rebuild",))
    assert cut_short, "no process was killed in time"
    child = start("rebuilder", target, MINUTE * kills)
    assert finish(child) == ["ready", "done"]
    with Memory(open_store(target), embedder=None, extraction=None) as memory:
        assert views(memory) == before
        assert sum(memory.jobs.waiting().values()) == 0
