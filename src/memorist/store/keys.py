"""Keys to the servers in a transaction: kept, read before anybody is known, ended."""

from __future__ import annotations

import hashlib
from datetime import datetime

from memorist.errors import ConflictError, NotFoundError
from memorist.records.api_key import ApiKey
from memorist.records.ids import from_micros, to_micros
from memorist.records.scope import Scope
from memorist.store.engine import Db, Row, one


def put_key(db: Db, key: ApiKey) -> None:
    """Keep a new key; one that is known already is left as it is."""
    added = db.run(
        "add_key",
        id=key.id,
        tenant_hash=_hash(key.tenant),
        tenant=key.tenant,
        user_id=key.user,
        label=key.label,
        digest=key.digest,
        created_at=to_micros(key.created_at),
        expires_at=_micros(key.expires_at),
        revoked_at=_micros(key.revoked_at),
    )
    if not added and _told(read_key(db, key.id)) != _told(key):
        raise ConflictError("another key has this id; make a new one")


def read_key(db: Db, key_id: str) -> ApiKey | None:
    """A key of any tenant."""
    row = one(db.rows("key", id=key_id))
    return None if row is None else _key(row)


def list_keys(db: Db, tenant: str) -> list[ApiKey]:
    """The keys of a tenant, oldest first."""
    return [_key(row) for row in db.rows("keys", tenant_hash=_hash(tenant))]


def revoke_key(db: Db, tenant: str, key_id: str, now: int, at: datetime | None) -> None:
    """End a key of the tenant, now or at a later moment; what ended earlier stays so."""
    named = {"tenant_hash": _hash(tenant), "id": key_id}
    if at is None:
        found = db.run("revoke_key", **named, now=now)
    else:
        found = db.run("expire_key", **named, at=to_micros(at))
    if not found:
        raise NotFoundError("no key with this id in this tenant")


def _hash(tenant: str) -> str:
    """A tenant as an index takes it: short whatever its name is."""
    return hashlib.sha256(Scope(tenant=tenant, user="").tenant.encode()).hexdigest()[:32]


def _told(key: ApiKey | None) -> object:
    return key and (key.tenant, key.user, key.digest)


def _key(row: Row) -> ApiKey:
    id_, tenant, user, label, digest, created_at, expires_at, revoked_at = row
    return ApiKey(
        id=id_,
        tenant=tenant,
        user=user,
        label=label,
        digest=digest,
        created_at=from_micros(created_at),
        expires_at=_moment(expires_at),
        revoked_at=_moment(revoked_at),
    )


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
