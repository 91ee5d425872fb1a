"""Memories and facts: what was derived from messages, or added outright."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from memorist.errors import InvalidError
from memorist.namespaces import is_about
from memorist.records.memories import Change, Fact, MemoryItem
from memorist.records.query import Forgotten
from memorist.records.values import check_moment
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.openapi import (
    FACT,
    FACT_ID,
    FORGOTTEN,
    MEMORY,
    MEMORY_ID,
    example,
    example_page,
)
from memorist.server.http.pagination import Page, keyset_page
from memorist.server.http.routing import ApiRoute, operation
from memorist.server.http.schemas import (
    AddFactBody,
    AddMemoryBody,
    ChangeFactBody,
    FactsQuery,
    ForgetQuery,
    MemoriesQuery,
    RetractBody,
    ScopedBody,
    UserQuery,
)

router = APIRouter(route_class=ApiRoute)
MemoryId = Annotated[str, Path(description="The memory's id.", examples=[MEMORY_ID])]


ChangeName = Literal["add", "reinforce", "supersede", "promote", "expire", "retract", "restore"]


class AddedId(BaseModel):
    """The id of the memory or fact; null where nothing had to be added."""

    id: str | None


class NamedChange(BaseModel):
    """A change, with the name of its kind."""

    change: ChangeName
    what: Change

    @classmethod
    def of(cls, change: Change) -> NamedChange:
        """A change as it is answered."""
        return cls.model_validate({"change": type(change).__name__.lower(), "what": change})


class UndoneChanges(BaseModel):
    """What undoing changed."""

    changes: list[NamedChange]

    @classmethod
    def of(cls, changes: list[Change]) -> UndoneChanges:
        """Changes as they are answered."""
        return cls(changes=[NamedChange.of(change) for change in changes])


UNDONE = {"changes": [{"change": "restore", "what": {"id": MEMORY_ID, "reason": "undone"}}]}


@operation(router, "list_memories", responses=example_page(MEMORY))
def list_memories(
    query: Annotated[MemoriesQuery, Query()], caller: CurrentCaller
) -> Page[MemoryItem]:
    """The memories, oldest first."""
    user = caller.user(query.user)

    def read(limit: int, after: Any) -> list[MemoryItem]:
        return caller.memory.memories.list(
            user=user,
            agent=query.agent,
            session=query.session,
            current=query.current,
            limit=limit,
            after=after,
        )

    return keyset_page(read, query, lambda item: (item.created_at, item.id), datetime, str)


@operation(router, "add_memory", status_code=201, responses=example(AddedId(id=MEMORY_ID), 201))
def add_memory(body: AddMemoryBody, caller: CurrentCaller) -> AddedId:
    """Add a memory; one that says the same is reinforced."""
    memory_id = caller.memory.memories.add(
        body.text,
        user=caller.user(body.user),
        agent=body.agent,
        session=body.session,
        **body.given("kind", "category", "importance", "tags", "source", "sources", "expires_at"),
    )
    return AddedId(id=memory_id or None)


@operation(router, "get_memory", responses=example(MEMORY))
def get_memory(
    memory_id: MemoryId, query: Annotated[UserQuery, Query()], caller: CurrentCaller
) -> MemoryItem:
    """One memory, also one that has ended."""
    return caller.memory.memories.get(memory_id, user=caller.user(query.user))


@operation(router, "forget_memory", responses=example(FORGOTTEN))
def forget_memory(
    memory_id: MemoryId, query: Annotated[ForgetQuery, Query()], caller: CurrentCaller
) -> Forgotten:
    """Delete one memory for good; the messages it came from stay."""
    user = caller.user(query.user)
    caller.memory.memories.get(memory_id, user=user)
    return caller.memory.forget(user=user, memory=memory_id, scrub=query.scrub)


@operation(router, "retract_memory", responses=example(MEMORY))
def retract_memory(memory_id: MemoryId, body: RetractBody, caller: CurrentCaller) -> MemoryItem:
    """Retract a memory that was wrong; it stays in the history."""
    user = caller.user(body.user)
    caller.memory.memories.get(memory_id, user=user)
    caller.memory.memories.retract(memory_id, user=user, reason=body.reason)
    return caller.memory.memories.get(memory_id, user=user)


@operation(router, "undo_memory", responses=example(UNDONE))
def undo_memory(memory_id: MemoryId, body: ScopedBody, caller: CurrentCaller) -> UndoneChanges:
    """Undo the last change of a memory."""
    user = caller.user(body.user)
    caller.memory.memories.get(memory_id, user=user)
    return UndoneChanges.of(caller.memory.memories.undo(memory_id, user=user))


FactId = Annotated[str, Path(description="The fact's id.", examples=[FACT_ID])]


@operation(router, "list_facts", responses=example_page(FACT))
def list_facts(query: Annotated[FactsQuery, Query()], caller: CurrentCaller) -> Page[Fact]:
    """The facts that hold now, or that held at a moment, as far as was known at another."""
    user = caller.user(query.user)
    valid = _checked(query.valid or query.as_of, "valid")
    known = _checked(query.known or query.as_of, "known")
    now = not (query.always or valid or known)

    def read(limit: int, after: Any) -> list[Fact]:
        facts, agent = caller.memory.facts, query.agent
        if now:
            return facts.list(user=user, agent=agent, limit=limit, after=after)
        return facts.as_of(
            user=user, agent=agent, valid=valid, known=known, limit=limit, after=after
        )

    def keep(fact: Fact) -> bool:
        return is_about(fact, query.subject, query.predicate)

    return keyset_page(
        read, query, lambda fact: (fact.known_from, fact.id), datetime, str, keep=keep
    )


@operation(router, "add_fact", status_code=201, responses=example(AddedId(id=FACT_ID), 201))
def add_fact(body: AddFactBody, caller: CurrentCaller) -> AddedId:
    """Add a fact, reconciled with those of the same subject and predicate."""
    fact_id = caller.memory.facts.add(
        body.subject,
        body.predicate,
        body.object,
        user=caller.user(body.user),
        agent=body.agent,
        **body.given("single", "ends", "corrects", "valid_from", "valid_to", "source", "sources"),
    )
    return AddedId(id=fact_id or None)


@operation(router, "get_fact", responses=example(FACT))
def get_fact(fact_id: FactId, query: Annotated[UserQuery, Query()], caller: CurrentCaller) -> Fact:
    """One fact, also one that holds no longer."""
    return caller.memory.facts.get(fact_id, user=caller.user(query.user))


@operation(router, "change_fact", responses=example(AddedId(id=FACT_ID)))
def change_fact(fact_id: FactId, body: ChangeFactBody, caller: CurrentCaller) -> AddedId:
    """Change a fact from now on; the old one stays in the past. Answers with the new id."""
    user = caller.user(body.user)
    return AddedId(id=caller.memory.facts.change(fact_id, user=user, **body.changes()))


@operation(router, "retract_fact", responses=example(FACT))
def retract_fact(fact_id: FactId, body: RetractBody, caller: CurrentCaller) -> Fact:
    """Retract a fact that was wrong; it stays in the history."""
    user = caller.user(body.user)
    caller.memory.facts.get(fact_id, user=user)
    caller.memory.memories.retract(fact_id, user=user, reason=body.reason)
    return caller.memory.facts.get(fact_id, user=user)


@operation(router, "undo_fact", responses=example(UNDONE))
def undo_fact(fact_id: FactId, body: ScopedBody, caller: CurrentCaller) -> UndoneChanges:
    """Undo the last change of a fact."""
    user = caller.user(body.user)
    caller.memory.facts.get(fact_id, user=user)
    return UndoneChanges.of(caller.memory.memories.undo(fact_id, user=user))


def _checked(moment: datetime | None, name: str) -> datetime | None:
    return None if moment is None else check_moment(moment, name, InvalidError)
