"""`memorist mcp`: the memory as an MCP server, and how clients come to know of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from memorist.cli import mcp_install
from memorist.cli.common import Agent, Database, errors
from memorist.cli.mcp_install import CLIENTS, NAME, Client, Local, Remote
from memorist.config import Settings, default_path
from memorist.errors import ConfigError
from memorist.memory import Memory
from memorist.records.ids import now

Whose = Annotated[
    str | None,
    typer.Option(
        "--user",
        "-u",
        envvar="MEMORIST_USER",
        help="Whose memory. Without one, each call names its user.",
    ),
]
Owner = Annotated[
    str | None, typer.Option("--user", "-u", help="Whose memory. Default: MEMORIST_USER, or me.")
]
Which = Annotated[str, typer.Argument(metavar="CLIENT", help=f"One of {', '.join(CLIENTS)}.")]
Url = Annotated[str | None, typer.Option("--url", help="A server that runs: http://…")]
Key = Annotated[
    str | None, typer.Option("--key", envvar="MEMORIST_KEY", help="The key to that server.")
]
Project = Annotated[bool, typer.Option("--project", help="For this folder only, not for all.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Print = Annotated[bool, typer.Option("--print", help="Only print what is to be written.")]

mcp = typer.Typer(invoke_without_command=True)


@mcp.callback()
def serve(
    context: typer.Context, user: Whose = None, agent: Agent = None, db: Database = None
) -> None:
    """Serve the memory as MCP tools over standard input and output, until the client leaves."""
    if context.invoked_subcommand is not None:
        return
    from memorist.server.mcp.server import build_server  # here: the other commands start without it

    agent = agent or Settings.from_environment().agent or None
    with Memory(db) as memory:
        build_server(memory, user=user, agent=agent).run()


@mcp.command()
def install(
    client: Which,
    user: Owner = None,
    agent: Agent = None,
    db: Database = None,
    url: Url = None,
    key: Key = None,
    project: Project = False,
    yes: Yes = False,
    only_print: Print = False,
) -> None:
    """Tell a client of this memory: shows what it would write, and where, and asks first.

    The client starts the server itself, or asks the one at --url.
    """
    one = _client(client)
    if url and (user or agent or db):
        raise typer.BadParameter("a server that runs has its own: give --url and --key alone")
    told = mcp_install.entry(one, _remote(url, key) if url else _local(user, agent, db, key))
    shown = {mcp_install.section(one): {NAME: told}}
    if only_print:
        typer.echo(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        _install(one, told, _file(one, project), ask=not yes, key=key)


def _install(
    client: Client, told: dict[str, Any], file: Path, *, ask: bool, key: str | None
) -> None:
    before = mcp_install.read(file)
    after = mcp_install.merged(before, client, told, file)
    shown = json.dumps({mcp_install.section(client): {NAME: told}}, indent=2, ensure_ascii=False)
    _say(f"{file} {'gets' if before else 'is made, with'}:")
    typer.echo(shown.replace(key, f"{key[:4]}…") if key else shown)
    if told.get("command") == "npx":
        _say(
            "Claude Desktop's file takes no addresses: npx (Node.js) has to run mcp-remote for it."
        )
    if after == before:
        _say("It is there already; nothing was written.")
    elif ask and not typer.confirm("Write it?", err=True):
        raise ConfigError("nothing was written")
    else:
        kept = mcp_install.write(file, before, after, now=now())
        _say(f"Written. {f'The file as it was: {kept}. ' if kept else ''}Restart the client.")


def _client(name: str) -> Client:
    for client in CLIENTS:
        if name == client:
            return client
    raise typer.BadParameter(f"a client is one of {', '.join(CLIENTS)}")


def _file(client: Client, project: bool) -> Path:
    if project:
        return mcp_install.project_file(client, Path.cwd())
    from platformdirs import user_config_path

    return mcp_install.config_file(
        client, settings=user_config_path(roaming=True), home=Path.home()
    )


def _local(user: str | None, agent: str | None, db: str | None, key: str | None) -> Local:
    """The server as this command line would start it; a client has another environment."""
    settings = Settings.from_environment()
    agent, place = agent or settings.agent, db or settings.url
    arguments = ["-m", "memorist", "mcp", "--user", user or settings.user]
    arguments += ["--agent", agent] if agent else []
    given = {"tenant": settings.tenant, "embedder": settings.embedder}
    if place.startswith(("http://", "https://")):
        given = {"key": key or ""}  # the rest is the server's to choose
    usual = Settings(url="")
    environment = {
        f"MEMORIST_{name.upper()}": value
        for name, value in given.items()
        if value != getattr(usual, name)
    }
    if "://" in place:  # it may hold a password, and everyone may list a process's arguments
        environment["MEMORIST_URL"] = place
    elif place != str(default_path()):
        arguments += ["--db", str(Path(place).expanduser().absolute())]
    return Local(sys.executable, tuple(arguments), environment)


def _remote(url: str, key: str | None) -> Remote:
    if not url.startswith(("http://", "https://")):
        raise typer.BadParameter("--url is the address of a server: http://… or https://…")
    plain = url.rstrip("/")
    return Remote(plain if plain.endswith("/mcp") else f"{plain}/mcp", key or "")


def _say(text: str) -> None:
    errors.print(Text(text), soft_wrap=True)
