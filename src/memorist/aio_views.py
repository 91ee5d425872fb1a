"""AsyncNotebook and AsyncLibrary: the views for asyncio, one line per method."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self

from memorist.aio import AsyncMemory
from memorist.aio_life import in_thread
from memorist.records.article import Article, Card, Shelved
from memorist.records.note import Note
from memorist.records.query import Forgotten
from memorist.views.library import DEADLINE_MS, TOP_K, WINDOW, Ingested, Library, Paths, Progress
from memorist.views.notebook import MAX_CHARS, Notebook

if TYPE_CHECKING:
    from memorist.context.documents.excerpts import Retrieved
    from memorist.context.quote import Quote
    from memorist.context.tokens import TokenCounter


class AsyncNotebook:
    """`Notebook` for asyncio. Opening one reads the notes, so that it is awaited:

    notes = await AsyncNotebook.open(memory, user="ada", agent="tutor")
    await notes.append("## Plans\\n- learn to sail")

    Give each task its own.
    """

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook
        self.max_chars = notebook.max_chars

    @classmethod
    async def open(
        cls, memory: AsyncMemory, *, user: str, agent: str | None = None, max_chars: int = MAX_CHARS
    ) -> Self:
        """The notes of a user and agent."""
        call = partial(Notebook, memory._memory, max_chars=max_chars)
        return cls(await in_thread(call, user=user, agent=agent))

    @property
    def version(self) -> int:
        return self._notebook.version

    async def read(self) -> str:
        return await in_thread(self._notebook.read)

    async def versions(self) -> list[Note]:
        return await in_thread(self._notebook.versions)

    async def at(self, version: int) -> Note:
        return await in_thread(self._notebook.at, version)

    async def write(self, text: str, base_version: int | None = None) -> Note:
        return await in_thread(self._notebook.write, text, base_version)

    async def clear(self) -> Note:
        return await in_thread(self._notebook.clear)

    async def restore(self, version: int) -> Note:
        return await in_thread(self._notebook.restore, version)

    async def append(self, text: str) -> Note:
        return await in_thread(self._notebook.append, text)

    async def prepend(self, text: str) -> Note:
        return await in_thread(self._notebook.prepend, text)

    async def delete_section(self, header: str) -> Note:
        return await in_thread(self._notebook.delete_section, header)

    async def replace_section(self, header: str, text: str) -> Note:
        return await in_thread(self._notebook.replace_section, header, text)

    async def manage(
        self, operation: str = "read", content: str | None = None, section_header: str | None = None
    ) -> str:
        return await in_thread(self._notebook.manage, operation, content, section_header)


class AsyncLibrary:
    """`Library` for asyncio; also what `library` of a context may be."""

    def __init__(
        self,
        memory: AsyncMemory,
        name: str = "library",
        *,
        user: str | None = None,
        agent: str | None = None,
    ) -> None:
        self._library = Library(memory._memory, name, user=user, agent=agent)
        self.scope = self._library.scope

    async def add(self, title: str, text: str, uri: str = "") -> Shelved:
        return await in_thread(self._library.add, title, text, uri)

    async def articles(self) -> list[Card]:
        return await in_thread(self._library.articles)

    async def get(self, id: str) -> Article:
        return await in_thread(self._library.get, id)

    async def remove(self, id: str) -> Forgotten:
        return await in_thread(self._library.remove, id)

    async def ingest(
        self, paths: Paths, *, prune: bool = False, progress: Progress | None = None
    ) -> Ingested:
        """As `Library.ingest`; `progress` is called in the thread that reads the files."""
        return await in_thread(self._library.ingest, paths, prune=prune, progress=progress)

    async def retrieve(
        self,
        query: str,
        top_k: int = TOP_K,
        reserved_tokens: int = 0,
        *,
        window: int = WINDOW,
        model: str = "",
        deadline_ms: float | None = DEADLINE_MS,
    ) -> list[Retrieved]:
        call = partial(self._library.retrieve, window=window, model=model, deadline_ms=deadline_ms)
        return await in_thread(call, query, top_k, reserved_tokens)

    def quotes(self, question: str, max_tokens: int, counter: TokenCounter) -> list[Quote]:
        """As `Library.quotes`, and not awaited: a context asks for it in its own thread."""
        return self._library.quotes(question, max_tokens, counter)
