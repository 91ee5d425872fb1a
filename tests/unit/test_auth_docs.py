"""The page about who may ask prints what it says, and its commands work."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memorist.cli.main import app
from memorist.config import Settings

PAGE = (Path(__file__).parent.parent.parent / "docs" / "auth.md").read_text("utf-8")


def test_the_commands_of_the_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORIST_URL", str(tmp_path / "m.db"))
    monkeypatch.delenv("MEMORIST_TENANT", raising=False)
    commands = re.findall(r"^\$ memorist (keys .*)$", PAGE, flags=re.MULTILINE)
    assert [command.split()[1] for command in commands] == [
        "create",
        "create",
        "list",
        "revoke",
        "rotate",
    ]

    def run(command: str) -> str:
        done = CliRunner().invoke(app, shlex.split(command))
        assert done.exit_code == 0, done.output
        return done.stdout

    id_ = run(commands[0]).split("_")[1]
    for command in (commands[1], commands[2], commands[4], commands[3]):
        run(command.replace("50761c6bc99dee50", id_))


def test_the_page_lists_each_setting_of_tokens() -> None:
    told = re.findall(r"^\| `MEMORIST_(\w+)` \|", PAGE, flags=re.MULTILINE)
    assert [name.lower() for name in told] == [
        field.name for field in fields(Settings) if field.name.startswith("jwt_")
    ]
