"""`memorist remember`, `history` and `forget`: the log of messages."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from memorist.cli.options import (
    Agent,
    AsJson,
    Database,
    SessionId,
    User,
    Yes,
    open_memory,
    read_stdin,
)
from memorist.cli.render import console, escape_controls, print_json, remark, table, warn
from memorist.config import Settings
from memorist.errors import InvalidError
from memorist.records.message import Message

MessageText = Annotated[str, typer.Argument(help="What was said; `-` reads standard input.")]
Role = Annotated[str, typer.Option("--role", "-r", help="user, assistant, system or tool.")]
Last = Annotated[int, typer.Option("--last", "-n", help="How many, from the end.")]
Session = Annotated[str | None, typer.Option("--session", "-s", help="All of this session.")]
MessageId = Annotated[str | None, typer.Option("--message", help="The message with this id.")]
Source = Annotated[
    str | None, typer.Option(help="All that came from: user, assistant, tool, import, web, system.")
]
Everything = Annotated[bool, typer.Option("--everything", help="All of the user's.")]


def remember(
    text: MessageText,
    role: Role = "user",
    user: User = None,
    agent: Agent = None,
    session: SessionId = None,
    db: Database = None,
) -> None:
    """Store a message durably, in the active session or the one named."""
    if agent is None and session is None:
        agent = Settings.from_environment().agent
    message = Message(role, read_stdin() if text == "-" else text)
    with open_memory(db, user, worker=False) as (memory, user):
        stored = memory.remember(message, user=user, agent=agent, session=session)
    where = f"{stored.message_ids[0]} in session {stored.session_id}"
    console.print(Text.assemble("remembered ", (escape_controls(where), "dim")), soft_wrap=True)


def history(
    user: User = None,
    agent: Agent = None,
    session: SessionId = None,
    last: Last = 20,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the last messages, exactly as they were said."""
    with open_memory(db, user, worker=False) as (memory, user):
        messages = memory.history(user=user, agent=agent, session=session, last=last)
    if as_json:
        print_json([message.to_wire() for message in messages])
    elif not messages:
        remark("no messages yet")
    else:
        columns = {
            "when": lambda message: message.created_at,
            "who": lambda message: Text(escape_controls(message.name or message.role), "bold"),
            "text": lambda message: message.text,
        }
        console.print(table(messages, columns, main="text", header=False))


def forget(
    user: User = None,
    agent: Agent = None,
    session: Session = None,
    message: MessageId = None,
    source: Source = None,
    everything: Everything = False,
    yes: Yes = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Remove messages and everything derived from them, for good."""
    options = {"agent": agent, "session": session, "message": message, "source": source}
    named: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if everything == bool(named):
        raise InvalidError("name an agent, session, message or source, or else say --everything")
    with open_memory(db, user, worker=False) as (memory, user):
        if not yes:
            what = ", ".join(f"{name} {value}" for name, value in named.items()) or "everything"
            question = f"Forget {what} of user {user}, and what was derived from it, for good?"
            typer.confirm(escape_controls(question), abort=True, err=True)
        forgotten = memory.forget(user=user, everything=everything, **named)
    if as_json:
        print_json({"counts": forgotten.counts, "residue": forgotten.residue})
        return
    counts = ", ".join(f"{count} {name}" for name, count in forgotten.counts.items() if count)
    console.print(Text(f"forgot {counts}" if counts else "there was nothing to forget"))
    if forgotten.residue:
        warn(forgotten.residue)
