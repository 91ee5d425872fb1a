"""`memorist remember`: store a message."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.text import Text

from memorist.cli.common import Agent, Database, SessionId, User, console, harmless, open_quietly
from memorist.records.message import Message


def remember(
    text: Annotated[str, typer.Argument(help="What was said; `-` reads standard input.")],
    role: Annotated[
        str, typer.Option("--role", "-r", help="user, assistant, system or tool.")
    ] = "user",
    user: User = None,
    agent: Agent = None,
    session: SessionId = None,
    db: Database = None,
) -> None:
    """Store a message, durably, before anything else happens to it."""
    said = sys.stdin.buffer.read().decode(errors="surrogateescape") if text == "-" else text
    memory, settings = open_quietly(db)  # whoever asks next does the extraction
    with memory:
        done = memory.remember(
            Message(role, said),
            user=settings.user if user is None else user,
            agent=settings.agent if agent is None and session is None else agent,
            session=session,
        )
    where = f"{done.message_ids[0]} in session {done.session_id}"
    console.print(Text.assemble("remembered ", (harmless(where), "dim")), soft_wrap=True)
