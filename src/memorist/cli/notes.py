"""`memorist notes`: read the notes, add to them, and go back to any version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memorist.cli.options import Agent, AsJson, Database, User, open_memory, read_stdin
from memorist.cli.render import console, escape_controls, print_json, remark, render
from memorist.config import Settings
from memorist.errors import InvalidError
from memorist.records.documents import Note

PREVIEW_CHARS = 60

Append = Annotated[
    str | None, typer.Option(help="Add this text at the end; `-` reads standard input.")
]
Write = Annotated[
    str | None, typer.Option(help="Replace the notes by this file; `-` reads standard input.")
]
Versions = Annotated[bool, typer.Option("--versions", help="List every version.")]
At = Annotated[int | None, typer.Option(help="Show them as they were at this version.")]
Restore = Annotated[int | None, typer.Option(help="Go back to this version.")]


def notes(
    user: User = None,
    agent: Agent = None,
    append: Append = None,
    write: Write = None,
    versions: Versions = False,
    at: At = None,
    restore: Restore = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the notes that an agent keeps about a user, or change them; every version is kept."""
    if sum(option is not None for option in (append, write, at, restore)) + versions > 1:
        raise InvalidError("give one of --append, --write, --versions, --at and --restore")
    agent = Settings.from_environment().agent if agent is None else agent
    with open_memory(db, user, worker=False) as (memory, user):
        notebook = memory.notes(user=user, agent=agent)
        if append is not None:
            _show_saved(notebook.append(read_stdin() if append == "-" else append), as_json)
        elif write is not None:
            _show_saved(notebook.write(_read(write)), as_json)
        elif restore is not None:
            _show_saved(notebook.restore(restore), as_json)
        elif versions:
            _show_versions(notebook.versions(), as_json)
        else:
            version = notebook.version if at is None else at
            _show(notebook.at(version) if version else None, as_json)


def _read(path: str) -> str:
    if path == "-":
        return read_stdin()
    try:
        return Path(path).read_bytes().decode(errors="surrogateescape")
    except OSError as error:
        raise InvalidError(f"the file cannot be read: {error.strerror}") from error


def _show(note: Note | None, as_json: bool) -> None:
    if as_json:
        print_json(note)
    elif note is None or not note.text:
        remark("no notes")
    else:
        typer.echo(escape_controls(note.text.replace("\r\n", "\n")))


def _show_saved(note: Note, as_json: bool) -> None:
    if as_json:
        print_json(note)
    else:
        console.print(f"the notes are at version {note.version}, {len(note.text)} characters")


def _show_versions(found: list[Note], as_json: bool) -> None:
    render(
        found,
        {
            "version": lambda note: note.version,
            "written": lambda note: note.created_at,
            "characters": lambda note: len(note.text),
            "begins": lambda note: " ".join(note.text[:PREVIEW_CHARS].split()),
        },
        main="begins",
        as_json=as_json,
        empty="no notes",
    )
