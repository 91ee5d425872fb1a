"""Several writers of the same notes at once: both edits are there, or one is told."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from memorist import ConflictError, Memory
from memorist.context.documents.markdown import sections
from memorist.notebook import Notebook
from tests.support.forked import Forked

EDITS = 50


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A path or a URL where there is nothing yet."""
    if request.param == "sqlite":
        return str(tmp_path / "memory.db")
    url: str = request.getfixturevalue("postgres_with_tables")
    return url


def open_notes(memory: Memory) -> Notebook:
    return Notebook(memory, user="ada", agent="tutor")


def check(target: str, names: list[str]) -> None:
    """All that was added is there, in each writer's order, and each version added one thing."""
    wanted = {name: [f"{name} {number}" for number in range(EDITS)] for name in names}
    with Memory(target, embedder=None, extraction=None) as memory:
        notes = open_notes(memory)
        entries = notes.read().split("\n\n")
        assert {name: [e for e in entries if e.split()[0] == name] for name in names} == wanted
        total = EDITS * len(names)
        assert len(entries) == notes.version == total
        texts = [note.text for note in reversed(notes.versions())]
        assert texts == ["\n\n".join(entries[:count]) for count in range(1, total + 1)]
        for version in (1, total // 2):
            assert notes.restore(version).text == texts[version - 1]


def main(target: str, name: str) -> None:
    """One of two processes that append at once, from the first line of its input on."""
    with Memory(target, embedder=None, extraction=None) as memory:
        notes = open_notes(memory)
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(EDITS):
            notes.append(f"{name} {number}")


def test_two_processes_append_and_nothing_is_lost(target: str) -> None:
    names = ["left", "right"]
    children = [Forked("tests.integration.test_notes_together", target, name) for name in names]
    for child in children:
        assert child.stdout.readline() == b"ready\n"
    for child in children:
        child.stdin.write(b"go\n")
    for child in children:
        child.communicate(timeout=120)
        assert child.wait() == 0
    check(target, names)


@pytest.mark.parametrize("shared", [False, True], ids=["own notebooks", "one notebook"])
def test_four_threads_append_and_nothing_is_lost(target: str, shared: bool) -> None:
    names = ["one", "two", "three", "four"]
    with Memory(target, embedder=None, extraction=None) as memory:
        common = open_notes(memory)

        def write(name: str) -> None:
            notes = common if shared else open_notes(memory)
            for number in range(EDITS):
                notes.append(f"{name} {number}")

        with ThreadPoolExecutor(len(names)) as threads:
            list(threads.map(write, names))
    check(target, names)


@pytest.mark.parametrize("edit", ["replace", "write"])
def test_of_two_who_change_the_same_at_once_one_is_told(target: str, edit: str) -> None:
    with Memory(target, embedder=None, extraction=None) as memory:
        for number in range(10):
            open_notes(memory).write(f"# A\nfirst {number}\n\n# B\nsecond\n")
            together = Barrier(2)

            def change(name: str, together: Barrier = together) -> str:
                notes = open_notes(memory)
                together.wait()
                try:
                    if edit == "replace":
                        notes.replace_section("A", f"by {name}")
                    else:
                        notes.write(f"# A\nby {name}")
                except ConflictError:
                    return "told"
                return name

            with ThreadPoolExecutor(2) as threads:
                done = set(threads.map(change, ("left", "right")))
            [winner] = done - {"told"}
            assert done == {"told", winner}
            assert f"# A\nby {winner}" in open_notes(memory).read()


def test_writers_of_different_sections_do_not_disturb_each_other(target: str) -> None:
    titles = ["A", "B", "C", "D"]
    with Memory(target, embedder=None, extraction=None) as memory:
        open_notes(memory).write("".join(f"# {title}\n0\n\n" for title in titles))
        mine = {title: open_notes(memory) for title in titles}

        def count(title: str) -> None:
            for number in range(1, 21):
                mine[title].replace_section(title, f"{number}")

        with ThreadPoolExecutor(len(titles)) as threads:
            list(threads.map(count, titles))
        text = open_notes(memory).read()
        assert open_notes(memory).version == 81
    found = {one.title: text[one.body : one.stop].strip() for one in sections(text)}
    assert found == dict.fromkeys(titles, "20")


if __name__ == "__main__":
    main(*sys.argv[1:])
