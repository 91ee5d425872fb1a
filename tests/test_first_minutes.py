"""The README as somebody new follows it: each command under Start, as written, in an empty home.

`.ci/dist` runs `make dist` and installs what it leaves by pip, uvx and pipx; `test_docs.py` runs
the ten lines of Python, `test_cli_demo.py` the demo, `test_examples.py` the tutorial, which ends
with an agent of one's own.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support import forked
from tests.support.pages import ROOT, UNHURRIED, program

START = (ROOT / "README.md").read_text("utf-8").partition("\n## Start\n")[2].partition("\n## ")[0]
COMMANDS = [
    shlex.split(line, comments=True) for line in re.findall(r"^\$ (.+)$", START, flags=re.MULTILINE)
]
BY_CI = ("make", "pip")
EXPORTS = ROOT / "tests" / "data" / "exports"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home."""
    return tmp_path


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if "MEMORIST" not in name}
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    places = {"HOME": str(home), "XDG_DATA_HOME": str(home), "PATH": programs}
    return kept | places | {"BROWSER": "true", "COLUMNS": "200"} | more


def command(*words: str) -> list[str]:
    """The command of the README that begins so."""
    found = [line for line in COMMANDS if tuple(line[: len(words)]) == words]
    assert len(found) == 1, f"the README has no single line `{' '.join(words)} …`"
    return found[0]


def run(home: Path, *line: str, answer: str = "", **more: str) -> str:
    """What a line prints; `memorist` runs in a process that need not import first."""
    given, said = environment(home, **more), answer.encode()
    if line[0] == "memorist":
        done = forked.run(home, list(line[1:]), said, given)
    else:
        done = subprocess.run(
            line, env=given, cwd=home, input=said, capture_output=True, check=False
        )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_every_command_of_the_readme_is_tried_here_or_by_ci() -> None:
    tried = {tuple(line[1:2]) for line in COMMANDS if line[0] == "memorist"}
    assert tried == {
        (name,) for name in "demo remember recall import export mcp serve promote".split()
    }
    assert {line[0] for line in COMMANDS} == {"memorist", *BY_CI}
    assert "--find-links dist" in (ROOT / ".ci" / "dist").read_text()


def test_the_first_memory_is_one_command_and_is_found(home: Path) -> None:
    subprocess.run(command("memorist", "remember"), env=environment(home), cwd=home, check=True)
    assert "I moved to Berlin in March." in run(home, *command("memorist", "recall"))
    assert (home / "memorist" / "memorist.db").exists()


def test_an_export_is_imported_and_found(home: Path) -> None:
    line = command("memorist", "import")
    shutil.make_archive(str(home / line[-1].removesuffix(".zip")), "zip", EXPORTS / "chatgpt")
    assert "ChatGPT data export" in run(home, *line)
    assert "My balcony faces south." in run(home, "memorist", "recall", "which herbs like sun?")
    archive = command("memorist", "export")
    run(home, *archive)
    assert (home / archive[-1]).read_bytes()[:2] == b"\x1f\x8b"


def test_the_page_opens(home: Path) -> None:
    line = [*command("memorist", "serve"), "--port", "0"]
    with subprocess.Popen(
        line, env=environment(home), cwd=home, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout
            said = iter(server.stdout)
            url = next(line.split()[1] for line in said if line.strip().startswith("page"))
            for path in ("/", "/health"):
                assert urllib.request.urlopen(url + path, timeout=60).status == 200
        finally:
            server.terminate()


def test_a_client_of_mcp_finds_what_the_command_line_remembered(home: Path) -> None:
    """Written by `mcp install`, started as that client starts it."""
    run(home, *command("memorist", "remember"))
    run(home, *command("memorist", "mcp", "install"), answer="y\n")
    written: Any = json.loads((home / ".claude.json").read_text())["mcpServers"]["memorist"]
    given = environment(home, **written.get("env", {}))
    server = StdioServerParameters(command=written["command"], args=written["args"], env=given)

    async def ask() -> str:
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            found = await session.call_tool("recall", {"query": "where does she live?"})
            return str(found.content)

    assert "Berlin" in asyncio.run(ask())


def test_it_goes_on_in_postgres(home: Path, postgres_url: str) -> None:
    run(home, *command("memorist", "remember"))
    *promote, _ = command("memorist", "promote")
    run(home, *promote, postgres_url)
    recalled = run(home, "memorist", "recall", "Berlin", MEMORIST_URL=postgres_url)
    assert "I moved to Berlin" in recalled
    code = program((ROOT / "README.md").read_text("utf-8")).code
    on_postgres = code.replace("Memory()", f"Memory({postgres_url!r})")
    assert on_postgres != code
    assert "I moved to Berlin" in run(home, sys.executable, "-c", UNHURRIED + on_postgres)
