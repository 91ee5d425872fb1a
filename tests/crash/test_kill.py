"""A writer is killed with `kill -9` again and again, on one and the same SQLite file."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.crash.evidence import SCOPE, check_file, check_log, check_store, open_store
from tests.crash.processes import Forked, kill, read_line, start, tell

SEED = 20_260_917


def test_twenty_kills_lose_nothing_acknowledged(tmp_path: Path) -> None:
    kill_writers(str(tmp_path / "memory.db"), 20)


@pytest.mark.prove
def test_two_hundred_kills_lose_nothing_acknowledged(tmp_path: Path) -> None:
    kill_writers(str(tmp_path / "memory.db"), 200)


def kill_writers(path: str, kills: int) -> None:
    chance = random.Random(SEED)
    acked: dict[str, int] = {}
    upcoming = start("writer", path, "run0")
    for number in range(kills):
        writer, upcoming = upcoming, start("writer", path, f"run{number + 1}")  # ahead: it is slow
        name, pause = f"run{number}", chance.uniform(0.005, 0.150)
        why = f"kill {number} of seed {SEED}, after {pause:.3f} s"
        acked[name] = appends_until_killed(writer, pause)
        check_newest(path, name, acked[name], why)
        if number % 10 == 9:
            check_file(path, why)
    check_store(path, acked, spare=1, why=f"{kills} kills of seed {SEED}")


def appends_until_killed(writer: Forked, pause: float) -> int:
    """Let a writer append for a while after its first; return how many it acknowledged."""
    assert read_line(writer) == "ready"
    tell(writer)
    lines = [read_line(writer), *kill(writer, pause)]
    assert lines == [str(number) for number in range(len(lines))]
    return len(lines)


def check_newest(path: str, name: str, acked: int, why: str) -> None:
    """The killed writer's messages, as the next process to open the file sees them."""
    with open_store(path) as store:
        newest = store.history(SCOPE, last=3 * (acked + 1))
    own = [entry for entry in newest if entry.message.message_id.startswith(f"{name}n")]
    check_log(own, {name: acked}, spare=1, why=why)
