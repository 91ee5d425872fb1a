"""The parts of the MCP SDK that differ between its versions 1 and 2, and how errors leave us."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar
from urllib.parse import unquote

from memorist.agents.tool_schema import Described
from memorist.errors import MemoristError, MissingExtraError

try:
    from mcp.types import ToolAnnotations
except ImportError as error:
    raise MissingExtraError("mcp") from error

try:
    from mcp.server.mcpserver import Context, MCPServer  # type: ignore[import-not-found]
    from mcp.server.mcpserver.exceptions import ResourceError, ToolError  # type: ignore[import-not-found]
    from mcp.shared.exceptions import MCPError  # type: ignore[attr-defined]

    Server, VERSION = MCPServer, 2
except ImportError:
    from mcp.server.fastmcp import Context, FastMCP
    from mcp.server.fastmcp.exceptions import ResourceError, ToolError

    Server, VERSION = FastMCP, 1

__all__ = [
    "STILL",
    "VERSION",
    "Context",
    "ResourceError",
    "Server",
    "ToolError",
    "carried_by",
    "guarded",
    "hints",
    "keep_words_from_the_log",
    "logging_as_it_is",
    "low_level",
    "part",
    "prompt_error",
    "session_manager",
    "the_request",
]

# Nothing here tells of changes, so nobody can listen for them.
STILL = {"subscriptions": False} if "subscriptions" in inspect.signature(Server).parameters else {}
INVALID_PARAMS = -32602
SDK_SESSION = "mcp/shared/session.py"  # logs to the root what it cannot validate, word for word
TALKATIVE = ("", "mcp.server.lowlevel.server", "mcp.server.fastmcp.server")
T = TypeVar("T")
log = logging.getLogger("memorist")
_carrying: ContextVar[Any] = ContextVar("the HTTP request that carried a call", default=None)


def hints(tool: Described) -> ToolAnnotations:
    """What a client may know of a tool before it asks the user: whether it reads, adds, removes."""
    told = {
        "readOnlyHint": tool.reads,
        "openWorldHint": False,
        "destructiveHint": tool.name == "manage_long_term_memory",
    }
    return ToolAnnotations.model_validate(told)


def low_level(server: Any) -> Any:
    """The part of a server that speaks the protocol."""
    return server._mcp_server if VERSION == 1 else server._lowlevel_server


@contextmanager
def carried_by(server: Any, context: Sequence[Any]) -> Iterator[None]:
    """While a call is answered, `the_request` is the one that carried it.

    The SDK hands it to tools, but not to resources of one URI.
    """
    one = server.get_context() if VERSION == 1 else next(iter(context), None)
    try:
        request = one.request_context.request if one is not None else None
    except ValueError:  # called by Python, not by the protocol
        request = None
    token = _carrying.set(request)
    try:
        yield
    finally:
        _carrying.reset(token)


def the_request() -> Any:
    """The HTTP request that carried the call being answered; over stdio there is none."""
    return _carrying.get()


def session_manager(server: Any, most_bytes: int) -> Any:
    """What speaks streamable HTTP for a server, without sessions: any process answers any call.

    Hosts and origins are checked by the app around it, for all its paths alike.
    """
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager as Manager
    from mcp.server.transport_security import TransportSecuritySettings

    limit: dict[str, Any] = {"max_request_body_size": most_bytes}
    known = inspect.signature(Manager).parameters  # older ones take any size
    return Manager(
        app=low_level(server),
        stateless=True,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        **{name: value for name, value in limit.items() if name in known},
    )


@contextmanager
def logging_as_it_is() -> Iterator[None]:
    """Let version 1 of the SDK be made without its giving the whole process a log of its own."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def keep_words_from_the_log() -> None:
    """Let version 1 of the SDK log what it could not do, but not with what it was sent."""
    for name in TALKATIVE if VERSION == 1 else ():
        logging.getLogger(name).addFilter(_without_words)  # a second time changes nothing


def _without_words(record: logging.LogRecord) -> bool:
    if record.name != "root" or record.pathname.replace("\\", "/").endswith(SDK_SESSION):
        record.msg, record.args = str(record.msg).partition(":")[0], ()
        record.exc_info = None
    return True


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
    except MemoristError as error:
        raise kind(str(error)) from None
    except Exception as error:  # noqa: BLE001 - its text may quote the user
        log.warning("a call failed: %s", type(error).__name__)
        raise kind(f"the memory failed ({type(error).__name__})") from None
