"""How MCP clients are told of a server: which file, what to write, and writing it without loss."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from memorist.errors import ConfigError

Client = Literal["claude-code", "claude-desktop", "cursor", "vscode"]
CLIENTS: tuple[Client, ...] = get_args(Client)
NAME = "memorist"
PRIVATE = 0o600
_INDENT = re.compile(r"^[ \t]+(?=\")", re.MULTILINE)
_KEY = "MEMORIST_AUTHORIZATION"  # of the helper that Claude Desktop needs; ours reads none such


@dataclass(frozen=True, slots=True)
class Local:
    """A server that the client starts: the Python that has Memorist, and its arguments."""

    python: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Remote:
    """A server that runs already: its address, and the key to it, if it asks for one."""

    url: str
    key: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """What says who is asking."""
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}


def config_file(client: Client, *, settings: Path, home: Path) -> Path:
    """Where a client keeps its servers; `settings` is the folder that the system has for such."""
    return {
        "claude-code": home / ".claude.json",
        "claude-desktop": settings / "Claude" / "claude_desktop_config.json",
        "cursor": home / ".cursor" / "mcp.json",
        "vscode": settings / "Code" / "User" / "mcp.json",
    }[client]


def project_file(client: Client, folder: Path) -> Path:
    """Where a client looks for the servers of a project."""
    places = {
        "claude-code": ".mcp.json",
        "cursor": ".cursor/mcp.json",
        "vscode": ".vscode/mcp.json",
    }
    if client not in places:
        raise ConfigError("Claude Desktop has no projects: leave --project out")
    return folder / places[client]


def entry(client: Client, server: Local | Remote) -> dict[str, Any]:
    """What a client's file says of a server."""
    if isinstance(server, Remote):
        return _through_helper(server) if client == "claude-desktop" else _remote(client, server)
    kind = {} if client == "claude-desktop" else {"type": "stdio"}
    told: dict[str, Any] = {**kind, "command": server.python, "args": list(server.arguments)}
    return told | ({"env": dict(server.environment)} if server.environment else {})


def _remote(client: Client, server: Remote) -> dict[str, Any]:
    kind = {} if client == "cursor" else {"type": "http"}
    return {**kind, "url": server.url, **({"headers": server.headers} if server.key else {})}


def _through_helper(server: Remote) -> dict[str, Any]:
    """Claude Desktop's file knows only servers that it starts: mcp-remote is one, and asks ours."""
    arguments = ["-y", "mcp-remote", server.url, "--transport", "http-only"]
    if server.url.startswith("http://"):
        arguments.append("--allow-http")
    if not server.key:
        return {"command": "npx", "args": arguments}
    # Not in the arguments: everyone on the machine may list those.
    arguments += ["--header", f"Authorization:${{{_KEY}}}"]
    env = {_KEY: server.headers["Authorization"]}
    return {"command": "npx", "args": arguments, "env": env}


def section(client: Client) -> str:
    """Under which name a client's file has its servers."""
    return "servers" if client == "vscode" else "mcpServers"


def merged(text: str, client: Client, told: Mapping[str, Any], file: Path) -> str:
    """A client's file with our server in it, and all else as it was."""
    held = _object(_loaded(text, file) if text.strip() else {}, file)
    servers = _object(held.get(section(client), {}), file)
    held[section(client)] = {**servers, NAME: dict(told)}
    found = _INDENT.search(text)
    return json.dumps(held, indent=found[0] if found else 2, ensure_ascii=False) + "\n"


def _loaded(text: str, file: Path) -> Any:
    try:
        held = json.loads(text, object_pairs_hook=_once)
        json.dumps(held, allow_nan=False)  # a number that is too large would become no JSON
        return held
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise ConfigError(
            f"{file} is not plain JSON{where}, and was left as it is; "
            "mend it, or add what --print shows by hand"
        ) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice: one of them would be lost")
    return found


def _object(value: Any, file: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{file} has another shape than its client writes; it was left as it is")
    return value


def read(file: Path) -> str:
    """What a file holds; nothing, if it is not there."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read ({type(error).__name__})") from None


def write(file: Path, before: str, after: str, *, now: datetime) -> Path | None:
    """Put the new text in place at once, and give where the old one is kept, if there was one."""
    file = file.resolve()  # a link stays a link
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        kept = _keep(file, now) if file.exists() else None
        mode = file.stat().st_mode & 0o777 if kept else PRIVATE
        with tempfile.NamedTemporaryFile(
            "w",
            encoding="utf-8",
            errors="backslashreplace",  # half of a character, as it was
            dir=file.parent,
            prefix=f".{file.name}.",
            delete=False,
        ) as made:
            try:
                made.write(after)
                made.flush()
                os.fsync(made.fileno())
                made.close()
                os.chmod(made.name, mode)
                if read(file) != before:
                    raise ConfigError(f"{file} changed in the meantime and was left; try again")
                os.replace(made.name, file)
            except BaseException:
                Path(made.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise ConfigError(f"{file} cannot be written ({error.strerror})") from None
    return kept


def _keep(file: Path, now: datetime) -> Path:
    """A copy of the file beside it, over no other."""
    stem, number = f"{file.name}.{now:%Y%m%d-%H%M%S}", 0
    while (kept := file.with_name(f"{stem}{f'-{number}' if number else ''}.bak")).exists():
        number += 1
    shutil.copy2(file, kept)
    return kept
