"""Scope: the user, agent and session that a read or write is for; who asks, and with which key."""

import hashlib
import re
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from memorist.errors import RecordError, ScopeError
from memorist.records.values import Checked, Key, check_key, check_text, now

MAX_ID_BYTES = 65_536
_DIGEST = re.compile(r"[0-9a-f]{64}")
ROOMS = ("library", "once", "store")  # parts of a tenant that belong to no user


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

    @property
    def names(self) -> dict[str, Any]:
        """User, agent and session as keyword arguments."""
        return {"user": self.user, "agent": self.agent, "session": self.session}

    def columns(self) -> dict[str, str | None]:
        """The values that the store finds the rows of this scope by."""
        return {
            "owner": self.owner,
            "agent": self.agent,
            "session_id": self.session,
            "session_hash": None if self.session is None else session_hash(self.session),
        }

    def within(self, *, agent: str | None = None, session: str | None = None) -> "Scope":
        """The same user, narrowed further."""
        return Scope(
            user=self.user,
            tenant=self.tenant,
            agent=self.agent if agent is None else agent,
            session=self.session if session is None else session,
        )

    def whole_user(self) -> "Scope":
        """The same user, with agent and session left open."""
        return Scope(user=self.user, tenant=self.tenant)


@lru_cache(maxsize=1_024)  # making one takes a hash of its user
def named_scope(
    tenant: str, user: str, agent: str | None = None, session: str | None = None
) -> Scope:
    """The scope that a caller names; an empty id is a variable that was not set, and refused."""
    for field_name, id_ in {"user": user, "session": session}.items():
        if id_ == "":
            raise ScopeError(f"{field_name} is empty: it must name a {field_name}")
    return Scope(user=user, tenant=tenant, agent=agent, session=session)


def check_tenant(tenant: str) -> str:
    """Raise unless this names a tenant, and not a part of another one, such as its libraries."""
    tenant = check_text(tenant, "tenant", ScopeError)
    if tenant.endswith(tuple(f"/{room}" for room in ROOMS)):
        raise ScopeError(f"tenant must not end in /{', /'.join(ROOMS)}: these names are reserved")
    return tenant


@lru_cache(maxsize=4_096)
def owner_of(tenant: str, user: str) -> str:
    """The key of a user's rows: short, however long the ids, and unique to the user."""
    # Ids contain no NUL, so no other pair gives the same text.
    return hashlib.sha256(f"{tenant}\x00{user}".encode()).hexdigest()[:32]


@lru_cache(maxsize=4_096)
def session_hash(session_id: str) -> str:
    """A short key for a session id of any length."""
    return hashlib.sha256(session_id.encode()).hexdigest()[:32]


def tenant_hash(tenant: str) -> str:
    """A short key for a tenant, however long its name."""
    _check_id(tenant, "tenant")
    return hashlib.sha256(tenant.encode()).hexdigest()[:32]


def _check_id(value: object, field_name: str) -> None:
    text = check_text(value, field_name, ScopeError)
    if len(text) * 4 > MAX_ID_BYTES and len(text.encode()) > MAX_ID_BYTES:
        raise ScopeError(f"{field_name} is longer than {MAX_ID_BYTES} bytes")


def shared_scope(tenant: str, kind: str, name: str) -> Scope:
    """The scope of something that all users of a tenant share, such as a library: no user's."""
    return Scope(tenant=f"{tenant}/{kind}", user=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey(Checked):
    """What is stored of an API key: its user, how long it is valid, and its SHA-256."""

    id: Key
    tenant: str
    user: str | None  # None for an admin, who names the user in each request
    digest: str = field(repr=False)
    label: Key = ""
    program: bool = False  # held by a program that no model speaks through
    created_at: datetime = field(default_factory=now)
    expires_at: datetime | None = None  # refused from then on
    revoked_at: datetime | None = None  # refused at any time once this is set

    def __post_init__(self) -> None:
        Scope(tenant=self.tenant, user="" if self.user is None else self.user)
        Checked.__post_init__(self)
        if not _DIGEST.fullmatch(self.digest):
            raise RecordError("digest must be a SHA-256 in hexadecimal")

    @property
    def admin(self) -> bool:
        """Whether it gives access to all users of its tenant."""
        return self.user is None

    def expired(self, at: datetime) -> bool:
        """Whether it has expired."""
        return self.expires_at is not None and self.expires_at <= at


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """An authenticated caller: a user of a tenant, or an admin of it, who names the user."""

    tenant: str
    user: str | None = None
    name: str = ""  # the key's id or the token's subject, for logs
    local: bool = False  # the only user of a server that no other machine can reach
    program: bool = False  # not a model: the roles that it names over MCP are believed

    @property
    def admin(self) -> bool:
        """Whether the caller may name any user of the tenant."""
        return self.user is None
