"""Scope: whose memory it is. Every read and write carries one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache

from memorist.errors import ScopeError
from memorist.records.text import check_key, check_text

MAX_ID_BYTES = 65_536
ROOMS = ("library", "once", "store")  # of a tenant: what is kept there is no user's


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A user of a tenant, narrowed to an agent or a session where one is named.

    Ids are opaque: `*`, `%`, `alice` and `alice ` are four different users.
    """

    user: str
    tenant: str = "default"
    agent: str | None = None
    session: str | None = None
    owner: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_id(self.tenant, "tenant")
        _check_id(self.user, "user")
        if self.agent is not None:
            check_key(self.agent, "agent", ScopeError)
        if self.session is not None:
            _check_id(self.session, "session")
        object.__setattr__(self, "owner", owner_of(self.tenant, self.user))

    def within(self, *, agent: str | None = None, session: str | None = None) -> Scope:
        """The same user, narrowed further."""
        return Scope(
            user=self.user,
            tenant=self.tenant,
            agent=self.agent if agent is None else agent,
            session=self.session if session is None else session,
        )

    def whole_user(self) -> Scope:
        """The same user, with agent and session left open."""
        return Scope(user=self.user, tenant=self.tenant)


def check_tenant(tenant: str) -> str:
    """Refuse a name from outside that would be a room of another tenant, such as its shelves."""
    if tenant.endswith(tuple(f"/{room}" for room in ROOMS)):
        raise ScopeError(f"tenant must not end in /{', /'.join(ROOMS)}: these are kept apart")
    return tenant


@lru_cache(maxsize=4_096)
def owner_of(tenant: str, user: str) -> str:
    """The key of a user's rows: short whatever the ids are, and nobody else's."""
    # Ids hold no NUL, so the pair cannot be spelled in two ways.
    return hashlib.sha256(f"{tenant}\x00{user}".encode()).hexdigest()[:32]


def _check_id(value: object, field_name: str) -> None:
    text = check_text(value, field_name, ScopeError)
    if len(text) * 4 > MAX_ID_BYTES and len(text.encode()) > MAX_ID_BYTES:
        raise ScopeError(f"{field_name} is longer than {MAX_ID_BYTES} bytes")


def shared_scope(tenant: str, kind: str, name: str) -> Scope:
    """The scope of something that all users of a tenant share, such as a library: no user's."""
    return Scope(tenant=f"{tenant}/{kind}", user=name)
