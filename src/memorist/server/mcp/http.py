"""The MCP server over streamable HTTP, for the app to put at one path.

    door = McpDoor(memory)
    app.add_route("/mcp", door.app)     # and `async with door.run()` in the app's lifespan

There are no sessions: any server and any worker answers any call, and whose memory a call is about
is said by the request that carried it, never by one before it. Who is asking, hosts and origins are
checked by the layers around it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from memorist.agents.toolbox import Toolbox
from memorist.errors import UnauthorizedError
from memorist.memory import Memory
from memorist.server.mcp.jsonrpc import INVALID_REQUEST, MOST_BYTES, TOO_LARGE, Refusal, refusal
from memorist.server.mcp.server import serving
from memorist.server.mcp.shim import session_manager

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from memorist.server.principal import Principal

NOBODY = Refusal(401, INVALID_REQUEST, "nobody known is asking; send a bearer token")
ONLY_POST = Refusal(405, INVALID_REQUEST, "there is no stream to listen to here; only POST")
NO_TYPE = Refusal(415, INVALID_REQUEST, "the content type must be application/json")
CURES = {401: (b"www-authenticate", b"Bearer"), 405: (b"allow", b"POST")}


class McpDoor:
    """The MCP server over HTTP: an ASGI app, and what has to run while it is served."""

    def __init__(
        self,
        memory: Memory,
        *,
        agent: str | None = None,
        of_tenant: Callable[[str], Memory] | None = None,
    ) -> None:
        self._of_tenant = of_tenant or memory.of_tenant
        self._agent = agent
        self.server = serving(self._whose, naming="maybe")
        self._manager: Any = None

    @property
    def app(self) -> ASGIApp:
        """What answers at the path."""
        return self

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Answer while this is open; it may be opened again."""
        manager = session_manager(self.server, MOST_BYTES)
        async with manager.run():
            self._manager = manager
            try:
                yield
            finally:
                self._manager = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise RuntimeError("MCP is spoken over HTTP only")
        if self._manager is None:
            raise RuntimeError("open run() in the lifespan of the app")
        read = None if (refused := _refusal_by_head(scope)) else await _body(receive)
        if refused := refused or (TOO_LARGE if read is None else refusal(read)):
            await _refuse(refused, send)
        else:
            await self._manager.handle_request(scope, _again(read or b"", receive), send)

    def _whose(self, request: Any) -> Toolbox:
        """The toolbox of whoever sent a request; an admin's is for whom each call names."""
        principal = _principal(request.scope if request is not None else {})
        if principal is None:
            raise UnauthorizedError(NOBODY.why)
        return Toolbox(self._of_tenant(principal.tenant), user=principal.user, agent=self._agent)


def _principal(scope: MutableMapping[str, Any]) -> Principal | None:
    found: Principal | None = scope.get("state", {}).get("principal")
    return found


def _refusal_by_head(scope: Scope) -> Refusal | None:
    if _principal(scope) is None:
        return NOBODY
    if scope["method"] != "POST":
        return ONLY_POST
    types = [value for name, value in scope["headers"] if name == b"content-type"]
    plain = [one.partition(b";")[0].strip().lower() for one in types]
    return None if plain == [b"application/json"] else NO_TYPE


async def _body(receive: Receive) -> bytes | None:
    """The whole body, unless it is too large."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            return None
        if not message.get("more_body", False):  # the last part, or the client left
            return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was read, to be read once more; then whatever comes after it."""
    parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def read() -> Message:
        return parts.pop() if parts else await receive()

    return read


async def _refuse(refused: Refusal, send: Send) -> None:
    body = refused.body()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *([CURES[refused.status]] if refused.status in CURES else []),
    ]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
