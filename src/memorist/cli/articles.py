"""`memorist ingest` and `articles`: files to quote from."""

from __future__ import annotations

import logging
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from memorist.cli.options import CATCH_UP_SECONDS, AsJson, Database, LibraryName, User, open_memory
from memorist.cli.render import (
    console,
    errors,
    escape_controls,
    fields_of,
    full_id,
    print_json,
    remark,
    render,
    short_id,
    warn,
)
from memorist.client import Client
from memorist.errors import InvalidError
from memorist.memory import Memory
from memorist.views.library import Library

if TYPE_CHECKING:
    from memorist.context.documents.excerpts import Retrieved

URI_CHARS = 40  # shown of a uri while it is read, from its end

Paths = Annotated[list[Path], typer.Argument(help="Markdown, text, HTML, PDF; or folders.")]
Prune = Annotated[
    bool, typer.Option("--prune", help="Remove what is no longer in the folders it came from.")
]
Ask = Annotated[str | None, typer.Option("--ask", help="Show what bears on this question.")]
Tokens = Annotated[int, typer.Option("--tokens", "-t", help="How many tokens to show at most.")]
Limit = Annotated[int, typer.Option("--limit", "-n", help="How many articles at most.")]
Remove = Annotated[
    str | None, typer.Option("--remove", help="Remove one, by its id or the end of it.")
]


def ingest(
    paths: Paths,
    library: LibraryName = None,
    user: User = None,
    prune: Prune = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Read files and folders in, to quote from; unchanged files are skipped."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it quotes what it cannot read
    with open_memory(db, user, worker=False) as (memory, owner), _progress_bar() as bar:
        task = bar.add_task("", total=None)

        def progress(done: int, total: int, uri: str) -> None:
            shown = escape_controls(uri[-URI_CHARS:])
            bar.update(task, completed=done, total=total, description=shown)

        books = _library(memory, library, user, owner)
        ingested = books.ingest(paths, prune=prune, progress=progress)
    if as_json:
        print_json(ingested)
    else:
        results = {name: uris for name, uris in fields_of(ingested).items() if name != "notes"}
        counts = [f"{len(uris)} {name}" for name, uris in results.items() if uris]
        console.print(Text(", ".join(counts) or "nothing to read there"), soft_wrap=True)
        for uri, reason in {**ingested.notes, **ingested.failed}.items():
            warn(f"{uri}: {reason}")
        if ingested.added or ingested.changed:
            remark("found by their words now; `memorist worker --once` adds their meaning")
    if ingested.failed:
        raise typer.Exit(1)


def articles(
    library: LibraryName = None,
    user: User = None,
    ask: Ask = None,
    tokens: Tokens = 1_000,
    limit: Limit = 3,
    remove: Remove = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """List the articles of a library or of a user, or show what they say on a question."""
    with open_memory(db, user, worker=ask is not None) as (memory, owner):
        books = _library(memory, library, user, owner)
        if remove is not None:
            books.remove(full_id(remove, [card.id for card in books.articles()]))
            if not isinstance(memory, Client):  # a server scrubs when it next forgets
                memory.scrub()
        elif ask is not None:
            memory.jobs.catch_up(CATCH_UP_SECONDS)  # what was just read in has no vector yet
            _show_excerpts(books.retrieve(ask, limit, window=tokens, deadline_ms=None), as_json)
        else:
            render(
                books.articles(),
                {
                    "id": lambda card: short_id(card.id),
                    "when": lambda card: card.created_at,
                    "title": lambda card: card.title,
                    "uri": lambda card: card.uri,
                    "characters": lambda card: card.chars,
                },
                main="title",
                as_json=as_json,
                empty="no articles yet",
            )


def _library(memory: Memory, name: str | None, user: str | None, owner: str) -> Library:
    """The library that the options name, or the user's own."""
    if name is None:
        return memory.library(user=owner)
    if user is not None:
        raise InvalidError("give --library or --user, not both")
    return memory.library(name)


def _progress_bar() -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)


def _show_excerpts(excerpts: list[Retrieved], as_json: bool) -> None:
    if as_json:
        print_json([{**fields_of(it), "citation": it.citation} for it in excerpts])
    elif not excerpts:
        remark("nothing found")
    for excerpt in () if as_json else excerpts:
        size = f"{'whole' if excerpt.whole else 'in part'}, {excerpt.tokens} tokens"
        head = (escape_controls(excerpt.citation), "bold")
        console.print(Text.assemble(head, (f"  {size}, {excerpt.why}", "dim")))
        console.print(Text(f"{indent(escape_controls(excerpt.text), '  ')}\n"))
