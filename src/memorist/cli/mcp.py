"""`memorist mcp`: the memory as an MCP server, and its entry in the clients' settings files."""

import json
import sys
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from memorist.cli import options as opt
from memorist.cli.render import remark, warn
from memorist.cli.settings_files import edited, odd_shape, offer, read
from memorist.client import connect
from memorist.config import Settings, default_path
from memorist.errors import ConfigError
from memorist.memory import Memory
from memorist.providers.http import PLAIN_HTTP, is_exposed

NAME = "memorist"


class McpClient(NamedTuple):
    """The files where a client lists its servers, their section for that, and its words there.

    `stdio` and `http` are its types of servers, if it names them; `url` and `headers` its keys.
    Without a `url` it lists only servers that it starts.
    """

    file: str
    project_file: str = ""
    section: str = "mcpServers"
    stdio: str = ""
    http: str = ""
    url: str = "url"
    headers: str = "headers"


_TABLE = tomllib.loads((files(__package__) / "clients.toml").read_text("utf-8"))
CLIENTS = {name: McpClient(**words) for name, words in _TABLE.items()}
Tools = Annotated[
    Literal["assistant", "revise", "all"] | None,
    typer.Option(help="Which tools. Default: assistant, or all for a program."),
]

mcp = typer.Typer(invoke_without_command=True)


@mcp.callback()
def serve(
    context: typer.Context,
    user: str | None = typer.Option(
        None,
        "--user",
        "-u",
        envvar="MEMORIST_USER",
        help="Whose memory. Without one, each call names its user.",
    ),
    agent: opt.Agent = None,
    db: opt.Database = None,
    program: bool = typer.Option(
        False, "--program", help="Its client is no model: believe the roles that it names."
    ),
    tools: Tools = None,
) -> None:
    """Serve the memory as MCP tools over standard input and output, until the client leaves."""
    if context.invoked_subcommand is not None:
        return
    from memorist.server.mcp.server import build_server  # here: the other commands start without it

    settings = Settings.from_environment()
    agent = agent or settings.agent or None
    url = opt.database_url(db, settings)
    with connect(url) if opt.is_server(url) else Memory(db) as memory:
        build_server(memory, user=user, agent=agent, program=program, tools=tools).run()


Client = Annotated[str, typer.Argument(metavar="CLIENT", help=f"One of {', '.join(CLIENTS)}.")]


@mcp.command()
def install(
    client: Client,
    user: opt.User = None,
    agent: opt.Agent = None,
    db: opt.Database = None,
    url: str | None = typer.Option(None, help="A running server: http://…"),
    key: str | None = typer.Option(None, envvar="MEMORIST_KEY", help="The key to that server."),
    tools: Tools = None,
    project: opt.Project = False,
    yes: opt.Yes = False,
    only_print: bool = typer.Option(False, "--print", help="Only print what would be written."),
) -> None:
    """Add this memory to a client's settings; shows what it would write and where, and asks.

    The client starts the server itself, or connects to the one at --url.
    """
    file = _file(client, project)
    if url and (user or agent or db):
        raise typer.BadParameter("a running server has its own: give --url and --key alone")
    if url:
        entry = remote_entry(client, url, key, tools)
    else:
        entry = local_entry(client, user, agent, db, key, tools)
    if key and url and is_exposed(url):
        warn(PLAIN_HTTP)
    text = shown(client, entry)
    if only_print:
        typer.echo(text)
        return
    before = read(file)
    remark(f"{file} {'gets' if before else 'is made, with'}:", style="")
    written_key = json.dumps(key or "", ensure_ascii=False)[1:-1]  # as it is in the file
    public = text.replace(written_key, f"{written_key[:4]}…") if key else text
    typer.echo(public)
    # A database's address may hold a password.
    private = public != text or "MEMORIST_URL" in entry.get("env", {})
    offer(file, before, merged(before, client, entry, file), yes=yes, private=private)


@mcp.command()
def remove(client: Client, project: opt.Project = False, yes: opt.Yes = False) -> None:
    """Take this memory out of a client's settings; what it remembers stays."""
    file = _file(client, project)
    before = read(file)
    remark(f"{file} loses its server {NAME}.", style="")
    offer(file, before, merged(before, client, None, file), yes=yes)


def _file(client: str, project: bool) -> Path:
    if client not in CLIENTS:
        raise typer.BadParameter(f"a client is one of {', '.join(CLIENTS)}")
    if not project:
        from platformdirs import user_config_path

        return config_file(client, settings=user_config_path(roaming=True), home=Path.home())
    if not CLIENTS[client].project_file:
        raise ConfigError(f"{client} has no settings of projects: leave --project out")
    return Path.cwd() / CLIENTS[client].project_file


def config_file(client: str, *, settings: Path, home: Path) -> Path:
    """The file where a client lists its servers; `settings` is the system's settings folder."""
    zed = home / ".config/zed" if sys.platform == "darwin" else settings / "zed"
    return Path(CLIENTS[client].file.format(settings=settings, home=home, zed=zed))


def local_entry(
    client: str,
    user: str | None,
    agent: str | None,
    db: str | None,
    key: str | None,
    tools: str | None,
) -> dict[str, Any]:
    """The entry of a server that the client starts, with the Python that runs this."""
    settings = Settings.from_environment()
    agent, url = agent or settings.agent, db or settings.url
    arguments = ["-m", "memorist", "mcp", "--user", user or settings.user]
    arguments += ["--agent", agent] if agent else []
    arguments += ["--tools", tools] if tools else []
    variables = {"tenant": settings.tenant, "embedder": settings.embedder}
    if opt.is_server(url):
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
    kind = {"type": CLIENTS[client].stdio} if CLIENTS[client].stdio else {}
    entry: dict[str, Any] = {**kind, "command": sys.executable, "args": arguments}
    return entry | ({"env": environment} if environment else {})


def remote_entry(client: str, url: str, key: str | None, tools: str | None) -> dict[str, Any]:
    """The entry of a running server, with the key to it if it requires one."""
    if not opt.is_server(url):
        raise typer.BadParameter("--url is the address of a server: http://… or https://…")
    if not CLIENTS[client].url:
        raise ConfigError(f"{client} starts its servers itself: give the address as --db")
    url = url.rstrip("/").removesuffix("/mcp") + "/mcp" + (f"?tools={tools}" if tools else "")
    words = CLIENTS[client]
    kind = {"type": words.http} if words.http else {}
    headers = {words.headers: {"Authorization": f"Bearer {key}"}} if key else {}
    return {**kind, words.url: url, **headers}


def shown(client: str, entry: Mapping[str, Any]) -> str:
    """Our entry as it is written in the client's file."""
    section = CLIENTS[client].section
    if client != "codex":
        return json.dumps({section: {NAME: entry}}, indent=2, ensure_ascii=False)
    lines = [f"{name} = {_toml(value)}" for name, value in entry.items()]
    return "\n".join((f"[{section}.{NAME}]", *lines))


def _toml(value: Any) -> str:
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)  # texts and lists of texts are the same there
    pairs = (f"{name} = {_toml(it)}" for name, it in value.items())
    return f"{{ {', '.join(pairs)} }}"


def merged(text: str, client: str, entry: Mapping[str, Any] | None, file: Path) -> str:
    """A client's file with our entry in it, or without it for None; all else as it was."""
    section = CLIENTS[client].section

    def change(content: dict[str, Any]) -> None:
        if not isinstance(servers := content.setdefault(section, {}), dict):
            raise odd_shape(file)
        servers.pop(NAME, None)
        if entry is not None:
            servers[NAME] = dict(entry)
        elif not servers:
            del content[section]

    if client != "codex":
        return edited(text, file, change)
    table = "" if entry is None else shown(client, entry)
    try:
        expected = tomllib.loads(text)
        change(expected)
        after = _with_table(text, table)
        if tomllib.loads(after) == expected:
            return after
    except (tomllib.TOMLDecodeError, RecursionError):
        pass  # so that nothing is written
    raise ConfigError(f"{file} is not written as expected, and was left; change it by hand")


def _with_table(text: str, table: str) -> str:
    """A TOML file with a table of ours at its end, in place of the one there was."""
    kept, ours = [], False
    for line in text.splitlines(keepends=True):
        words = line.strip()
        if words.startswith("["):
            ours = words.startswith(f"[{CLIENTS['codex'].section}.{NAME}]")
        elif not words or words.startswith("#"):
            ours = False
        kept += [] if ours else [line]
    rest = "".join(kept)
    if not table:
        return rest
    return f"{rest.rstrip()}\n\n{table}\n" if rest.strip() else f"{table}\n"
