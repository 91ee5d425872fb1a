"""Authenticate: the layer behind which somebody known is asking, but for what is public."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from memorist.errors import ForbiddenError, MemoristError, UnauthorizedError
from memorist.server.auth import Guard
from memorist.server.http.asgi import refuse, values
from memorist.server.http.problems import request_id_of
from memorist.server.principal import Principal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PUBLIC = frozenset({"/", "/health", "/ready", "/openapi.json"})
PUBLIC_FOLDER = "/web/"
THREADS = 4
# What a proxy says of whom it asks for: then others than the local user can connect.
FORWARDED = (b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip")
log = logging.getLogger("memorist.server")


class Authenticate:
    """Puts the caller at `scope["state"]["principal"]`; answers 401 where there is none."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard
        # Of its own: who is known must not depend on how slowly others are answered.
        self._threads = ThreadPoolExecutor(THREADS, "memorist-guard")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and is_public(scope)):
            await self._app(scope, receive, send)
            return
        try:
            principal = await self._caller(scope)
        except MemoristError as error:
            # Our texts name the kind of failure, and never what was sent.
            log.info("%s: nobody was let in: %s", request_id_of(scope), error)
            await refuse(error, scope, receive, send)
            return
        scope.setdefault("state", {})["principal"] = principal
        await self._app(scope, receive, send)

    async def _caller(self, scope: Scope) -> Principal:
        if self._guard.open and any(values(scope, name) for name in FORWARDED):
            raise ForbiddenError("this server is for one local user; behind a proxy use --auth")
        sent = values(scope, b"authorization")
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
