"""API keys of a server; the key itself is not stored."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

from memorist.errors import RecordError
from memorist.records.scope import Scope
from memorist.records.values import Checked, Key, now

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey(Checked):
    """What is stored of a key: its user, how long it is valid, and its SHA-256.

    A key without a user is an admin's, who names the user in each request. It is refused from
    `expires_at` on, and at any time once `revoked_at` is set.
    """

    id: Key
    tenant: str
    user: str | None
    digest: str = field(repr=False)
    label: Key = ""
    created_at: datetime = field(default_factory=now)
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

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
