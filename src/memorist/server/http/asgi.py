"""What the layers before the routes share: reading a header, and refusing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memorist.server.http.problems import problem_response, request_id_of

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

REQUESTS = ("http", "websocket")  # the scopes that somebody outside asks for


def values(scope: Scope, name: bytes) -> list[bytes]:
    """Every value of a header, in order; its name in lower case."""
    return [value for key, value in scope["headers"] if key.lower() == name]


async def refuse(error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with a problem; a websocket that cannot carry one is only closed."""
    told = "websocket.http.response" in (scope.get("extensions") or {})
    if scope["type"] == "websocket" and not told:
        await send({"type": "websocket.close", "code": 1008})
        return
    await problem_response(error, request_id_of(scope))(scope, receive, send)
