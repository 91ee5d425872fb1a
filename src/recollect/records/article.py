"""Articles: documents an agent may quote from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from recollect.records.ids import new_id, now
from recollect.records.memory_item import check_moments
from recollect.records.scope import Scope
from recollect.records.text import check_key, check_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """A document, known by where it came from and by what it says."""

    scope: Scope
    title: str
    text: str
    uri: str = ""
    id: str = field(default_factory=new_id)
    created_at: datetime = field(default_factory=now)

    def __post_init__(self) -> None:
        check_text(self.title, "title")
        check_text(self.text, "text")
        check_text(self.uri, "uri")
        check_key(self.id, "id")
        check_moments(self, "created_at")

    @property
    def digest(self) -> str:
        """Equal for equal text, so that an unchanged file need not be read in again."""
        return hashlib.sha256(self.text.encode()).hexdigest()
