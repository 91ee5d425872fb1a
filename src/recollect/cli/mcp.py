"""`recollect mcp`: the memory as an MCP server, for whatever client starts it."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli.show import Agent, Database
from recollect.config import Settings
from recollect.memory import Memory

Whose = Annotated[
    str | None,
    typer.Option(
        "--user", "-u", envvar="RECOLLECT_USER",
        help="Whose memory. Without one, each call names its user.",
    ),
]  # fmt: skip


def mcp(user: Whose = None, agent: Agent = None, db: Database = None) -> None:
    """Serve the memory as MCP tools over standard input and output, until the client leaves."""
    from recollect.server.mcp import build_server  # here: the other commands start without it

    agent = agent or Settings.from_environment().agent or None
    with Memory(db) as memory:
        build_server(memory, user=user, agent=agent).run()
