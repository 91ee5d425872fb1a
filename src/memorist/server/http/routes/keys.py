"""API keys, for admins; the secret of a key is shown once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from memorist.errors import InvalidError
from memorist.records.api_key import ApiKey
from memorist.server.auth import Keys, NewKey
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.openapi import AT, example, example_page
from memorist.server.http.pagination import Page, by_time, page_of
from memorist.server.http.routing import ApiRoute, operation
from memorist.server.http.schemas import AddKeyBody, CursorQuery, RotateKeyBody

KEY_ID = "0123456789abcdef"
router = APIRouter(route_class=ApiRoute)
KeyId = Annotated[str, Path(description="The key's id.", examples=[KEY_ID])]


class KeyInfo(BaseModel):
    """An API key without its digest; without a user it is an admin's."""

    id: str
    user: str | None
    label: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    @classmethod
    def of(cls, key: ApiKey) -> KeyInfo:
        """A key as it is answered."""
        return cls(**{name: getattr(key, name) for name in cls.model_fields})


class AddedKey(BaseModel):
    """A new API key; `key` is the only copy of its secret."""

    key: str = Field(description="Send it as `Authorization: Bearer …`.")
    info: KeyInfo

    @classmethod
    def of(cls, new: NewKey) -> AddedKey:
        """A new key as it is answered."""
        return cls(key=new.text, info=KeyInfo.of(new.record))


_INFO = KeyInfo(id=KEY_ID, user="ada", label="her phone", created_at=AT)
_ADDED = AddedKey(key=f"mk_{KEY_ID}_…", info=_INFO)


@operation(router, "list_keys", responses=example_page(_INFO))
def list_keys(query: Annotated[CursorQuery, Query()], caller: CurrentCaller) -> Page[KeyInfo]:
    """The keys of the tenant, oldest first, with those that have expired or were revoked."""
    keys = [KeyInfo.of(key) for key in _keys(caller).of(caller.principal.tenant)]
    return page_of(keys, query, by_time)


@operation(router, "add_key", status_code=201, responses=example(_ADDED, 201))
def add_key(body: AddKeyBody, caller: CurrentCaller) -> AddedKey:
    """Make a key for a user, or for an admin; its secret is shown now and never again."""
    keys = _keys(caller)
    if body.admin == (body.user is not None):
        raise InvalidError("say whom the key is for: a user, or else admin")
    lifetime = None if body.lifetime_days is None else timedelta(days=body.lifetime_days)
    new = keys.create(
        tenant=caller.principal.tenant, user=body.user, label=body.label, lifetime=lifetime
    )
    return AddedKey.of(new)


@operation(router, "revoke_key", status_code=204)
def revoke_key(key_id: KeyId, caller: CurrentCaller) -> None:
    """Revoke a key at once, on every server."""
    _keys(caller).revoke(caller.principal.tenant, key_id)


@operation(router, "rotate_key", status_code=201, responses=example(_ADDED, 201))
def rotate_key(key_id: KeyId, body: RotateKeyBody, caller: CurrentCaller) -> AddedKey:
    """Make a new key like this one, which stays valid for the grace, or until it is revoked."""
    grace = None if body.grace_s is None else timedelta(seconds=body.grace_s)
    return AddedKey.of(_keys(caller).rotate(caller.principal.tenant, key_id, grace=grace))


def _keys(caller: CurrentCaller) -> Keys:
    caller.require_admin()
    return Keys(caller.memory.keys)
