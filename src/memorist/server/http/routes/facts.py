"""Facts: what holds, what held, and what was known of it when."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime, Field

from memorist.errors import InvalidError, NotFoundError
from memorist.records.fact import Fact, topic_of
from memorist.records.ids import check_moment
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.examples import FACT, FACT_ID, listed, shown
from memorist.server.http.pagination import Cursor, Limit, Page, page_of
from memorist.server.http.paths import Parts
from memorist.server.http.routes.memories import UNDONE, Undone
from memorist.server.http.schemas import Agent, Ask, Scoped, User
from memorist.server.http.schemas_views import AddFact, ChangeFact, Kept, Why

router = APIRouter(prefix="/api/facts", tags=["facts"], route_class=Parts)
FactId = Annotated[str, Path(description="The fact's id.", examples=[FACT_ID])]


class Wanted(Ask):
    """Which facts; without a moment, those that hold now."""

    user: User = None
    agent: Agent = None
    subject: str | None = None
    predicate: str | None = None
    valid: AwareDatetime | None = Field(default=None, description="True at this moment.")
    known: AwareDatetime | None = Field(default=None, description="As far as was known then.")
    as_of: AwareDatetime | None = Field(default=None, description="Both: `valid` and `known`.")
    always: bool = Field(default=False, description="Of all times, by what is known now.")
    limit: Limit = 100
    cursor: Cursor = None

    def about(self, fact: Fact) -> bool:
        """Whether a fact has the subject and the predicate; both together however written."""
        if self.subject is not None and self.predicate is not None:
            return fact.topic == topic_of(self.subject, self.predicate)
        return self.subject in (None, fact.subject) and self.predicate in (None, fact.predicate)


@router.get("", responses=listed(FACT))
def list_facts(wanted: Annotated[Wanted, Query()], caller: CurrentCaller) -> Page[Fact]:
    """The facts that hold now, or that did at a moment, as far as was known at another."""
    found = [fact for fact in _facts(wanted, caller) if wanted.about(fact)]
    return page_of(sorted(found, key=_place), wanted.limit, wanted.cursor, _place)


@router.post("", status_code=201, responses=shown(Kept(id=FACT_ID), 201))
def add_fact(ask: AddFact, caller: CurrentCaller) -> Kept:
    """Add a fact, settled with those of its subject and predicate."""
    user, triple = caller.user(ask.user), (ask.subject, ask.predicate, ask.object)
    fact_id = caller.memory.facts.add(*triple, user=user, agent=ask.agent, **ask.told())
    return Kept(id=fact_id or None)


@router.get("/{fact_id}", responses=shown(FACT))
def get_fact(fact_id: FactId, caller: CurrentCaller, user: User = None) -> Fact:
    """One fact, also one that holds no longer."""
    return _fact(caller, caller.user(user), fact_id)


@router.patch("/{fact_id}", responses=shown(Kept(id=FACT_ID)))
def change_fact(fact_id: FactId, ask: ChangeFact, caller: CurrentCaller) -> Kept:
    """Let a fact say something else from now on; what it said stays in the past. Its new id."""
    user = caller.user(ask.user)
    return Kept(id=caller.memory.facts.change(fact_id, user=user, **ask.triple()))


@router.post("/{fact_id}/retract", responses=shown(FACT))
def retract_fact(fact_id: FactId, ask: Why, caller: CurrentCaller) -> Fact:
    """Take a fact back: it was wrong. It stays visible as once believed."""
    user = caller.user(ask.user)
    _fact(caller, user, fact_id)
    caller.memory.memories.retract(fact_id, user=user, reason=ask.reason)
    return _fact(caller, user, fact_id)


@router.post("/{fact_id}/undo", responses=shown(UNDONE))
def undo_fact(fact_id: FactId, ask: Scoped, caller: CurrentCaller) -> Undone:
    """Take back the last thing that happened to a fact."""
    user = caller.user(ask.user)
    _fact(caller, user, fact_id)
    return Undone.of(caller.memory.memories.undo(fact_id, user=user))


def _facts(wanted: Wanted, caller: CurrentCaller) -> list[Fact]:
    user, moments = caller.user(wanted.user), dict.fromkeys(("valid", "known"), wanted.as_of)
    for name in moments:
        if (own := getattr(wanted, name)) is not None:
            moments[name] = own
        if (moment := moments[name]) is not None:
            moments[name] = check_moment(moment, name, InvalidError)
    if wanted.always or any(moments.values()):
        return caller.memory.facts.as_of(user=user, agent=wanted.agent, **moments)
    return caller.memory.facts.list(user=user, agent=wanted.agent)


def _fact(caller: CurrentCaller, user: str, id_: str) -> Fact:
    for one in caller.memory.store.records(caller.memory.scope(user=user), [id_]):
        if isinstance(one, Fact):
            return one
    raise NotFoundError("no fact with this id for this user")


def _place(fact: Fact) -> str:
    return f"{fact.known_from.isoformat()} {fact.id}"
