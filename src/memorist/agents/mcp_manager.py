"""McpManager: an MCP session that is opened when it is first needed, and again after it broke."""

import asyncio
import contextvars
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self, TypeVar

from memorist.agents.tool_schema import McpResult as McpResult
from memorist.agents.tool_schema import McpTool as McpTool
from memorist.errors import InvalidError, StoreUnavailableError, needs_extra

with needs_extra("mcp"):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.memory import create_connected_server_and_client_session as connect_in_process

CONNECTION_CLOSED = -32000  # as the protocol numbers it

T = TypeVar("T")
log = logging.getLogger("memorist")


class McpManager:
    """Lists and calls the tools of an MCP server, from any task and any event loop.

        async with McpManager("https://memory.example/mcp") as manager:
            await manager.call_tool("recall", {"query": "where does she live?", "user_id": "ada"})

    `target` is the command that starts the server (`StdioServerParameters`), a URL of streamable
    HTTP, a server object in this process, a function that opens a session (for headers and the
    like), or an open session, which is not closed. `timeout_s` limits the wait for each answer
    and for the start of the server.
    """

    def __init__(self, target: Any, *, timeout_s: float = 20.0) -> None:
        if target is None or not timeout_s > 0:
            raise InvalidError("an McpManager needs a server, and a timeout_s above 0")
        self._target, self._timeout_s = target, timeout_s
        self._sessions: dict[asyncio.AbstractEventLoop, _HeldSession] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the session of this event loop, and with it a server that was started for it."""
        if held := self._sessions.pop(asyncio.get_running_loop(), None):
            held.end()
            await asyncio.wait({held.task})

    async def list_tools(self) -> list[McpTool]:
        """Every tool that the server offers; a session that broke is opened again."""
        return await self._ask("tools/list", _all_tools, retry=True)

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> McpResult:
        """The tool's answer, also a refusal; `StoreUnavailableError` if the server gives none."""
        try:  # the SDK would end the session and leave the caller waiting
            json.dumps(dict(arguments), ensure_ascii=False, default=str).encode()
        except ValueError:
            raise InvalidError(f"the arguments of {name} cannot be sent as JSON") from None
        answer = await self._ask(name, lambda session: session.call_tool(name, dict(arguments)))
        return McpResult.of(answer)

    async def _ask(
        self, what: str, ask: Callable[[ClientSession], Awaitable[T]], retry: bool = False
    ) -> T:
        """The server's answer; with `retry`, a session that broke is opened once more."""
        held = self._held()
        retry = retry and held.is_open
        try:
            async with asyncio.timeout(self._timeout_s):
                return await ask(await asyncio.shield(held.session))
        except TimeoutError:
            raise _unavailable(what, f"did not answer within {self._timeout_s:g} s") from None
        except Exception as error:  # noqa: BLE001 - SDKs and transports fail in many ways
            cause = _root_cause(error)
            code = getattr(getattr(cause, "error", None), "code", None)
            answered = isinstance(code, int) and code != CONNECTION_CLOSED  # with a refusal
            if not answered:
                held.end()
            if answered or not retry:  # its text may quote what was sent, so it is not repeated
                raise _unavailable(what, f"failed ({type(cause).__name__})") from None
        return await self._ask(what, ask)

    def _held(self) -> "_HeldSession":
        """The session of this event loop; those of closed loops are dropped."""
        loop = asyncio.get_running_loop()
        held = self._sessions.get(loop)
        if held is None or not held.is_usable:
            for closed in [it for it in list(self._sessions) if it.is_closed()]:
                self._sessions.pop(closed, None)
            held = self._sessions[loop] = _HeldSession(loop, self._target, self._timeout_s)
        return held


class _HeldSession:
    """A session held open by a task of its own: the task that entered it must leave it."""

    tasks: set[asyncio.Task[None]] = set()  # noqa: RUF012 - the event loop keeps no task alive

    def __init__(self, loop: asyncio.AbstractEventLoop, target: Any, timeout_s: float) -> None:
        self._leave = asyncio.Event()
        self.session: asyncio.Future[ClientSession] = loop.create_future()
        # An empty context: the session outlives the run, and the span, that first needed it.
        self.task = loop.create_task(self._hold(target), context=contextvars.Context())
        self.tasks.add(self.task)
        self.task.add_done_callback(self._ended)
        loop.call_later(timeout_s, self._give_up)

    @property
    def is_open(self) -> bool:
        """Whether the session was ever opened."""
        return self.session.done() and self.session.exception() is None

    @property
    def is_usable(self) -> bool:
        """Whether it is open or being opened, and not being left."""
        return not self._leave.is_set() and not self.task.done()

    def end(self) -> None:
        """Leave the session, or give up opening it."""
        self._leave.set()
        if not self.session.done():
            self.task.cancel()

    def _give_up(self) -> None:
        """End a start that hangs: its caller may be gone by now."""
        if not self.session.done():
            self.end()

    async def _hold(self, target: Any) -> None:
        async with _open_session(target) as session:
            self.session.set_result(session)
            await self._leave.wait()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Wake the waiting callers with an error; a session given up does not cancel them."""
        self.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if not self.session.done():
            self.session.set_exception(error or ConnectionError())
            self.session.exception()  # marked as seen, also if nobody waits any more
        elif error is not None:
            log.warning("an MCP session did not end well: %s", type(_root_cause(error)).__name__)


@asynccontextmanager
async def _open_session(target: Any) -> AsyncIterator[ClientSession]:
    """A session with the target; one that is open already is not closed at the end."""
    if isinstance(target, ClientSession):
        yield target
        return
    async with AsyncExitStack() as stack:
        if isinstance(target, StdioServerParameters | str):
            is_url = isinstance(target, str)
            streams: Any = streamable_http_client if is_url else stdio_client
            read, write, *_ = await stack.enter_async_context(streams(target))
            session = await stack.enter_async_context(ClientSession(read, write))
            await session.initialize()
        else:
            opened = target() if callable(target) else connect_in_process(target)
            session = await stack.enter_async_context(opened)
        yield session


async def _all_tools(session: ClientSession) -> list[McpTool]:
    page = await session.list_tools()
    tools = list(page.tools)
    while page.nextCursor:
        page = await session.list_tools(cursor=page.nextCursor)
        tools += page.tools
    return [McpTool.of(tool) for tool in tools]


def _unavailable(what: str, why: str) -> StoreUnavailableError:
    log.warning("the MCP server %s: %s", why, what)
    return StoreUnavailableError(f"the MCP server {why}: {what}")


def _root_cause(error: BaseException) -> BaseException:
    """The first error of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
