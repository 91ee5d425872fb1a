"""`memorist history`: read a conversation."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from memorist.cli.common import (
    Agent,
    AsJson,
    Database,
    SessionId,
    User,
    console,
    errors,
    harmless,
    moment,
    open_memory,
)


def history(
    user: User = None,
    agent: Agent = None,
    session: SessionId = None,
    last: Annotated[int, typer.Option("--last", "-n", help="How many, from the end.")] = 20,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the last messages, exactly as they were said."""
    memory, settings = open_memory(db)
    with memory:
        messages = memory.history(
            user=settings.user if user is None else user, agent=agent, session=session, last=last
        )
    if as_json:
        print(json.dumps([message.to_wire() for message in messages]))
        return
    if not messages:
        errors.print("no messages yet", style="dim")
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for overflow in ("ellipsis", "ellipsis", "fold"):
        table.add_column(overflow=overflow)
    for message in messages:
        table.add_row(
            Text(moment(message.created_at), style="dim"),
            Text(harmless(message.name or message.role), style="bold"),
            Text(harmless(message.text), overflow="fold"),
        )
    console.print(table)
