"""Real MCP servers for the tests: `memorist mcp` in a process of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from mcp import StdioServerParameters

from tests.support.forked import READY, command_line


def command(*options: str) -> list[str]:
    """`memorist mcp` by this Python."""
    return [sys.executable, "-c", "from memorist.cli.main import main; main()", "mcp", *options]


def environment(database: Path, **more: str) -> dict[str, str]:
    """An environment in which nothing but the test says whose memory it is."""
    kept = {name: value for name, value in os.environ.items() if "MEMORIST" not in name}
    return kept | {"MEMORIST_URL": str(database), "MEMORIST_EMBEDDER": "none"} | more


def over_stdio(database: Path, *options: str, **more: str) -> StdioServerParameters:
    """What a client starts a server of all tools with, which need not import first."""
    main, ready = "memorist.__main__:main", (*READY, "memorist.server.mcp.server")
    first, *rest = command_line(main, "mcp", "--tools", "all", *options, ready=ready)
    return StdioServerParameters(command=first, args=rest, env=environment(database, **more))


def structured(result: Any) -> dict[str, Any]:
    """What a tool gave as data; it must not have failed."""
    assert not result.isError, result.content
    found: dict[str, Any] = result.structuredContent
    return found
