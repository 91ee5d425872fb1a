"""The same classes for asyncio: each method runs the synchronous one in a thread."""

import functools
from asyncio import to_thread
from collections.abc import AsyncIterator, Callable, Coroutine
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from memorist.chat import Chat, Stream
from memorist.context.quote import Quote
from memorist.context.tokens import TokenCounter
from memorist.derived import Facts, Memories
from memorist.documents import Articles, Entries, NoteVersions
from memorist.library import Library
from memorist.memory import Memory
from memorist.namespaces import ApiKeys, Jobs, Messages
from memorist.notebook import Notebook
from memorist.records.message import Message
from memorist.records.scope import Scope

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")


class Wrapper(Generic[S]):
    """An object for asyncio around a synchronous one."""

    def __init__(self, wrapped: S) -> None:
        self._wrapped = wrapped

    def __repr__(self) -> str:
        return f"Async{self._wrapped!r}"


class threaded(Generic[P, T]):
    """An async method that runs a synchronous class's method of the same name in a thread.

    `recall = threaded(Memory.recall)` keeps the parameters and the result type for type checkers.
    With a `kind`, the result is wrapped in it.
    """

    @overload
    def __init__(self, method: Callable[Concatenate[Any, P], T]) -> None: ...
    @overload
    def __init__(
        self, method: Callable[Concatenate[Any, P], S], kind: Callable[[S], T]
    ) -> None: ...
    def __init__(
        self, method: Callable[..., Any], kind: Callable[[Any], Any] | None = None
    ) -> None:
        @functools.wraps(method)
        async def call(wrapper: Wrapper[Any], *args: Any, **named: Any) -> Any:
            result = await to_thread(getattr(wrapper._wrapped, self._name), *args, **named)
            return result if kind is None else kind(result)

        self._call: Callable[..., Coroutine[Any, Any, T]] = call

    def __set_name__(self, kind: type, name: str) -> None:
        self._name = name

    def __get__(self, it: Wrapper[Any] | None, kind: type) -> Callable[P, Coroutine[Any, Any, T]]:
        return self._call if it is None else MethodType(self._call, it)


def like(
    method: Callable[Concatenate[Any, P], Any],
) -> Callable[[Callable[..., T]], Callable[Concatenate[Any, P], T]]:
    """Gives a method the parameters of another one, for type checkers and `help`."""

    def dressed(own: Callable[..., T]) -> Callable[Concatenate[Any, P], T]:
        return functools.wraps(method)(own)

    return dressed


class AsyncMessages(Wrapper[Messages]):
    get = threaded(Messages.get)
    text_from = threaded(Messages.text_from)
    list = threaded(Messages.list)
    following = threaded(Messages.following)
    revise = threaded(Messages.revise)
    revisions = threaded(Messages.revisions)
    append_text = threaded(Messages.append_text)
    add = threaded(Messages.add)


class AsyncFacts(Wrapper[Facts]):
    add = threaded(Facts.add)
    change = threaded(Facts.change)
    get = threaded(Facts.get)
    list = threaded(Facts.list)
    as_of = threaded(Facts.as_of)
    history = threaded(Facts.history)
    chain = threaded(Facts.chain)
    entities = threaded(Facts.entities)
    neighbourhood = threaded(Facts.neighbourhood)


class AsyncMemories(Wrapper[Memories]):
    add = threaded(Memories.add)
    list = threaded(Memories.list)
    get = threaded(Memories.get)
    change = threaded(Memories.change)
    chain = threaded(Memories.chain)
    retract = threaded(Memories.retract)
    undo = threaded(Memories.undo)
    maintain = threaded(Memories.maintain)
    audit = threaded(Memories.audit)


class AsyncJobs(Wrapper[Jobs]):
    waiting = threaded(Jobs.waiting)
    list = threaded(Jobs.list)
    dead = threaded(Jobs.dead)
    retry = threaded(Jobs.retry)
    rebuild = threaded(Jobs.rebuild)
    catch_up = threaded(Jobs.catch_up)
    spent = threaded(Jobs.spent)


class AsyncEntries(Wrapper[Entries]):
    batch = threaded(Entries.batch)
    sweep = threaded(Entries.sweep)


class AsyncArticles(Wrapper[Articles]):
    put = threaded(Articles.put)
    get = threaded(Articles.get)
    list = threaded(Articles.list)
    remove = threaded(Articles.remove)
    fit = threaded(Articles.fit)


class AsyncNoteVersions(Wrapper[NoteVersions]):
    get = threaded(NoteVersions.get)
    list = threaded(NoteVersions.list)
    write = threaded(NoteVersions.write)


class AsyncApiKeys(Wrapper[ApiKeys]):
    put = threaded(ApiKeys.put)
    get = threaded(ApiKeys.get)
    exist = threaded(ApiKeys.exist)
    list = threaded(ApiKeys.list)
    revoke = threaded(ApiKeys.revoke)


class AsyncNotebook(Wrapper[Notebook]):
    """`Notebook` for asyncio. Give each task its own: `await memory.notes(user="ada")`."""

    read = threaded(Notebook.read)
    versions = threaded(Notebook.versions)
    at = threaded(Notebook.at)
    write = threaded(Notebook.write)
    clear = threaded(Notebook.clear)
    restore = threaded(Notebook.restore)
    append = threaded(Notebook.append)
    prepend = threaded(Notebook.prepend)
    delete_section = threaded(Notebook.delete_section)
    replace_section = threaded(Notebook.replace_section)
    manage = threaded(Notebook.manage)

    @property
    def version(self) -> int:
        return self._wrapped.version

    @property
    def max_chars(self) -> int:
        return self._wrapped.max_chars


class AsyncLibrary(Wrapper[Library]):
    """`Library` for asyncio: `memory.library("handbook")`."""

    add = threaded(Library.add)
    articles = threaded(Library.articles)
    get = threaded(Library.get)
    remove = threaded(Library.remove)
    ingest = threaded(Library.ingest)
    retrieve = threaded(Library.retrieve)

    @property
    def scope(self) -> Scope:
        return self._wrapped.scope

    def quotes(
        self, question: str, max_tokens: int, counter: TokenCounter, *, deadline_ms: float | None
    ) -> list[Quote]:
        """For `AsyncMemory.context(library=…)`, which works in a thread already."""
        return self._wrapped.quotes(question, max_tokens, counter, deadline_ms=deadline_ms)


class AsyncStream:
    """`Stream` for asyncio: begins when the block is entered."""

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
        """Add text; a thread is used only when it is stored."""
        if self._stream.gather(text):
            await self.flush()

    async def flush(self) -> None:
        await to_thread(self._stream.flush)

    async def finish(self, **fields: Any) -> None:
        await to_thread(self._stream.finish, **fields)

    async def __aenter__(self) -> Self:
        self._stream = await to_thread(self._begin)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await to_thread(self._stream.__exit__, kind, error, trace)


class AsyncChat(Wrapper[Chat]):
    """`Chat` for asyncio."""

    add = threaded(Chat.add)
    remember = threaded(Chat.remember)
    history = threaded(Chat.history)
    recall = threaded(Chat.recall)
    context = threaded(Chat.context)
    compress = threaded(Chat.compress)

    def __init__(self, chat: Chat) -> None:
        super().__init__(chat)
        self.session = chat.session
        self.id = chat.id

    @like(Chat.stream)
    def stream(self, *args: Any, **named: Any) -> AsyncStream:
        return AsyncStream(functools.partial(self._wrapped.stream, *args, **named))

    async def follow(self, message_id: str, timeout_s: float = 30.0) -> AsyncIterator[str]:
        """The text of a message as it comes, until it is finished or none came for `timeout_s`."""
        pieces = self._wrapped.follow(message_id, timeout_s)
        while (piece := await to_thread(next, pieces, None)) is not None:
            yield piece


class AsyncMemory(Wrapper[Memory]):
    """`Memory` for asyncio: each call runs in a thread, so that the loop stays free.

    `AsyncMemory.of(memory)` wraps one that is open already, as `memorist.connect` returns it.
    """

    session = threaded(Memory.session, AsyncChat)
    active_session = threaded(Memory.active_session)
    sessions = threaded(Memory.sessions)
    session_summaries = threaded(Memory.session_summaries)
    rename_session = threaded(Memory.rename_session)
    agents = threaded(Memory.agents)
    remember = threaded(Memory.remember)
    remember_many = threaded(Memory.remember_many)
    history = threaded(Memory.history)
    recall = threaded(Memory.recall)
    search = threaded(Memory.search)
    context = threaded(Memory.context)
    compress = threaded(Memory.compress)
    summaries = threaded(Memory.summaries)
    notes = threaded(Memory.notes, AsyncNotebook)
    forget = threaded(Memory.forget)
    restore = threaded(Memory.restore)
    scrub = threaded(Memory.scrub)
    users = threaded(Memory.users)
    counts = threaded(Memory.counts)
    events = threaded(Memory.events)
    receipts = threaded(Memory.receipts)
    add_receipt = threaded(Memory.add_receipt)
    check = threaded(Memory.check)
    backup = threaded(Memory.backup)
    warm_up = threaded(Memory.warm_up)
    wake = threaded(Memory.wake)
    close = threaded(Memory.close)

    @like(Memory.__init__)
    def __init__(self, *args: Any, **named: Any) -> None:
        self._bind(Memory(*args, **named))

    @classmethod
    def of(cls, memory: Memory) -> Self:
        """A memory that is open already, for asyncio."""
        wrapper = cls.__new__(cls)
        wrapper._bind(memory)
        return wrapper

    def _bind(self, memory: Memory) -> None:
        super().__init__(memory)
        self.messages = AsyncMessages(memory.messages)
        self.facts = AsyncFacts(memory.facts)
        self.memories = AsyncMemories(memory.memories)
        self.jobs = AsyncJobs(memory.jobs)
        self.entries = AsyncEntries(memory.entries)
        self.articles = AsyncArticles(memory.articles)
        self.note_versions = AsyncNoteVersions(memory.note_versions)
        self.keys = AsyncApiKeys(memory.keys)

    def tenant(self, name: str) -> "AsyncMemory":
        """The same memory for the users of another tenant; closing either closes both."""
        return AsyncMemory.of(self._wrapped.tenant(name))

    def scope(self, *, user: str, agent: str | None = None, session: str | None = None) -> Scope:
        """The scope of a user of this memory's tenant."""
        return self._wrapped.scope(user=user, agent=agent, session=session)

    def library(
        self, name: str = "library", *, user: str | None = None, agent: str | None = None
    ) -> AsyncLibrary:
        """Articles to find and quote: shared by the tenant under a name, or a user's own."""
        return AsyncLibrary(self._wrapped.library(name, user=user, agent=agent))

    async def export(
        self, user: str | None = None, *, vectors: bool = False
    ) -> AsyncIterator[bytes]:
        """See `Memory.export`."""
        chunks = self._wrapped.export(user, vectors=vectors)
        while chunk := await to_thread(next, chunks, b""):
            yield chunk

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
