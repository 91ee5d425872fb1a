"""Facts: what holds, what held, and what was known when."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from memorist.errors import InvalidError
from memorist.namespaces import is_about
from memorist.records.fact import Fact
from memorist.records.ids import check_moment
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.openapi import FACT, FACT_ID, example, example_page
from memorist.server.http.pagination import Page, page_of
from memorist.server.http.routes.memories import UNDONE, AddedId, UndoneChanges
from memorist.server.http.routing import ApiRoute, operation
from memorist.server.http.schemas import (
    AddFactBody,
    ChangeFactBody,
    FactsQuery,
    RetractBody,
    ScopedBody,
    UserQuery,
)

router = APIRouter(tags=["facts"], route_class=ApiRoute)
FactId = Annotated[str, Path(description="The fact's id.", examples=[FACT_ID])]


@operation(router, "list_facts", responses=example_page(FACT))
def list_facts(query: Annotated[FactsQuery, Query()], caller: CurrentCaller) -> Page[Fact]:
    """The facts that hold now, or that held at a moment, as far as was known at another."""
    return page_of(
        _facts(query, caller), query, lambda fact: f"{fact.known_from.isoformat()} {fact.id}"
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


def _facts(query: FactsQuery, caller: CurrentCaller) -> list[Fact]:
    user = caller.user(query.user)
    moments = {"valid": query.valid or query.as_of, "known": query.known or query.as_of}
    for name, moment in moments.items():
        if moment is not None:
            moments[name] = check_moment(moment, name, InvalidError)
    if query.always or any(moments.values()):
        facts = caller.memory.facts.as_of(user=user, agent=query.agent, **moments)
    else:
        facts = caller.memory.facts.list(user=user, agent=query.agent)
    return [fact for fact in facts if is_about(fact, query.subject, query.predicate)]
