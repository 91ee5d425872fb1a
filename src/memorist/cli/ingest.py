"""`memorist ingest`: read files and folders in, to quote from."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from memorist.cli.common import (
    AsJson,
    Database,
    User,
    console,
    errors,
    harmless,
    open_quietly,
    print_json,
)
from memorist.config import Settings
from memorist.errors import InvalidError
from memorist.memory import Memory
from memorist.views.library import Ingested, Library

SHOWN = 40  # of a uri, from its end

ShelfName = Annotated[
    str | None, typer.Option("--library", "-l", help="A shelf that all users share, by its name.")
]
Prune = Annotated[
    bool, typer.Option("--prune", help="Remove what is no longer in the folders it came from.")
]


def open_library(
    memory: Memory, settings: Settings, library: str | None, user: str | None
) -> Library:
    """The shelf that the options name, else the articles of the user."""
    if library is not None and user is not None:
        raise InvalidError("give --library or --user, not both")
    if library is not None:
        return Library(memory, library)
    return Library(memory, user=settings.user if user is None else user)


def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Markdown, text, HTML, PDF; or folders.")],
    library: ShelfName = None,
    user: User = None,
    prune: Prune = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Read files and folders in, to quote from; what has not changed is left as it is."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it quotes what it cannot read
    memory, settings = open_quietly(db)
    with memory, _bar() as bar:
        task = bar.add_task("", total=None)

        def progress(done: int, total: int, uri: str) -> None:
            bar.update(task, completed=done, total=total, description=harmless(uri[-SHOWN:]))

        done = open_library(memory, settings, library, user).ingest(
            paths, prune=prune, progress=progress
        )
    if as_json:
        print_json(dataclasses.asdict(done))
    else:
        _tell(done)
    if done.failed:
        raise typer.Exit(1)


def _bar() -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)


def _tell(done: Ingested) -> None:
    counts = [
        f"{len(uris)} {name}"
        for name, uris in dataclasses.asdict(done).items()
        if uris and name != "notes"
    ]
    console.print(Text(", ".join(counts) or "nothing to read there"), soft_wrap=True)
    for uri, why in {**done.notes, **done.failed}.items():
        errors.print(Text(harmless(f"{uri}: {why}"), style="yellow"), soft_wrap=True)
    if done.added or done.changed:
        line = "found by their words now; `memorist worker --once` lets their meaning find them"
        errors.print(Text(line, style="dim"), soft_wrap=True)
