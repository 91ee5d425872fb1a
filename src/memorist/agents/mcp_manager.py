"""McpManager: a live MCP session, opened when it is first needed, and anew after it broke.

async with McpManager("https://memory.example/mcp") as manager:
    print([tool.name for tool in await manager.list_tools()])
    await manager.call_tool("recall", {"query": "where does she live?", "user_id": "ada"})
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from memorist.errors import InvalidError, MissingExtraError, StoreUnavailableError

try:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
except ImportError as error:
    raise MissingExtraError("mcp") from error

try:
    from mcp import Client  # type: ignore[attr-defined]  # version 2 of the SDK
except ImportError:
    Client = None

TIMEOUT_S = 20.0
CONNECTION_CLOSED = -32000  # as the protocol numbers it

T = TypeVar("T")
log = logging.getLogger("memorist")


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as its server describes it; `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class McpResult:
    """What a tool answered: its text, the same as data if it gave any, and whether it refused."""

    text: str
    data: Mapping[str, Any] | None = None
    failed: bool = False


class McpManager:
    """An MCP server's tools, from any task and any event loop.

    `target` says where the server is: the command that starts it (`StdioServerParameters`), a
    URL of streamable HTTP, a server object in this process, a function that opens a session
    (for headers and the like), or a session that is open, which stays its owner's. No answer,
    and no server's start, is waited for longer than `timeout_s`.
    """

    def __init__(self, target: Any, *, timeout_s: float = TIMEOUT_S) -> None:
        if target is None or not timeout_s > 0:
            raise InvalidError("an McpManager needs a server, and a timeout_s above 0")
        self._target = target
        self._timeout_s = timeout_s
        self._lines: dict[asyncio.AbstractEventLoop, _Line] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the session of this event loop, and with it a server that was started for it."""
        if line := self._lines.pop(asyncio.get_running_loop(), None):
            line.end()
            await asyncio.wait({line.task})

    async def list_tools(self) -> list[McpTool]:
        """Every tool that the server offers; one that died since the last call is found anew."""
        return await self._ask("tools/list", _all_tools, again=True)

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> McpResult:
        """What the tool answers. A refusal is an answer; a server that is not there is an error."""
        try:  # sent all the same, it would end the session and be waited for in vain
            json.dumps(dict(arguments), ensure_ascii=False, default=str).encode()
        except ValueError:
            raise InvalidError(f"the arguments of {name} cannot be sent as JSON") from None
        return await self._ask(name, lambda session: _called(session, name, dict(arguments)))

    async def _ask(self, what: str, ask: Callable[[Any], Awaitable[T]], again: bool = False) -> T:
        """What the server answers; `again` where it does no harm to ask one that died anew."""
        line = self._connected()
        again = again and line.is_open
        try:
            async with asyncio.timeout(self._timeout_s):
                return await ask(await asyncio.shield(line.session))
        except TimeoutError:
            raise _unavailable(what, f"did not answer within {self._timeout_s:g} s") from None
        except Exception as error:  # noqa: BLE001 - SDKs and transports fail in many ways
            cause = _first(error)
            lives = _is_refusal(cause)
            if not lives:
                line.end()
            if lives or not again:  # its text may quote what was sent, so it goes nowhere
                raise _unavailable(what, f"failed ({type(cause).__name__})") from None
        return await self._ask(what, ask)

    def _connected(self) -> _Line:
        """The line of this event loop; that of a loop which is gone went with it."""
        loop = asyncio.get_running_loop()
        line = self._lines.get(loop)
        if line is None or not line.is_held:
            for gone in [one for one in list(self._lines) if one.is_closed()]:
                self._lines.pop(gone, None)
            line = self._lines[loop] = _Line(loop, self._target, self._timeout_s)
        return line


class _Line:
    """A session, held open by a task of its own: it must be left by the task that entered it."""

    held: set[asyncio.Task[None]] = set()  # noqa: RUF012 - the event loop keeps no task alive

    def __init__(self, loop: asyncio.AbstractEventLoop, target: Any, timeout_s: float) -> None:
        self._leave = asyncio.Event()
        self.session: asyncio.Future[Any] = loop.create_future()
        # An empty context: the session outlives the run, and the span, that first needed it.
        self.task = loop.create_task(self._hold(target), context=contextvars.Context())
        self.held.add(self.task)
        self.task.add_done_callback(self._ended)
        loop.call_later(timeout_s, self._give_up)

    @property
    def is_open(self) -> bool:
        """Whether the session was ever opened."""
        return self.session.done() and self.session.exception() is None

    @property
    def is_held(self) -> bool:
        """Whether it is open or being opened, and not on its way out."""
        return not self._leave.is_set() and not self.task.done()

    def end(self) -> None:
        """Leave the session, or give up opening it."""
        self._leave.set()
        if not self.session.done():
            self.task.cancel()

    def _give_up(self) -> None:
        """Whoever waited may be gone by now, so a start that hangs is ended here."""
        if not self.session.done():
            self.end()

    async def _hold(self, target: Any) -> None:
        async with _opened(target) as session:
            self.session.set_result(session)
            await self._leave.wait()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Tell whoever still waits; one that was given up does not cancel them with it."""
        self.held.discard(task)
        error = None if task.cancelled() else task.exception()
        if not self.session.done():
            self.session.set_exception(error or ConnectionError())
            self.session.exception()  # looked at, also if nobody waits any more
        elif error is not None:
            log.warning("an MCP session did not end well: %s", type(_first(error)).__name__)


@asynccontextmanager
async def _opened(target: Any) -> AsyncIterator[Any]:
    """A session with whatever the target is, on either version of the SDK."""
    if isinstance(target, ClientSession) or (Client is not None and isinstance(target, Client)):
        yield target
    elif callable(target):
        async with target() as session:
            yield session
    elif Client is not None:
        async with Client(target) as client:
            yield client
    elif isinstance(target, StdioServerParameters):
        async with stdio_client(target) as (read, write), _begun(read, write) as session:
            yield session
    elif isinstance(target, str):
        from mcp.client.streamable_http import streamable_http_client

        async with streamable_http_client(target) as (read, write, _), _begun(read, write) as it:
            yield it
    else:
        from mcp.shared.memory import create_connected_server_and_client_session

        async with create_connected_server_and_client_session(target) as session:
            yield session


@asynccontextmanager
async def _begun(read: Any, write: Any) -> AsyncIterator[ClientSession]:
    async with ClientSession(read, write) as session:
        await session.initialize()
        yield session


async def _all_tools(session: Any) -> list[McpTool]:
    found: list[McpTool] = []
    cursor: str | None = None
    while True:
        page = await (session.list_tools(cursor=cursor) if cursor else session.list_tools())
        for tool in page.tools:
            schema = _either(tool, "inputSchema", "input_schema") or {}
            found.append(McpTool(tool.name, tool.description or "", schema))
        cursor = _either(page, "nextCursor", "next_cursor")
        if not cursor:
            return found


async def _called(session: Any, name: str, arguments: dict[str, Any]) -> McpResult:
    answer = await session.call_tool(name, arguments)
    texts = [block.text for block in answer.content if getattr(block, "type", "") == "text"]
    return McpResult(
        "\n".join(texts),
        _either(answer, "structuredContent", "structured_content"),
        bool(_either(answer, "isError", "is_error")),
    )


def _either(thing: Any, first: str, second: str) -> Any:
    """A field by the name that version 1 or version 2 of the SDK gives it."""
    return getattr(thing, first) if hasattr(thing, first) else getattr(thing, second, None)


def _unavailable(what: str, why: str) -> StoreUnavailableError:
    log.warning("the MCP server %s: %s", why, what)
    return StoreUnavailableError(f"the MCP server {why}: {what}")


def _first(error: BaseException) -> BaseException:
    """What went wrong first, where several tasks fell with it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _is_refusal(error: BaseException) -> bool:
    """Whether the server answered, if only to say no: its session goes on."""
    code = getattr(getattr(error, "error", None), "code", None)
    return isinstance(code, int) and code != CONNECTION_CLOSED
