"""API keys, for admins; the secret of a key is shown once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from memorist.errors import InvalidError
from memorist.server.auth import Keys, NewKey
from memorist.server.http.caller import CurrentCaller
from memorist.server.http.openapi import AT
from memorist.server.http.pagination import Page, by_time, page_of
from memorist.server.http.routing import operation
from memorist.server.http.schemas import CursorQuery, FromQuery, RequestModel

KEY_ID = "0123456789abcdef"
Lifetime = Annotated[int, Field(ge=1, le=36_500)] | None
Grace = Annotated[int, Field(ge=0, le=86_400 * 365)] | None
KeyId = Annotated[str, Path(description="The key's id.", examples=[KEY_ID])]


class AddKeyBody(RequestModel):
    """Whom a new API key is for."""

    user: str | None = Field(None, description="For one user.", examples=["ada"])
    admin: bool = Field(False, description="For an admin of the tenant, instead.")
    label: str = Field("", examples=["her phone"])
    lifetime_days: Lifetime = Field(None, description="Without, it is valid until revoked.")


class RotateKeyBody(RequestModel):
    """How long the old key stays valid."""

    grace_s: Grace = Field(None, description="Seconds; without, until it is revoked.")


class KeyInfo(BaseModel):
    """An API key without its digest; without a user it is an admin's."""

    model_config = ConfigDict(from_attributes=True)
    id: str
    user: str | None
    label: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


class AddedKey(BaseModel):
    """A new API key; `key` is the only copy of its secret."""

    key: str = Field(description="Send it as `Authorization: Bearer …`.")
    info: KeyInfo

    @classmethod
    def of(cls, new: NewKey) -> AddedKey:
        """A new key as it is answered."""
        return cls(key=new.text, info=KeyInfo.model_validate(new.record))


_INFO = KeyInfo(id=KEY_ID, user="ada", label="her phone", created_at=AT)
_ADDED = AddedKey(key=f"mk_{KEY_ID}_…", info=_INFO)


@operation("list_keys", example=_INFO)
def list_keys(query: FromQuery[CursorQuery], caller: CurrentCaller) -> Page[KeyInfo]:
    """The keys of the tenant, oldest first, with those that have expired or were revoked."""
    keys = _keys(caller).of(caller.principal.tenant)
    return page_of([KeyInfo.model_validate(key) for key in keys], query, by_time)


@operation("add_key", status_code=201, example=_ADDED)
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


@operation("revoke_key", status_code=204)
def revoke_key(key_id: KeyId, caller: CurrentCaller) -> None:
    """Revoke a key at once, on every server."""
    _keys(caller).revoke(caller.principal.tenant, key_id)


@operation("rotate_key", status_code=201, example=_ADDED)
def rotate_key(key_id: KeyId, body: RotateKeyBody, caller: CurrentCaller) -> AddedKey:
    """Make a new key like this one, which stays valid for the grace, or until it is revoked."""
    grace = None if body.grace_s is None else timedelta(seconds=body.grace_s)
    return AddedKey.of(_keys(caller).rotate(caller.principal.tenant, key_id, grace=grace))


def _keys(caller: CurrentCaller) -> Keys:
    caller.require_admin()
    return Keys(caller.memory.keys)
