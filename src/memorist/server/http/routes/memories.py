"""Memories: what was derived from messages, or added outright."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from memorist.records.change import Change
from memorist.records.memory_item import MemoryItem
from memorist.records.query import Forgotten
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.openapi import FORGOTTEN, MEMORY, MEMORY_ID, example, example_page
from memorist.server.http.pagination import Page, by_time, page_of
from memorist.server.http.routing import ApiRoute, operation
from memorist.server.http.schemas import (
    AddMemoryBody,
    ForgetQuery,
    MemoriesQuery,
    RetractBody,
    ScopedBody,
    UserQuery,
)

router = APIRouter(tags=["memories"], route_class=ApiRoute)
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
    memories = caller.memory.memories.list(
        user=caller.user(query.user),
        agent=query.agent,
        session=query.session,
        current=query.current,
    )
    return page_of(memories, query, by_time)


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
