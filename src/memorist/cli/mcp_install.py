"""The settings files of MCP clients: where they are, our entry in them, and writing it safely."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from memorist.errors import ConfigError

McpClient = Literal["claude-code", "claude-desktop", "cursor", "vscode"]
CLIENTS: tuple[McpClient, ...] = get_args(McpClient)
NAME = "memorist"
PRIVATE = 0o600
_INDENT = re.compile(r"^[ \t]+(?=\")", re.MULTILINE)
_KEY = "MEMORIST_AUTHORIZATION"  # of the helper that Claude Desktop needs; ours reads none such


def config_file(client: McpClient, *, settings: Path, home: Path) -> Path:
    """The file where a client lists its servers; `settings` is the system's settings folder."""
    return {
        "claude-code": home / ".claude.json",
        "claude-desktop": settings / "Claude" / "claude_desktop_config.json",
        "cursor": home / ".cursor" / "mcp.json",
        "vscode": settings / "Code" / "User" / "mcp.json",
    }[client]


def project_file(client: McpClient, folder: Path) -> Path:
    """The file where a client lists the servers of a project."""
    places = {
        "claude-code": ".mcp.json",
        "cursor": ".cursor/mcp.json",
        "vscode": ".vscode/mcp.json",
    }
    if client not in places:
        raise ConfigError("Claude Desktop has no projects: leave --project out")
    return folder / places[client]


def local_entry(
    client: McpClient, arguments: Sequence[str], environment: Mapping[str, str]
) -> dict[str, Any]:
    """The entry of a server that the client starts, with the Python that runs this."""
    kind = {} if client == "claude-desktop" else {"type": "stdio"}
    fields: dict[str, Any] = {**kind, "command": sys.executable, "args": list(arguments)}
    return fields | ({"env": dict(environment)} if environment else {})


def remote_entry(client: McpClient, url: str, key: str) -> dict[str, Any]:
    """The entry of a running server, with the key to it if it requires one."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if client == "claude-desktop":
        return _by_mcp_remote(url, headers)
    kind = {} if client == "cursor" else {"type": "http"}
    return {**kind, "url": url, **({"headers": headers} if headers else {})}


def _by_mcp_remote(url: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """Claude Desktop only lists servers that it starts: mcp-remote is one, and connects to ours."""
    arguments = ["-y", "mcp-remote", url, "--transport", "http-only"]
    if url.startswith("http://"):
        arguments.append("--allow-http")
    if not headers:
        return {"command": "npx", "args": arguments}
    # The key is not in the arguments: everyone on the machine may list those.
    arguments += ["--header", f"Authorization:${{{_KEY}}}"]
    return {"command": "npx", "args": arguments, "env": {_KEY: headers["Authorization"]}}


def section(client: McpClient) -> str:
    """The name of the section of a client's file that lists its servers."""
    return "servers" if client == "vscode" else "mcpServers"


def merged(text: str, client: McpClient, entry: Mapping[str, Any], file: Path) -> str:
    """A client's file with our entry in it, and all else as it was."""
    content = _object(_parsed(text, file) if text.strip() else {}, file)
    servers = _object(content.get(section(client), {}), file)
    content[section(client)] = {**servers, NAME: dict(entry)}
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


def _object(value: Any, file: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{file} has another shape than its client writes; it was left as it is")
    return value


def read(file: Path) -> str:
    """The content of a file; empty if there is no such file."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read ({type(error).__name__})") from None


def write(file: Path, before: str, after: str, *, now: datetime) -> Path | None:
    """Replace the file in one step; return the copy of the old one, if there was one."""
    file = file.resolve()  # a link stays a link
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        copy = _copy(file, now) if file.exists() else None
        mode = file.stat().st_mode & 0o777 if copy else PRIVATE
        with tempfile.NamedTemporaryFile(
            "w",
            encoding="utf-8",
            errors="backslashreplace",  # a lone surrogate, as it was
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
    return copy


def _copy(file: Path, now: datetime) -> Path:
    """A copy of the file beside it, under a new name."""
    stem, number = f"{file.name}.{now:%Y%m%d-%H%M%S}", 0
    while (copy := file.with_name(f"{stem}{f'-{number}' if number else ''}.bak")).exists():
        number += 1
    shutil.copy2(file, copy)
    return copy
