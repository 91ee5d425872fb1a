"""Authentication of requests, and the caller that routes get to see."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends
from fastapi.security import HTTPBearer
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from memorist.errors import ForbiddenError, InvalidError, MemoristError, UnauthorizedError
from memorist.memory import Memory
from memorist.records.scope import Scope as MemoryScope
from memorist.server.auth import Guard, Principal
from memorist.server.http.problems import header_values, refuse, request_id_of
from memorist.server.http.schemas import UserRequest

PUBLIC = frozenset({"/", "/health", "/ready", "/openapi.json"})
PUBLIC_FOLDER = "/web/"
THREADS = 4
# Headers of proxies. Behind one, others than the local user can connect.
PROXY_HEADERS = (b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip")
log = logging.getLogger("memorist.server")


class Authenticate:
    """Puts the caller at `scope["state"]["principal"]`, or answers 401; public paths pass."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard
        # A pool of its own: authentication must not wait for the slow requests of others.
        self._threads = ThreadPoolExecutor(THREADS, "memorist-auth")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app answer an authenticated request."""
        if scope["type"] == "lifespan" or (scope["type"] == "http" and is_public(scope)):
            await self._app(scope, receive, send)
            return
        try:
            principal = await self._authenticate(scope)
        except MemoristError as error:
            # These texts name the kind of failure, never what was sent.
            log.info("%s: authentication failed: %s", request_id_of(scope), error)
            await refuse(error, scope, receive, send)
            return
        scope.setdefault("state", {})["principal"] = principal
        await self._app(scope, receive, send)

    async def _authenticate(self, scope: Scope) -> Principal:
        if self._guard.open and any(header_values(scope, name) for name in PROXY_HEADERS):
            raise ForbiddenError("this server is for one local user; behind a proxy use --auth")
        sent = header_values(scope, b"authorization")
        if len(sent) > 1 and not self._guard.open:
            raise UnauthorizedError("there is more than one Authorization header")
        header = sent[0].decode("latin-1") if sent else None
        if header is None or self._guard.open:  # needs no database
            return self._guard.authenticate(header)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._guard.authenticate, header)


def is_public(scope: Scope) -> bool:
    """Whether the path needs no key, as the router will see it."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    if root and path.startswith(f"{root}/"):
        path = path[len(root) :]
    if path.startswith(PUBLIC_FOLDER):
        return ".." not in path.replace("\\", "/").split("/")
    return path in PUBLIC


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller, with the memory of their tenant."""

    memory: Memory
    principal: Principal

    def user(self, name: str | None) -> str:
        """Whose memory the request is about: the caller's own, or whom an admin names."""
        own = self.principal.user
        if own is None:
            if name is None:
                raise InvalidError("user is missing: an admin's key names the user")
            return name
        if name in (None, own):
            return own
        if self.principal.local:
            raise ForbiddenError(
                f"this server is for one local user, {own!r}: name that one, start it with "
                "--user, or with --auth and an admin's key for many"
            )
        raise ForbiddenError("this key is for another user; leave user out, or use an admin's key")

    def place(self, request: UserRequest) -> dict[str, Any]:
        """The user, agent and session that a request is about, as arguments."""
        names = type(request).model_fields.keys() & {"agent", "session"}
        where = {name: getattr(request, name) for name in names}
        return {"user": self.user(request.user), **where}

    def scope(self, request: UserRequest) -> MemoryScope:
        """The scope that a request is about."""
        return self.memory.scope(**self.place(request))

    @property
    def is_operator(self) -> bool:
        """Whether the caller is an admin, or the only user of a local server."""
        return self.principal.local or self.principal.admin

    def require_operator(self) -> None:
        """Raise ForbiddenError unless the caller is an operator."""
        if not self.is_operator:
            self.require_admin()

    def require_admin(self) -> None:
        """Raise ForbiddenError unless the caller shows an admin's key."""
        if not self.principal.admin:
            raise ForbiddenError("this needs an admin's key")


# For the OpenAPI document only: by then the middleware has authenticated the request.
_BEARER = HTTPBearer(
    scheme_name="bearer", description="An API key of `memorist keys`, or a JWT.", auto_error=False
)


async def _current_caller(request: Request, _: Annotated[object, Depends(_BEARER)]) -> Caller:
    principal: Principal = request.state.principal
    memory_of_tenant: Callable[[str], Memory] = request.app.state.memory_of_tenant
    return Caller(memory_of_tenant(principal.tenant), principal)


CurrentCaller = Annotated[Caller, Depends(_current_caller)]
