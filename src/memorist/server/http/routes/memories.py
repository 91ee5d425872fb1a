"""Memories and facts: what was derived from messages, or added outright."""

from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Literal, Self

from fastapi import Path
from pydantic import AwareDatetime, BaseModel, Field

from memorist.errors import InvalidError, NotFoundError
from memorist.records.memories import (
    Change,
    Entity,
    Fact,
    Kind,
    MemoryItem,
    Neighbourhood,
    State,
    Tier,
)
from memorist.records.query import Forgotten
from memorist.records.values import Tally
from memorist.server.http import schemas
from memorist.server.http.openapi import FACT, FACT_ID, MEMORY, MEMORY_ID
from memorist.server.http.pagination import Page, keyset_page
from memorist.server.http.routing import Caller, Url, operation

MemoryId = Annotated[str, Path(description="The memory's id.", examples=[MEMORY_ID])]
FactId = Annotated[str, Path(description="The fact's id.", examples=[FACT_ID])]
RecordId = Annotated[str, Path(description="The memory's or the fact's id.", examples=[FACT_ID])]
Sources = Annotated[schemas.Ids | None, Field(description="Ids of the messages that say so.")]
SearchText = Annotated[
    str | None, Field(max_length=1_000, description="Words; the last one may be a beginning.")
]
SaidAt = Annotated[AwareDatetime | None, Field(description="Default: now.")]
ForeignId = Annotated[str | None, Field(description="What it is called in another program.")]
EntityName = Annotated[str, Path(description="What facts name.", examples=["Ada"])]
ChangeName = Literal["add", "reinforce", "supersede", "promote", "expire", "retract", "restore"]
UNDONE = {"changes": [{"change": "restore", "what": {"id": MEMORY_ID, "reason": "undone"}}]}


class AddedId(BaseModel):
    """The id of the memory or fact; null where nothing had to be added."""

    id: str | None


class NamedChange(BaseModel):
    """A change, with the name of its kind."""

    change: ChangeName
    what: Change

    @classmethod
    def of(cls, change: Change) -> Self:
        """A change as it is answered."""
        return cls.model_validate({"change": type(change).__name__.lower(), "what": change})


class ChangeReport(BaseModel):
    """What was changed."""

    changes: list[NamedChange]


class RetractBody(schemas.AgentRequest):
    """Why a memory or a fact is retracted."""

    reason: str = Field("", examples=["she never said so"])


# Memories


class MemoriesQuery(schemas.SessionPageQuery):
    """A page of memories."""

    current: bool = Field(True, description="Only those that have not ended.")
    state: State | None = Field(None, description="Instead of `current`.")
    text: SearchText = None
    kind: Kind | None = None
    category: str | None = None
    tag: str | None = None
    tier: Tier | None = None
    source: str | None = None
    after: AwareDatetime | None = Field(None, description="Made at this moment or later.")
    before: AwareDatetime | None = Field(None, description="Made at this moment or earlier.")
    newest_first: schemas.NewestFirst = False


class AddMemoryBody(schemas.SessionRequest):
    """A memory to add."""

    text: str = Field(examples=["Ada lives in Berlin."])
    kind: Kind | None = Field(None, examples=["fact"])
    category: str | None = Field(None, examples=["personal"])
    importance: schemas.Share | None = Field(None, examples=[0.8])
    tags: schemas.Ids | None = Field(None, examples=[["home"]])
    source: schemas.Origin = None
    sources: Sources = None
    expires_at: AwareDatetime | None = Field(None, examples=["2030-01-01T00:00:00Z"])
    said_at: SaidAt = None
    id: ForeignId = None


class ChangeMemoryBody(schemas.AgentRequest):
    """The parts of a memory that change."""

    text: str | None = Field(None, examples=["Ada lives in Berlin-Mitte."])
    kind: Kind | None = None
    category: str | None = None
    importance: schemas.Share | None = None
    tags: schemas.Ids | None = None
    said_in: str | None = Field(None, description="The message that corrects it: its facts end.")


@operation("list_memories")
def list_memories(query: Url[MemoriesQuery], caller: Caller) -> Page[MemoryItem]:
    """The memories, oldest first."""
    filters = query.arguments("limit", "cursor", "after", "before")
    filters |= {"created_after": query.after, "created_before": query.before}
    read = partial(caller.memory.memories.list, **caller.place(query), **filters)
    return keyset_page(read, query)


@operation("add_memory", status_code=201, example=AddedId(id=MEMORY_ID))
def add_memory(body: AddMemoryBody, caller: Caller) -> AddedId:
    """Add a memory; one that says the same is reinforced."""
    memory_id = caller.memory.memories.add(**caller.place(body), **body.arguments())
    return AddedId(id=memory_id or None)


@operation("get_memory")
def get_memory(memory_id: MemoryId, query: Url[schemas.UserRequest], caller: Caller) -> MemoryItem:
    """One memory, also one that has ended."""
    return caller.memory.memories.get(memory_id, user=caller.user(query.user))


@operation("change_memory", example=AddedId(id=MEMORY_ID))
def change_memory(memory_id: MemoryId, body: ChangeMemoryBody, caller: Caller) -> AddedId:
    """Change a memory; the old one is superseded by a new one, whose id is answered."""
    user, changes = caller.user(body.user), body.arguments()
    if not changes:
        raise InvalidError("give a text, kind, category, importance or tags that change")
    return AddedId(id=caller.memory.memories.change(memory_id, user=user, **changes))


@operation("memory_history")
def get_memory_history(
    memory_id: MemoryId, query: Url[schemas.UserRequest], caller: Caller
) -> Page[MemoryItem]:
    """The memories that superseded one another, with this one among them, oldest first."""
    return Page(items=caller.memory.memories.chain(memory_id, user=caller.user(query.user)))


@operation("forget_memory")
def forget_memory(
    memory_id: MemoryId, query: Url[schemas.ForgetQuery], caller: Caller
) -> Forgotten:
    """Delete one memory for good; the messages it came from stay."""
    user = caller.user(query.user)
    caller.memory.memories.get(memory_id, user=user)
    return caller.memory.forget(user=user, memory=memory_id, **query.arguments())


# Facts


class FactsQuery(schemas.AgentPageQuery):
    """A page of facts; without a moment, those that hold now."""

    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    source: str | None = None
    text: SearchText = None
    newest_first: schemas.NewestFirst = False
    valid: AwareDatetime | None = Field(None, description="True at this moment.")
    known: AwareDatetime | None = Field(None, description="As far as was known then.")
    as_of: AwareDatetime | None = Field(None, description="Both: `valid` and `known`.")
    always: bool = Field(False, description="Of all times, by what is known now.")


class AddFactBody(schemas.AgentRequest):
    """A fact to add, reconciled with those of the same subject and predicate."""

    subject: str = Field(examples=["Ada"])
    predicate: str = Field(examples=["lives in"])
    object: str = Field(examples=["Berlin"])
    single: bool | None = Field(
        None, description="It replaces the fact before it; without, the predicate decides."
    )
    ends: bool = Field(False, description="It holds no longer.")
    corrects: bool = Field(False, description="What was stored before was wrong.")
    valid_from: AwareDatetime | None = Field(None, examples=["2026-03-01T00:00:00Z"])
    valid_to: AwareDatetime | None = None
    source: schemas.Origin = None
    sources: Sources = None
    said_at: SaidAt = None
    id: ForeignId = None


class ChangeFactBody(schemas.AgentRequest):
    """The parts of a fact that change from now on."""

    subject: str | None = None
    predicate: str | None = None
    object: str | None = Field(None, examples=["Hamburg"])


@operation("list_facts")
def list_facts(query: Url[FactsQuery], caller: Caller) -> Page[Fact]:
    """The facts that hold now, or that held at a moment, as far as was known at another."""
    place, facts = caller.place(query), caller.memory.facts
    valid, known = query.valid or query.as_of, query.known or query.as_of
    names = {"subject", "predicate", "object", "source", "text", "newest_first"}
    about: dict[str, Any] = query.model_dump(include=names)
    if query.always or valid or known:
        read = partial(facts.as_of, **place, **about, valid=valid, known=known)
    else:
        read = partial(facts.list, **place, **about)
    return keyset_page(read, query, moment="known_from")


@operation("add_fact", status_code=201, example=AddedId(id=FACT_ID))
def add_fact(body: AddFactBody, caller: Caller) -> AddedId:
    """Add a fact, reconciled with those of the same subject and predicate."""
    fact_id = caller.memory.facts.add(**caller.place(body), **body.arguments())
    return AddedId(id=fact_id or None)


@operation("get_fact")
def get_fact(fact_id: FactId, query: Url[schemas.UserRequest], caller: Caller) -> Fact:
    """One fact, also one that holds no longer."""
    return caller.memory.facts.get(fact_id, user=caller.user(query.user))


@operation("change_fact", example=AddedId(id=FACT_ID))
def change_fact(fact_id: FactId, body: ChangeFactBody, caller: Caller) -> AddedId:
    """Change a fact from now on; the old one stays in the past. Answers with the new id."""
    user, changes = caller.user(body.user), body.arguments()
    if not changes:
        raise InvalidError("give a subject, a predicate or an object that changes")
    return AddedId(id=caller.memory.facts.change(fact_id, user=user, **changes))


# Both


@operation("retract_memory", example=MEMORY)
@operation("retract_fact", example=FACT)
def retract(record_id: RecordId, body: RetractBody, caller: Caller) -> MemoryItem | Fact:
    """Retract a memory or a fact that was wrong; it stays in the history."""
    user, memories = caller.user(body.user), caller.memory.memories
    memories.retract(record_id, user=user, reason=body.reason)
    try:
        return memories.get(record_id, user=user)
    except NotFoundError:
        return caller.memory.facts.get(record_id, user=user)


@operation("undo_memory", example=UNDONE)
@operation("undo_fact", example=UNDONE)
def undo(record_id: RecordId, body: schemas.AgentRequest, caller: Caller) -> ChangeReport:
    """Undo the last change of a memory or a fact."""
    changes = caller.memory.memories.undo(record_id, user=caller.user(body.user))
    return ChangeReport(changes=[NamedChange.of(change) for change in changes])


# History and graph


class EntitiesQuery(schemas.CursorQuery, schemas.UserRequest):
    """A page of what facts name."""

    text: str = Field("", max_length=1_000, description="The beginning of the name.")


class NeighbourhoodQuery(schemas.AgentRequest):
    """Which facts of an entity."""

    as_of: AwareDatetime | None = Field(None, description="True then, as far as was known.")
    always: bool = Field(False, description="Of all times, by what is known now.")
    limit: schemas.PageSize = 150


@operation("fact_history")
def get_fact_history(
    fact_id: FactId, query: Url[schemas.UserRequest], caller: Caller
) -> Page[Fact]:
    """The facts that superseded one another, with this one among them, oldest first."""
    return Page(items=caller.memory.facts.chain(fact_id, user=caller.user(query.user)))


@operation("list_entities", example=Entity("ada", Tally(2)))
def list_entities(query: Url[EntitiesQuery], caller: Caller) -> Page[Entity]:
    """What the facts of all times name, by name, with the number of facts up to 1,000."""
    read = partial(caller.memory.facts.entities, user=caller.user(query.user), text=query.text)
    return keyset_page(read, query, by=attrgetter("name"), kind=str, big=False)


@operation("get_neighbourhood", example=Neighbourhood(name="Ada", facts=(FACT,)))
def get_neighbourhood(
    name: EntityName, query: Url[NeighbourhoodQuery], caller: Caller
) -> Neighbourhood:
    """The facts that name someone or something, newest first."""
    return caller.memory.facts.neighbourhood(
        name, **caller.place(query), as_of=query.as_of, always=query.always, limit=query.limit
    )
