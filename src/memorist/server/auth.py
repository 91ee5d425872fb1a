"""Who is calling: API keys, tokens, and the guard that knows both.

    new = Keys(store).create(tenant="acme", user="ada")   # new.text is shown once, kept nowhere
    Guard(store).authenticate(f"Bearer {new.text}")       # Principal(tenant="acme", user="ada")

A key is `mk_<id>_<secret>`. The store holds its SHA-256 alone, and is asked anew with every
request, so that a revoked key opens nothing any more, on no server.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from memorist.config import Settings
from memorist.errors import (
    ConfigError,
    ConflictError,
    InvalidError,
    NotFoundError,
    UnauthorizedError,
)
from memorist.records.api_key import ApiKey
from memorist.records.ids import now
from memorist.records.scope import check_tenant
from memorist.store.base import Store

MAX_CHARS = 8_192  # of an Authorization header; what is longer is not even looked at
LONGEST = timedelta(days=36_500)
ID_BYTES, SECRET_BYTES = 8, 32
_BEARER = re.compile(r"bearer +([\x21-\x7e]+) *", re.IGNORECASE | re.ASCII)
_KEY = re.compile(r"mk_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_NO_DIGEST = "0" * 64  # compared with where there is no key, so that both take as long


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """An authenticated caller: a user of a tenant, or an admin of it, who names the user."""

    tenant: str
    user: str | None = None
    name: str = ""  # the key's id or the token's subject, for logs
    local: bool = False  # the only user of a server that no other machine can reach

    @property
    def admin(self) -> bool:
        """Whether the caller may name any user of the tenant."""
        return self.user is None


class Tokens(Protocol):
    """Tokens that somebody else has signed."""

    def read(self, token: str) -> Principal:
        """Whose token it is; raises UnauthorizedError where it proves nothing."""


class Guard:
    """Tells who is calling by the `Authorization` header, or raises UnauthorizedError."""

    open = False  # whether everybody is let in

    def __init__(
        self, store: Store, tokens: Tokens | None = None, *, clock: Callable[[], datetime] = now
    ) -> None:
        self._store = store
        self._tokens = tokens
        self._clock = clock

    @staticmethod
    def local(tenant: str, user: str) -> Guard:
        """Everyone who reaches us is this one user: for a server nobody else can reach."""
        return OpenGuard(Principal(tenant=tenant, user=user, name="local", local=True))

    def authenticate(self, authorization: str | None) -> Principal:
        """Who sent this header."""
        if authorization is None:
            raise UnauthorizedError("send a key: `Authorization: Bearer mk_…`")
        if len(authorization) > MAX_CHARS:
            raise UnauthorizedError(f"the Authorization header is over {MAX_CHARS} characters")
        bearer = _BEARER.fullmatch(authorization)
        if bearer is None:
            raise UnauthorizedError("the Authorization header is not `Bearer`, a space and a key")
        if bearer[1].startswith("mk_") or self._tokens is None:
            return self._holder(bearer[1])
        return self._tokens.read(bearer[1])

    def _holder(self, text: str) -> Principal:
        parts = _KEY.fullmatch(text)
        if parts is None:
            raise UnauthorizedError("this is not a key; it begins with mk_ and has 63 characters")
        key = self._store.key(parts[1])
        kept = _NO_DIGEST if key is None else key.digest
        if not hmac.compare_digest(digest_of(text), kept) or key is None:
            raise UnauthorizedError("this key is not known")
        # Only those who hold the key come to here, and may know what became of it.
        if key.revoked_at is not None:
            raise UnauthorizedError("this key was revoked")
        if key.expired(self._clock()):
            raise UnauthorizedError("this key has expired")
        return Principal(tenant=key.tenant, user=key.user, name=key.id)


class OpenGuard(Guard):
    """Asks nobody for anything."""

    open = True

    def __init__(self, everyone: Principal) -> None:
        self._everyone = everyone

    def authenticate(self, authorization: str | None) -> Principal:
        return self._everyone


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made; `text` is the only copy there will ever be."""

    record: ApiKey
    text: str = field(repr=False)


class Keys:
    """Makes keys, lists them, ends them."""

    def __init__(self, store: Store, *, clock: Callable[[], datetime] = now) -> None:
        self._store = store
        self._clock = clock

    def create(
        self, *, tenant: str, user: str | None, label: str = "", lifetime: timedelta | None = None
    ) -> NewKey:
        """A key for one user, or without a user for an admin, that is good for a lifetime."""
        created = self._clock()
        expires = None if lifetime is None else created + _some(lifetime)
        id_ = secrets.token_hex(ID_BYTES)
        text = f"mk_{id_}_{secrets.token_urlsafe(SECRET_BYTES)}"
        record = ApiKey(
            id=id_,
            tenant=tenant,
            user=user,
            label=label,
            digest=digest_of(text),
            created_at=created,
            expires_at=expires,
        )
        check_tenant(record.tenant)
        self._store.put_key(record)
        return NewKey(record, text)

    def of(self, tenant: str) -> list[ApiKey]:
        """The keys of a tenant, oldest first."""
        return self._store.keys(tenant)

    def revoke(self, tenant: str, key_id: str) -> None:
        """End a key at once."""
        self._store.revoke_key(tenant, key_id)

    def rotate(self, tenant: str, key_id: str, *, grace: timedelta | None = None) -> NewKey:
        """A new key like this one, which itself goes on for the grace, or until it is revoked."""
        old = self._store.key(key_id)
        if old is None or old.tenant != tenant:
            raise NotFoundError("no key with this id in this tenant")
        if old.revoked_at is not None or old.expired(self._clock()):
            raise ConflictError("this key has ended; make a new one")
        lifetime = None if old.expires_at is None else old.expires_at - old.created_at
        end = None if grace is None else self._clock() + _some(grace, least=timedelta())
        new = self.create(tenant=tenant, user=old.user, label=old.label, lifetime=lifetime)
        if end is not None:
            self._store.revoke_key(tenant, key_id, at=end)
        return new


def build_guard(store: Store, settings: Settings) -> Guard:
    """The guard of a server: keys always, tokens where the settings say how to check them."""
    if settings.jwt_key or settings.jwt_jwks_url:
        from memorist.server.http.tokens import JwtTokens  # only here: keys need no extra

        return Guard(store, JwtTokens.of(settings))
    if settings.jwt_issuer or settings.jwt_audience:
        raise ConfigError("tokens need MEMORIST_JWT_KEY or MEMORIST_JWT_JWKS_URL too")
    return Guard(store)


def digest_of(text: str) -> str:
    """What is kept of a key. One hash is enough: it cannot be guessed as a password can."""
    return hashlib.sha256(text.encode()).hexdigest()


def _some(time: timedelta, least: timedelta = timedelta(seconds=1)) -> timedelta:
    if not least <= time <= LONGEST:
        raise InvalidError("a key lives for a second at least, and for a hundred years at most")
    return time
