"""AsyncMemory: the same memory for asyncio, one line per method."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from recollect.chat import Chat
from recollect.memory import Memory, Remembered, Said
from recollect.records.ids import now
from recollect.records.log import Source
from recollect.records.message import Message
from recollect.records.query import Forgotten, Recall
from recollect.records.session import Session
from recollect.store.base import Store


class AsyncChat:
    """`Chat` for asyncio."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self.session = chat.session

    @property
    def id(self) -> str:
        return self._chat.id

    async def add(self, role: str, content: Any = None, **fields: Any) -> str:
        return await asyncio.to_thread(self._chat.add, role, content, **fields)

    async def remember(self, message: Message) -> str:
        return await asyncio.to_thread(self._chat.remember, message)

    async def history(self, last: int | None = None) -> list[Message]:
        return await asyncio.to_thread(self._chat.history, last)

    async def recall(self, question: str, *, limit: int = 10) -> Recall:
        return await asyncio.to_thread(self._chat.recall, question, limit=limit)


class AsyncMemory:
    """`Memory` for asyncio: each call runs in a thread, so that the loop stays free."""

    def __init__(
        self,
        store: Store | str | os.PathLike[str] | None = None,
        *,
        tenant: str | None = None,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._memory = Memory(store, tenant=tenant, clock=clock)

    async def session(
        self, *, user: str, agent: str = "", id: str | None = None, new: bool = False
    ) -> AsyncChat:
        call = self._memory.session
        return AsyncChat(await asyncio.to_thread(call, user=user, agent=agent, id=id, new=new))

    async def sessions(self, *, user: str, agent: str | None = None) -> list[Session]:
        return await asyncio.to_thread(self._memory.sessions, user=user, agent=agent)

    async def remember(
        self,
        said: Said | Iterable[Said],
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        source: Source | None = None,
    ) -> Remembered:
        named = {"user": user, "agent": agent, "session": session, "source": source}
        return await asyncio.to_thread(self._memory.remember, said, **named)  # type: ignore[arg-type]

    async def history(
        self,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        last: int | None = None,
        role: str | None = None,
    ) -> list[Message]:
        named = {"user": user, "agent": agent, "session": session, "last": last, "role": role}
        return await asyncio.to_thread(self._memory.history, **named)  # type: ignore[arg-type]

    async def recall(
        self,
        question: str,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        limit: int = 10,
    ) -> Recall:
        named = {"user": user, "agent": agent, "session": session, "limit": limit}
        return await asyncio.to_thread(self._memory.recall, question, **named)  # type: ignore[arg-type]

    async def forget(
        self,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        message: str | None = None,
        everything: bool = False,
    ) -> Forgotten:
        named = {"agent": agent, "session": session, "message": message}
        return await asyncio.to_thread(
            self._memory.forget, user=user, everything=everything, **named
        )

    async def close(self) -> None:
        await asyncio.to_thread(self._memory.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
