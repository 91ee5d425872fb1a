"""Life: what Memory does with what was derived. Facts, memories, upkeep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from memorist.errors import InvalidError, NotFoundError
from memorist.lifecycle.candidate import Candidate, Claim
from memorist.lifecycle.settings import DEFAULT_EXTRACTION, Extraction
from memorist.records.change import Add, Change, Reinforce, Retract, Supersede
from memorist.records.fact import Fact, topic_of
from memorist.records.ids import new_id
from memorist.records.log import Job, least_trusted
from memorist.records.memory_item import Kind, MemoryItem
from memorist.records.scope import Scope
from memorist.records.text import check_text
from memorist.store.base import Store

if TYPE_CHECKING:  # the rest is imported where it is used: `import memorist` stays light
    from memorist.lifecycle.audit import Audit
    from memorist.lifecycle.maintenance import Maintained


class About(TypedDict, total=False):
    """What may be said of a memory that is added outright."""

    kind: Kind
    category: str
    importance: float
    tags: tuple[str, ...]
    source: str
    sources: tuple[str, ...]
    expires_at: datetime


class Told(TypedDict, total=False):
    """What may be said of a fact that is added outright; `Claim` says what each means."""

    single: bool | None
    ends: bool
    corrects: bool
    valid_from: datetime
    valid_to: datetime
    source: str
    sources: tuple[str, ...]


class Triple(TypedDict, total=False):
    """What a fact says."""

    subject: str
    predicate: str
    object: str


class Life:
    """The part of Memory that looks after what was derived from the log."""

    store: Store
    extraction: Extraction | None
    _clock: Callable[[], datetime]
    scope: Callable[..., Scope]
    wake: Callable[[], None]

    def memories(
        self,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        current: bool = True,
    ) -> list[MemoryItem]:
        """The memories in the scope, oldest first; with `current`, those that have not ended."""
        return self.store.items(
            self.scope(user=user, agent=agent, session=session), current=current
        )

    def add_memory(
        self,
        text: str,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        **about: Unpack[About],
    ) -> str:
        """Keep a memory outright, and return its id; one that says the same is reinforced."""
        from memorist.lifecycle.policy import judged

        if not isinstance(text, str) or not text.strip():
            raise InvalidError("a memory needs text")
        check_text(text, "text")
        given: dict[str, Any] = {"sources": (), **about}
        candidate = judged(
            Candidate(text=text, said_at=self._clock(), **given), policy=self._extraction.policy
        )
        changes = self._keep(self.scope(user=user, agent=agent, session=session), candidate)
        return _first_id(changes)

    def facts(
        self,
        *,
        user: str,
        agent: str | None = None,
        subject: str | None = None,
        predicate: str | None = None,
    ) -> list[Fact]:
        """The facts that hold now, in the order they were learnt."""
        found = self.as_of(user=user, agent=agent, valid=self._clock())
        if subject is not None and predicate is not None:
            return [fact for fact in found if fact.topic == topic_of(subject, predicate)]
        wanted = {"subject": subject, "predicate": predicate}
        return [
            fact
            for fact in found
            if all(value in (None, getattr(fact, name)) for name, value in wanted.items())
        ]

    def as_of(
        self,
        *,
        user: str,
        agent: str | None = None,
        valid: datetime | None = None,
        known: datetime | None = None,
    ) -> list[Fact]:
        """The facts that were true at one moment, as far as was known at another.

        Without `valid`, those of all times; without `known`, by what is known now.
        """
        scope = self.scope(user=user, agent=agent)
        return self.store.facts(scope, valid_at=valid, known_at=known)

    def add_fact(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        user: str,
        agent: str | None = None,
        **told: Unpack[Told],
    ) -> str:
        """Add a fact, settled with those of its subject and predicate; return its id.

        With `single`, it takes the place of the one that held, as it does by itself where a
        predicate such as "employer" has one object at a time; with `single=False` it never does.
        With `corrects`, the other is taken back; with `ends`, the fact holds no longer.
        """
        for name in ("single", "ends", "corrects"):
            if not isinstance(told.get(name) or False, bool):
                raise InvalidError(f"{name} must be true or false")
        for name, said in (("subject", subject), ("predicate", predicate), ("object", object)):
            check_text(said, name)
        scope, now = self.scope(user=user, agent=agent), self._clock()
        claim = Claim(
            subject=subject,
            predicate=predicate,
            object=object,
            valid_from=told.get("valid_from"),
            valid_to=told.get("valid_to"),
            single=told.get("single"),
            ends=told.get("ends", False),
        )
        candidate = Candidate(
            text="",
            said_at=now,
            source=told.get("source", "user"),
            claims=(claim,),
            sources=tuple(told.get("sources", ())),
            corrects=told.get("corrects", False),
        )
        return _first_id(self._keep(scope, candidate))

    def change_fact(self, id: str, *, user: str, **triple: Unpack[Triple]) -> str:
        """Let a fact say something else from now on; what it said stays in the past. Its new id."""
        scope, now = self.scope(user=user), self._clock()
        found = self.store.records(scope, [id])
        if not found or not isinstance(found[0], Fact):
            raise NotFoundError("no fact with this id for this user")
        if not found[0].holds(now):
            raise InvalidError("this fact holds no longer; add another one")
        new = replace(found[0], id=new_id(), valid_from=now, known_from=now, memory=None, **triple)
        why = "changed outright"
        self.store.apply(scope, [Supersede(old_id=id, record=new, at=now, reason=why)])
        self.wake()
        return new.id

    def retract(self, id: str, *, user: str, reason: str = "") -> None:
        """Take a memory or a fact back: it was wrong. It stays visible as once believed."""
        from memorist.lifecycle.keep import facts_of

        scope, now = self.scope(user=user), self._clock()
        records = self.store.records(scope, [check_text(id, "id")])
        ids = [id, *(fact.id for record in records for fact in facts_of(self.store, scope, record))]
        self.store.apply(scope, [Retract(id=one, reason=reason, at=now) for one in ids])

    def undo(self, id: str, *, user: str) -> list[Change]:
        """Take back the last thing that happened to a memory or a fact; say what that changed."""
        from memorist.lifecycle.keep import undone

        scope = self.scope(user=user)
        changes = undone(self.store, scope, id, self._clock())
        self.store.apply(scope, changes)
        self.wake()
        return changes

    def maintain(self, *, user: str, agent: str | None = None, dry_run: bool = False) -> Maintained:
        """Expire, promote and make room, by policy and retention; or only say what would be."""
        from memorist.lifecycle.maintenance import maintain

        scope = self.scope(user=user, agent=agent)
        return maintain(self.store, scope, self._extraction, self._clock(), dry_run=dry_run)

    def audit(self, *, user: str, agent: str | None = None) -> Audit:
        """Which memories are junk, doubled, stale, contradictory or hold secrets."""
        from memorist.lifecycle.audit import audit

        scope, now = self.scope(user=user, agent=agent), self._clock()
        items = self.store.items(scope, current=False)
        return audit(
            [item for item in items if item.ended_at is None],
            self.store.facts(scope, valid_at=now),
            now=now,
        )

    def jobs(self, *, user: str, dead: bool | None = None) -> list[Job]:
        """What waits to be thought about, what was given up (`dead`), or both."""
        return self.store.jobs(self.scope(user=user), dead=dead)

    def retry(self, job_id: int, *, user: str) -> None:
        """Give a job that was given up another life."""
        self.store.retry(self.scope(user=user), job_id)
        self.wake()

    @property
    def _extraction(self) -> Extraction:
        return self.extraction or DEFAULT_EXTRACTION

    def _keep(self, scope: Scope, candidate: Candidate) -> list[Change]:
        from memorist.lifecycle.keep import keep

        cited = self.store.find(scope.whole_user(), candidate.sources) if candidate.sources else []
        if cited:  # it is trusted as the least trusted of what it is said to come of
            sources = (candidate.source, *(entry.source for entry in cited))
            candidate = replace(candidate, source=least_trusted(sources))
        changes = keep(self.store, scope, candidate, self._extraction.policy, self._clock)
        self.wake()
        return changes


def _first_id(changes: list[Change]) -> str:
    for change in changes:
        if isinstance(change, Add | Supersede):
            return change.record.id
        if isinstance(change, Reinforce):
            return change.id
    return ""
