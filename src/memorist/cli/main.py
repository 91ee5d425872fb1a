"""The `memorist` command."""

import logging
import sys

import typer
from rich.text import Text

from memorist import __version__
from memorist.cli.audit import audit
from memorist.cli.context import context
from memorist.cli.documents import articles, ingest, notes
from memorist.cli.mcp import mcp
from memorist.cli.memories import facts, maintain, memories, undo
from memorist.cli.messages import forget, history, recall, remember
from memorist.cli.render import errors
from memorist.cli.serve import keys, serve
from memorist.cli.upkeep import backup, doctor, jobs, rebuild
from memorist.cli.worker import worker
from memorist.errors import MemoristError

SUMMARY = "The memory of AI agents. Keeps every word, finds the right ones."
app = typer.Typer(
    help=SUMMARY, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
for command in (
    *(remember, recall, context, history, memories, facts, notes, undo, forget),
    *(ingest, articles),
    *(serve, worker, jobs, maintain, rebuild, audit, backup, doctor),
):
    app.command()(command)
app.add_typer(keys, name="keys", no_args_is_help=True)
app.add_typer(mcp, name="mcp")


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"memorist {__version__}")
        raise typer.Exit


@app.callback(help=SUMMARY)
def options(
    version: bool = typer.Option(
        False, "--version", callback=show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Options of the command itself."""


def main() -> None:
    """Run the command line; an error of ours is one line and exit code 1."""
    # The pool logs each failed attempt; our own error reports the last.
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    try:
        app()
    except MemoristError as error:
        line = Text.assemble((type(error).__name__, "red"), f": {error}")
        errors.print(line, soft_wrap=True)
        sys.exit(1)
