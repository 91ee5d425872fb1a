"""Principals: who is calling."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who is calling: a user of a tenant, or an admin of it, who names the user."""

    tenant: str
    user: str | None = None
    name: str = ""  # the key's id or the token's subject, for logs
    local: bool = False  # the one user of a server that nobody else can reach

    @property
    def admin(self) -> bool:
        """Whether all users of the tenant are theirs to ask for."""
        return self.user is None
