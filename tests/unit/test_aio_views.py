"""Notes and articles for asyncio: the same methods, and a loop that stays free."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from memorist import (
    AsyncChat,
    AsyncLibrary,
    AsyncMemory,
    AsyncNotebook,
    Chat,
    ConflictError,
    InvalidError,
    Library,
    Memory,
    Notebook,
    NotFoundError,
)
from memorist.aio import (
    AsyncApiKeys,
    AsyncArticles,
    AsyncEntries,
    AsyncFacts,
    AsyncJobs,
    AsyncMemories,
    AsyncMessages,
    AsyncNoteVersions,
)
from memorist.derived import Facts, Memories
from memorist.documents import Articles, Entries, NoteVersions
from memorist.namespaces import ApiKeys, Jobs, Messages

Act = Callable[[AsyncMemory], Awaitable[None]]


def run(act: Act) -> None:
    """Do something with a new memory, on a loop."""

    async def call() -> None:
        async with AsyncMemory(":memory:", embedder=None, extraction=None) as memory:
            await act(memory)

    asyncio.run(call())


@pytest.mark.parametrize(
    ("sync", "other"),
    [
        (Memory, AsyncMemory),
        (Chat, AsyncChat),
        (Notebook, AsyncNotebook),
        (Library, AsyncLibrary),
        (Facts, AsyncFacts),
        (Memories, AsyncMemories),
        (Jobs, AsyncJobs),
        (Messages, AsyncMessages),
        (Entries, AsyncEntries),
        (Articles, AsyncArticles),
        (NoteVersions, AsyncNoteVersions),
        (ApiKeys, AsyncApiKeys),
    ],
)
def test_the_async_classes_have_the_same_methods_with_the_same_parameters(
    sync: type, other: type
) -> None:
    synchronous_only = {"store", "database", "embedder", "extraction", "builder"}
    synchronous_only |= {"summary_model", "id"}
    public = {name for name in dir(sync) if not name.startswith("_")} - synchronous_only
    assert public <= set(dir(other))
    for name in public:
        method = getattr(sync, name)
        if callable(method):
            mine = inspect.signature(method).parameters
            theirs = inspect.signature(getattr(other, name)).parameters
            assert list(mine) == list(theirs), name
    assert inspect.iscoroutinefunction(AsyncMemory.recall)
    assert AsyncMemory.recall.__name__ == "recall"


def test_notes_are_edited_with_await() -> None:
    async def act(memory: AsyncMemory) -> None:
        notes = await memory.notes(user="ada", agent="tutor", max_chars=90)
        assert (notes.version, notes.max_chars, await notes.read()) == (0, 90, "")
        await notes.append("## Plans\n- learn to sail")
        await notes.prepend("# Ada")
        await notes.replace_section("Plans", "- learn to fly")
        assert await notes.read() == "# Ada\n\n## Plans\n- learn to fly"
        await notes.delete_section("Plans")
        assert (await notes.at(3)).text.endswith("fly")
        assert (await notes.restore(3)).version == notes.version == 5
        assert (await notes.write("all new", base_version=5)).text == await notes.manage()
        assert "version 7" in await notes.manage("append", "more")
        await notes.clear()
        assert [note.version for note in await notes.versions()] == [8, 7, 6, 5, 4, 3, 2, 1]
        other = await memory.notes(user="ada")
        assert other.version == 0

    run(act)


def test_notes_refuse_what_those_without_await_refuse() -> None:
    async def act(memory: AsyncMemory) -> None:
        with pytest.raises(InvalidError, match="max_chars"):
            await memory.notes(user="ada", max_chars=0)
        first = await memory.notes(user="ada")
        second = await memory.notes(user="ada")
        await first.write("mine")
        with pytest.raises(ConflictError):
            await second.write("theirs")
        with pytest.raises(NotFoundError):
            await first.at(9)

    run(act)


def test_many_tasks_add_to_the_same_notes_and_none_is_lost() -> None:
    async def act(memory: AsyncMemory) -> None:
        async def add(number: int) -> None:
            await (await memory.notes(user="ada")).append(f"line {number}")

        await asyncio.gather(*map(add, range(8)))
        text = await (await memory.notes(user="ada")).read()
        assert sorted(text.split("\n\n")) == [f"line {number}" for number in range(8)]

    run(act)


def test_articles_are_read_in_found_and_removed_with_await(tmp_path: Path) -> None:
    (tmp_path / "returns.md").write_text("# Returns\n\nGoods may be returned on Sundays.")
    (tmp_path / "bees.txt").write_text("Bees sleep in winter.")
    threads: set[str] = set()

    async def act(memory: AsyncMemory) -> None:
        library = memory.library("handbook")
        done = await library.ingest(
            tmp_path, progress=lambda *_: threads.add(threading.current_thread().name)
        )
        assert len(done.added) == 2
        [found] = await library.retrieve("When may goods be returned?", 1, window=500)
        assert "on Sundays" in found.text
        shelved = await library.add("Tea", "Tea is at four.", uri="tea")
        assert (await library.get(shelved.id)).title == "Tea"
        await library.remove(shelved.id)
        assert [card.title for card in await library.articles()] == ["bees", "Returns"]
        assert await memory.library(user="ada").articles() == []
        assert library.scope == Library(memory._wrapped, "handbook").scope

    run(act)
    assert threading.main_thread().name not in threads


def test_an_async_library_is_quoted_in_an_async_context() -> None:
    async def act(memory: AsyncMemory) -> None:
        library = memory.library("handbook")
        shelved = await library.add("Returns", "Goods may be returned on Sundays.")
        chat = await memory.session(user="ada")
        made = await chat.context("When may goods be returned?", max_tokens=400, library=library)
        assert made.receipt.part("articles").ids == (shelved.id,)
        assert "> Goods may be returned on Sundays." in made.messages[-1]["content"]

    run(act)
