"""BaseMemory and ConversationMemory: a conversation that an agent reads as dicts for its model."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

from memorist.arguments import NamesArguments
from memorist.errors import MessageError, NotFoundError
from memorist.memory import Memory
from memorist.providers.images import encode_image, note_given, stored_reader
from memorist.records.message import Message

Wire = dict[str, Any]
"""A message as the dict a model's API takes."""


class BaseMemory(ABC):
    """The interface of the memories of an agent. Reading gives dicts ready for a model."""

    _own: Memory | None = None  # a memory that was made here, and is closed with this object

    @abstractmethod
    def add(self, message: Message | None = None, **fields: Any) -> str:
        """Add a message, or one made of `role`, `content` and other fields; return its id."""

    @abstractmethod
    def update(self, message_id: str, **fields: Any) -> None:
        """Change some fields of a message; its earlier content stays among its revisions."""

    @abstractmethod
    def retrieve_all(self) -> list[Wire]:
        """Everything, oldest first."""

    @abstractmethod
    def retrieve_recent(self, n: int = 1) -> list[Wire]:
        """The newest `n`, oldest first."""

    def retrieve_by_id(self, message_id: str) -> Wire | None:
        """The one with this id, or None."""
        raise NotImplementedError

    def retrieve_by_role(self, role: str) -> list[Wire]:
        """Those with this role, oldest first."""
        return [wire for wire in self.retrieve_all() if wire["role"] == role]

    def remove(self, message_id: str) -> bool:
        """Forget one; return whether it was there. Its bytes go with the next `Memory.scrub`."""
        raise NotImplementedError

    def reset(self) -> None:
        """Begin anew, keeping the system message."""
        raise NotImplementedError

    def reset_memory(self) -> None:
        """The older name of `reset`."""
        self.reset()

    def close(self) -> None:
        """Close the memory, unless it was passed in: then it stays open."""
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ConversationMemory(NamesArguments, BaseMemory):
    """An ordered history that begins with its description as the system message.

    Without a `memory` it is lost with this object; with one it is a durable session, which other
    processes can open by its id.
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
        self._memory, self._user, self._agent = memory, user, agent
        self._read_image = stored_reader(memory.scope(user=user), read_image)
        self._chat = memory.session(user=user, agent=agent, id=session, new=session is None)
        if description is not None and not self._chat.history(last=1):
            self._chat.add("system", description)

    @property
    def session_id(self) -> str:
        return self._chat.id

    def add(self, message: Message | None = None, **fields: Any) -> str:
        """As `BaseMemory.add`; an equal system message is not added again, but its id returned."""
        if message is None:
            if "role" not in fields:
                raise MessageError("role is missing: give a message, or a role and content")
            message = Message(**fields)
        if not isinstance(message, Message):
            raise MessageError(f"message must be a Message, got {type(message).__name__}")
        if message.role == "system":
            for known in self._with_role("system"):
                if known.content == message.content:
                    return known.message_id
        return self._remember(message)

    def update(self, message_id: str, **fields: Any) -> None:
        message = self._find(message_id)
        if message is None:
            raise MessageError("message_id names no message of this conversation")
        scope, revised = self._chat.session.scope, message.changed(**fields)
        if "images" in fields:  # those of the store alone are not the application's
            note_given(scope, [Message("user", "", images=revised.images)])
        self._memory.messages.revise(scope, revised)

    def retrieve_all(self) -> list[Wire]:
        return self._wire(self._chat.history())

    def retrieve_recent(self, n: int = 1) -> list[Wire]:
        return self._wire(self._chat.history(last=n))

    def retrieve_by_id(self, message_id: str) -> Wire | None:
        message = self._find(message_id)
        return None if message is None else self._message_to_dict(message)

    def retrieve_by_role(self, role: str) -> list[Wire]:
        return self._wire(self._with_role(role))

    def remove(self, message_id: str) -> bool:
        try:
            self._memory.forget(
                user=self._user, session=self._chat.id, message=message_id, scrub=False
            )
        except NotFoundError:
            return False
        return True

    def reset(self) -> None:
        """Begin a new session with this one's system messages; the log keeps the old session."""
        kept = self._with_role("system")
        self._chat = self._memory.session(user=self._user, agent=self._agent, new=True)
        if kept:
            self._memory.remember(kept, user=self._user, session=self._chat.id)

    def _with_role(self, role: str) -> list[Message]:
        scope = self._chat.session.scope
        return self._memory.history(user=scope.user, session=scope.session, role=role)

    def _find(self, message_id: str) -> Message | None:
        entries = self._memory.messages.get(self._chat.session.scope, [message_id])
        return entries[0].message if entries else None

    def _wire(self, messages: list[Message]) -> list[Wire]:
        return [self._message_to_dict(message) for message in messages]

    def _message_to_dict(self, message: Message) -> Wire:
        calls = [call.to_dict() for call in message.agent_calls]
        return message.to_wire(self._read_image) | ({"agent_calls": calls} if calls else {})

    def _remember(self, message: Message) -> str:
        return self._chat.remember(message)
