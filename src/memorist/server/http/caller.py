"""Caller: who asks, and whose memory they may touch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from memorist.errors import ForbiddenError, InvalidError, MissingExtraError
from memorist.memory import Memory
from memorist.server.principal import Principal

try:
    from fastapi import Depends, Query
    from starlette.requests import Request
except ImportError as error:
    raise MissingExtraError("server") from error

OfTenant = Callable[[str], Memory]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, with the memory of their tenant."""

    memory: Memory
    principal: Principal

    def user(self, named: str | None) -> str:
        """Whose memory the request is about: the caller's own, or for an admin whom they name."""
        own = self.principal.user
        if own is None:
            if named is None:
                raise InvalidError("user is missing: an admin says whose memory it is")
            return named
        if named not in (None, own):
            raise ForbiddenError(self._whose())
        return own

    def _whose(self) -> str:
        if self.principal.local:  # it is no secret to them who started it
            return (
                f"this server is for one local user, {self.principal.user!r}: name that one, start "
                "it with --user, or with --auth and an admin's key for many"
            )
        return "this key is for another user; leave user out, or ask with an admin's key"

    def must_be_admin(self) -> None:
        """Refuse anybody else."""
        if not self.principal.admin:
            raise ForbiddenError("this is for an admin's key")

    @property
    def runs_it(self) -> bool:
        """Whether they are an admin, or have the server to themselves."""
        return self.principal.local or self.principal.admin

    def must_run_it(self) -> None:
        """Refuse all but an admin, or whoever has the server to themselves."""
        if not self.runs_it:
            self.must_be_admin()


async def _caller(request: Request) -> Caller:  # async, as it would else go to a thread of its own
    principal: Principal = request.state.principal
    of_tenant: OfTenant = request.app.state.of_tenant
    return Caller(of_tenant(principal.tenant), principal)


Asking = Annotated[Caller, Depends(_caller)]
User = Annotated[str | None, Query(description="Whose memory; only an admin says so.")]
Agent = Annotated[str | None, Query(description="Only what was said with this agent.")]
SessionId = Annotated[str | None, Query(description="Only this conversation.")]
