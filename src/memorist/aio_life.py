"""AsyncLife: what AsyncMemory does with what was derived, one line per method."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar, Unpack

from memorist.life import About, Told, Triple
from memorist.memory import Memory
from memorist.records.change import Change
from memorist.records.fact import Fact
from memorist.records.log import Job
from memorist.records.memory_item import MemoryItem

if TYPE_CHECKING:
    from memorist.lifecycle.audit import Audit
    from memorist.lifecycle.maintenance import Maintained

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Run a call in a thread and wait for it without blocking the loop."""
    import asyncio  # here, so that `import memorist` stays light

    return await asyncio.to_thread(call, *args, **named)


class AsyncLife:
    """`Life` for asyncio."""

    _memory: Memory

    async def memories(
        self,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        current: bool = True,
    ) -> list[MemoryItem]:
        call = self._memory.memories
        return await in_thread(call, user=user, agent=agent, session=session, current=current)

    async def add_memory(
        self,
        text: str,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        **about: Unpack[About],
    ) -> str:
        call = partial(self._memory.add_memory, text, **about)
        return await in_thread(call, user=user, agent=agent, session=session)

    async def facts(
        self,
        *,
        user: str,
        agent: str | None = None,
        subject: str | None = None,
        predicate: str | None = None,
    ) -> list[Fact]:
        call = self._memory.facts
        return await in_thread(call, user=user, agent=agent, subject=subject, predicate=predicate)

    async def as_of(
        self,
        *,
        user: str,
        agent: str | None = None,
        valid: datetime | None = None,
        known: datetime | None = None,
    ) -> list[Fact]:
        call = self._memory.as_of
        return await in_thread(call, user=user, agent=agent, valid=valid, known=known)

    async def add_fact(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        user: str,
        agent: str | None = None,
        **told: Unpack[Told],
    ) -> str:
        call = partial(self._memory.add_fact, user=user, agent=agent, **told)
        return await in_thread(call, subject, predicate, object)

    async def change_fact(self, id: str, *, user: str, **triple: Unpack[Triple]) -> str:
        return await in_thread(partial(self._memory.change_fact, **triple), id, user=user)

    async def retract(self, id: str, *, user: str, reason: str = "") -> None:
        await in_thread(self._memory.retract, id, user=user, reason=reason)

    async def undo(self, id: str, *, user: str) -> list[Change]:
        return await in_thread(self._memory.undo, id, user=user)

    async def maintain(
        self, *, user: str, agent: str | None = None, dry_run: bool = False
    ) -> Maintained:
        return await in_thread(self._memory.maintain, user=user, agent=agent, dry_run=dry_run)

    async def audit(self, *, user: str, agent: str | None = None) -> Audit:
        return await in_thread(self._memory.audit, user=user, agent=agent)

    async def jobs(self, *, user: str, dead: bool | None = None) -> list[Job]:
        return await in_thread(self._memory.jobs, user=user, dead=dead)

    async def retry(self, job_id: int, *, user: str) -> None:
        await in_thread(self._memory.retry, job_id, user=user)
