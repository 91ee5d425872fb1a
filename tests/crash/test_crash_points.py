"""A process dies at a chosen write to the disk, in creating a store, appending or closing.

Kills at random moments seldom hit the few writes in which a file comes to be. These hit each.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.crash.evidence import SCOPE, batch, check_store, open_store
from tests.crash.processes import finish, start

NEVER = 10**9
CREATION = range(1, 13)  # the file's first writes, in which it becomes a WAL database


def test_a_process_that_dies_in_creating_a_store_leaves_one_that_opens(tmp_path: Path) -> None:
    die_at(tmp_path, "die", list(CREATION))


def test_a_write_torn_in_creating_a_store_leaves_one_that_opens(tmp_path: Path) -> None:
    die_at(tmp_path, "tear", list(CREATION))


def test_a_process_that_dies_in_migrating_leaves_a_store_that_opens(tmp_path: Path) -> None:
    opened, _ = count_writes(tmp_path)
    die_at(tmp_path, "die", spread(CREATION.stop, opened))


def test_a_process_that_dies_in_appending_or_closing_loses_nothing(tmp_path: Path) -> None:
    opened, closed = count_writes(tmp_path)
    die_at(tmp_path, "die", spread(opened + 1, closed))


@pytest.mark.prove
@pytest.mark.parametrize("trouble", ["die", "tear"])
def test_a_process_may_die_at_any_write_whatsoever(tmp_path: Path, trouble: str) -> None:
    _, closed = count_writes(tmp_path)
    for first in range(1, closed + 1, 10):
        die_at(tmp_path, trouble, [*range(first, min(first + 10, closed + 1))])


def test_a_full_disk_loses_nothing_wherever_it_strikes(tmp_path: Path) -> None:
    path, appends = str(tmp_path / "memory.db"), 60
    lines = finish(start("faulty", path, "full", appends))
    assert lines.count("full") > 15, "the disk was never full"
    check_store(path, {"writer": appends}, spare=0, why="full disk")


def count_writes(folder: Path) -> tuple[int, int]:
    """How often a process that nothing happens to has written when it opened, and closed."""
    lines = finish(start("faulty", folder / "whole.db", "die", NEVER))
    opened, closed = lines[0], lines[-1]
    return int(opened.removeprefix("opened ")), int(closed.removeprefix("closed "))


def spread(first: int, last: int) -> list[int]:
    """Ten numbers from the first to the last."""
    return [first + (last - first) * step // 9 for step in range(10)]


def die_at(folder: Path, trouble: str, points: list[int]) -> None:
    """Let a process die at each of these writes; nothing acknowledged may be lost."""
    paths = {point: str(folder / f"{trouble}{point}.db") for point in points}
    children = {point: start("faulty", path, trouble, point) for point, path in paths.items()}
    for point, child in children.items():
        rest, _ = child.communicate()
        assert child.returncode == -signal.SIGKILL
        check_next(paths[point], len(rest.splitlines()[1:]), f"{trouble} at write {point}")


def check_next(path: str, acked: int, why: str) -> None:
    """The next process to open the file finds what was acknowledged, and can go on."""
    check_store(path, {"writer": acked}, spare=1, why=why)
    with open_store(path) as store:
        for number in range(3):
            store.append(SCOPE, batch("next", number))
    check_store(path, {"writer": acked, "next": 3}, spare=1, why=why)
