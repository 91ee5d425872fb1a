"""A conversation in hand: a session of one user with one agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from recollect.records.message import Message
from recollect.records.query import Only, Recall
from recollect.records.session import Session

if TYPE_CHECKING:
    from recollect.memory import Memory


class Chat:
    """What `Memory.session` gives: add to the conversation, read it, recall from it."""

    def __init__(self, memory: Memory, session: Session) -> None:
        self._memory = memory
        self.session = session

    @property
    def id(self) -> str:
        return self.session.id

    def add(self, role: str, content: Any = None, **fields: Any) -> str:
        """Store one message durably and return its id."""
        return self.remember(Message(role, content, **fields))

    def remember(self, message: Message) -> str:
        """Store one message durably and return its id."""
        scope = self.session.scope
        done = self._memory.remember(
            [message], user=scope.user, agent=scope.agent, session=scope.session
        )
        return done.message_ids[0]

    def history(self, last: int | None = None) -> list[Message]:
        """The newest `last` messages, or all of them, oldest first."""
        scope = self.session.scope
        return self._memory.history(user=scope.user, session=scope.session, last=last)

    def recall(
        self,
        question: str,
        *,
        limit: int = 10,
        deadline_ms: float | None = 50.0,
        **only: Unpack[Only],
    ) -> Recall:
        """Search this user's memory with this agent, over all their sessions."""
        scope = self.session.scope
        return self._memory.recall(
            question, user=scope.user, agent=scope.agent, limit=limit, deadline_ms=deadline_ms,
            **only,
        )  # fmt: skip
