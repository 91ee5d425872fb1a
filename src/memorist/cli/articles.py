"""`memorist articles`: what is there to quote from, and what it says to a question."""

from __future__ import annotations

import dataclasses
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from memorist.cli.common import (
    AsJson,
    Database,
    User,
    console,
    errors,
    harmless,
    moment,
    open_memory,
    open_quietly,
    print_json,
    short,
)
from memorist.cli.ingest import ShelfName, open_library
from memorist.errors import InvalidError
from memorist.records.article import Card
from memorist.views.library import Library

if TYPE_CHECKING:
    from memorist.context.documents.excerpts import Retrieved

CATCH_UP_SECONDS = 2.0

Ask = Annotated[str | None, typer.Option("--ask", help="Show what bears on this question.")]
Tokens = Annotated[int, typer.Option("--tokens", "-t", help="How many the answer may take.")]
Most = Annotated[int, typer.Option("--limit", "-n", help="How many articles at most.")]
Remove = Annotated[
    str | None, typer.Option("--remove", help="Remove one, by its id or the end of it.")
]


def articles(
    library: ShelfName = None,
    user: User = None,
    ask: Ask = None,
    tokens: Tokens = 1_000,
    limit: Most = 3,
    remove: Remove = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """List the articles of a shelf or of a user, or ask them something."""
    memory, settings = open_quietly(db) if ask is None else open_memory(db)
    with memory:
        books = open_library(memory, settings, library, user)
        if remove is not None:
            books.remove(_whole(books, remove))
            memory.scrub()
        elif ask is not None:
            memory.jobs.catch_up(CATCH_UP_SECONDS)  # what was just read in has no vector yet
            _answer(books.retrieve(ask, limit, window=tokens, deadline_ms=None), as_json)
        else:
            _list(books.articles(), as_json)


def _list(cards: list[Card], as_json: bool) -> None:
    if as_json:
        print_json([dataclasses.asdict(card) for card in cards])
    elif not cards:
        errors.print("no articles yet", style="dim")
    else:
        console.print(_table(cards))


def _table(cards: list[Card]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("id", "when", "title", "uri"):
        table.add_column(name, style="dim" if name != "title" else "", overflow="fold")
    table.add_column("characters", style="dim", justify="right")
    for card in cards:
        table.add_row(
            Text(short(card.id)),
            moment(card.created_at),
            Text(harmless(card.title)),
            Text(harmless(card.uri)),
            f"{card.chars:,}",
        )
    return table


def _answer(found: list[Retrieved], as_json: bool) -> None:
    if as_json:
        print_json([_plain(it) for it in found])
    elif not found:
        errors.print("nothing found", style="dim")
    else:
        console.print(Group(*(part for it in found for part in _shown(it))))


def _shown(found: Retrieved) -> list[Text]:
    about = f"  {'whole' if found.whole else 'in part'}, {found.tokens} tokens, {found.why}"
    head = Text.assemble((harmless(found.citation), "bold"), (about, "dim"))
    return [head, Text(f"{indent(harmless(found.text), '  ')}\n")]


def _plain(found: Retrieved) -> dict[str, Any]:
    why = {**dataclasses.asdict(found.why), "age": found.why.age.total_seconds()}
    return {**dataclasses.asdict(found), "citation": found.citation, "why": why}


def _whole(books: Library, end: str) -> str:
    """The id that ends so; what is not there is left to be looked for as it is."""
    found = [card.id for card in books.articles() if card.id.endswith(end.removeprefix("…"))]
    if len(found) > 1:
        raise InvalidError(f"{len(found)} ids end so; give more of the one you mean")
    return found[0] if found else end
