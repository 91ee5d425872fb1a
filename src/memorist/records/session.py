"""Sessions: one conversation of one user with one agent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memorist.records.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation. `scope` names its user, agent and session id."""

    scope: Scope
    created_at: datetime

    @property
    def id(self) -> str:
        assert self.scope.session is not None  # a session's scope always names it
        return self.scope.session
