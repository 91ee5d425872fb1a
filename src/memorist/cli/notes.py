"""`memorist notes`: read the notes, add to them, and go back to any version."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from memorist.cli.common import (
    Agent,
    AsJson,
    Database,
    User,
    console,
    errors,
    harmless,
    moment,
    open_quietly,
    print_json,
)
from memorist.errors import InvalidError
from memorist.records.note import Note
from memorist.views.notebook import Notebook

PREVIEW_CHARS = 60

AddText = Annotated[str | None, typer.Option("--append", help="Add this below; `-`: from stdin.")]
NewText = Annotated[
    str | None, typer.Option("--write", help="Put this file in their place; `-`: standard input.")
]
Versions = Annotated[bool, typer.Option("--versions", help="List every version there was.")]
At = Annotated[int | None, typer.Option("--at", help="Show them as they were at this version.")]
Restore = Annotated[int | None, typer.Option("--restore", help="Go back to this version.")]


def notes(
    user: User = None,
    agent: Agent = None,
    append: AddText = None,
    write: NewText = None,
    versions: Versions = False,
    at: At = None,
    restore: Restore = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the notes an agent keeps about a user, or change them; every version is kept."""
    wishes = (append is not None, write is not None, versions, at is not None, restore is not None)
    if sum(wishes) > 1:
        raise InvalidError("give one of --append, --write, --versions, --at and --restore")
    memory, settings = open_quietly(db)
    with memory:
        book = Notebook(
            memory,
            user=settings.user if user is None else user,
            agent=settings.agent if agent is None else agent,
        )
        if append is not None:
            _done(book.append(_standard_input() if append == "-" else append), as_json)
        elif write is not None:
            _done(book.write(_standard_input() if write == "-" else _file(write)), as_json)
        elif restore is not None:
            _done(book.restore(restore), as_json)
        elif versions:
            _list(book.versions(), as_json)
        else:
            version = book.version if at is None else at
            _show(book.at(version) if version else None, as_json)


def _standard_input() -> str:
    return sys.stdin.buffer.read().decode(errors="surrogateescape")


def _file(path: str) -> str:
    try:
        return Path(path).read_bytes().decode(errors="surrogateescape")
    except OSError as error:
        raise InvalidError(f"the file cannot be read: {error.strerror}") from error


def _plain(note: Note) -> dict[str, Any]:
    return {
        "version": note.version,
        "created_at": note.created_at,
        "text": note.text,
        "user": note.scope.user,
        "agent": note.scope.agent,
    }


def _show(note: Note | None, as_json: bool) -> None:
    if as_json:
        print_json(None if note is None else _plain(note))
    elif note is None or not note.text:
        errors.print("no notes", style="dim")
    else:
        typer.echo(harmless(note.text.replace("\r\n", "\n")))


def _done(note: Note, as_json: bool) -> None:
    if as_json:
        print_json(_plain(note))
    else:
        console.print(f"the notes are at version {note.version}, {len(note.text)} characters")


def _list(found: list[Note], as_json: bool) -> None:
    if as_json:
        print_json([_plain(note) for note in found])
        return
    if not found:
        errors.print("no notes", style="dim")
        return
    table = Table(box=None, pad_edge=False)
    for name in ("version", "written", "characters", "begins"):
        table.add_column(name, style="" if name == "begins" else "dim", overflow="fold")
    for note in found:
        begins = " ".join(note.text[:PREVIEW_CHARS].split())
        table.add_row(
            str(note.version), moment(note.created_at), str(len(note.text)), Text(harmless(begins))
        )
    console.print(table)
