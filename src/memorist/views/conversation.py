"""BaseMemory and ConversationMemory: a history an agent reads as model-ready dicts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from memorist.errors import MessageError, NotFoundError
from memorist.memory import Memory
from memorist.providers.images import encode_image
from memorist.records.message import Message

Wire = dict[str, Any]
"""A message as the dict a model's API takes."""


class BaseMemory(ABC):
    """The contract of every memory an agent holds. Reading gives dicts ready for a model."""

    _own: Memory | None = None  # what nobody else can close

    @abstractmethod
    def add(self, message: Message | None = None, **fields: Any) -> str:
        """Add a message, or make one of `role`, `content` and the rest; return its id."""

    @abstractmethod
    def update(self, message_id: str, **fields: Any) -> None:
        """Change some fields of a message; what it said before is kept."""

    @abstractmethod
    def retrieve_all(self) -> list[Wire]:
        """Everything, oldest first."""

    @abstractmethod
    def retrieve_recent(self, n: int = 1) -> list[Wire]:
        """The newest `n`, oldest first."""

    @abstractmethod
    def retrieve_by_id(self, message_id: str) -> Wire | None:
        """The one with this id, if there is one."""

    @abstractmethod
    def retrieve_by_role(self, role: str) -> list[Wire]:
        """Those with this role, oldest first."""

    @abstractmethod
    def remove(self, message_id: str) -> bool:
        """Forget one; say whether it was there. Its bytes go with the next `Memory.scrub`."""

    @abstractmethod
    def reset(self) -> None:
        """Begin anew, keeping the system message."""

    def reset_memory(self) -> None:
        """The older name of `reset`."""
        self.reset()

    def close(self) -> None:
        """Let go of what lives and dies with this object; what it was given stays open."""
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class ConversationMemory(BaseMemory):
    """An ordered history that begins with its description as the system message.

    Without a `memory` it lives and dies with this object; with one it is a durable session,
    and another process that names the same session sees it too.
    """

    def __init__(
        self,
        description: str | None = None,
        *,
        memory: Memory | None = None,
        user: str = "me",
        agent: str = "",
        session: str | None = None,
        read_image: Callable[[str], str] = encode_image,
    ) -> None:
        if memory is None:
            memory = self._own = Memory(":memory:")
        self._memory = memory
        self._user, self._agent = user, agent
        self._read_image = read_image
        self._chat = self._memory.session(user=user, agent=agent, id=session, new=session is None)
        if description is not None and not self._chat.history(last=1):
            self._chat.add("system", description)

    @property
    def session_id(self) -> str:
        return self._chat.id

    def add(self, message: Message | None = None, **fields: Any) -> str:
        if message is None:
            if "role" not in fields:
                raise MessageError("role is missing: give a message, or a role and content")
            message = Message(**fields)
        if not isinstance(message, Message):
            raise MessageError(f"message must be a Message, got {type(message).__name__}")
        return self._chat.remember(message)

    def update(self, message_id: str, **fields: Any) -> None:
        message = self._find(message_id)
        if message is None:
            raise MessageError("message_id names no message of this conversation")
        self._memory.messages.revise(self._chat.session.scope, message.changed(**fields))

    def retrieve_all(self) -> list[Wire]:
        return self._wire(self._chat.history())

    def retrieve_recent(self, n: int = 1) -> list[Wire]:
        return self._wire(self._chat.history(last=n))

    def retrieve_by_id(self, message_id: str) -> Wire | None:
        message = self._find(message_id)
        return None if message is None else message.to_wire(self._read_image)

    def retrieve_by_role(self, role: str) -> list[Wire]:
        scope = self._chat.session.scope
        found = self._memory.history(user=scope.user, session=scope.session, role=role)
        return self._wire(found)

    def remove(self, message_id: str) -> bool:
        try:
            self._memory.forget(
                user=self._user, session=self._chat.id, message=message_id, scrub=False
            )
        except NotFoundError:
            return False
        return True

    def reset(self) -> None:
        """Begin a new session with the system messages of this one.

        The log keeps the old session under its id; `session_id` is the new one.
        """
        scope = self._chat.session.scope
        kept = self._memory.history(user=scope.user, session=scope.session, role="system")
        self._chat = self._memory.session(user=self._user, agent=self._agent, new=True)
        if kept:
            self._memory.remember(kept, user=self._user, session=self._chat.id)

    def _find(self, message_id: str) -> Message | None:
        found = self._memory.messages.get(self._chat.session.scope, [message_id])
        return found[0].message if found else None

    def _wire(self, messages: list[Message]) -> list[Wire]:
        return [message.to_wire(self._read_image) for message in messages]
