"""Memories: what was derived from messages, or kept outright."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from memorist.errors import NotFoundError
from memorist.records.change import Change
from memorist.records.memory_item import MemoryItem
from memorist.records.query import Forgotten
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.examples import FORGOTTEN, MEMORY, MEMORY_ID, listed, shown
from memorist.server.http.pagination import Cursor, Limit, Page, page_of
from memorist.server.http.paths import Parts
from memorist.server.http.schemas import Agent, Scoped, SessionId, User
from memorist.server.http.schemas_views import AddMemory, Kept, Operation, Why

router = APIRouter(prefix="/api/memories", tags=["memories"], route_class=Parts)
MemoryId = Annotated[str, Path(description="The memory's id.", examples=[MEMORY_ID])]


class Changed(BaseModel):
    """One thing that happened, by its name."""

    change: Operation
    what: Change

    @classmethod
    def of(cls, one: Change) -> Changed:
        """A change as it is answered."""
        return cls.model_validate({"change": type(one).__name__.lower(), "what": one})


class Undone(BaseModel):
    """What undoing changed."""

    changes: list[Changed]

    @classmethod
    def of(cls, changes: list[Change]) -> Undone:
        """Changes as they are answered."""
        return cls(changes=[Changed.of(one) for one in changes])


UNDONE = {"changes": [{"change": "restore", "what": {"id": MEMORY_ID, "reason": "undone"}}]}


@router.get("", responses=listed(MEMORY))
def list_memories(
    caller: CurrentCaller,
    user: User = None,
    agent: Agent = None,
    session: SessionId = None,
    current: Annotated[bool, Query(description="Only those that have not ended.")] = True,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[MemoryItem]:
    """The memories, oldest first."""
    found = caller.memory.memories.list(
        user=caller.user(user), agent=agent, session=session, current=current
    )
    return page_of(sorted(found, key=_place), limit, cursor, _place)


@router.post("", status_code=201, responses=shown(Kept(id=MEMORY_ID), 201))
def add_memory(ask: AddMemory, caller: CurrentCaller) -> Kept:
    """Keep a memory outright; one that says the same is reinforced."""
    user = caller.user(ask.user)
    memory_id = caller.memory.memories.add(
        ask.text, user=user, agent=ask.agent, session=ask.session, **ask.about()
    )
    return Kept(id=memory_id or None)


@router.get("/{memory_id}", responses=shown(MEMORY))
def get_memory(memory_id: MemoryId, caller: CurrentCaller, user: User = None) -> MemoryItem:
    """One memory, also one that has ended."""
    return _memory(caller, caller.user(user), memory_id)


@router.delete("/{memory_id}", responses=shown(FORGOTTEN))
def forget_memory(
    memory_id: MemoryId,
    caller: CurrentCaller,
    user: User = None,
    scrub: Annotated[bool, Query(description="Remove the bytes from the files too.")] = True,
) -> Forgotten:
    """Remove one memory for good; the messages it came of stay."""
    name = caller.user(user)
    _memory(caller, name, memory_id)
    return caller.memory.forget(user=name, memory=memory_id, scrub=scrub)


@router.post("/{memory_id}/retract", responses=shown(MEMORY))
def retract_memory(memory_id: MemoryId, ask: Why, caller: CurrentCaller) -> MemoryItem:
    """Take a memory back: it was wrong. It stays visible as once believed."""
    user = caller.user(ask.user)
    _memory(caller, user, memory_id)
    caller.memory.memories.retract(memory_id, user=user, reason=ask.reason)
    return _memory(caller, user, memory_id)


@router.post("/{memory_id}/undo", responses=shown(UNDONE))
def undo_memory(memory_id: MemoryId, ask: Scoped, caller: CurrentCaller) -> Undone:
    """Take back the last thing that happened to a memory."""
    user = caller.user(ask.user)
    _memory(caller, user, memory_id)
    return Undone.of(caller.memory.memories.undo(memory_id, user=user))


def _memory(caller: CurrentCaller, user: str, id_: str) -> MemoryItem:
    found = caller.memory.store.records(caller.memory.scope(user=user), [id_])
    for one in found:
        if isinstance(one, MemoryItem):
            return one
    raise NotFoundError("no memory with this id for this user")


def _place(item: MemoryItem) -> str:
    return f"{item.created_at.isoformat()} {item.id}"
