"""Processes that restore or promote are killed; the last one goes on, and nothing is amiss."""

from __future__ import annotations

from pathlib import Path

import pytest

from memorist import Memory
from tests.crash.processes import finish, kill, read_line, start


@pytest.mark.parametrize("what", ["restore", "promote"])
def test_what_was_killed_goes_on(target: str, what: str, tmp_path: Path) -> None:
    source, file = str(tmp_path / "source.db"), tmp_path / "archive"
    with Memory(source, embedder=None, extraction=None) as memory:
        for user in ("ada", "grace"):
            for number in range(30):
                texts = [f"{number} {one} is what {user} said." for one in range(3)]
                memory.remember(texts, user=user, session=f"s{number % 7}")
                memory.memories.add(f"{user} said {number} things.", user=user)
        before = b"".join(memory.export())
    file.write_bytes(before)
    given = file if what == "restore" else source
    for steps in (3, 40):
        child = start("mover", what, given, target)
        for _ in range(steps):
            assert read_line(child) == "step"
        kill(child)
        with Memory(target, embedder=None, extraction=None) as memory:
            assert memory.users()
            assert b"".join(memory.export()) != before
    assert finish(start("mover", what, given, target))[-1] == "done"
    with Memory(target, embedder=None, extraction=None) as memory:
        assert b"".join(memory.export()) == before
