"""Summaries: what stands for the older turns of a session in a window; the log keeps the turns."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from memorist.errors import RecordError
from memorist.records.ids import new_id, now
from memorist.records.memory_item import check_moments
from memorist.records.scope import Scope
from memorist.records.text import check_key, check_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A text in the place of the first `messages` of a session, the last of them `last_seq`.

    It extends the one with the id `previous`, where there is one. `tokens_before` is what those
    messages take, `tokens` what the text takes; `made_by` names the model, or says "extractive".
    Where it was `asked` for outright, it is used also where there were room for the messages.
    """

    scope: Scope
    text: str
    last_seq: int
    messages: int
    made_by: str
    tokens_before: int
    tokens: int
    previous: str | None = None
    asked: bool = False
    id: str = field(default_factory=new_id)
    created_at: datetime = field(default_factory=now)

    def __post_init__(self) -> None:
        if self.scope.session is None:
            raise RecordError("a summary is of a session; name it in the scope")
        check_text(self.text, "text")
        check_key(self.made_by, "made_by")
        check_key(self.id, "id")
        check_moments(self, "created_at")

    @property
    def saved(self) -> int:
        """How many tokens a window is spared."""
        return self.tokens_before - self.tokens
