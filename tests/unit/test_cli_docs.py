"""docs/cli.md against the command line itself: every command, every option, every example."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from memorist.cli.main import app, load

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
SHARED = ("--user", "--agent", "--session", "--db", "--create", "--json")  # explained once
ROOT: Any = typer.main.get_command(app)


def commands(group: Any = ROOT, *path: str) -> Iterator[tuple[str, Any]]:
    """Every command by its name, those of a group after the group."""
    for name, command in group.commands.items():
        command = load(name) if group is ROOT else command
        yield " ".join((*path, name)), command
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)


def reference(name: str, command: Any) -> str:
    """What the page says of a command, made from the help texts of the command itself."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join(["memorist", name, *(_metavar(argument) for argument in arguments)])
    lines = [f"### `{usage}`", "", " ".join(command.help.split("\n\n")[0].split()), ""]
    shared, rows = [], []
    for parameter in command.params:
        options = parameter.opts + parameter.secondary_opts
        names = ", ".join(f"`{option}`" for option in options)
        if parameter.metavar:
            names += f" {parameter.metavar}"
        if parameter in arguments:
            rows.append(f"| `{_metavar(parameter)}` | {parameter.help} |")
        elif parameter.opts[0] in SHARED and parameter.help == SHARED_HELP[parameter.opts[0]]:
            shared.append(f"`{parameter.opts[0]}`")
        elif parameter.name != "help":
            default = "" if parameter.default in (None, False, "", []) else parameter.default
            rest = f" Default: {default}." if default and "Default:" not in parameter.help else ""
            rows.append(f"| {names} | {parameter.help}{rest} |")
    if rows:
        lines += ["| option | meaning |", "|---|---|", *rows, ""]
    if shared:
        lines += [f"Also {', '.join(shared)}.", ""]
    return "\n".join(lines)


def _metavar(argument: Any) -> str:
    name = str(argument.metavar or argument.name.upper())
    return name if argument.required else f"[{name}]"


SHARED_HELP = {
    parameter.opts[0]: parameter.help
    for parameter in load("recall").params
    if parameter.opts[0] in SHARED
}


def test_the_page_says_of_each_command_what_its_help_says() -> None:
    for name, command in commands():
        expected = reference(name, command)
        assert expected in PAGE, f"docs/cli.md needs:\n\n{expected}"
    assert len(re.findall("^### ", PAGE, re.MULTILINE)) == len(list(commands()))
    for option, text in SHARED_HELP.items():
        assert re.search(rf"\| `{option}`.* \| {re.escape(text)} \|", PAGE)


def test_every_example_is_one_that_the_command_line_understands() -> None:
    examples = re.findall(r"^\$ (?:\w+=\S+ )*(?:.* \| )?memorist (.*?)(?: [<>] .*)?$", PAGE, re.M)
    assert len(examples) >= len(list(commands()))
    seen = set()
    for example in examples:
        command, words, names = ROOT, shlex.split(example), list[str]()
        while words and words[0] in getattr(command, "commands", ()):
            names.append(words.pop(0))
            command = load(names[0]) if command is ROOT else command.commands[names[-1]]
        with command.make_context(names[-1], words):
            seen.add(" ".join(names))
    assert {name for name, _ in commands()} <= seen | {"keys", "hooks"}
