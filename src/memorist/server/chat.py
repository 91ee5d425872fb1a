"""The server's own agent: what it is made of, and one turn of a conversation with it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from memorist.agents.overflow import is_overflow
from memorist.agents.tool_schema import Limit, Question, RecalledItem
from memorist.agents.toolbox import Toolbox
from memorist.aio import in_thread
from memorist.config import Settings
from memorist.context.window import Context, Window
from memorist.errors import ConflictError, MemoristError, ProviderError, WindowError
from memorist.memory import Memory
from memorist.providers.images import refuse_image
from memorist.records.query import Recall
from memorist.server.chat_model import open_langchain_model, system_of, window_of
from memorist.server.question import Asked, Replied, replied

if TYPE_CHECKING:  # LangChain is needed only where there is a model
    from memorist.agents.react import ReactAgent

SYSTEM = "You are a helpful assistant with a lasting memory of this user."
TOOLS = ("recall", "store_fact", "manage_long_term_memory", "retrieve_context")
WINDOW = Window(max_tokens=16_000, answer_tokens=1_000)
MOST_AGENTS = 256  # that are kept in hand: to make one takes 25 ms
MOST_WAITING = 256  # events that a slow reader has not taken yet
HITS = 20
BUSY = "this question is being answered at this moment; wait, then send it again"
CURE = "; shorten the message, or fit MEMORIST_MODEL_WINDOW to what the model takes in"

log = logging.getLogger("memorist.server")
answering: ContextVar[str | None] = ContextVar("answering", default=None)
"""The id of the question that the running turn answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    """How the agent talks: its prompt, its window, its memory tools, how long a turn may take.

    `deadline_ms` is recall's. While nothing is said for `heartbeat_s`, a stream shows that it
    lives. Who sends again what is being answered waits `patience_s` for the end of that.
    """

    system: str = SYSTEM
    window: Window = WINDOW
    tools: Sequence[str] = TOOLS
    deadline_ms: float | None = 50.0
    longest_s: float = 600.0
    heartbeat_s: float = 15.0
    patience_s: float = 10.0


DEFAULT = ChatSettings()


Ended = BaseException | None


@dataclass
class Chats:
    """A model, or none, and the agents that talk by it, one for each user and agent."""

    model: Any = None
    settings: ChatSettings = DEFAULT
    _agents: OrderedDict[tuple[str, str, str | None], ReactAgent] = field(
        default_factory=OrderedDict
    )
    _turns: dict[tuple[str, str, str], asyncio.Task[None]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, settings: Settings, how: ChatSettings = DEFAULT) -> Chats:
        """With the model that settings name; where it cannot be opened, a ConfigError says why."""
        window = window_of(settings, how.window)
        how = replace(how, window=window, system=system_of(settings, how.system, window))
        return cls(open_langchain_model(settings), how)

    async def before(self, memory: Memory, asked: Asked) -> Replied:
        """What was replied to a question that is sent again, once nobody is about to answer it."""
        if (going := self._turns.get(asked.place)) is not None:
            await asyncio.wait({going}, timeout=self.settings.patience_s)
        if asked.place in self._turns:
            raise ConflictError(BUSY)
        return await in_thread(replied, memory, asked)

    def unanswered(self, asked: Asked) -> Context:
        """Store the question, and say what a model would have been given for it."""
        asked.chat.remember(asked.message)
        how = self.settings
        try:
            context = asked.chat.context(
                asked.message,
                system=how.system,
                window=how.window,
                deadline_ms=how.deadline_ms,
                read_image=refuse_image,
            )
        except WindowError:
            size = how.window.max_tokens
            raise WindowError(
                f"the message does not fit a window of {size:,} tokens{CURE}"
            ) from None
        return replace(context, recall=told(context.recall, asked.id))

    async def answered(self, memory: Memory, asked: Asked) -> AsyncGenerator[Any, None]:
        """What the agent does, as it does it, and at the end its response.

        Whoever stops listening ends the work; what had been said by then is stored. A question
        is answered by one at a time.
        """
        if asked.place in self._turns:
            raise ConflictError(BUSY)
        queue: asyncio.Queue[Any] = asyncio.Queue(MOST_WAITING)
        work = asyncio.create_task(self._work(memory, asked, queue))
        self._turns[asked.place] = work
        work.add_done_callback(lambda _: self._turns.pop(asked.place, None))
        try:
            while not isinstance(event := await queue.get(), Ended):
                yield event
            if event is not None:
                raise event
        finally:
            work.cancel()

    async def close(self) -> None:
        """End all turns, and wait until what was said is stored."""
        going = list(self._turns.values())
        for work in going:
            work.cancel()
        if going:
            await asyncio.wait(going)

    async def _work(self, memory: Memory, asked: Asked, queue: asyncio.Queue[Any]) -> None:
        end: Ended = None
        try:
            await self._talk(memory, asked, queue)
        except MemoristError as error:
            end = error
        await queue.put(end)

    async def _talk(self, memory: Memory, asked: Asked, queue: asyncio.Queue[Any]) -> None:
        try:
            async with asyncio.timeout(self.settings.longest_s):
                so_far = await in_thread(replied, memory, asked) if asked.again else Replied()
                if so_far.answer is not None:
                    raise ConflictError("somebody was answered just now; send it again to hear it")
                agent = await in_thread(self._agent, memory, asked.chat.session.scope)
                answering.set(asked.id)  # of this task, and of all that it starts
                said = agent.astream(
                    str(asked.message.content),
                    asked.chat.id,
                    asked_id=asked.id,
                    replied=so_far.number,
                )
                async with aclosing(said):
                    async for event in said:
                        await queue.put(event)
        except MemoristError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the model or its client does
            raise _failure(error) from None

    def _agent(self, memory: Memory, scope: Any) -> ReactAgent:
        """The agent of this user, which keeps what could not be stored yet."""
        key = memory.tenant_name, scope.user, scope.agent
        with self._lock:
            if key not in self._agents:
                self._agents[key] = self._made(memory, scope)
            self._agents.move_to_end(key)
            while len(self._agents) > MOST_AGENTS:
                self._agents.popitem(last=False)
            return self._agents[key]

    def _made(self, memory: Memory, scope: Any) -> ReactAgent:
        from memorist.agents.react import ReactAgent

        return ReactAgent(
            self.model,
            memory,
            user=scope.user,
            agent=scope.agent,
            tools=self._tools(memory, scope),
            system=self.settings.system,
            window=self.settings.window,
            deadline_ms=self.settings.deadline_ms,
            grow=True,
            tell_recall=True,
            read_image=refuse_image,
        )

    def _tools(self, memory: Memory, scope: Any) -> Sequence[Any]:
        from memorist.agents.tools import memory_tools
        from memorist.views.library import Library

        if not self.settings.tools:
            return ()
        box = ChatTools(
            memory,
            user=scope.user,
            agent=scope.agent,
            library=Library(memory, user=scope.user),
            window=self.settings.window,
        )
        return memory_tools(box, only=self.settings.tools, system=self.settings.system)


class ChatTools(Toolbox):
    """The toolbox, by which a model does not find the very question that it answers."""

    __slots__ = ()

    def recall(self, query: Question, limit: Limit = 10) -> list[RecalledItem]:
        found = Toolbox.recall(self, query, limit + 1)
        return [one for one in found if one["id"] != answering.get()][:limit]


def told(recall: Recall, asked_id: str) -> Recall:
    """The best of what was recalled, without the question itself."""
    hits = [hit for hit in recall.hits if hit.id != asked_id]
    return replace(recall, hits=tuple(hits[:HITS]))


def _failure(error: Exception) -> MemoristError:
    """What went wrong with the model, without its words: they may quote the user's."""
    kind, status = type(error).__name__, getattr(error, "status_code", None)
    log.warning("the model failed: %s %s", kind, status or "")
    if isinstance(error, TimeoutError):
        return ProviderError("the model took too long to answer")
    if is_overflow(error):
        return WindowError(f"the model takes in less than it was sent{CURE}")
    said = f"{kind}, status {status}" if isinstance(status, int) else kind
    return ProviderError(
        f"the model failed ({said}); ask again by the asked_id that is told beside this",
        status=status if isinstance(status, int) else None,
    )
