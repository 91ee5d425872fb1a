"""The documentation is true: its Python and its commands run, its links lead somewhere."""

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
from tests.support.forked import run
from tests.support.pages import ROOT, UNHURRIED, program
from tests.support.program import printed

README = ROOT / "README.md"
DOCUMENTS = [README, *sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
# Run elsewhere: with the frameworks, beside a server, on PostgreSQL, as a notebook.
ELSEWHERE = {"adapters.md", "server.md", "postgres.md", "tutorial.md"}
PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in ELSEWHERE]


@pytest.fixture
def empty_home(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if "MEMORIST" not in name}
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return kept | {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "PATH": programs}


def test_the_ten_lines_of_the_readme_work(empty_home: dict[str, str], tmp_path: Path) -> None:
    code = program(README.read_text()).code
    assert code.count("\n") <= 10
    done = subprocess.run(
        [sys.executable, "-c", UNHURRIED + code],
        env=empty_home,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("I moved to Berlin in March. No more Munich commutes! | ")
    assert (tmp_path / "memorist" / "memorist.db").exists()
    assert README.stat().st_size <= 7_000


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python" in page.read_text()], ids=lambda page: page.stem
)
def test_a_page_prints_what_it_says(page: Path, empty_home: dict[str, str], tmp_path: Path) -> None:
    code, promised = program(page.read_text("utf-8"))
    (script := tmp_path / "script" / "page.py").parent.mkdir()
    script.write_text(UNHURRIED + code, "utf-8")
    (folder := tmp_path / "folder").mkdir()
    assert printed(script, folder, empty_home).splitlines() == promised or not promised


def test_the_first_commands_work(empty_home: dict[str, str], tmp_path: Path) -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    commands = re.findall(r"^\$ (memorist [^#\n]*)", page, flags=re.MULTILINE)
    assert len(commands) == 4
    done = [run(tmp_path, shlex.split(it)[1:], b"", empty_home) for it in commands]
    assert not any(it.returncode for it in done)
    outputs = [it.stdout.decode() for it in done]
    assert "I moved to Berlin in March." in outputs[1]
    assert "I moved to Berlin in March." in outputs[2]
    assert "fails" not in outputs[3]


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
    for document in DOCUMENTS:
        for target in re.findall(r"\]\((?!http)([^)]+)\)", document.read_text()):
            file, _, anchor = target.partition("#")
            there = document.parent / file if file else document
            assert there.exists(), f"{document.name} → {target}"
            assert not anchor or anchor in anchors(there), f"{document.name} → {target}"


def test_pages_read_well_on_a_git_host() -> None:
    """What only the builder of the site understands is in docs/site."""
    for document in DOCUMENTS:
        if "site" not in document.parts:
            assert not re.search(r"^(```\{|:::|\.\. \w+::)", document.read_text(), re.MULTILINE)


def test_the_architecture_names_files_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    source = ROOT / "src" / "memorist"
    for path in re.findall(r"`([\w/]+\.py)`", text):
        there = source / path, source / "providers" / path, ROOT / path
        assert any(file.exists() for file in there), path
