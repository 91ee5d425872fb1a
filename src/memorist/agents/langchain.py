"""For LangChain: a durable chat history, a retriever, and a summariser for its middleware."""

import logging
from asyncio import to_thread
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

from memorist import errors
from memorist.agents.messages import (
    entry_of,
    from_langchain,
    is_others_summary,
    to_langchain,
    unstored_summary,
)
from memorist.arguments import NamesArguments
from memorist.context.compression.compress import compress, style_of
from memorist.context.documents.excerpts import Retrieved
from memorist.context.tokens import TokenCounter
from memorist.context.window import Window
from memorist.library import Library
from memorist.memory import Memory
from memorist.providers.chat_model import ChatModel
from memorist.records.message import Message, without_orphan_results
from memorist.records.query import Filters, Hit
from memorist.records.scope import Scope
from memorist.records.values import check_type
from memorist.runtime import window_of

with errors.needs_extra("langchain"):
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage
    from langchain_core.retrievers import BaseRetriever
    from pydantic import Field, model_validator

NOTHING = "(Nothing was said before.)"
_OF_HITS = ("kind", "role", "speaker", "origin", "over")
_OF_ARTICLES = ("title", "uri", "citation", "whole")
_SCOPE = Scope(user="summary", session="summary")  # of summaries, which are not stored

log = logging.getLogger("memorist")


class MemoristChatMessageHistory(NamesArguments, BaseChatMessageHistory):
    """A session as LangChain's chat history: each message is durable, and stored once.

        history = MemoristChatMessageHistory(memory, "any session id", user="ada", k=20)
        history.add_messages([HumanMessage("Hi"), AIMessage("Hello")])

    With `k`, reading gives the last k messages; all of them are kept. `read_image` makes data URLs
    of images that are files, as `memorist.providers.images.encode_image` does.
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
        check_type(session_id, str, "session_id")
        if k is not None and (not isinstance(k, int) or k < 0):
            raise errors.InvalidError("k must be a whole number of messages, or None for all")
        self._memory = memory
        self._scope = memory.scope(user=user, agent=agent, session=session_id)
        self._read_image = read_image
        self._unread = False
        self.session_id = session_id
        self.k = k

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages, oldest first; none, and a warning, where the store does not answer."""
        try:
            messages = [] if self._unread else self._read()
            self._unread = False
        except errors.StoreError as error:
            log.warning("the conversation goes on without its history: %s", error)
            # LangChain reads again before it writes, and takes that many off what it writes: a
            # second answer other than the first would make it drop what the user said.
            messages, self._unread = [], True
        return [to_langchain(message, self._read_image) for message in messages]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages durably, each id once; one whose content has changed is revised."""
        converted = [from_langchain(message) for message in messages]
        self._unread = False
        try:
            self._memory.remember(converted, **self._scope.names)
        except errors.ConflictError:
            for message in converted:
                self._put(message)

    def clear(self) -> None:
        """Forget the session and what was derived from it; its bytes go with `Memory.scrub`."""
        self._memory.forget(user=self._scope.user, session=self.session_id, scrub=False)

    def _read(self) -> list[Message]:
        log, scope = self._memory.messages, self._scope
        messages = [entry.message for entry in log.list(scope, last=self.k)]
        return messages if self.k is None else without_orphan_results(messages)

    def _put(self, message: Message) -> None:
        """Store a message, or revise the stored one with its id."""
        entries = self._memory.messages.get(self._scope, [message.message_id])
        if not entries:
            self._memory.remember(message, **self._scope.names)
        elif _content_of(stored := entries[0].message) != _content_of(message):
            revised = replace(message, created_at=stored.created_at)
            self._memory.messages.revise(self._scope, revised)


def _content_of(message: Message) -> tuple[Any, ...]:
    """What a message says, without its metadata."""
    calls = [(call.name, call.call_id, call.arguments) for call in message.tool_calls]
    return message.role, message.content, message.name, message.tool_call_id, calls, message.images


class MemoristRetriever(BaseRetriever):
    """What is remembered of a user as LangChain documents, best first, each with its reason.

        retriever = MemoristRetriever(memory=memory, user="ada", k=5, kinds=("memory", "fact"))

    `only` are filters of `Memory.recall`. With a `library`, its articles are among the documents,
    in at most `article_tokens` tokens. If the memory fails, there are no documents, a warning is
    logged, and the chain goes on.
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
        self.memory.scope(user=self.user, agent=self.agent, session=self.session)
        Filters.of(**self._filters())
        return self

    def _get_relevant_documents(
        self, query: str, *, run_manager: Any = None, k: int | None = None
    ) -> list[Document]:
        count = self.k if k is None else k
        try:
            recall = self.memory.recall(
                query,
                user=self.user,
                agent=self.agent,
                session=self.session,
                limit=count,
                deadline_ms=self.deadline_ms,
                **self._filters(),
            )
            articles = self._articles(query, count)
        except (errors.StoreError, errors.ProviderError) as error:
            log.warning("nothing was recalled for the chain: %s", error)
            return []
        documents = [
            _document(hit, *_OF_HITS, when=hit.created_at.isoformat(), session=hit.session_id)
            for hit in recall.hits
        ]
        documents += [_document(article, *_OF_ARTICLES, kind="article") for article in articles]
        documents.sort(key=lambda document: -document.metadata["score"])
        return documents[:count]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: Any = None, k: int | None = None
    ) -> list[Document]:
        return await to_thread(self._get_relevant_documents, query, k=k)

    def _articles(self, query: str, count: int) -> list[Retrieved]:
        if self.library is None:
            return []
        return self.library.retrieve(
            query, count, window=self.article_tokens, deadline_ms=self.deadline_ms
        )

    def _filters(self) -> dict[str, Any]:
        return {**self.only, "kind": self.kinds} if self.kinds else self.only


def _document(item: Hit | Retrieved, *names: str, **more: Any) -> Document:
    """A hit or an article as a document, with those of its fields that are not empty."""
    fields = {name: getattr(item, name) for name in names} | more
    metadata = {name: value for name, value in fields.items() if value not in (None, "")}
    metadata |= {"id": item.id, "score": item.score, "why": str(item.why)}
    return Document(id=item.id, page_content=item.text, metadata=metadata)


class MemoristSummarizer:
    """A summariser for LangChain's SummarizationMiddleware; it never raises.

        SummarizationMiddleware(
            model, trigger=("tokens", 8_000), trim_tokens_to_summarize=None,
            summarizer=MemoristSummarizer(memory),
        )

    If the memory's `extraction` has a model, that model writes the summary within its budget;
    otherwise, or if it fails, the summary is made of sentences of the messages.
    """

    def __init__(self, memory: Memory | None = None, *, window: Window | None = None) -> None:
        if memory is not None:
            check_type(memory, Memory, "memory")
            window = window_of(window, memory.settings)
        window = Window() if window is None else window
        check_type(window, Window, "window")
        self._style = style_of(window, TokenCounter(window.counts_with()))
        self._model = memory.summary_model if memory is not None else None

    def __call__(self, messages: Sequence[BaseMessage]) -> str:
        """The summary of the messages, extending an earlier summary among them."""
        turns = [message for message in messages if not is_others_summary(message)]
        earlier = "\n".join(str(it.text) for it in messages if is_others_summary(it))
        if not turns:
            return earlier or NOTHING
        try:
            return self._summary(turns, earlier, self._model)
        except errors.MemoristError as error:
            log.warning("a summary was made of the messages' own words: %s", error)
            return self._summary(turns, earlier, None)

    def _summary(self, turns: Sequence[BaseMessage], earlier: str, model: ChatModel | None) -> str:
        entries = [entry_of(message, place) for place, message in enumerate(turns, start=1)]
        previous = unstored_summary(earlier, _SCOPE, self._style.counter) if earlier else None
        done = compress(entries, scope=_SCOPE, style=self._style, previous=previous, model=model)
        return done.summary.text or NOTHING
