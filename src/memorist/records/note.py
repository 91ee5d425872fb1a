"""Notes: one Markdown text per user and agent, every version kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memorist.records.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One version of a note; version 1 is the first that was written."""

    id: str
    scope: Scope
    version: int
    text: str
    created_at: datetime
