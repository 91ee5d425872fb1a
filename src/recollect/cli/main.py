"""The `recollect` command."""

from __future__ import annotations

import logging
import sys

import typer
from rich.text import Text

from recollect import __version__
from recollect.cli.articles import articles
from recollect.cli.audit import audit
from recollect.cli.backup import backup
from recollect.cli.context import context
from recollect.cli.doctor import doctor
from recollect.cli.facts import facts
from recollect.cli.forget import forget
from recollect.cli.history import history
from recollect.cli.ingest import ingest
from recollect.cli.jobs import jobs
from recollect.cli.keys import keys
from recollect.cli.maintain import maintain
from recollect.cli.mcp import mcp
from recollect.cli.memories import memories, undo
from recollect.cli.notes import notes
from recollect.cli.recall import recall
from recollect.cli.remember import remember
from recollect.cli.serve import serve
from recollect.cli.show import errors
from recollect.cli.worker import worker
from recollect.errors import RecollectError

app = typer.Typer(
    help="The memory of AI agents. Keeps every word, finds the right ones.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
COMMANDS = (
    *(remember, recall, context, history, memories, facts, notes, undo, forget),
    *(ingest, articles),
    *(serve, worker, jobs, maintain, audit, backup, doctor),
)
for command in COMMANDS:
    app.command()(command)
app.add_typer(keys, name="keys", no_args_is_help=True)
app.add_typer(mcp, name="mcp")


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"recollect {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """The memory of AI agents. Keeps every word, finds the right ones."""


def main() -> None:
    """Run the command line; our own errors end it with their text alone."""
    # The pool tells of each failed try; our own error tells of the last.
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    try:
        app()
    except RecollectError as error:
        line = Text.assemble((type(error).__name__, "red"), f": {error}")
        errors.print(line, soft_wrap=True)
        sys.exit(1)
