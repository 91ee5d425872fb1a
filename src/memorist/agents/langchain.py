"""For LangChain: a lasting chat history, a retriever, and a summariser for its own middleware."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from memorist.agents.messages import entry_of, from_langchain, is_others_summary, to_langchain
from memorist.aio import in_thread
from memorist.context.compression.compress import DEFAULT, compress
from memorist.context.compression.summarizer import style_of
from memorist.context.tokens import TokenCounter
from memorist.context.window import Window
from memorist.errors import (
    ConflictError,
    InvalidError,
    MemoristError,
    MissingExtraError,
    ProviderError,
    StoreError,
)
from memorist.memory import Memory
from memorist.providers.chat_model import ChatModel
from memorist.records.documents import Summary
from memorist.records.message import Message, without_orphan_results
from memorist.records.query import Filters, Hit
from memorist.records.scope import Scope
from memorist.views.library import Library

try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage
    from langchain_core.retrievers import BaseRetriever
    from pydantic import Field, model_validator
except ImportError as error:
    raise MissingExtraError("langchain") from error

if TYPE_CHECKING:
    from memorist.agents.middleware import MemoristMiddleware
    from memorist.agents.toolbox import Toolbox
    from memorist.agents.tools import memory_tools

__all__ = [
    "MemoristChatMessageHistory",
    "MemoristMiddleware",
    "MemoristRetriever",
    "MemoristSummarizer",
    "Toolbox",
    "memory_tools",
]
_WHEN_ASKED_FOR = {
    "MemoristMiddleware": "memorist.agents.middleware",
    "Toolbox": "memorist.agents.toolbox",
    "memory_tools": "memorist.agents.tools",
}

NOTHING = "(Nothing was said before.)"
_SCOPE = Scope(user="summary", session="summary")  # of what is returned and not stored

log = logging.getLogger("memorist")


def __getattr__(name: str) -> object:
    """Names of the agent's side, which need more than a history does."""
    if name not in _WHEN_ASKED_FOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(_WHEN_ASKED_FOR[name]), name)
    return found


class MemoristChatMessageHistory(BaseChatMessageHistory):
    """A session as LangChain's chat history: durable message by message, each id once.

        history = MemoristChatMessageHistory(memory, "any session id", user="ada", k=20)
        history.add_messages([HumanMessage("Hi"), AIMessage("Hello")])

    With `k`, reading gives the last k messages; all of them are kept. `read_image` makes what a
    model can see of images that are files, as `memorist.providers.images.encode_image` does.
    """

    def __init__(
        self,
        memory: Memory,
        session_id: str,
        *,
        user: str,
        agent: str | None = None,
        k: int | None = None,
        read_image: Callable[[str], str] | None = None,
    ) -> None:
        if k is not None and (not isinstance(k, int) or k < 0):
            raise InvalidError("k must be a whole number of messages, or None for all")
        if not isinstance(session_id, str):
            raise InvalidError(f"session_id must be a string, got {type(session_id).__name__}")
        self._memory = memory
        self._scope = memory.scope(user=user, agent=agent, session=session_id)
        self._read_image = read_image
        self._missed = False
        self.session_id = session_id
        self.k = k

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages, oldest first; none, and a warning, where the store does not answer."""
        try:
            said = [] if self._missed else self._read()
            self._missed = False
        except StoreError as error:
            log.warning("the conversation goes on without its history: %s", error)
            # LangChain reads again before it writes, and takes as many off what it writes: it
            # must find what it found, or it would drop what the user said.
            said, self._missed = [], True
        return [to_langchain(message, self._read_image) for message in said]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages durably; one whose id is stored already is not stored again.

        If it says something else than before, that takes its place; what it said is kept.
        """
        said = [from_langchain(message) for message in messages]
        self._missed = False
        try:
            self._remember(said)
        except ConflictError:
            for message in said:
                self._put(message)

    def clear(self) -> None:
        """Forget the session and what was derived of it; its bytes go with `Memory.scrub`."""
        self._memory.forget(user=self._scope.user, session=self.session_id, scrub=False)

    async def aget_messages(self) -> list[BaseMessage]:
        return await in_thread(lambda: self.messages)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        await in_thread(self.add_messages, messages)

    async def aclear(self) -> None:
        await in_thread(self.clear)

    def _read(self) -> list[Message]:
        log, scope = self._memory.messages, self._scope
        entries = log.list(scope, last=self.k)
        if not entries and self.k != 0:
            self._remember([])  # adopts what other programs wrote to LangChain's table
            entries = log.list(scope, last=self.k)
        messages = [entry.message for entry in entries]
        return messages if self.k is None else without_orphan_results(messages)

    def _remember(self, said: list[Message]) -> None:
        scope = self._scope
        self._memory.remember(said, user=scope.user, agent=scope.agent, session=scope.session)

    def _put(self, message: Message) -> None:
        """Store a message of which there may be an earlier form."""
        entries = self._memory.messages.get(self._scope, [message.message_id])
        if not entries:
            self._remember([message])
        elif _said(stored := entries[0].message) != _said(message):
            revised = replace(message, created_at=stored.created_at)
            self._memory.messages.revise(self._scope, revised)


class MemoristRetriever(BaseRetriever):
    """What is remembered of a user as LangChain documents, best first, each with its reason.

        retriever = MemoristRetriever(memory=memory, user="ada", k=5, kinds=("memory", "fact"))

    `only` narrows as `Memory.recall` does; with a `library`, its articles are among the
    documents, `article_tokens` of them at most. Where memory fails, there are no documents and
    a warning is logged: the chain goes on.
    """

    memory: Memory = Field(repr=False, exclude=True)
    user: str
    agent: str | None = None
    session: str | None = None
    k: int = Field(default=5, ge=1)
    kinds: tuple[str, ...] = ()
    only: dict[str, Any] = Field(default_factory=dict)
    deadline_ms: float | None = Field(default=50.0, gt=0)
    library: Library | None = Field(default=None, repr=False, exclude=True)
    article_tokens: int = Field(default=4_000, ge=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Say at once what is wrong: later, in a chain, it would be too late."""
        self.memory.scope(user=self.user, agent=self.agent, session=self.session)
        Filters.of(**self._filters())
        return self

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun | None = None,
        k: int | None = None,
    ) -> list[Document]:
        count = self.k if k is None else k
        try:
            found = self._remembered(query, count) + self._articles(query, count)
        except (StoreError, ProviderError) as error:
            log.warning("nothing was recalled for the chain: %s", error)
            return []
        found.sort(key=lambda document: -document.metadata["score"])
        return found[:count]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun | None = None,
        k: int | None = None,
    ) -> list[Document]:
        return await in_thread(self._get_relevant_documents, query, k=k)

    def _remembered(self, query: str, count: int) -> list[Document]:
        found = self.memory.recall(
            query,
            user=self.user,
            agent=self.agent,
            session=self.session,
            limit=count,
            deadline_ms=self.deadline_ms,
            **self._filters(),
        )
        return [_document(hit) for hit in found.hits]

    def _articles(self, query: str, count: int) -> list[Document]:
        if self.library is None:
            return []
        found = self.library.retrieve(
            query, count, window=self.article_tokens, deadline_ms=self.deadline_ms
        )
        return [
            Document(
                id=it.id,
                page_content=it.text,
                metadata={
                    "id": it.id,
                    "kind": "article",
                    "score": it.score,
                    "why": str(it.why),
                    "title": it.title,
                    "uri": it.uri,
                    "citation": it.citation,
                    "whole": it.whole,
                },
            )
            for it in found
        ]

    def _filters(self) -> dict[str, Any]:
        return {**self.only, "kind": self.kinds} if self.kinds else self.only


def _document(hit: Hit) -> Document:
    told = {
        "id": hit.id,
        "kind": hit.kind,
        "score": hit.score,
        "why": str(hit.why),
        "when": hit.created_at.isoformat(),
        "session": hit.session_id,
        "role": hit.role,
        "speaker": hit.speaker,
    }
    metadata = {name: value for name, value in told.items() if value is not None}
    return Document(id=hit.id, page_content=hit.text, metadata=metadata)


def _said(message: Message) -> tuple[Any, ...]:
    """What a message says, without what is told about it."""
    calls = [(call.name, call.call_id, call.arguments) for call in message.tool_calls]
    return message.role, message.content, message.name, message.tool_call_id, calls, message.images


class MemoristSummarizer:
    """A summariser for LangChain's SummarizationMiddleware; it never raises.

        SummarizationMiddleware(
            model, trigger=("tokens", 8_000), trim_tokens_to_summarize=None,
            summarizer=MemoristSummarizer(memory),
        )

    With a memory whose `extraction` has a model, that model writes the summary within its budget;
    without one, or where it fails, it is made of sentences of the messages.
    """

    def __init__(self, memory: Memory | None = None, *, window: Window | None = None) -> None:
        self._style = style_of(window or Window(), TokenCounter((window or Window()).counts_with()))
        self._model = memory.summary_model if memory is not None else None

    def __call__(self, messages: Sequence[BaseMessage]) -> str:
        """The summary of the messages, and of the summary before if it is among them."""
        said = [message for message in messages if not is_others_summary(message)]
        before = "\n".join(str(it.text) for it in messages if is_others_summary(it))
        if not said:
            return before or NOTHING
        try:
            return self._written(said, before, self._model)
        except MemoristError as error:
            log.warning("a summary was made of the messages' own words: %s", error)
            return self._written(said, before, None)

    def _written(self, said: Sequence[BaseMessage], before: str, model: ChatModel | None) -> str:
        settings = replace(DEFAULT, max_tokens=self._style.max_tokens)
        entries = [entry_of(message, place) for place, message in enumerate(said, start=1)]
        done = compress(
            entries,
            scope=_SCOPE,
            counter=self._style.counter,
            model=model,
            settings=settings,
            previous=_previous(before, self._style.counter),
        )
        return done.summary.text or NOTHING


def _previous(text: str, counter: TokenCounter) -> Summary | None:
    if not text:
        return None
    tokens = counter.text(text)
    return Summary(
        scope=_SCOPE,
        text=text,
        last_seq=0,
        messages=0,
        made_by="langchain",
        tokens_before=tokens,
        tokens=tokens,
    )
