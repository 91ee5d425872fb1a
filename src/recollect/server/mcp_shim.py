"""The parts of the MCP SDK that differ between its versions 1 and 2, and how errors leave us."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import unquote

from recollect.agent.described import Described
from recollect.errors import MissingExtraError, RecollectError

try:
    from mcp.types import ToolAnnotations
except ImportError as error:
    raise MissingExtraError("mcp") from error

try:
    from mcp.server.mcpserver import Context, MCPServer  # type: ignore[import-not-found]
    from mcp.server.mcpserver.exceptions import (  # type: ignore[import-not-found]
        ResourceError,
        ToolError,
    )
    from mcp.shared.exceptions import MCPError  # type: ignore[attr-defined]

    Server, VERSION = MCPServer, 2
except ImportError:
    from mcp.server.fastmcp import Context, FastMCP
    from mcp.server.fastmcp.exceptions import ResourceError, ToolError

    Server, VERSION = FastMCP, 1

__all__ = [
    "VERSION", "Context", "ResourceError", "Server", "ToolError", "guarded", "hints", "low_level",
    "part", "prompt_error",
]  # fmt: skip

INVALID_PARAMS = -32602
T = TypeVar("T")
log = logging.getLogger("recollect")


def hints(tool: Described) -> ToolAnnotations:
    """What a client may know of a tool before it asks the user: whether it reads, adds, removes."""
    told = {
        "readOnlyHint": tool.reads, "openWorldHint": False,
        "destructiveHint": tool.name == "manage_long_term_memory",
    }  # fmt: skip
    return ToolAnnotations.model_validate(told)


def low_level(server: Any) -> Any:
    """The part of a server that speaks the protocol."""
    return server._mcp_server if VERSION == 1 else server._lowlevel_server


def part(value: str) -> str:
    """A part of a resource's URI as it was meant; version 1 hands it over as it was written."""
    return unquote(value) if VERSION == 1 else value


def prompt_error(text: str) -> Exception:
    """An error whose text reaches the client that asked for a prompt."""
    made: Exception = ToolError(text) if VERSION == 1 else MCPError(INVALID_PARAMS, text)
    return made


def guarded(work: Callable[[], T], kind: Callable[[str], Exception]) -> T:
    """Do the work; what goes wrong is told without what a user said."""
    try:
        return work()
    except RecollectError as error:
        raise kind(str(error)) from None
    except Exception as error:  # noqa: BLE001 - its text may quote the user
        log.warning("a call failed: %s", type(error).__name__)
        raise kind(f"the memory failed ({type(error).__name__})") from None
