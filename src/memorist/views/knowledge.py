"""KGMemory: a conversation as facts, which an agent reads as dicts; MemoryManager: either kind."""

import math
import time
from contextlib import suppress
from typing import Any

from memorist.arguments import NamesArguments
from memorist.errors import BadAnswerError, InvalidError, MessageError, NotFoundError, ProviderError
from memorist.lifecycle.settings import DEFAULT_EXTRACTION, Extraction, Policy
from memorist.memory import Memory
from memorist.records.log import Job
from memorist.records.memories import Fact
from memorist.records.message import GENERAL_FACTS, ROLES, Message
from memorist.records.query import Recall
from memorist.views.conversation import BaseMemory, ConversationMemory, Wire

LOOK_EVERY_S = 0.02
RESET_PATIENCE_S = 5.0
MEMORY_TYPES = ("conversation_history", "kg")
TRIPLE = ("subject", "predicate", "object")


class KGMemory(ConversationMemory):
    """A conversation that is read as facts (subject, predicate, object); its messages are kept.

    Facts are extracted in the background by the `model`, or by rules if there is none: what users
    tell of themselves, and what they state in general. The model is a ChatModel, one of LangChain's
    or any object with `run(messages)` that answers with JSON. Facts belong to the user and agent:
    other objects for the same ones share them, also in other processes, and facts of no particular
    agent are seen by all. Without a `memory` all is lost with this object; close it then.

        with KGMemory(description="You are a travel agent") as memory:
            memory.extract_and_update_from_text("I moved to Berlin.")
            memory.add_fact("Paris", "is capital of", "France")
            print(memory.retrieve_all())
    """

    def __init__(
        self,
        model: Any = None,
        description: str | None = None,
        *,
        memory: Memory | None = None,
        user: str = "me",
        agent: str = "",
        session: str | None = None,
    ) -> None:
        if memory is None:
            memory = self._own = Memory(":memory:", extraction=_extraction_of(model))
        elif model is not None:
            raise InvalidError("the memory has its model: Memory(extraction=Extraction(model=…))")
        shared = (memory.extraction or DEFAULT_EXTRACTION).policy.shared
        self._home = memory.scope(user=user, agent="" if shared else agent)
        super().__init__(description, memory=memory, user=user, agent=agent, session=session)

    def add_fact(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        role: str = "user",
        single: bool | None = None,
    ) -> str:
        """Add a fact stated by `role`; return its id, or that of an equal fact.

        `single`: see `memory.facts.add`, which takes more. A fact that would change one from a more
        trusted source is not added, and the id is empty.
        """
        user, agent = self._home.user, self._home.agent
        return self._memory.facts.add(
            subject, predicate, object, user=user, agent=agent, single=single, source=role
        )

    def extract_and_update_from_text(
        self, text: str, role: str = "user", timeout_s: float = 60.0
    ) -> list[Wire]:
        """Store a text, wait for its extraction, and return the facts it states.

        The text is kept in any case: `BadAnswerError` means that the model gave no usable answer,
        `ProviderError` that it gave none in time and the text still waits for extraction.
        """
        message_id = self.add(role=role, content=text)
        self._wait_for(message_id, timeout_s)
        return [_fact_to_dict(fact) for fact in self._facts() if message_id in fact.sources]

    def _remember(self, message: Message) -> str:
        data = {**(message.structured_data or {}), GENERAL_FACTS: True}
        return super()._remember(message.changed(structured_data=data))

    def update(self, message_id: str, **fields: Any) -> None:
        """Change what a fact states, or fields of a message; the earlier form is kept.

        Facts are extracted again from a changed message; a changed fact keeps its old id as well.
        """
        fact = self._fact(message_id)
        if fact is None:
            super().update(message_id, **fields)
            return
        if wrong := sorted(fields.keys() - set(TRIPLE)):
            raise MessageError(f"{', '.join(wrong)} is not a field of a fact that can be changed")
        self._memory.facts.change(fact.id, user=self._home.user, **fields)

    def retrieve_all(self) -> list[Wire]:
        """The system message, then the facts that hold, in the order they were learnt."""
        return [*super().retrieve_by_role("system"), *map(_fact_to_dict, self._facts())]

    def retrieve_recent(self, n: int = 1) -> list[Wire]:
        """The newest `n` facts, oldest first."""
        if n < 0:
            raise InvalidError("n must not be negative")
        return [_fact_to_dict(fact) for fact in self._facts()[-n:]] if n else []

    def retrieve_by_id(self, message_id: str) -> Wire | None:
        """The fact with this id, or the one that superseded it; or the message with this id."""
        fact = self._fact(message_id)
        return super().retrieve_by_id(message_id) if fact is None else _fact_to_dict(fact)

    def retrieve_by_role(self, role: str) -> list[Wire]:
        """The facts stated by this role."""
        return BaseMemory.retrieve_by_role(self, role)

    def recall(self, question: str, limit: int = 10, deadline_ms: float | None = 50.0) -> Recall:
        """The facts for a question, by words, by meaning and by what they link to."""
        user, agent = self._home.user, self._home.agent
        return self._memory.recall(
            question, user=user, agent=agent, limit=limit, deadline_ms=deadline_ms, kind="fact"
        )

    def remove(self, message_id: str) -> bool:
        """Retract a fact, or forget a message with all that was derived from it."""
        fact = self._fact(message_id)
        if fact is None:
            return super().remove(message_id)
        self._memory.memories.retract(fact.id, user=self._home.user, reason="removed")
        return True

    def reset(self) -> None:
        """Retract all facts of this user and agent, and begin a new session; the log stays."""
        deadline = time.monotonic() + RESET_PATIENCE_S
        while self._jobs() and time.monotonic() < deadline:  # they would add facts afterwards
            time.sleep(LOOK_EVERY_S)
        home = self._home
        for fact in self._memory.facts.as_of(user=home.user, agent=home.agent):
            if (fact.scope.agent or "") == home.agent:
                self._memory.memories.retract(fact.id, user=home.user, reason="reset")
        super().reset()

    def _facts(self) -> list[Fact]:
        return self._memory.facts.list(user=self._home.user, agent=self._home.agent)

    def _fact(self, id_: str) -> Fact | None:
        """The fact with this id, or the last one that superseded it."""
        facts = {fact.id: fact for fact in self._facts()}
        passed: set[str] = set()
        while id_ not in facts and id_ not in passed:
            passed.add(id_)
            with suppress(NotFoundError):
                id_ = self._memory.facts.get(id_, user=self._home.user).superseded_by or id_
        return facts.get(id_)

    def _jobs(self, dead: bool | None = False) -> list[Job]:
        """The extractions of this session that wait."""
        return self._memory.jobs.list(user=self._home.user, session=self.session_id, dead=dead)

    def _wait_for(self, message_id: str, timeout_s: float) -> None:
        [entry] = self._memory.messages.get(self._home.whole_user(), [message_id])
        deadline = time.monotonic() + timeout_s
        while mine := [it for it in self._jobs(None) if it.first_seq <= entry.seq <= it.last_seq]:
            if mine[0].dead:
                raise BadAnswerError(f"the text is kept, but no facts were found: {mine[0].error}")
            if time.monotonic() >= deadline:
                raise ProviderError(f"no facts in {timeout_s:g} s; the text is kept and waits")
            time.sleep(LOOK_EVERY_S)


def _extraction_of(model: Any) -> Extraction:
    """Settings that keep all facts, not only the most important ones."""
    if model is not None:
        # Here: `import memorist` stays light.
        from memorist.providers.opening import as_chat_model

        model = as_chat_model(model)
    return Extraction(model=model, policy=Policy(share=math.inf))


def _fact_to_dict(fact: Fact) -> Wire:
    predicate = fact.predicate.replace("_", " ")
    others = {"import": "user"}  # a web page was read by a tool
    return {
        "role": fact.source if fact.source in ROLES else others.get(fact.source, "tool"),
        "content": f"{fact.subject} {predicate} {fact.object}",
        "id": fact.id,
        "subject": fact.subject,
        "predicate": fact.predicate,
        "object": fact.object,
    }


class MemoryManager(NamesArguments, BaseMemory):
    """Makes a memory of the kind `memory_type`, and passes every call on to it.

        MemoryManager("conversation_history", description="You are a tutor")
        MemoryManager("kg", model=model, memory=memory, user="ada", agent="tutor")

    "kg" extracts facts by rules if there is no model. `memory_module` is the memory that was made.
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
            raise InvalidError(f"memory_type must be one of {', '.join(MEMORY_TYPES)}")

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
