"""`memorist notes`, as a user runs it, on real files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from memorist import InvalidError, Memory, NotFoundError
from memorist.cli.main import app
from memorist.notebook import Notebook

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MEMORIST_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def run(db: Path) -> Run:
    """Run the command on the test's database."""

    def call(*arguments: str, **more: Any) -> Result:
        return CliRunner().invoke(app, ["notes", *arguments, "--create", "--db", str(db)], **more)

    return call


def worked(done: Result) -> str:
    assert (done.exit_code, done.exception) == (0, None), done.output
    return done.stdout


def test_notes_are_written_and_read(run: Run) -> None:
    assert "no notes" in run().stderr
    assert "no notes" in run("--versions").stderr
    said = worked(run("--append", "Speaks German."))
    assert said == "the notes are at version 1, 14 characters\n"
    worked(run("--append", "-", input="# Plans\n\tGrüße from [red]Oslo[/red]"))
    assert worked(run()) == "Speaks German.\n\n# Plans\n\tGrüße from [red]Oslo[/red]\n"


def test_a_file_takes_the_place_of_the_notes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_bytes("# Grüße\r\nall of it\r\n".encode())
    worked(run("--append", "before"))
    worked(run("--write", str(tmp_path / "notes.md")))
    assert worked(run()) == "# Grüße\nall of it\n\n"
    assert json.loads(worked(run("--json")))["text"] == "# Grüße\r\nall of it\r\n"
    worked(run("--write", "-", input="from a pipe"))
    assert worked(run()) == "from a pipe\n"


def test_every_version_is_listed_shown_and_restored(run: Run) -> None:
    for text in ("one", "two", ""):
        worked(run("--write", "-", input=text))
    lines = worked(run("--versions")).splitlines()
    assert [line.split()[0] for line in lines] == ["version", "3", "2", "1"]
    assert worked(run("--at", "1")) == "one\n"
    assert "no notes" in run().stderr
    assert "version 4" in worked(run("--restore", "2"))
    assert worked(run()) == "two\n"
    listed = json.loads(worked(run("--versions", "--json")))
    assert [note["text"] for note in listed] == ["two", "", "two", "one"]


def test_notes_are_those_of_the_user_and_agent_named(run: Run, db: Path) -> None:
    worked(run("--append", "hers", "--user", "ada", "--agent", "tutor"))
    assert "no notes" in run("--user", "ada").stderr
    assert json.loads(worked(run("--json"))) is None
    shown = json.loads(worked(run("-u", "ada", "-a", "tutor", "--json")))
    assert {name: shown[name] for name in ("version", "text", "user", "agent")} == {
        "version": 1,
        "text": "hers",
        "user": "ada",
        "agent": "tutor",
    }
    with Memory(db, embedder=None, extraction=None) as memory:
        assert Notebook(memory, user="ada", agent="tutor").read() == "hers"


def test_notes_cannot_steer_the_terminal(run: Run) -> None:
    worked(run("--append", "clear \x1b[2J"))
    for arguments in ([], ["--versions"]):
        assert "\x1b" not in worked(run(*arguments))


@pytest.mark.parametrize("arguments", [["--at", "9"], ["--restore", "9"]])
def test_a_version_that_never_was_is_refused(run: Run, arguments: list[str]) -> None:
    assert isinstance(run(*arguments).exception, NotFoundError)


def test_only_one_wish_is_granted_at_a_time(run: Run) -> None:
    assert isinstance(run("--append", "x", "--versions").exception, InvalidError)
    assert isinstance(run("--write", "/nowhere/secret.md").exception, FileNotFoundError)
