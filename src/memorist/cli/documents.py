"""`memorist ingest` and `articles`: files to quote from; `notes`: what an agent keeps of a user."""

import logging
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from memorist.cli import options as opt
from memorist.cli import render
from memorist.cli.render import console, errors, escape_controls, print_json
from memorist.client import Client
from memorist.config import Settings
from memorist.errors import InvalidError
from memorist.library import Library
from memorist.memory import Memory

if TYPE_CHECKING:
    from memorist.context.documents.excerpts import Retrieved

URI_CHARS = 40  # shown of a uri while it is read, from its end
PREVIEW_CHARS = 60


def ingest(
    paths: list[Path] = typer.Argument(help="Markdown, text, HTML, PDF; or folders."),
    library: opt.LibraryName = None,
    user: opt.User = None,
    prune: bool = typer.Option(
        False, "--prune", help="Remove what is no longer in the folders it came from."
    ),
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Read files and folders in, to quote from; unchanged files are skipped."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it quotes what it cannot read
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    bar = Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)
    with opt.open_memory(db, user, worker=False) as (memory, owner), bar:
        task = bar.add_task("", total=None)

        def progress(done: int, total: int, uri: str) -> None:
            shown = escape_controls(uri[-URI_CHARS:])
            bar.update(task, completed=done, total=total, description=shown)

        books = _library(memory, library, user, owner)
        ingested = books.ingest(paths, prune=prune, progress=progress)
    if as_json:
        print_json(ingested)
    else:
        done = {name: uris for name, uris in render.fields_of(ingested).items() if name != "notes"}
        counts = [f"{len(uris)} {name}" for name, uris in done.items() if uris]
        console.print(Text(", ".join(counts) or "nothing to read there"), soft_wrap=True)
        for uri, reason in {**ingested.notes, **ingested.failed}.items():
            render.warn(f"{uri}: {reason}")
        if ingested.added or ingested.changed:
            render.remark("found by their words now; `memorist worker --once` adds their meaning")
    if ingested.failed:
        raise typer.Exit(1)


def articles(
    library: opt.LibraryName = None,
    user: opt.User = None,
    ask: str | None = typer.Option(None, "--ask", help="Show what bears on this question."),
    tokens: int = typer.Option(1_000, "--tokens", "-t", help="How many tokens to show at most."),
    limit: int = typer.Option(3, "--limit", "-n", help="How many articles at most."),
    remove: str | None = typer.Option(None, help="Remove one, by its id or the end of it."),
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """List the articles of a library or of a user, or show what they say on a question."""
    with opt.open_memory(db, user, worker=ask is not None) as (memory, owner):
        books = _library(memory, library, user, owner)
        if remove is not None:
            books.remove(render.full_id(remove, [card.id for card in books.articles()]))
            if not isinstance(memory, Client):  # a server scrubs when it next forgets
                memory.scrub()
        elif ask is not None:
            memory.jobs.catch_up(opt.CATCH_UP_SECONDS)  # what was just read in has no vector yet
            _show_excerpts(books.retrieve(ask, limit, window=tokens, deadline_ms=None), as_json)
        else:
            columns: render.Columns = {
                "id": render.record_id,
                "when": "created_at",
                "title": "title",
                "uri": "uri",
                "characters": "chars",
            }
            cards, empty = books.articles(), "no articles yet"
            render.records(cards, columns, main="title", as_json=as_json, empty=empty)


def _library(memory: Memory, name: str | None, user: str | None, owner: str) -> Library:
    """The library that the options name, or the user's own."""
    if name is None:
        return memory.library(user=owner)
    if user is not None:
        raise InvalidError("give --library or --user, not both")
    return memory.library(name)


def _show_excerpts(excerpts: list["Retrieved"], as_json: bool) -> None:
    if as_json:
        print_json([render.fields_of(quote) | {"citation": quote.citation} for quote in excerpts])
    elif not excerpts:
        render.remark("nothing found")
    for excerpt in () if as_json else excerpts:
        size = f"{'whole' if excerpt.whole else 'in part'}, {excerpt.tokens} tokens"
        head = (escape_controls(excerpt.citation), "bold")
        console.print(Text.assemble(head, (f"  {size}, {excerpt.why}", "dim")))
        console.print(Text(f"{indent(escape_controls(excerpt.text), '  ')}\n"))


def notes(
    user: opt.User = None,
    agent: opt.Agent = None,
    append: str | None = typer.Option(
        None, help="Add this text at the end; `-` reads standard input."
    ),
    write: str | None = typer.Option(
        None, help="Replace the notes by this file; `-` reads standard input."
    ),
    versions: bool = typer.Option(False, "--versions", help="List every version."),
    at: int | None = typer.Option(None, help="Show them as they were at this version."),
    restore: int | None = typer.Option(None, help="Go back to this version."),
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show the notes that an agent keeps about a user, or change them; every version is kept."""
    if sum(option is not None for option in (append, write, at, restore)) + versions > 1:
        raise InvalidError("give one of --append, --write, --versions, --at and --restore")
    agent = Settings.from_environment().agent if agent is None else agent
    note = saved = None
    with opt.open_memory(db, user, worker=False) as (memory, user):
        notebook = memory.notes(user=user, agent=agent)
        if versions:
            columns: render.Columns = {
                "version": "version",
                "written": "created_at",
                "characters": lambda note: len(note.text),
                "begins": lambda note: " ".join(note.text[:PREVIEW_CHARS].split()),
            }
            rows = notebook.versions()
            render.records(rows, columns, main="begins", as_json=as_json, empty="no notes")
            return
        if append is not None:
            saved = notebook.append(opt.read_stdin() if append == "-" else append)
        elif write is not None:
            saved = notebook.write(_read(write))
        elif restore is not None:
            saved = notebook.restore(restore)
        elif version := notebook.version if at is None else at:
            note = notebook.at(version)
    if as_json:
        print_json(saved or note)
    elif saved is not None:
        size = render.counted(len(saved.text), "characters")
        console.print(f"the notes are at version {saved.version}, {size}")
    elif note is None or not note.text:
        render.remark("no notes")
    else:
        typer.echo(escape_controls(note.text.replace("\r\n", "\n")))


def _read(path: str) -> str:
    if path == "-":
        return opt.read_stdin()
    return Path(path).read_bytes().decode(errors="surrogateescape")
