"""Authenticate: the layer behind which somebody known is asking, but for what is public."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from recollect.errors import ForbiddenError, RecollectError, UnauthorizedError
from recollect.server.auth import Guard
from recollect.server.http.problems import problem_response, request_id_of
from recollect.server.principal import Principal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PUBLIC = frozenset({"/", "/health", "/ready", "/openapi.json"})
PUBLIC_FOLDER = "/web/"
THREADS = 4
# What a proxy says of whom it asks for: then others than the local user can connect.
FORWARDED = {b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"}
_POLICY = 1008  # how a websocket says: not you
log = logging.getLogger("recollect.server")


class Authenticate:
    """Puts the caller at `scope["state"]["principal"]`; answers 401 where there is none."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard
        # Of its own: who is known must not depend on how slowly others are answered.
        self._threads = ThreadPoolExecutor(THREADS, "recollect-guard")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and is_public(scope)):
            await self._app(scope, receive, send)
            return
        try:
            principal = await self._caller(scope)
        except RecollectError as error:
            await _refuse(error, scope, receive, send)
            return
        scope.setdefault("state", {})["principal"] = principal
        await self._app(scope, receive, send)

    async def _caller(self, scope: Scope) -> Principal:
        names = {name.lower() for name, _ in scope["headers"]}
        if self._guard.open and names & FORWARDED:
            raise ForbiddenError("this server is for one local user; behind a proxy use --auth")
        sent = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
        if len(sent) > 1 and not self._guard.open:
            raise UnauthorizedError("there is more than one Authorization header")
        header = sent[0].decode("latin-1") if sent else None
        if header is None or self._guard.open:  # answered without the store
            return self._guard.authenticate(header)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._guard.authenticate, header)


def is_public(scope: Scope) -> bool:
    """Whether the path is anybody's, as the router will see it."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    if root and path.startswith(f"{root}/"):
        path = path[len(root) :]
    if path.startswith(PUBLIC_FOLDER):
        return ".." not in path.replace("\\", "/").split("/")
    return path in PUBLIC


async def _refuse(error: RecollectError, scope: Scope, receive: Receive, send: Send) -> None:
    # Our texts name the kind of failure, and never what was sent.
    log.info("%s: nobody was let in: %s", request_id_of(scope), error)
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": _POLICY})
    else:
        await problem_response(error, request_id_of(scope))(scope, receive, send)
