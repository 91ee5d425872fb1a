"""The whole app, MCP and all, for one local user: `python -m tests.support.mcp_whole database`."""

from __future__ import annotations

from typing import Any

from memorist import Memory
from memorist.server.auth import Guard
from memorist.server.http.app import Limits, build_app
from tests.support.mcp_http import main


def make(memory: Memory) -> Any:
    """The app."""
    return build_app(memory, Guard.local("acme", "ada"), Limits(requests_per_s=0))


if __name__ == "__main__":
    main(make)
