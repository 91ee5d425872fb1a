"""The MCP server over streamable HTTP, for an app to put at one path.

    mcp = McpApp(memory)
    app.add_route("/mcp", mcp)     # and `async with mcp.run()` in the app's lifespan

It is stateless: any process answers any call, and each request says by its credentials whose
memory it is about, and by its address which tools it wants: /mcp?tools=revise. Authentication,
hosts and origins are checked by the layers around it.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Annotated, Any, Literal

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import from_json
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from memorist.agents.assistant import TOOL_SETS
from memorist.agents.toolbox import Toolbox
from memorist.errors import UnauthorizedError
from memorist.memory import Memory
from memorist.records.scope import Principal
from memorist.server.mcp.server import McpServer, default_tools

MOST_BYTES = 8 * 1024 * 1024
LONGEST_ID = 1_000
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
ShortText = Annotated[str, Field(max_length=LONGEST_ID)]
Int64 = Annotated[int, Field(gt=-(2**63), lt=2**63)]
NO_CALLER = "the request has no known caller; send a bearer token"


class JsonRpcCall(BaseModel):
    """A JSON-RPC 2.0 request, or without an id a notification."""

    jsonrpc: Literal["2.0"]
    method: str
    params: dict[str, Any] = {}
    id: ShortText | Int64 = 0


class McpApp:
    """The MCP server over HTTP, as an ASGI app; `run` has to be open while it serves."""

    def __init__(self, memory: Memory, *, max_bytes: int = MOST_BYTES) -> None:
        self._memory = memory
        self._max_bytes = max_bytes
        self.servers = {
            tools: McpServer(self._toolbox_of, user_argument="admin", tools=tools)
            for tools in TOOL_SETS
        }
        self._limited = RequestBodyLimitMiddleware(self._answer, max_bytes)
        self._managers: dict[str, StreamableHTTPSessionManager] = {}

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Answer requests while this is open; it may be opened again."""
        async with AsyncExitStack() as stack:
            for tools, server in self.servers.items():
                manager = server.http_manager(self._max_bytes)
                await stack.enter_async_context(manager.run())
                self._managers[tools] = manager
            try:
                yield
            finally:
                self._managers.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._managers:
            raise RuntimeError("open run() in the lifespan of the app")
        await self._limited(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        refusal = _head_refusal(request)
        body = b"" if refusal else await request.body()
        if refusal := refusal or body_refusal(body):
            await refusal(scope, receive, send)
            return
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        if manager := self._managers.get(_tools(request)):
            await manager.handle_request(scope, replay, send)

    def _toolbox_of(self, request: Request | None) -> Toolbox:
        """The toolbox of a request's caller; an admin names a user in each call."""
        if request is None or (principal := _principal(request)) is None:
            raise UnauthorizedError(NO_CALLER)
        memory = self._memory.tenant(principal.tenant)
        return Toolbox(memory, user=principal.user, program=principal.program)


def _principal(request: Request) -> Principal | None:
    principal: Principal | None = request.scope.get("state", {}).get("principal")
    return principal


def _tools(request: Request) -> str:
    """The tool set that the address names, as in /mcp?tools=revise; else that of the caller."""
    principal = _principal(request)
    return request.query_params.get("tools") or default_tools(
        principal is not None and principal.program
    )


def _head_refusal(request: Request) -> JSONResponse | None:
    if _principal(request) is None:
        return _refusal(401, INVALID_REQUEST, NO_CALLER, {"WWW-Authenticate": "Bearer"})
    if request.method != "POST":
        return _refusal(405, INVALID_REQUEST, "only POST is answered here", {"Allow": "POST"})
    types = [kind.partition(";")[0].strip() for kind in request.headers.getlist("content-type")]
    if [kind.lower() for kind in types] != ["application/json"]:
        return _refusal(415, INVALID_REQUEST, "the content type must be application/json")
    if _tools(request) not in TOOL_SETS:
        return _refusal(404, INVALID_REQUEST, f"the tool sets are {', '.join(TOOL_SETS)}")
    return None


def body_refusal(body: bytes) -> JSONResponse | None:
    """The error to a body that is not one JSON-RPC call: the SDK fails, or repeats its words."""
    try:
        message = from_json(body, allow_inf_nan=False)
    except ValueError:  # also: too deep, half a surrogate pair, a number of thousands of digits
        return _refusal(400, PARSE_ERROR, "the body is not JSON in UTF-8, or nests too deep")
    try:
        JsonRpcCall.model_validate(message, strict=True)
    except ValidationError:
        why = "the body is not one JSON-RPC 2.0 request or notification"
        return _refusal(400, INVALID_REQUEST, why)
    return None


def _refusal(
    status: int, code: int, why: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    error = {"code": code, "message": why}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status, headers)
