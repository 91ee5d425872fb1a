"""API keys in a transaction; they are read before it is known who is asking."""

from datetime import datetime

from memorist.errors import ConflictError, NotFoundError
from memorist.records.scope import ApiKey, tenant_hash
from memorist.records.values import Count, Place, check_each, check_moment, to_micros
from memorist.store.engine import Db
from memorist.store.rows import API_KEY, dated_page

IDENTITY = ("tenant", "user", "program", "digest")


def put_key(db: Db, key: ApiKey) -> None:
    """Store a new key; one that is stored already is left as it is."""
    added = db.run("add_key", tenant_hash=tenant_hash(key.tenant), **API_KEY.row(key))
    stored = key if added else read_key(db, key.id)
    if stored is None or any(getattr(stored, it) != getattr(key, it) for it in IDENTITY):
        raise ConflictError("another key has this id; make a new one")


def read_key(db: Db, key_id: str) -> ApiKey | None:
    """A key of any tenant."""
    check_each("key_id", key_id)
    row = db.row("key", id=key_id)
    return None if row is None else API_KEY.record(row)


def has_keys(db: Db) -> bool:
    """Whether there is a key of any tenant, even one that has ended."""
    [(exists,)] = db.rows("has_keys")
    return bool(exists)


def list_keys(
    db: Db, tenant: str | None, *, limit: Count = None, after: Place = None
) -> list[ApiKey]:
    """The keys of a tenant or all, oldest first; `after` is a key's `created_at` and id."""
    page = dated_page(limit, after)
    if tenant is None:
        rows = db.rows("all_keys", **page)
    else:
        rows = db.rows("keys", tenant_hash=tenant_hash(tenant), **page)
    return [API_KEY.record(row) for row in rows]


def revoke_key(db: Db, tenant: str, key_id: str, *, at: datetime | None = None) -> None:
    """End a key of the tenant, now or at a later moment; one that ended earlier stays so."""
    check_each("key_id", key_id)
    named = {"tenant_hash": tenant_hash(tenant), "id": key_id}
    if at is None:
        ended = db.run("revoke_key", **named)
    else:
        ended = db.run("expire_key", **named, at=to_micros(check_moment(at, "at")))
    if not ended:
        raise NotFoundError("no key with this id in this tenant")
