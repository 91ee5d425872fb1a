"""The whole app, MCP and all, for one user: `python -m tests.support.mcp_whole database`."""

from __future__ import annotations

from typing import Any

from memorist import Memory
from memorist.records.scope import Principal
from memorist.server.auth import Guard
from memorist.server.http.app import Limits, build_app
from tests.support.mcp_http import main


class EveryoneIsAda(Guard):
    """Takes every caller for the same user, whatever key they show."""

    def authenticate(self, authorization: str | None) -> Principal:
        """Ada."""
        return Principal(tenant="acme", user="ada")


def make(memory: Memory) -> Any:
    """The app."""
    return build_app(memory, EveryoneIsAda(memory.keys), Limits(requests_per_s=0))


if __name__ == "__main__":
    main(make)
