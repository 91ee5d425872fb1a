"""`memorist mcp`: the memory as an MCP server, and its entry in the clients' settings files."""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from memorist.cli import options as opt
from memorist.cli.render import remark, warn
from memorist.client import connect
from memorist.config import Settings, default_path
from memorist.errors import ConfigError
from memorist.memory import Memory
from memorist.providers.http import PLAIN_HTTP, is_exposed
from memorist.records.values import now

NAME = "memorist"
PRIVATE = 0o600
_INDENT = re.compile(r"^[ \t]+(?=\")", re.MULTILINE)
_KEY = "MEMORIST_AUTHORIZATION"  # of the helper that Claude Desktop needs; ours reads none such


class McpClient(NamedTuple):
    """The files where a client lists its servers, and the section of them that does."""

    file: str
    project_file: str = ""
    section: str = "mcpServers"


CLIENTS = {
    "claude-code": McpClient("{home}/.claude.json", ".mcp.json"),
    "claude-desktop": McpClient("{settings}/Claude/claude_desktop_config.json"),
    "cursor": McpClient("{home}/.cursor/mcp.json", ".cursor/mcp.json"),
    "vscode": McpClient("{settings}/Code/User/mcp.json", ".vscode/mcp.json", "servers"),
}

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


@mcp.command()
def install(
    client: str = typer.Argument(metavar="CLIENT", help=f"One of {', '.join(CLIENTS)}."),
    user: opt.User = None,
    agent: opt.Agent = None,
    db: opt.Database = None,
    url: str | None = typer.Option(None, help="A running server: http://…"),
    key: str | None = typer.Option(None, envvar="MEMORIST_KEY", help="The key to that server."),
    project: bool = typer.Option(False, "--project", help="For this folder only, not for all."),
    yes: opt.Yes = False,
    only_print: bool = typer.Option(False, "--print", help="Only print what would be written."),
) -> None:
    """Add this memory to a client's settings; shows what it would write and where, and asks.

    The client starts the server itself, or connects to the one at --url.
    """
    if client not in CLIENTS:
        raise typer.BadParameter(f"a client is one of {', '.join(CLIENTS)}")
    if url and (user or agent or db):
        raise typer.BadParameter("a running server has its own: give --url and --key alone")
    entry = remote_entry(client, url, key) if url else local_entry(client, user, agent, db, key)
    if key and url and is_exposed(url):
        warn(PLAIN_HTTP)
    text = json.dumps({CLIENTS[client].section: {NAME: entry}}, indent=2, ensure_ascii=False)
    if only_print:
        typer.echo(text)
        return
    file = _file(client, project)
    before = read(file)
    after = merged(before, client, entry, file)
    remark(f"{file} {'gets' if before else 'is made, with'}:", style="")
    written_key = json.dumps(key or "", ensure_ascii=False)[1:-1]  # as it is in the JSON
    shown = text.replace(written_key, f"{written_key[:4]}…") if key else text
    typer.echo(shown)
    if entry.get("command") == "npx":
        reason = "Claude Desktop's file takes no addresses"
        remark(f"{reason}: npx (Node.js) runs mcp-remote for it.", style="")
    if after == before:
        remark("It is there already; nothing was written.", style="")
    elif not yes and not typer.confirm("Write it?", err=True):
        raise ConfigError("nothing was written")
    else:
        # A database's address may hold a password.
        private = shown != text or "MEMORIST_URL" in entry.get("env", {})
        copy = write(file, before, after, now=now(), private=private)
        old_file = f"The old file: {copy}. " if copy else ""
        old_file += "Only you may read it now, as it holds a key. " if private else ""
        remark(f"Written. {old_file}Restart the client.", style="")


def _file(client: str, project: bool) -> Path:
    if not project:
        from platformdirs import user_config_path

        return config_file(client, settings=user_config_path(roaming=True), home=Path.home())
    if not CLIENTS[client].project_file:
        raise ConfigError("Claude Desktop has no projects: leave --project out")
    return Path.cwd() / CLIENTS[client].project_file


def config_file(client: str, *, settings: Path, home: Path) -> Path:
    """The file where a client lists its servers; `settings` is the system's settings folder."""
    return Path(CLIENTS[client].file.format(settings=settings, home=home))


def local_entry(
    client: str, user: str | None, agent: str | None, db: str | None, key: str | None
) -> dict[str, Any]:
    """The entry of a server that the client starts, with the Python that runs this."""
    settings = Settings.from_environment()
    agent, url = agent or settings.agent, db or settings.url
    arguments = ["-m", "memorist", "mcp", "--user", user or settings.user]
    arguments += ["--agent", agent] if agent else []
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
    kind = {} if client == "claude-desktop" else {"type": "stdio"}
    entry: dict[str, Any] = {**kind, "command": sys.executable, "args": arguments}
    return entry | ({"env": environment} if environment else {})


def remote_entry(client: str, url: str, key: str | None) -> dict[str, Any]:
    """The entry of a running server, with the key to it if it requires one."""
    if not opt.is_server(url):
        raise typer.BadParameter("--url is the address of a server: http://… or https://…")
    url = url.rstrip("/").removesuffix("/mcp") + "/mcp"
    if client != "claude-desktop":
        kind = {} if client == "cursor" else {"type": "http"}
        headers = {"headers": {"Authorization": f"Bearer {key}"}} if key else {}
        return {**kind, "url": url, **headers}
    # Claude Desktop only lists servers that it starts: mcp-remote is one, and connects to ours.
    arguments = ["-y", "mcp-remote", url, "--transport", "http-only"]
    if url.startswith("http://"):
        arguments.append("--allow-http")
    if not key:
        return {"command": "npx", "args": arguments}
    # The key is not in the arguments: everyone on the machine may list those.
    arguments += ["--header", f"Authorization:${{{_KEY}}}"]
    return {"command": "npx", "args": arguments, "env": {_KEY: f"Bearer {key}"}}


def merged(text: str, client: str, entry: Mapping[str, Any], file: Path) -> str:
    """A client's file with our entry in it, and all else as it was."""
    section = CLIENTS[client].section
    content = _parsed(text, file) if text.strip() else {}
    servers = content.get(section, {}) if isinstance(content, dict) else None
    if not isinstance(servers, dict):
        raise ConfigError(f"{file} has another shape than its client writes; it was left as it is")
    content[section] = {**servers, NAME: dict(entry)}
    indent = _INDENT.search(text)
    return json.dumps(content, indent=indent[0] if indent else 2, ensure_ascii=False) + "\n"


def _parsed(text: str, file: Path) -> Any:
    try:
        content = json.loads(text, object_pairs_hook=_unique_names)
        json.dumps(content, allow_nan=False)  # a number that is too large would become no JSON
        return content
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise ConfigError(
            f"{file} is not plain JSON{where}, and was left as it is; "
            "mend it, or add what --print shows by hand"
        ) from None


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a name is there twice: one of them would be lost")
    return content


def read(file: Path) -> str:
    """The content of a file; empty if there is no such file."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read ({type(error).__name__})") from None


def write(
    file: Path, before: str, after: str, *, now: datetime, private: bool = False
) -> Path | None:
    """Replace the file in one step; return a copy of the old one. `private`: the owner's only."""
    file = file.resolve()  # a link stays a link
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if private and file.exists() and not _is_ours(file):
            raise ConfigError(
                f"{file} is another user's, so a key in it could not be kept from others; "
                "nothing was written. Add what --print shows to a file of your own"
            )
        copy = _copy(file, now) if file.exists() else None
        mode = file.stat().st_mode & 0o777 if copy and not private else PRIVATE
        if copy and private:
            os.chmod(copy, PRIVATE)  # it may hold the key of an earlier time
        descriptor, made = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            # A lone surrogate stays escaped, as it was.
            with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(after)
                stream.flush()
                os.fsync(descriptor)
            os.chmod(made, mode)
            if private and os.name == "posix" and os.stat(made).st_mode & 0o077:
                raise ConfigError(
                    f"{file} is where files cannot be kept from others (no mode 0600), so the key "
                    "was not written; choose a server that needs no key, or another disk"
                )
            if read(file) != before:
                raise ConfigError(f"{file} changed in the meantime and was left; try again")
            os.replace(made, file)
        except BaseException:
            Path(made).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"{file} cannot be written ({error.strerror})") from None
    return copy


def _is_ours(file: Path) -> bool:
    return os.name != "posix" or file.stat().st_uid == os.getuid()


def _copy(file: Path, now: datetime) -> Path:
    """A copy of the file beside it, under a new name."""
    stem, number = f"{file.name}.{now:%Y%m%d-%H%M%S}", 0
    while (copy := file.with_name(f"{stem}{f'-{number}' if number else ''}.bak")).exists():
        number += 1
    shutil.copy2(file, copy)
    return copy
