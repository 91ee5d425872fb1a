"""AutoGen's door: `AssistantAgent(…, memory=[MemoristMemory(memory, user="ada")])`."""

from __future__ import annotations

import base64
import logging
from asyncio import to_thread
from collections.abc import Iterable, Sequence
from typing import Any

from memorist.errors import ProviderError, StoreError, needs_extra
from memorist.memory import Memory
from memorist.records.entry import findable
from memorist.records.log import Source
from memorist.records.message import Message
from memorist.records.query import Hit
from memorist_adapters.remembered import DEADLINE_MS, remembered

with needs_extra("autogen", "memorist-adapters"):
    from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage, MultiModalMessage
    from autogen_core import CancellationToken, Image
    from autogen_core.memory import Memory as AutogenMemory
    from autogen_core.memory import (
        MemoryContent,
        MemoryMimeType,
        MemoryQueryResult,
        UpdateContextResult,
    )
    from autogen_core.model_context import ChatCompletionContext
    from autogen_core.models import LLMMessage, SystemMessage

KEPT = "autogen"  # where a message keeps what a MemoryContent holds besides its content
HITS = 8
PATIENCE_MS = 1_000.0  # whoever asks outright can wait longer than a reply can

log = logging.getLogger("memorist")


class MemoristMemory(AutogenMemory):
    """What is remembered of a user, as the memory of an AutoGen agent.

        mine = MemoristMemory(memory, user="ada", agent="tutor")
        agent = AssistantAgent("tutor", model_client, memory=[mine])
        result = await agent.run(task="Where do I live?")
        await mine.remember(result.messages)

    It is the user's memory with this agent, in all sessions, or that of one session. `source`
    says how far what is added is trusted, `"web"` for what comes from strangers.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        limit: int = HITS,
        source: Source | None = None,
    ) -> None:
        self._memory = memory
        self._scope = memory.scope(user=user, agent=agent, session=session)
        self._limit = limit
        self._source = source
        self.deadline_ms: float | None = DEADLINE_MS  # for what the model is told; None waits

    async def add(
        self, content: MemoryContent, cancellation_token: CancellationToken | None = None
    ) -> None:
        """Store a content durably: its words can be recalled, all of it comes back."""
        await to_thread(self._add, content)

    async def query(
        self,
        query: str | MemoryContent,
        cancellation_token: CancellationToken | None = None,
        **kwargs: Any,
    ) -> MemoryQueryResult:
        """What bears on the query, best first; `limit=` and what narrows `Memory.recall` count."""
        question = query if isinstance(query, str) else _message(query).text
        return MemoryQueryResult(results=await to_thread(self._found, question, kwargs))

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Tell the model the notes and what is recalled for the newest message, quoted as data.

        AutoGen keeps it in the context, so what is there is not told again. Where the memory
        fails, nothing is told, a warning is logged, and the agent answers.
        """
        messages = await model_context.get_messages()
        said = [_text(message) for message in messages]
        try:
            text, contents = await to_thread(self._told, said)
        except (StoreError, ProviderError) as error:
            log.warning("the agent goes on without its memory: %s", error)
            text, contents = "", []
        if text:
            await model_context.add_message(SystemMessage(content=text))
        return UpdateContextResult(memories=MemoryQueryResult(results=contents))

    async def remember(self, messages: Iterable[BaseChatMessage | BaseAgentEvent]) -> int:
        """Store what was said in a run, as `result.messages` has it, each once; how many are new.

        It is a conversation of the user with this agent: the active one, unless one is named.
        """
        said = [_said(one) for one in messages if isinstance(one, BaseChatMessage)]
        done = await to_thread(self._memory.remember, said, **self._scope.names)
        return done.added

    async def clear(self) -> None:
        """Forget all that a query could find: the session named, or all of the agent's.

        Where neither is named that is everything of the user, whichever door it came by.
        """
        await to_thread(self._clear)

    async def close(self) -> None:
        """Nothing: whoever opened the memory closes it."""

    def _add(self, content: MemoryContent) -> None:
        # Not among what was said: it has a session of its own.
        own = f"autogen:{self._scope.agent}" if self._scope.agent else "autogen"
        named = {**self._scope.names, "session": self._scope.session or own}
        self._memory.remember(_message(content), source=self._source, **named)

    def _found(self, question: str, kwargs: dict[str, Any]) -> list[MemoryContent]:
        asked = {"limit": self._limit, "deadline_ms": PATIENCE_MS, **self._scope.names, **kwargs}
        found = self._memory.recall(question, **asked)
        if not found.hits and (silent := [*found.late, *found.failed]):
            # An empty list would say that nothing is known.
            raise StoreError(f"the memory could not be searched in time: {', '.join(silent)}")
        return self._contents(found.hits)

    def _told(self, said: Sequence[str]) -> tuple[str, list[MemoryContent]]:
        question = said[-1] if said else ""
        text, hits = remembered(
            self._memory,
            self._scope,
            question,
            said="\n".join(said),
            limit=self._limit,
            deadline_ms=self.deadline_ms,
        )
        return text, self._contents(hits)

    def _contents(self, hits: Iterable[Hit]) -> list[MemoryContent]:
        """What was found as AutoGen has it: as it was added, if it was."""
        hits = list(hits)
        ids = [hit.id for hit in hits if hit.kind == "message"]
        found = self._memory.messages.get(self._scope, ids) if ids else []
        messages = {entry.message.message_id: entry.message for entry in found}
        return [_content(hit, messages.get(hit.id)) for hit in hits]

    def _clear(self) -> None:
        scope, where = self._scope, dict[str, Any]()
        if scope.session is not None:
            where["session"] = scope.session
        elif scope.agent is not None:
            where["agent"] = scope.agent
        self._memory.forget(user=scope.user, everything=not where, scrub=False, **where)


def _message(content: MemoryContent) -> Message:
    mime = content.mime_type
    kept: dict[str, Any] = {
        "mime_type": mime.value if isinstance(mime, MemoryMimeType) else mime,
        "metadata": content.metadata,
    }
    said = content.content
    if isinstance(said, Image):
        return Message("user", "[image]", structured_data={KEPT: kept}, images=[said.data_uri])
    if isinstance(said, bytes):
        kept["bytes"] = base64.b64encode(said).decode()
        return Message("user", "[data]", structured_data={KEPT: kept})  # no words: nothing to find
    return Message("user", said, structured_data={KEPT: kept})


def _content(hit: Hit, message: Message | None) -> MemoryContent:
    told = {
        "id": hit.id,
        "kind": hit.kind,
        "score": hit.score,
        "why": str(hit.why),
        "when": hit.created_at.isoformat(),
    }
    kept = (message.structured_data or {}).get(KEPT) if message is not None else None
    if message is None or kept is None:
        return MemoryContent(content=hit.text, mime_type=MemoryMimeType.TEXT, metadata=told)
    said: Any = message.content
    if "bytes" in kept:
        said = base64.b64decode(kept["bytes"])
    elif message.images:
        said = Image.from_uri(message.images[0])
    metadata = {**told, **(kept["metadata"] or {})}
    mimes = {mime.value: mime for mime in MemoryMimeType}
    mime = mimes.get(kept["mime_type"], kept["mime_type"])
    return MemoryContent(content=said, mime_type=mime, metadata=metadata)


def _said(message: BaseChatMessage) -> Message:
    images = []
    if isinstance(message, MultiModalMessage):
        images = [part.data_uri for part in message.content if isinstance(part, Image)]
    return Message(
        "user" if message.source == "user" else "assistant",
        findable(message.to_model_text()),
        message.id,
        name=message.source,
        images=images,
        created_at=message.created_at,
    )


def _text(message: LLMMessage) -> str:
    """The words of a model's message, in whichever shape it has them."""
    parts = message.content if isinstance(message.content, list) else [message.content]
    words = [part if isinstance(part, str) else getattr(part, "content", "") for part in parts]
    return "\n".join(filter(None, words))
