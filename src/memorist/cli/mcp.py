"""`memorist mcp`: the memory as an MCP server, and its entry in the clients' settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from memorist.cli import mcp_install
from memorist.cli.mcp_install import CLIENTS, NAME, McpClient
from memorist.cli.options import Agent, Database, User, Yes, is_server
from memorist.cli.render import errors
from memorist.client import connect
from memorist.config import Settings, default_path
from memorist.errors import ConfigError
from memorist.memory import Memory
from memorist.records.values import now

Whose = Annotated[
    str | None,
    typer.Option(
        "--user",
        "-u",
        envvar="MEMORIST_USER",
        help="Whose memory. Without one, each call names its user.",
    ),
]
Which = Annotated[str, typer.Argument(metavar="CLIENT", help=f"One of {', '.join(CLIENTS)}.")]
Url = Annotated[str | None, typer.Option("--url", help="A running server: http://…")]
Key = Annotated[
    str | None, typer.Option("--key", envvar="MEMORIST_KEY", help="The key to that server.")
]
Project = Annotated[bool, typer.Option("--project", help="For this folder only, not for all.")]
Print = Annotated[bool, typer.Option("--print", help="Only print what would be written.")]

mcp = typer.Typer(invoke_without_command=True)


@mcp.callback()
def serve(
    context: typer.Context, user: Whose = None, agent: Agent = None, db: Database = None
) -> None:
    """Serve the memory as MCP tools over standard input and output, until the client leaves."""
    if context.invoked_subcommand is not None:
        return
    from memorist.server.mcp.server import build_server  # here: the other commands start without it

    settings = Settings.from_environment()
    agent = agent or settings.agent or None
    url = settings.url if db is None else db
    with connect(url) if is_server(url) else Memory(db) as memory:
        build_server(memory, user=user, agent=agent).run()


@mcp.command()
def install(
    client: Which,
    user: User = None,
    agent: Agent = None,
    db: Database = None,
    url: Url = None,
    key: Key = None,
    project: Project = False,
    yes: Yes = False,
    only_print: Print = False,
) -> None:
    """Add this memory to a client's settings; shows what it would write and where, and asks.

    The client starts the server itself, or connects to the one at --url.
    """
    mcp_client = _client(client)
    if url and (user or agent or db):
        raise typer.BadParameter("a running server has its own: give --url and --key alone")
    if url:
        entry = mcp_install.remote_entry(mcp_client, _mcp_url(url), key or "")
    else:
        entry = mcp_install.local_entry(mcp_client, *_local_server(user, agent, db, key))
    shown = {mcp_install.section(mcp_client): {NAME: entry}}
    text = json.dumps(shown, indent=2, ensure_ascii=False)
    if only_print:
        typer.echo(text)
        return
    file = _file(mcp_client, project)
    before = mcp_install.read(file)
    after = mcp_install.merged(before, mcp_client, entry, file)
    _say(f"{file} {'gets' if before else 'is made, with'}:")
    typer.echo(text.replace(key, f"{key[:4]}…") if key else text)
    if entry.get("command") == "npx":
        _say("Claude Desktop's file takes no addresses: npx (Node.js) runs mcp-remote for it.")
    if after == before:
        _say("It is there already; nothing was written.")
    elif not yes and not typer.confirm("Write it?", err=True):
        raise ConfigError("nothing was written")
    else:
        copy = mcp_install.write(file, before, after, now=now())
        _say(f"Written. {f'The old file: {copy}. ' if copy else ''}Restart the client.")


def _client(name: str) -> McpClient:
    for client in CLIENTS:
        if name == client:
            return client
    raise typer.BadParameter(f"a client is one of {', '.join(CLIENTS)}")


def _file(client: McpClient, project: bool) -> Path:
    if project:
        return mcp_install.project_file(client, Path.cwd())
    from platformdirs import user_config_path

    return mcp_install.config_file(
        client, settings=user_config_path(roaming=True), home=Path.home()
    )


def _local_server(
    user: str | None, agent: str | None, db: str | None, key: str | None
) -> tuple[list[str], dict[str, str]]:
    """The arguments and the environment of the server that this command line would start."""
    settings = Settings.from_environment()
    agent, url = agent or settings.agent, db or settings.url
    arguments = ["-m", "memorist", "mcp", "--user", user or settings.user]
    arguments += ["--agent", agent] if agent else []
    variables = {"tenant": settings.tenant, "embedder": settings.embedder}
    if is_server(url):
        variables = {"key": key or ""}  # the rest is set on the server
    defaults = Settings(url="")
    environment = {
        f"MEMORIST_{name.upper()}": value
        for name, value in variables.items()
        if value != getattr(defaults, name)
    }
    if "://" in url:  # it may hold a password, and everyone may list a process's arguments
        environment["MEMORIST_URL"] = url
    elif url != str(default_path()):
        arguments += ["--db", str(Path(url).expanduser().absolute())]
    return arguments, environment


def _mcp_url(url: str) -> str:
    if not is_server(url):
        raise typer.BadParameter("--url is the address of a server: http://… or https://…")
    base = url.rstrip("/")
    return base if base.endswith("/mcp") else f"{base}/mcp"


def _say(text: str) -> None:
    errors.print(Text(text), soft_wrap=True)
