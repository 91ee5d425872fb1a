"""`memorist forget`: remove something for good, and say what went."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer
from rich.text import Text

from memorist.cli.common import (
    Agent,
    AsJson,
    Database,
    User,
    console,
    errors,
    harmless,
    open_quietly,
    print_json,
)
from memorist.errors import InvalidError
from memorist.records.query import Forgotten

Session = Annotated[str | None, typer.Option("--session", "-s", help="All of this session.")]
MessageId = Annotated[str | None, typer.Option("--message", help="The message of this id.")]
Source = Annotated[
    str | None, typer.Option(help="All that came from: user, assistant, tool, import, web, system.")
]
Everything = Annotated[bool, typer.Option("--everything", help="All of the user's.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


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
    """Remove messages and all that was derived from them, for good."""
    named = {"agent": agent, "session": session, "message": message, "source": source}
    what = {name: value for name, value in named.items() if value is not None}
    if everything == bool(what):
        raise InvalidError("name an agent, session, message or source, or else say --everything")
    memory, settings = open_quietly(db)
    who = settings.user if user is None else user
    with memory:
        aim = ", ".join(f"{name} {value}" for name, value in what.items()) or "everything"
        if not yes:
            question = f"Forget {aim} of user {who}, and what was derived from it, for good?"
            typer.confirm(harmless(question), abort=True, err=True)
        gone = memory.forget(user=who, everything=everything, **cast(dict[str, Any], what))
    _show(gone, as_json)


def _show(gone: Forgotten, as_json: bool) -> None:
    if as_json:
        print_json({"counts": gone.counts, "residue": gone.residue})
        return
    counts = ", ".join(f"{count} {name}" for name, count in gone.counts.items() if count)
    console.print(Text(f"forgot {counts}" if counts else "there was nothing to forget"))
    if gone.residue:
        errors.print(Text(gone.residue, style="yellow"), soft_wrap=True)
