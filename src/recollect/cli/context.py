"""`recollect context`: the exact window a model would get, and the receipt for it."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from recollect.cli.show import (
    Agent,
    AsJson,
    Database,
    SessionId,
    User,
    console,
    errors,
    harmless,
    open_memory,
    print_json,
)
from recollect.context.window import Context, Receipt, Window
from recollect.views.library import Library

CATCH_UP_SECONDS = 2.0
BAR_CHARS = 30
DEFAULT = Window()

MaxTokens = Annotated[int, typer.Option("--max-tokens", "-t", min=1, help="The window.")]
Model = Annotated[str, typer.Option(help="Whose tokens to count, e.g. gpt-4o.")]
System = Annotated[str, typer.Option(help="The system prompt.")]
FromLibrary = Annotated[str | None, typer.Option("--library", help="Quote articles from here too.")]
OnlyReceipt = Annotated[bool, typer.Option("--receipt", help="Only the receipt.")]
Deadline = Annotated[
    float, typer.Option("--deadline", help="Milliseconds. A new process has a model to load.")
]


def context(
    question: Annotated[str, typer.Argument(help="What the user asks.")],
    user: User = None,
    agent: Agent = None,
    session: SessionId = None,
    max_tokens: MaxTokens = DEFAULT.max_tokens,
    model: Model = "",
    system: System = "",
    library: FromLibrary = None,
    deadline: Deadline = 5_000,
    receipt: OnlyReceipt = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show what a model would be sent for a question: every message, and what each part takes."""
    memory, settings = open_memory(db)
    with memory:
        memory.catch_up(CATCH_UP_SECONDS)  # what was just stored has no vector yet
        given: dict[str, Any] = {"system": system} if system else {}
        if library is not None:
            given["library"] = Library(memory, library)
        made = memory.context(
            question, user=settings.user if user is None else user, agent=agent, session=session,
            window=Window(max_tokens=max_tokens, model=model), deadline_ms=deadline, **given,
        )  # fmt: skip
    if as_json:
        print_json({"messages": made.messages, "receipt": dataclasses.asdict(made.receipt)})
        return
    if not receipt:
        _show(made)
    console.print(_table(made.receipt))
    for what, why in {**dict.fromkeys(made.receipt.late, "late"), **made.receipt.failed}.items():
        errors.print(Text(f"{what}: {why}", style="yellow"))


def _show(made: Context) -> None:
    for message in made.messages:
        console.print(Text(message["role"], style="bold cyan"))
        console.print(Text(harmless(str(message["content"]))))
        console.print()


def _table(receipt: Receipt) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("part", "tokens", "", "left out"):
        table.add_column(name, justify="right" if name == "tokens" else "left")
    for part in receipt.parts:
        bar = "█" * round(part.tokens / receipt.window * BAR_CHARS)
        cut = f"{part.cut:,}: {part.why}" if part.cut else part.why
        table.add_row(
            part.name, f"{part.tokens:,}", Text(bar, style="cyan"), Text(cut, style="dim")
        )
    rest = {"answer": receipt.answer, "left": receipt.left}
    for name, tokens in rest.items():
        table.add_row(Text(name, style="dim"), f"{tokens:,}")
    table.add_row("window", f"{receipt.window:,}", "", f"counted by {receipt.counted_by}")
    return table
