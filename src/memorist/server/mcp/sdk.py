"""What we add to the MCP SDK: the current HTTP request, errors and logs without users' words."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from mcp.server.fastmcp import FastMCP

from memorist.errors import MemoristError

SDK_SESSION = "mcp/shared/session.py"  # logs to the root what it cannot validate, word for word
TALKATIVE = ("", "mcp.server.lowlevel.server", "mcp.server.fastmcp.server")
T = TypeVar("T")
log = logging.getLogger("memorist")
_request: ContextVar[Any] = ContextVar("HTTP request", default=None)


@contextmanager
def request_scope(server: FastMCP) -> Iterator[None]:
    """Make the HTTP request of the running call the `current_request`.

    The SDK hands it to tools, but not to resources of one URI.
    """
    try:
        request = server.get_context().request_context.request
    except ValueError:  # called by Python, not by the protocol
        request = None
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)


def current_request() -> Any:
    """The HTTP request of the running call; None over stdio."""
    return _request.get()


def translate_errors(work: Callable[[], T], make_error: Callable[[str], Exception]) -> T:
    """The result of the work. Errors leave as `make_error` makes them, without users' words."""
    try:
        return work()
    except MemoristError as error:
        raise make_error(str(error)) from None
    except Exception as error:  # noqa: BLE001 - its text may quote the user
        log.warning("an MCP call failed: %s", type(error).__name__)
        raise make_error(f"the memory failed ({type(error).__name__})") from None


@contextmanager
def unchanged_logging() -> Iterator[None]:
    """Undo what FastMCP does to the root logger when it is made."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def keep_arguments_out_of_logs() -> None:
    """Filter the SDK's log records, which quote what a client sent."""
    for name in TALKATIVE:
        logging.getLogger(name).addFilter(_drop_details)  # adding it again changes nothing


def _drop_details(record: logging.LogRecord) -> bool:
    if record.name != "root" or record.pathname.replace("\\", "/").endswith(SDK_SESSION):
        record.msg, record.args = str(record.msg).partition(":")[0], ()
        record.exc_info = None
    return True
