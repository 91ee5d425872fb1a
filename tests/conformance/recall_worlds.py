"""Random small worlds to search in, and what a search in them may find."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from memorist.records.memories import Add, Fact, MemoryItem
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.records.values import new_id
from memorist.store.base import Store

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
USERS, AGENTS, TALKS = ("ada", "bob", "eve"), ("tutor", "coach"), ("mon", "tue")
CATEGORIES, TAGS = ("food", "work"), ("hot", "new")
WORDS = ("apple", "pear", "an apple a day", "Apples and pears", "nothing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Something stored, and all that it can be found or left out by."""

    user: str
    kind: str
    agent: str
    session: str
    role: str
    category: str
    tags: tuple[str, ...]
    day: int
    words: str
    id: str = field(default_factory=new_id)

    @property
    def at(self) -> datetime:
        return EPOCH + timedelta(days=self.day)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Where to search, and by what it is narrowed."""

    user: str
    agent: str | None
    session: str | None
    only: dict[str, Any]


@dataclass(slots=True)
class World:
    """Users, agents and sessions, with what each of them holds."""

    records: list[Record]
    tenant: str = ""

    def build(self, store: Store, tenant: str) -> None:
        """Store all of it under a tenant of its own."""
        self.tenant = tenant
        self.records = [replace(it, id=new_id()) for it in self.records]  # it may be built again
        for record in self.records:
            scope = self._home(record)
            if record.kind == "message":
                message = Message(
                    record.role, record.words, message_id=record.id, created_at=record.at
                )
                store.append(scope, [message])
            else:
                store.open_session(scope)
                store.apply(scope, [Add(self._view(record, scope))])

    def remove(self, store: Store) -> None:
        """Leave the store as it was."""
        for user in USERS:
            store.forget(Scope(user=user, tenant=self.tenant))

    def _home(self, record: Record) -> Scope:
        session = f"{record.agent} {record.session}"
        return Scope(user=record.user, tenant=self.tenant, agent=record.agent, session=session)

    def _view(self, record: Record, scope: Scope) -> MemoryItem | Fact:
        if record.kind == "fact":
            return Fact(
                scope=scope,
                subject="Ada",
                predicate="met",
                object=record.words,
                id=record.id,
                known_from=record.at,
            )
        return MemoryItem(
            scope=scope,
            text=record.words,
            category=record.category,
            tags=record.tags,
            id=record.id,
            created_at=record.at,
        )

    def scope(self, asked: Lookup) -> Scope:
        """The scope of a search in this world."""
        return Scope(user=asked.user, tenant=self.tenant, agent=asked.agent, session=asked.session)

    def allowed(self, asked: Lookup) -> list[Record]:
        """All that the search may find."""
        return [record for record in self.records if self._may_find(record, asked)]

    def _may_find(self, record: Record, asked: Lookup) -> bool:
        only, home = asked.only, self._home(record)
        is_memory = record.kind == "memory"
        role = record.role if record.kind == "message" else None
        return (
            record.user == asked.user
            and asked.agent in (None, home.agent)
            and asked.session in (None, home.session)
            and ("kind" not in only or record.kind in only["kind"])
            and ("role" not in only or role in only["role"])
            and ("category" not in only or (is_memory and record.category in only["category"]))
            and ("tags" not in only or (is_memory and {*only["tags"]} <= {*record.tags}))
            and ("after" not in only or only["after"] <= record.at)
            and ("before" not in only or record.at <= only["before"])
            and ("as_of" not in only or record.at <= only["as_of"])
        )


def worlds() -> st.SearchStrategy[World]:
    """Up to three users' records of every kind."""
    record = st.builds(
        Record,
        user=st.sampled_from(USERS),
        kind=st.sampled_from(("message", "memory", "fact")),
        agent=st.sampled_from(AGENTS),
        session=st.sampled_from(TALKS),
        role=st.sampled_from(("user", "assistant")),
        category=st.sampled_from(CATEGORIES),
        tags=st.sets(st.sampled_from(TAGS)).map(tuple),
        day=st.integers(0, 4),
        words=st.sampled_from(WORDS),
    )
    return st.lists(record, max_size=25).map(World)


@st.composite
def searches(draw: st.DrawFn) -> Lookup:
    """A scope, and up to three filters."""
    some = {
        "kind": _several(("message", "memory", "fact", "note")),
        "role": _several(("user", "assistant", "tool")),
        "category": _several((*CATEGORIES, "unheard of")),
        "tags": _several(TAGS),
        "after": _moments(),
        "before": _moments(),
        "as_of": _moments(),
    }
    names = draw(st.sets(st.sampled_from(sorted(some)), max_size=3))
    only = {name: draw(some[name]) for name in sorted(names)}
    agent = draw(st.sampled_from((None, *AGENTS)))
    talk = draw(st.sampled_from((None, None, *TALKS)))
    session = talk and f"{draw(st.sampled_from(AGENTS))} {talk}"
    return Lookup(user=draw(st.sampled_from(USERS)), agent=agent, session=session, only=only)


def _several(names: tuple[str, ...]) -> st.SearchStrategy[object]:
    return st.sets(st.sampled_from(names), min_size=1, max_size=2).map(lambda it: tuple(sorted(it)))


def _moments() -> st.SearchStrategy[object]:
    return st.integers(-1, 5).map(lambda day: EPOCH + timedelta(days=day))
