"""The namespaces of what is derived from messages, or added outright: facts and memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from memorist.errors import InvalidError, NotFoundError
from memorist.namespaces import List, MemoryPart
from memorist.records.log import LogEntry, least_trusted
from memorist.records.memories import (
    CORRECTED,
    EDITED,
    Add,
    Candidate,
    Change,
    Claim,
    Entity,
    Fact,
    Kind,
    MemoryItem,
    Neighbourhood,
    Reinforce,
    Retract,
    State,
    Supersede,
    Tier,
)
from memorist.records.message import UNSET, given
from memorist.records.scope import Scope
from memorist.records.values import (
    MAX_SHORT_BYTES,
    check_flags,
    check_key,
    check_keys,
    check_moment,
    check_text,
    new_id,
)

if TYPE_CHECKING:  # the rest is imported where it is used: `import memorist` stays light
    from memorist.lifecycle.audit import Audit
    from memorist.lifecycle.policy import Maintained

T = TypeVar("T")


class DerivedPart(MemoryPart):
    """What facts and memories have in common."""

    def _said_at(self, moment: datetime | None) -> datetime:
        return self._runtime.clock() if moment is None else check_moment(moment, "said_at")

    def _record(self, kind: type[T], name: str, id: str, user: str) -> T:
        """The memory or fact with this id; an error with its name where there is none."""
        for record in self._store.records(self._scope(user), [check_text(id, "id")]):
            if isinstance(record, kind):
                return record
        raise NotFoundError(f"no {name} with this id for this user")

    def _keep(self, scope: Scope, candidate: Candidate) -> str:
        """Store a candidate, reconciled with what is there; return the id of what holds it."""
        from memorist.lifecycle.reconcile import keep

        runtime = self._runtime
        cited = self._store.find(scope.whole_user(), candidate.sources) if candidate.sources else []
        if cited:  # it is trusted as the least trusted of the messages it cites
            sources = (candidate.source, *(entry.source for entry in cited))
            candidate = replace(candidate, source=least_trusted(sources))
        changes = keep(
            self._store, scope, candidate, runtime.extraction_settings.policy, runtime.clock
        )
        runtime.wake()
        for change in changes:
            if isinstance(change, Add | Supersede):
                return change.record.id
            if isinstance(change, Reinforce):
                return change.id
        return ""


class Facts(DerivedPart):
    """Who does what, with the time it was true and the time it was learnt: `memory.facts`."""

    def add(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        user: str,
        agent: str | None = None,
        single: bool | None = None,
        ends: bool = False,
        corrects: bool = False,
        valid_from: datetime | None = None,
        valid_to: datetime | None = None,
        source: str = "user",
        sources: Sequence[str] = (),
        said_at: datetime | None = None,
        id: str = "",
    ) -> str:
        """Add a fact, reconciled with those of its subject and predicate; return its id.

        With `single` it supersedes the one that held, as it does by itself where a predicate such
        as "employer" has one object at a time; with `single=False` it never does. With `corrects`
        the other is retracted; with `ends` the fact no longer holds. `sources` are the ids of the
        messages it comes from. It is `said_at` this moment unless another is given; one that has an
        `id` in another program keeps it, and adding it again changes nothing.
        """
        check_flags(single=False if single is None else single, ends=ends, corrects=corrects)
        for name, text in (("subject", subject), ("predicate", predicate), ("object", object)):
            check_key(text, name, max_bytes=MAX_SHORT_BYTES)
        claim = Claim(
            subject=subject,
            predicate=predicate,
            object=object,
            valid_from=valid_from,
            valid_to=valid_to,
            single=single,
            ends=ends,
        )
        candidate = Candidate(
            id=check_key(id, "id"),
            text="",
            said_at=self._said_at(said_at),
            source=source,
            claims=(claim,),
            sources=check_keys(sources, "sources"),
            corrects=corrects,
        )
        return self._keep(self._scope(user, agent), candidate)

    def change(
        self,
        id: str,
        *,
        user: str,
        subject: str = UNSET,
        predicate: str = UNSET,
        object: str = UNSET,
    ) -> str:
        """Let a fact say something else from now on; its old form stays in the past. Its new id."""
        scope, now = self._scope(user), self._runtime.clock()
        fact = self.get(id, user=user)
        if not fact.holds(now):
            raise InvalidError("this fact no longer holds; add another one")
        new = replace(
            fact,
            id=new_id(),
            valid_from=now,
            known_from=now,
            memory=None,
            **given(subject=subject, predicate=predicate, object=object),
        )
        change = Supersede(old_id=id, record=new, at=now, reason="changed outright")
        self._store.apply(scope, [change], by_hand=True)
        self._runtime.wake()
        return new.id

    def get(self, id: str, *, user: str) -> Fact:
        """One fact, also one that no longer holds; `NotFoundError` where there is none."""
        return self._record(Fact, "fact", id, user)

    def list(
        self,
        *,
        user: str,
        agent: str | None = None,
        subject: str | None = None,
        predicate: str | None = None,
        object: str | None = None,
        source: str | None = None,
        text: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
        after: tuple[datetime, str] | None = None,
        max_bytes: int | None = None,
    ) -> List[Fact]:
        """The facts that hold now, in the order they were learnt; as `as_of` otherwise."""
        return self.as_of(
            user=user,
            agent=agent,
            subject=subject,
            predicate=predicate,
            object=object,
            source=source,
            text=text,
            valid=self._runtime.clock(),
            newest_first=newest_first,
            limit=limit,
            after=after,
            max_bytes=max_bytes,
        )

    def as_of(
        self,
        *,
        user: str,
        agent: str | None = None,
        subject: str | None = None,
        predicate: str | None = None,
        object: str | None = None,
        source: str | None = None,
        text: str | None = None,
        valid: datetime | None = None,
        known: datetime | None = None,
        newest_first: bool = False,
        limit: int | None = None,
        after: tuple[datetime, str] | None = None,
        max_bytes: int | None = None,
    ) -> List[Fact]:
        """The facts that were true at one moment, as far as was known at another.

        Without `valid`, those of all times; without `known`, by what is known now. A subject and
        a predicate together are compared however they are written, one of them exactly. The user
        and "my wife" are one subject with their names, once these are told. `text` is words, the
        last of which may go on: what holds them all, in the order in which it was learnt. For a
        page, give a `limit`, and as `after` the `known_from` and id of the last fact before.
        """
        scope = self._scope(user, agent)
        facts = self._store.facts(
            scope,
            subject=subject,
            predicate=predicate,
            object=object,
            source=source,
            text=text,
            valid_at=valid,
            known_at=known,
            newest_first=newest_first,
            limit=limit,
            after=after,
            max_bytes=max_bytes,
        )
        return self._with_shown_names(scope, facts)

    def _with_shown_names(self, scope: Scope, facts: Sequence[Fact]) -> List[Fact]:
        from memorist.language.people import People

        people = People.of(self._store.naming(scope) if facts else ())
        return [replace(fact, subject=people.same(fact.subject)[0]) for fact in facts]

    def history(
        self,
        subject: str,
        predicate: str,
        *,
        user: str,
        agent: str | None = None,
        limit: int | None = None,
        after: tuple[datetime, str] | None = None,
    ) -> List[Fact]:
        """Every fact there ever was about a subject and predicate, in the order learnt."""
        return self.as_of(
            user=user, agent=agent, subject=subject, predicate=predicate, limit=limit, after=after
        )

    def chain(self, id: str, *, user: str) -> List[Fact]:
        """The facts that superseded one another, with this one among them, oldest first."""
        self.get(id, user=user)
        return [fact for fact in self._store.chain(self._scope(user), id) if isinstance(fact, Fact)]

    def entities(
        self, *, user: str, text: str = "", limit: int | None = None, after: str | None = None
    ) -> List[Entity]:
        """What facts of any time name, by name, or of that what begins with a text."""
        return self._store.entities(self._scope(user), text=text, limit=limit, after=after)

    def neighbourhood(
        self,
        name: str,
        *,
        user: str,
        agent: str | None = None,
        as_of: datetime | None = None,
        always: bool = False,
        limit: int = 150,
    ) -> Neighbourhood:
        """The facts that name someone or something now, at a moment or `always`, newest first."""
        scope, most = self._scope(user, agent), limit + 1
        valid, known = (None, None) if always else (as_of or self._runtime.clock(), as_of)
        facts = self._store.neighbourhood(scope, name, valid_at=valid, known_at=known, limit=most)
        if not facts and not self._store.neighbourhood(scope, name, limit=1):
            raise NotFoundError("no fact of this user names this")
        shown = tuple(self._with_shown_names(scope, facts[:limit]))
        return Neighbourhood(name=name, facts=shown, more=len(facts) > limit)


class Memories(DerivedPart):
    """What was made of messages, or kept outright: `memory.memories`."""

    def add(
        self,
        text: str,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        kind: Kind = "fact",
        category: str = "knowledge",
        importance: float | None = None,
        tags: Sequence[str] = (),
        source: str = "user",
        sources: Sequence[str] = (),
        expires_at: datetime | None = None,
        said_at: datetime | None = None,
        id: str = "",
    ) -> str:
        """Keep a memory outright and return its id; one that says the same is reinforced.

        `said_at` and `id`: see `facts.add`.
        """
        from memorist.lifecycle.policy import classified

        if not isinstance(text, str) or not text.strip():
            raise InvalidError("a memory needs text")
        check_key(text, "text", max_bytes=MAX_SHORT_BYTES)
        check_key(category, "category")
        candidate = Candidate(
            id=check_key(id, "id"),
            text=text,
            said_at=self._said_at(said_at),
            kind=kind,
            category=category,
            importance=importance,
            tags=check_keys(tags, "tags"),
            source=source,
            sources=check_keys(sources, "sources"),
            expires_at=expires_at,
        )
        candidate = classified(candidate, policy=self._runtime.extraction_settings.policy)
        return self._keep(self._scope(user, agent, session), candidate)

    def list(
        self,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        current: bool = True,
        state: State | None = None,
        text: str | None = None,
        kind: Kind | None = None,
        category: str | None = None,
        tag: str | None = None,
        tier: Tier | None = None,
        source: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        newest_first: bool = False,
        limit: int | None = None,
        after: tuple[datetime, str] | None = None,
        max_bytes: int | None = None,
    ) -> List[MemoryItem]:
        """The memories in the scope, oldest first; with `current`, those that have not ended.

        A `state` says it instead: "current", "over" or "all". `text` is words, the last of which
        may go on: what holds them all now, in the order in which it was learnt. For a page, give a
        `limit`, and as `after` the `created_at` and id of the last one before.
        """
        return self._store.items(
            self._scope(user, agent, session),
            current=current,
            state=state,
            text=text,
            kind=kind,
            category=category,
            tag=tag,
            tier=tier,
            source=source,
            created_after=created_after,
            created_before=created_before,
            newest_first=newest_first,
            limit=limit,
            after=after,
            max_bytes=max_bytes,
        )

    def change(
        self,
        id: str,
        *,
        user: str,
        text: str = UNSET,
        kind: Kind = UNSET,
        category: str = UNSET,
        importance: float = UNSET,
        tags: Sequence[str] = UNSET,
        said_in: str = UNSET,
    ) -> str:
        """Give a memory other words or labels; its old form stays in the past. Its new id.

        The facts that it states go on: change those with `facts.change`. With `said_in`, the id of
        a message that corrects it, they end with its old form, and the new one comes from there.
        """
        item, now = self.get(id, user=user), self._runtime.clock()
        if item.ended_at is not None:
            raise InvalidError("this memory has ended; add another one")
        if text is not UNSET and not check_text(text, "text", InvalidError).strip():
            raise InvalidError("a memory needs text")
        labels = given(kind=kind, category=category, importance=importance, tags=tags)
        changed = given(text=text) | labels
        corrected = said_in is not UNSET
        if corrected:
            entry = self._correction(said_in, user)
            now, trust = entry.message.created_at, least_trusted((item.source, entry.source))
            changed |= {"sources": (said_in,), "source": trust}
        new = replace(item, id=new_id(), created_at=now, **changed)
        reason = CORRECTED if corrected else EDITED
        change = Supersede(old_id=id, record=new, at=now, reason=reason, alone=not corrected)
        self._store.apply(self._scope(user), [change], by_hand=True)
        self._runtime.wake()
        return new.id

    def _correction(self, message_id: str, user: str) -> LogEntry:
        for entry in self._store.find(self._scope(user), [check_text(message_id, "said_in")]):
            return entry
        raise NotFoundError("said_in names no message of this user")

    def chain(self, id: str, *, user: str) -> List[MemoryItem]:
        """The memories that superseded one another, with this one among them, oldest first."""
        self.get(id, user=user)
        chained = self._store.chain(self._scope(user), id)
        return [item for item in chained if isinstance(item, MemoryItem)]

    def get(self, id: str, *, user: str) -> MemoryItem:
        """One memory, also one that has ended; `NotFoundError` where there is none."""
        return self._record(MemoryItem, "memory", id, user)

    def retract(self, id: str, *, user: str, reason: str = "") -> None:
        """Take a memory or a fact back as wrong; it stays visible as once believed."""
        check_key(reason, "reason", max_bytes=MAX_SHORT_BYTES)
        check_text(id, "id")
        change = Retract(id=id, reason=reason, at=self._runtime.clock())
        self._store.apply(self._scope(user), [change], by_hand=True)

    def undo(self, id: str, *, user: str) -> List[Change]:
        """Take back the last change of a memory or a fact; return what that changed."""
        from memorist.lifecycle.undoing import undone

        scope = self._scope(user)
        changes = undone(self._store, scope, id, self._runtime.clock())
        self._store.apply(scope, changes, by_hand=True)
        self._runtime.wake()
        return changes

    def maintain(self, *, user: str, agent: str | None = None, dry_run: bool = False) -> Maintained:
        """Expire, promote and prune by policy and retention; or only say what would be done."""
        from memorist.lifecycle.policy import maintain

        runtime, scope = self._runtime, self._scope(user, agent)
        return maintain(
            self._store, scope, runtime.extraction_settings, runtime.clock(), dry_run=dry_run
        )

    def audit(self, *, user: str, agent: str | None = None, max_bytes: int | None = None) -> Audit:
        """Which memories are junk, duplicates, stale, contradictory or hold secrets."""
        from memorist.lifecycle.audit import audit
        from memorist.lifecycle.neighbours import read_all

        scope, now = self._scope(user, agent), self._runtime.clock()
        items, facts = read_all(self._store, scope, now, max_bytes)
        return audit(items, facts, now=now)
