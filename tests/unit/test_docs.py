"""The README's own lines are run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from memorist.config import Settings

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()


@pytest.fixture
def empty_home(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if "MEMORIST" not in name}
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return kept | {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "PATH": programs}


def test_the_first_memory_of_the_readme_works(empty_home: dict[str, str], tmp_path: Path) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL))
    done = subprocess.run(
        [sys.executable, "-c", code], env=empty_home, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("I moved to Berlin in March. No more Munich commutes! | ")
    assert done.stdout.endswith("\nI moved to Berlin.\n")
    assert (tmp_path / "memorist" / "memorist.db").exists()


def test_the_commands_of_the_readme_work(empty_home: dict[str, str]) -> None:
    commands = re.findall(r"^\$ (memorist [^#\n]*)", README, flags=re.MULTILINE)
    assert len(commands) == 4
    outputs = [
        subprocess.run(
            shlex.split(command), env=empty_home, capture_output=True, text=True, check=True
        ).stdout
        for command in commands
    ]
    assert "I moved to Berlin in March." in outputs[1]
    assert "I moved to Berlin in March." in outputs[2]
    assert "fails" not in outputs[3]


def test_the_page_about_running_it_says_what_happens(
    empty_home: dict[str, str], tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "running.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=empty_home,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1 []\n\n"


def test_every_setting_is_on_the_page_about_running_it() -> None:
    page = (ROOT / "docs" / "running.md").read_text()
    table = re.findall(r"^\| ((?:`[A-Z_…]+`(?:, )?)+) \|", page, flags=re.MULTILINE)
    told = {name for row in table for name in re.findall(r"[A-Z_]+", row)}
    there = {field.name.upper() for field in fields(Settings)}
    assert {name for name in there if not name.startswith("JWT_")} == told - {"JWT_"}


def anchors(document: Path) -> set[str]:
    """The headings of a page, as GitHub links to them."""
    titles = re.findall(r"^#+ (.+)$", document.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_place_the_documents_link_to_is_there() -> None:
    for document in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\((?!http)([^)]+)\)", document.read_text()):
            file, _, anchor = target.partition("#")
            there = document.parent / file if file else document
            assert there.exists(), f"{document.name} → {target}"
            assert not anchor or anchor in anchors(there), f"{document.name} → {target}"
