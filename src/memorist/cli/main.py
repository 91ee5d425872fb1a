"""The `memorist` command."""

import logging
import os
import sys
import tomllib
from importlib import import_module
from importlib.resources import files
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from memorist import __version__
from memorist.errors import MemoristError, NotFoundError

SUMMARY = "The memory of AI agents. Keeps every word, finds the right ones."
FAILED, NOT_FOUND, INTERRUPTED = 1, 3, 130
errors = Console(stderr=True)


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(name).read_text("utf-8"))


PANELS: dict[str, dict[str, list[str]]] = _table("commands.toml")
COMMANDS = {name: entry[0] for panel in PANELS.values() for name, entry in panel.items()}


class LazyGroup(TyperGroup):
    """Knows its commands by the table; imports the module of the one that is run."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for panel, entries in PANELS.items():
            for name, (_, summary) in entries.items():
                self.add_command(TyperCommand(name, short_help=summary, rich_help_panel=panel))

    def get_params(self, ctx: Any) -> list[Any]:
        return _bare_flags(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and load(str(name)), rest


def load(name: str) -> Any:
    """A command with its options, from its module."""
    module, function = COMMANDS[name].split(":")
    target = getattr(import_module(f"memorist.cli.{module}"), function)
    if isinstance(target, typer.Typer):
        command: Any = typer.main.get_group(target)
        command.name = name
    else:
        command = _command_of(target, name)
    _complete(command, name, _table("examples.toml"))
    return command


def _command_of(function: Any, name: str) -> Any:
    single = typer.Typer(add_completion=False)
    single.command(name)(function)
    return typer.main.get_command(single)


def _complete(command: Any, path: str, examples: dict[str, list[str]]) -> None:
    """Give a command, and those below it, --create after --db, and its help examples."""
    command.epilog = "\n".join(f"[dim]$[/] {escape(line)}" for line in examples.get(path, ()))
    names = [parameter.name for parameter in command.params]
    if "db" in names:
        from memorist.cli.options import create

        command.params.insert(names.index("db") + 1, _command_of(create, "").params[0])
    _bare_flags(command.get_params(typer.Context(command)))
    for name, below in getattr(command, "commands", {}).items():
        _complete(below, f"{path} {name}", examples)


def _bare_flags(parameters: list[Any]) -> list[Any]:
    """Let the help show flags without a type: `--json`, not `--json <bool>`."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


app = typer.Typer(cls=LazyGroup, help=SUMMARY, no_args_is_help=True, pretty_exceptions_enable=False)


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
    """Run the command line; an error of ours is one line, and its exit code is documented."""
    if sys.stdin is None:  # closed by whoever started this
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - until the end
    # The pool logs each failed attempt; our own error reports the last.
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    try:
        app()
    except MemoristError as error:
        errors.print(Text.assemble((type(error).__name__, "red"), f": {error}"), soft_wrap=True)
        sys.exit(NOT_FOUND if isinstance(error, NotFoundError) else FAILED)
    except OSError as error:  # a folder that is not there, a full disk
        where = f"{error.filename}: " if error.filename else ""
        errors.print(Text(f"{where}{error.strerror or error}", "red"), soft_wrap=True)
        sys.exit(FAILED)
    except SystemExit as end:
        if end.code == INTERRUPTED and sys.argv[1:2] != ["serve"]:  # it is how that is stopped
            errors.print(Text("interrupted", "dim"))
        raise
