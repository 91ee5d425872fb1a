"""AsyncMemory: the same memory for asyncio, one line per method."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from memorist.aio_life import AsyncLife, in_thread
from memorist.chat import Chat
from memorist.context.window import Context, Window
from memorist.contexts import Given
from memorist.lifecycle.settings import Extraction
from memorist.memory import Memory
from memorist.providers.embedder import Embedder
from memorist.recall.fusion import DEFAULT_RANKING, Ranking
from memorist.records.ids import now
from memorist.records.inputs import UNSET, Remembered, Said, What
from memorist.records.log import Source
from memorist.records.message import Message
from memorist.records.query import NO_FILTERS, Filters, Forgotten, Only, Recall
from memorist.records.scope import Scope
from memorist.records.session import Session
from memorist.records.summary import Summary
from memorist.store.base import Store
from memorist.stream import Stream

if TYPE_CHECKING:
    from memorist.context.compression.compress import Compression


class AsyncStream:
    """`Stream` for asyncio: begins when the block is entered; a thread only where it stores."""

    _stream: Stream

    def __init__(self, begin: Callable[[], Stream]) -> None:
        self._begin = begin

    @property
    def id(self) -> str:
        return self._stream.id

    @property
    def message(self) -> Message:
        return self._stream.message

    async def write(self, text: str) -> None:
        if self._stream.gather(text):
            await self.flush()

    async def flush(self) -> None:
        await in_thread(self._stream.flush)

    async def finish(self, **fields: Any) -> None:
        await in_thread(self._stream.finish, **fields)

    async def __aenter__(self) -> Self:
        self._stream = await in_thread(self._begin)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await in_thread(self._stream.__exit__, kind, error, trace)


class AsyncChat:
    """`Chat` for asyncio."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self.session = chat.session

    @property
    def id(self) -> str:
        return self._chat.id

    async def add(self, role: str, content: Any = None, **fields: Any) -> str:
        return await in_thread(self._chat.add, role, content, **fields)

    async def remember(self, message: Message) -> str:
        return await in_thread(self._chat.remember, message)

    def stream(
        self,
        role: str = "assistant",
        *,
        name: str | None = None,
        flush_s: float = 0.1,
        flush_chars: int = 2_000,
    ) -> AsyncStream:
        begin = partial(self._chat.stream, role, name=name)
        return AsyncStream(partial(begin, flush_s=flush_s, flush_chars=flush_chars))

    async def follow(self, message_id: str, timeout_s: float = 30.0) -> AsyncIterator[str]:
        pieces = self._chat.follow(message_id, timeout_s)
        while (piece := await in_thread(next, pieces, None)) is not None:
            yield piece

    async def history(self, last: int | None = None) -> list[Message]:
        return await in_thread(self._chat.history, last)

    async def recall(
        self,
        question: str,
        *,
        limit: int = 10,
        deadline_ms: float | None = 50.0,
        **only: Unpack[Only],
    ) -> Recall:
        call = self._chat.recall
        return await in_thread(call, question, limit=limit, deadline_ms=deadline_ms, **only)

    async def context(
        self, question: str | Message, *, max_tokens: int | None = None, **given: Unpack[Given]
    ) -> Context:
        return await in_thread(self._chat.context, question, max_tokens=max_tokens, **given)

    async def compress(self, window: Window | None = None) -> Compression | None:
        return await in_thread(self._chat.compress, window)


class AsyncMemory(AsyncLife):
    """`Memory` for asyncio: each call runs in a thread, so that the loop stays free."""

    def __init__(
        self,
        store: Store | str | os.PathLike[str] | None = None,
        *,
        tenant: str | None = None,
        embedder: Embedder | None = UNSET,
        ranking: Ranking = DEFAULT_RANKING,
        extraction: Extraction | None = UNSET,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._memory = Memory(
            store,
            tenant=tenant,
            embedder=embedder,
            ranking=ranking,
            extraction=extraction,
            clock=clock,
        )

    def of_tenant(self, tenant: str) -> AsyncMemory:
        other = object.__new__(type(self))
        other._memory = self._memory.of_tenant(tenant)
        return other

    def scope(self, *, user: str, agent: str | None = None, session: str | None = None) -> Scope:
        return self._memory.scope(user=user, agent=agent, session=session)

    async def session(
        self,
        *,
        user: str,
        agent: str | None = None,
        id: str | None = None,
        new: bool = False,
        claimed: str | None = None,
    ) -> AsyncChat:
        call = self._memory.session
        return AsyncChat(
            await in_thread(call, user=user, agent=agent, id=id, new=new, claimed=claimed)
        )

    async def active(self, *, user: str, agent: str | None = None) -> Session | None:
        return await in_thread(self._memory.active, user=user, agent=agent)

    async def sessions(self, *, user: str, agent: str | None = None) -> list[Session]:
        return await in_thread(self._memory.sessions, user=user, agent=agent)

    async def remember(
        self,
        said: Said | Iterable[Said],
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        source: Source | None = None,
    ) -> Remembered:
        call = self._memory.remember
        return await in_thread(call, said, user=user, agent=agent, session=session, source=source)

    async def history(
        self,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        last: int | None = None,
        role: str | None = None,
    ) -> list[Message]:
        call = self._memory.history
        return await in_thread(call, user=user, agent=agent, session=session, last=last, role=role)

    async def recall(
        self,
        question: str,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        limit: int = 10,
        deadline_ms: float | None = 50.0,
        **only: Unpack[Only],
    ) -> Recall:
        call = partial(self._memory.recall, limit=limit, deadline_ms=deadline_ms, **only)
        return await in_thread(call, question, user=user, agent=agent, session=session)

    async def context(
        self,
        question: str | Message,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        max_tokens: int | None = None,
        **given: Unpack[Given],
    ) -> Context:
        call = partial(self._memory.context, question, max_tokens=max_tokens, **given)
        return await in_thread(call, user=user, agent=agent, session=session)

    async def compress(
        self, *, user: str, session: str, window: Window | None = None
    ) -> Compression | None:
        return await in_thread(self._memory.compress, user=user, session=session, window=window)

    async def summaries(self, *, user: str, session: str) -> list[Summary]:
        return await in_thread(self._memory.summaries, user=user, session=session)

    async def search(
        self,
        scope: Scope,
        question: str,
        *,
        limit: int,
        deadline_ms: float | None,
        filters: Filters = NO_FILTERS,
    ) -> Recall:
        call = partial(self._memory.search, limit=limit, deadline_ms=deadline_ms, filters=filters)
        return await in_thread(call, scope, question)

    async def waiting(self) -> dict[str, int]:
        return await in_thread(self._memory.waiting)

    async def wake(self) -> None:
        await in_thread(self._memory.wake)

    async def warm_up(self) -> None:
        await in_thread(self._memory.warm_up)

    async def catch_up(self, timeout_s: float | None = None) -> int:
        return await in_thread(self._memory.catch_up, timeout_s)

    async def forget(
        self,
        *,
        user: str,
        agent: str = UNSET,
        session: str = UNSET,
        everything: bool = False,
        scrub: bool = True,
        **what: Unpack[What],
    ) -> Forgotten:
        call = partial(self._memory.forget, everything=everything, scrub=scrub, **what)
        return await in_thread(call, user=user, agent=agent, session=session)

    async def scrub(self) -> str:
        return await in_thread(self._memory.scrub)

    async def close(self) -> None:
        await in_thread(self._memory.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
