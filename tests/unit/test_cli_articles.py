"""`memorist ingest` and `memorist articles`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memorist import Memory
from memorist.library import Library
from tests.unit.test_cli import Run, failed, run, squeezed, worked
from tests.unit.test_reading import fill

__all__ = ["run"]

DOCS = {
    "returns.md": "# Returns\n\nA lamp may be sent back within thirty days.\n",
    "staff.txt": "Ada mends toasters.\n",
}


@pytest.fixture(autouse=True)
def docs(tmp_path: Path) -> Path:
    return fill(tmp_path / "docs", DOCS)


def test_a_folder_is_read_in_listed_and_asked(run: Run) -> None:
    done = run("ingest", "docs", "--library", "handbook")
    assert (done.returncode, done.stdout) == (0, b"2 added\n")
    assert b"memorist worker --once" in done.stderr
    assert worked(run("ingest", "docs", "--library", "handbook")) == "2 unchanged\n"
    listed = squeezed(worked(run("articles", "--library", "handbook")))
    assert "Returnsdocs/returns.md55" in listed
    asked = worked(run("articles", "--library", "handbook", "--ask", "return a lamp?"))
    assert asked.startswith("Returns (docs/returns.md)  whole, ")
    assert "  A lamp may be sent back within thirty days.\n" in asked


def test_without_a_shelf_they_are_the_users_own_and_recalled(run: Run) -> None:
    run("ingest", "docs/staff.txt", "--user", "bob")
    assert "Ada mends toasters." in worked(run("recall", "toasters", "--user", "bob"))
    assert b"no articles yet" in run("articles").stderr
    [card] = json.loads(worked(run("articles", "--user", "bob", "--json")))
    assert (card["title"], card["uri"], card["chars"]) == ("staff", "docs/staff.txt", 20)


def test_what_fails_is_told_and_is_the_exit_code(run: Run, docs: Path) -> None:
    fill(
        docs,
        {
            "a.png": "",
            "broken.pdf": "secret",
            "empty.md": "",
            "old.txt": "Käse und Brot".encode("latin-1"),
        },
    )
    done = run("ingest", "docs", "nowhere.md")
    assert (done.returncode, done.stdout) == (1, b"3 added, 1 skipped, 3 failed\n")
    told = done.stderr.decode()
    assert "docs/broken.pdf: this PDF cannot be read" in told
    assert "secret" not in told
    assert "docs/empty.md: it holds no text" in told
    assert "docs/old.txt: it is not UTF-8 and was read as cp1252" in told
    assert "nowhere.md: there is no such file or folder" in told


def test_programs_get_json(run: Run) -> None:
    done = json.loads(worked(run("ingest", "docs", "--json")))
    assert done["added"] == ["docs/returns.md", "docs/staff.txt"]
    found, *_ = json.loads(worked(run("articles", "--ask", "toasters", "--json")))
    assert (found["citation"], found["whole"]) == ("staff (docs/staff.txt)", True)
    assert found["why"]["ranks"]["words"] == 1


def test_what_is_gone_is_pruned_and_one_can_be_removed(
    run: Run, docs: Path, tmp_path: Path
) -> None:
    run("ingest", "docs", "--library", "x")
    (docs / "staff.txt").unlink()
    assert worked(run("ingest", "docs", "--library", "x", "--prune")) == "1 unchanged, 1 removed\n"
    with Memory(tmp_path / "m.db") as memory:
        library = Library(memory, "x")
        [card] = library.articles()
        worked(run("articles", "--library", "x", "--remove", f"…{card.id[-8:]}"))
        assert library.articles() == []
    assert "NotFoundError" in failed(run("articles", "--library", "x", "--remove", card.id), 3)


def test_a_shelf_and_a_user_are_not_named_at_once(run: Run) -> None:
    told = failed(run("ingest", "docs", "--library", "x", "--user", "bob"))
    assert told == "InvalidError: give --library or --user, not both"


def test_what_an_article_says_does_not_move_the_terminal(run: Run, docs: Path) -> None:
    fill(docs, {"\x1b[31mred.md": "# \x1b[2J Boo\n\nThe ghost \x1b]0;owned\x07 says boo [bold]x\n"})
    run("ingest", "docs")
    for said in (run("articles"), run("articles", "--ask", "ghost")):
        assert "\x1b" not in worked(said)
        assert "Boo" in worked(said)
