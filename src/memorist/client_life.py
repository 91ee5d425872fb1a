"""RemoteLife: what a server's memory does with what was derived. Facts, memories, upkeep."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, get_args

from memorist.errors import NotFoundError
from memorist.life import About, Told, Triple
from memorist.providers.http import Connection, part
from memorist.records.change import Change
from memorist.records.decode import from_plain
from memorist.records.fact import Fact
from memorist.records.log import Job
from memorist.records.memory_item import MemoryItem

if TYPE_CHECKING:
    from memorist.lifecycle.audit import Audit
    from memorist.lifecycle.maintenance import Maintained

T = TypeVar("T")


class RemoteLife:
    """The part of a client that looks after what was derived from the log."""

    _connection: Connection

    def memories(
        self,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        current: bool = True,
    ) -> list[MemoryItem]:
        """The memories in the scope, oldest first; with `current`, those that have not ended."""
        return self._all(
            MemoryItem, "/api/memories", user=user, agent=agent, session=session, current=current
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
        where = {"user": user, "agent": agent, "session": session}
        return self._added("/api/memories", {"text": text, **where, **_plain(about)})

    def facts(
        self,
        *,
        user: str,
        agent: str | None = None,
        subject: str | None = None,
        predicate: str | None = None,
    ) -> list[Fact]:
        """The facts that hold now, in the order they were learnt."""
        return self._all(
            Fact, "/api/facts", user=user, agent=agent, subject=subject, predicate=predicate
        )

    def as_of(
        self,
        *,
        user: str,
        agent: str | None = None,
        valid: datetime | None = None,
        known: datetime | None = None,
    ) -> list[Fact]:
        """The facts that were true at one moment, as far as was known at another."""
        return self._all(
            Fact,
            "/api/facts",
            user=user,
            agent=agent,
            valid=valid,
            known=known,
            always=valid is None and known is None,
        )

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
        """Add a fact, settled with those of its subject and predicate; return its id."""
        triple = {"subject": subject, "predicate": predicate, "object": object}
        return self._added("/api/facts", {**triple, "user": user, "agent": agent, **_plain(told)})

    def change_fact(self, id: str, *, user: str, **triple: Unpack[Triple]) -> str:
        """Let a fact say something else from now on; what it said stays in the past. Its new id."""
        told = self._connection.call("PATCH", f"/api/facts/{part(id)}", {"user": user, **triple})
        return str(told["id"])

    def retract(self, id: str, *, user: str, reason: str = "") -> None:
        """Take a memory or a fact back: it was wrong. It stays visible as once believed."""
        self._either(id, "retract", {"user": user, "reason": reason})

    def undo(self, id: str, *, user: str) -> list[Change]:
        """Take back the last thing that happened to a memory or a fact; say what that changed."""
        told = self._either(id, "undo", {"user": user})
        return [change_of(one["change"], one["what"]) for one in told["changes"]]

    def maintain(self, *, user: str, agent: str | None = None, dry_run: bool = False) -> Maintained:
        """Expire, promote and make room, by policy and retention; or only say what would be."""
        from memorist.lifecycle.maintenance import Maintained

        body = {"user": user, "agent": agent, "dry_run": dry_run}
        told = self._connection.call("POST", "/api/maintain", body)
        changes: Any = tuple(change_of(one["change"], one["what"]) for one in told["changes"])
        return Maintained(changes=changes, dry_run=told["dry_run"])

    def audit(self, *, user: str, agent: str | None = None) -> Audit:
        """Which memories are junk, doubled, stale, contradictory or hold secrets."""
        from memorist.lifecycle.audit import Audit

        return from_plain(
            Audit, self._connection.call("GET", "/api/audit", query={"user": user, "agent": agent})
        )

    def jobs(self, *, user: str, dead: bool | None = None) -> list[Job]:
        """What waits to be thought about, what was given up (`dead`), or both."""
        return self._all(Job, "/api/jobs", user=user, dead=dead)

    def retry(self, job_id: int, *, user: str) -> None:
        """Give a job that was given up another life."""
        self._connection.call("POST", f"/api/jobs/{job_id}/retry", {"user": user})

    def _added(self, path: str, body: Mapping[str, Any]) -> str:
        return str(self._connection.call("POST", path, body, idempotent=True)["id"] or "")

    def _all(self, kind: type[T], path: str, **query: Any) -> list[T]:
        """Every item of a list, page by page."""
        return [from_plain(kind, item) for item in self._connection.pages(path, query)]

    def _either(self, id_: str, then: str, body: Mapping[str, Any]) -> Any:
        """What comes of asking for something to be done to a memory, or else to a fact."""
        try:
            return self._connection.call("POST", f"/api/memories/{part(id_)}/{then}", body)
        except NotFoundError:
            return self._connection.call("POST", f"/api/facts/{part(id_)}/{then}", body)


def change_of(name: str, told: Mapping[str, Any]) -> Change:
    """A change by its name."""
    kind: Any = {kind.__name__.lower(): kind for kind in get_args(Change)}[name]
    if "record" not in told:
        made: Change = from_plain(kind, told)
        return made
    record: Any = Fact if "predicate" in told["record"] else MemoryItem
    rest = {key: value for key, value in told.items() if key != "record"}
    if "at" in rest:
        rest["at"] = datetime.fromisoformat(rest["at"])
    made = kind(record=from_plain(record, told["record"]), **rest)
    return made  # noqa: RET504 - it gives the type a name


def _plain(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in given.items()
    }
