"""MemoryManager: the right memory for an agent, behind one interface."""

from __future__ import annotations

from typing import Any

from memorist.errors import InvalidError
from memorist.memory import Memory
from memorist.records.message import Message
from memorist.views.conversation import BaseMemory, ConversationMemory, Wire
from memorist.views.knowledge import KGMemory

KINDS = ("conversation_history", "kg")


class MemoryManager(BaseMemory):
    """Makes the memory that `memory_type` names, and passes everything on to it.

        MemoryManager("conversation_history", description="You are a tutor")
        MemoryManager("kg", model=model, memory=memory, user="ada", agent="tutor")

    "kg" works by rules where there is no model. `memory_module` is what was made.
    """

    def __init__(
        self,
        memory_type: str = "conversation_history",
        description: str | None = None,
        model: Any = None,
        *,
        memory: Memory | None = None,
        user: str = "me",
        agent: str = "",
        session: str | None = None,
    ) -> None:
        self.memory_type = memory_type
        self.memory_module: BaseMemory
        if memory_type == "kg":
            self.memory_module = KGMemory(
                model, description, memory=memory, user=user, agent=agent, session=session
            )
        elif memory_type == "conversation_history":
            self.memory_module = ConversationMemory(
                description, memory=memory, user=user, agent=agent, session=session
            )
        else:
            raise InvalidError(f"memory_type must be one of {', '.join(KINDS)}")

    def add(self, message: Message | None = None, **fields: Any) -> str:
        return self.memory_module.add(message, **fields)

    def update(self, message_id: str, **fields: Any) -> None:
        self.memory_module.update(message_id, **fields)

    def retrieve_all(self) -> list[Wire]:
        return self.memory_module.retrieve_all()

    def retrieve_recent(self, n: int = 1) -> list[Wire]:
        return self.memory_module.retrieve_recent(n)

    def retrieve_by_id(self, message_id: str) -> Wire | None:
        return self.memory_module.retrieve_by_id(message_id)

    def retrieve_by_role(self, role: str) -> list[Wire]:
        return self.memory_module.retrieve_by_role(role)

    def remove(self, message_id: str) -> bool:
        return self.memory_module.remove(message_id)

    def reset(self) -> None:
        self.memory_module.reset()

    def close(self) -> None:
        self.memory_module.close()
