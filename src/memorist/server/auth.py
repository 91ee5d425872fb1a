"""Authentication: API keys, tokens, and the guard that checks both.

A key is `mk_<id>_<secret>`. Only its SHA-256 is stored, and it is looked up with every request,
so that a revoked key is refused at once, on every server.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from memorist.config import Settings
from memorist.errors import (
    ConfigError,
    ConflictError,
    InvalidError,
    NotFoundError,
    UnauthorizedError,
)
from memorist.namespaces import ApiKeys
from memorist.records.scope import ApiKey, Principal, check_tenant, named_scope
from memorist.records.values import now

if TYPE_CHECKING:  # tokens need an extra, keys do not
    from memorist.server.http.tokens import JwtTokens

MAX_CHARS = 8_192  # of an Authorization header
MAX_LIFETIME = timedelta(days=36_500)
ID_BYTES, SECRET_BYTES = 8, 32
KEYS_SECONDS = 0.05  # after which a server without keys looks again whether there is one
_BEARER = re.compile(r"bearer +([\x21-\x7e]+) *", re.IGNORECASE | re.ASCII)
_KEY = re.compile(r"mk_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
NO_KEYS = (
    "this server has no keys, so it knows none: leave the key out, or make one with "
    "`memorist keys create` on its database; is this the server that you meant?"
)
KEYS_OFF = "this server was started with --no-auth and takes no keys: leave the key out"
_NO_DIGEST = "0" * 64  # compared with if there is no key, so that both take the same time


class Guard:
    """Authenticates callers by the `Authorization` header."""

    def __init__(
        self, keys: ApiKeys, tokens: JwtTokens | None = None, *, clock: Callable[[], datetime] = now
    ) -> None:
        self._keys = keys
        self._tokens = tokens
        self._clock = clock

    @staticmethod
    def local(tenant: str, user: str, keys: ApiKeys | None = None) -> Guard:
        """Every caller is this user, who is on this machine; with `keys`, until there is one."""
        return LocalGuard(Principal(tenant=tenant, user=user, name="local", local=True), keys)

    def at_once(self, authorization: str | None) -> Principal | None:
        """The same as `authenticate`, or None where that has to ask the database."""
        return self.authenticate(None) if authorization is None else None

    def authenticate(self, authorization: str | None) -> Principal:
        """The caller who sent this header; raises UnauthorizedError if it proves nobody."""
        if authorization is None:
            raise UnauthorizedError("send a key: `Authorization: Bearer mk_…`")
        if len(authorization) > MAX_CHARS:
            raise UnauthorizedError(f"the Authorization header is over {MAX_CHARS} characters")
        bearer = _BEARER.fullmatch(authorization)
        if bearer is None:
            raise UnauthorizedError("the Authorization header is not `Bearer`, a space and a key")
        if bearer[1].startswith("mk_") or self._tokens is None:
            return self._key_owner(bearer[1])
        return self._tokens.read(bearer[1])

    def _key_owner(self, text: str) -> Principal:
        parts = _KEY.fullmatch(text)
        if parts is None:
            raise UnauthorizedError("this is not a key; it begins with mk_ and has 63 characters")
        key = self._keys.get(parts[1])
        digest = _NO_DIGEST if key is None else key.digest
        if not hmac.compare_digest(digest_of(text), digest) or key is None:
            raise UnauthorizedError("this key is not known")
        # Only the owner of the key gets here, and may learn what became of it.
        if key.revoked_at is not None:
            raise UnauthorizedError("this key was revoked")
        if key.expired(self._clock()):
            raise UnauthorizedError("this key has expired")
        return Principal(tenant=key.tenant, user=key.user, name=key.id, program=key.program)


class LocalGuard(Guard):
    """Takes every caller without a key for the same user, until a key is made."""

    def __init__(self, user: Principal, keys: ApiKeys | None) -> None:
        self._user = user
        self._api_keys = keys
        self._with_keys: Guard | None = None  # once there is a key
        self._until = math.inf if keys is None else 0.0  # when to look whether there is one

    def at_once(self, authorization: str | None) -> Principal | None:
        if self._with_keys is not None:
            return self._with_keys.at_once(authorization)
        is_known = authorization is None and time.monotonic() < self._until
        return self._user if is_known else None

    def authenticate(self, authorization: str | None) -> Principal:
        """The local user, while there is no key at all; a key is refused then, never ignored."""
        if self._with_keys is None and self._api_keys is not None:
            began = time.monotonic()
            if self._api_keys.exist():
                self._with_keys = Guard(self._api_keys)
            self._until = began + KEYS_SECONDS
        if self._with_keys is not None:
            return self._with_keys.authenticate(authorization)
        if authorization is not None:
            raise UnauthorizedError(NO_KEYS if self._api_keys is not None else KEYS_OFF)
        return self._user


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new API key; `text` is the only copy of its secret."""

    record: ApiKey
    text: str = field(repr=False)


class Keys:
    """Makes, lists, rotates and revokes API keys."""

    def __init__(self, keys: ApiKeys, *, clock: Callable[[], datetime] = now) -> None:
        self._keys = keys
        self._clock = clock
        self.of, self.revoke = keys.list, keys.revoke

    def create(
        self,
        *,
        tenant: str,
        user: str | None,
        label: str = "",
        lifetime: timedelta | None = None,
        program: bool = False,
    ) -> NewKey:
        """Make a key for one user, or without a user for an admin; or for a program of theirs."""
        if user is not None:
            named_scope(tenant, user)
        created = self._clock()
        expires = None if lifetime is None else created + _checked(lifetime)
        id_ = secrets.token_hex(ID_BYTES)
        text = f"mk_{id_}_{secrets.token_urlsafe(SECRET_BYTES)}"
        record = ApiKey(
            id=id_,
            tenant=tenant,
            user=user,
            label=label,
            program=program,
            digest=digest_of(text),
            created_at=created,
            expires_at=expires,
        )
        check_tenant(record.tenant)
        self._keys.put(record)
        return NewKey(record, text)

    def rotate(self, tenant: str, key_id: str, *, grace: timedelta | None = None) -> NewKey:
        """Make a new key like this one, which stays valid for the grace, or until it is revoked."""
        old = self._keys.get(key_id)
        if old is None or old.tenant != tenant:
            raise NotFoundError("no key with this id in this tenant")
        if old.revoked_at is not None or old.expired(self._clock()):
            raise ConflictError("this key has expired or was revoked; make a new one")
        lifetime = None if old.expires_at is None else old.expires_at - old.created_at
        end = None if grace is None else self._clock() + _checked(grace, least=timedelta())
        new = self.create(
            tenant=tenant, user=old.user, label=old.label, lifetime=lifetime, program=old.program
        )
        if end is not None:
            self._keys.revoke(tenant, key_id, at=end)
        return new


def build_guard(keys: ApiKeys, settings: Settings) -> Guard:
    """The guard of a server: API keys, and tokens if the settings say how to check them."""
    if settings.jwt_key or settings.jwt_jwks_url:
        from memorist.server.http.tokens import JwtTokens

        return Guard(keys, JwtTokens.of(settings))
    if settings.jwt_issuer or settings.jwt_audience:
        raise ConfigError("tokens need MEMORIST_JWT_KEY or MEMORIST_JWT_JWKS_URL too")
    return Guard(keys)


def digest_of(text: str) -> str:
    """What is stored of a key. A plain hash is enough: nobody can guess a key."""
    return hashlib.sha256(text.encode()).hexdigest()


def _checked(time: timedelta, least: timedelta = timedelta(seconds=1)) -> timedelta:
    if not least <= time <= MAX_LIFETIME:
        raise InvalidError("the lifetime of a key is a second at least, a hundred years at most")
    return time
