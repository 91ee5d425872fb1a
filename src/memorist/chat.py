"""A conversation in hand: a session of one user with one agent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Unpack

from memorist.context.window import Context, Window
from memorist.contexts import Given
from memorist.records.message import Message
from memorist.records.query import Only, Recall
from memorist.records.session import Session
from memorist.stream import Stream, follow

if TYPE_CHECKING:
    from memorist.context.compression.compress import Compression
    from memorist.memory import Memory


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

    def stream(
        self,
        role: str = "assistant",
        *,
        name: str | None = None,
        flush_s: float = 0.1,
        flush_chars: int = 2_000,
    ) -> Stream:
        """Begin a message that is written bit by bit; readers see it grow. See `Stream`."""
        message = Message(role, "", name=name, unfinished=True)
        self.remember(message)
        return Stream(message, self._grow, flush_s=flush_s, flush_chars=flush_chars)

    def follow(self, message_id: str, timeout_s: float = 30.0) -> Iterator[str]:
        """The text of a message as it comes, until it is finished or nothing comes for so long."""
        scope, store = self.session.scope, self._memory.store

        def look() -> Message | None:
            found = store.find(scope, [message_id])
            return found[0].message if found else None

        return follow(look, timeout_s)

    def _grow(self, message: Message) -> None:
        self._memory.store.grow(self.session.scope, message)
        if not message.unfinished:
            self._memory.wake()

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
            question,
            user=scope.user,
            agent=scope.agent,
            limit=limit,
            deadline_ms=deadline_ms,
            **only,
        )

    def context(
        self, question: str | Message, *, max_tokens: int | None = None, **given: Unpack[Given]
    ) -> Context:
        """This conversation, and what is remembered for the question, filled to `max_tokens`."""
        scope = self.session.scope
        return self._memory.context(
            question,
            user=scope.user,
            agent=scope.agent,
            session=scope.session,
            max_tokens=max_tokens,
            **given,
        )

    def compress(self, window: Window | None = None) -> Compression | None:
        """Have all but the last messages stand as a summary now; see `Memory.compress`."""
        return self._memory.compress(
            user=self.session.scope.user, session=self.session.id, window=window
        )
