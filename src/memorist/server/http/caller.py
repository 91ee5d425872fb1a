"""The caller that routes get to see: an authenticated principal and the memory of its tenant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends
from fastapi.security import HTTPBearer
from starlette.requests import Request

from memorist.errors import ForbiddenError, InvalidError
from memorist.memory import Memory
from memorist.records.scope import Scope
from memorist.server.auth import Principal
from memorist.server.http.schemas import UserRequest


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

    def scope(self, request: UserRequest) -> Scope:
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
