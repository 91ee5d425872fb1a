"""Real MCP servers for the tests: `memorist mcp` in a process of its own, on either SDK."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters

on_both = pytest.mark.parametrize("sdk", ["1", pytest.param("2", marks=pytest.mark.prove)])


def python_with(sdk: str) -> str:
    """A Python with that version of the SDK: the tests' own has the first."""
    return sys.executable if sdk == "1" else sdk_two()


def command(python: str, *options: str) -> list[str]:
    """`memorist mcp` by one of the Pythons."""
    return [python, "-c", "from memorist.cli.main import main; main()", "mcp", *options]


def environment(database: Path, **more: str) -> dict[str, str]:
    """An environment in which nothing but the test says whose memory it is."""
    kept = {name: value for name, value in os.environ.items() if "MEMORIST" not in name}
    return kept | {"MEMORIST_URL": str(database), "MEMORIST_EMBEDDER": "none"} | more


def over_stdio(python: str, database: Path, *options: str, **more: str) -> StdioServerParameters:
    """What a client starts the server with."""
    first, *rest = command(python, *options)
    return StdioServerParameters(command=first, args=rest, env=environment(database, **more))


@cache
def sdk_two() -> str:
    """A Python with version 2 of the SDK before all that is installed here, made once."""
    place = Path(tempfile.mkdtemp(prefix="sdk"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    python = str(place / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "mcp>=2.3,<3"]
    subprocess.run(install, check=True, capture_output=True)
    [packages] = place.glob("lib/python*/site-packages")
    ours = sysconfig.get_path("purelib")
    (packages / "here.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    return python


def structured(result: Any) -> dict[str, Any]:
    """What a tool gave as data; it must not have failed."""
    assert not result.isError, result.content
    found: dict[str, Any] = result.structuredContent
    return found
