"""Keys: who may ask, for an admin to say; the secret of a key is told once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from memorist.errors import InvalidError
from memorist.records.api_key import ApiKey
from memorist.server.auth import Keys, NewKey
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.examples import AT, listed, shown
from memorist.server.http.pagination import Cursor, Limit, Page, page_of
from memorist.server.http.paths import Parts
from memorist.server.http.schemas_views import MakeKey, RotateKey

KEY_ID = "0123456789abcdef"
router = APIRouter(prefix="/api/keys", tags=["keys"], route_class=Parts)
KeyId = Annotated[str, Path(description="The key's id.", examples=[KEY_ID])]


class KeyInfo(BaseModel):
    """What is known of a key; without a user it is an admin's."""

    id: str
    user: str | None
    label: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    @classmethod
    def of(cls, key: ApiKey) -> KeyInfo:
        """A key as it is answered: without what it is known by."""
        return cls(**{name: getattr(key, name) for name in cls.model_fields})


class MadeKey(BaseModel):
    """A new key; `key` is the only copy there will ever be."""

    key: str = Field(description="Send it as `Authorization: Bearer …`.")
    info: KeyInfo

    @classmethod
    def of(cls, new: NewKey) -> MadeKey:
        """A new key as it is answered."""
        return cls(key=new.text, info=KeyInfo.of(new.record))


_INFO = KeyInfo(id=KEY_ID, user="ada", label="her phone", created_at=AT)
_MADE = MadeKey(key=f"mk_{KEY_ID}_…", info=_INFO)


@router.get("", responses=listed(_INFO))
def list_keys(caller: CurrentCaller, limit: Limit = 100, cursor: Cursor = None) -> Page[KeyInfo]:
    """The keys of the tenant, oldest first, also those that have ended."""
    found = [KeyInfo.of(key) for key in _keys(caller).of(caller.principal.tenant)]
    return page_of(sorted(found, key=_place), limit, cursor, _place)


@router.post("", status_code=201, responses=shown(_MADE, 201))
def make_key(ask: MakeKey, caller: CurrentCaller) -> MadeKey:
    """Make a key for a user, or for an admin; it is shown now and never again."""
    keys, tenant = _keys(caller), caller.principal.tenant
    if ask.admin == (ask.user is not None):
        raise InvalidError("say whom the key is for: a user, or else admin")
    days = None if ask.lifetime_days is None else timedelta(days=ask.lifetime_days)
    return MadeKey.of(keys.create(tenant=tenant, user=ask.user, label=ask.label, lifetime=days))


@router.delete("/{key_id}", status_code=204)
def revoke_key(key_id: KeyId, caller: CurrentCaller) -> None:
    """End a key at once, on every server."""
    _keys(caller).revoke(caller.principal.tenant, key_id)


@router.post("/{key_id}/rotate", status_code=201, responses=shown(_MADE, 201))
def rotate_key(key_id: KeyId, ask: RotateKey, caller: CurrentCaller) -> MadeKey:
    """Make a new key like this one, which ends after the grace, or else when it is revoked."""
    grace = None if ask.grace_s is None else timedelta(seconds=ask.grace_s)
    return MadeKey.of(_keys(caller).rotate(caller.principal.tenant, key_id, grace=grace))


def _keys(caller: CurrentCaller) -> Keys:
    caller.require_admin()
    return Keys(caller.memory.store)


def _place(key: KeyInfo) -> str:
    return f"{key.created_at.isoformat()} {key.id}"
