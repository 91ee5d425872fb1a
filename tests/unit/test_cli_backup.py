"""`memorist backup`, as a user runs it, on real files."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memorist import ConfigError, InvalidError, Memory, StoreUnavailableError
from memorist.cli.main import app


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["backup", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def said(file: Path) -> list[str]:
    with Memory(file, embedder=None, extraction=None) as memory:
        assert memory.store.check()["integrity"] == "ok"
        return [str(message.content) for message in memory.history(user="ada", last=100_000)]


def test_what_was_said_before_is_in_the_copy_though_others_write_on(tmp_path: Path) -> None:
    copy, stop = tmp_path / "copy.db", threading.Event()
    with Memory(tmp_path / "memory.db", embedder=None, extraction=None) as memory:
        memory.remember([f"before {n}" for n in range(500)], user="ada")

        def go_on() -> None:
            while not stop.is_set():
                memory.remember("meanwhile", user="ada")

        writer = threading.Thread(target=go_on)
        writer.start()
        try:
            assert "bytes" in run(copy, "--db", tmp_path / "memory.db")
        finally:
            stop.set()
            writer.join()
    assert said(copy)[:500] == [f"before {n}" for n in range(500)]
    assert copy.stat().st_mode & 0o077 == 0
    with Memory(copy, embedder=None, extraction=None) as memory:
        assert memory.recall("before 7", user="ada", deadline_ms=None).hits


def test_no_file_is_written_over(tmp_path: Path) -> None:
    there = tmp_path / "there.db"
    there.write_text("mine")
    with pytest.raises(InvalidError, match="name a new one"):
        run(there, "--create", "--db", tmp_path / "memory.db")
    assert there.read_text() == "mine"


def test_where_no_file_can_be_made_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError):
        run(tmp_path / "no" / "folder.db", "--create", "--db", tmp_path / "memory.db")


def test_postgresql_has_its_own(postgres_url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="pg_dump"):
        run(tmp_path / "copy.db", "--db", postgres_url)
