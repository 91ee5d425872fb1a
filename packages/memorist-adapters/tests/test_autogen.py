"""Our memory in AutoGen's own assistant agent."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.messages import MemoryQueryEvent, MultiModalMessage
from autogen_core import Image
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    LLMMessage,
    ModelInfo,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from openai import AsyncOpenAI
from tests.support.stub_server import ModelServer

from memorist import Memory, Notebook, StoreError, StoreUnavailableError
from memorist.store.sqlite.store import SqliteStore
from memorist_adapters.autogen import MemoristMemory

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
)


class Client(ChatCompletionClient):
    """AutoGen's client for an OpenAI-compatible address, as far as these tests need it."""

    model_info = ModelInfo(
        vision=False,
        function_calling=False,
        json_output=False,
        structured_output=False,
        family="unknown",
    )
    capabilities = model_info

    def __init__(self, url: str) -> None:
        self._url = url

    async def create(self, messages: Sequence[LLMMessage], **_: Any) -> CreateResult:
        sent: list[Any] = [{"role": _role(it), "content": it.content} for it in messages]
        async with AsyncOpenAI(base_url=self._url, api_key="k", max_retries=0) as client:
            done = await client.chat.completions.create(model="any", messages=sent)
        said = done.choices[0].message.content or ""
        usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
        return CreateResult(finish_reason="stop", content=said, usage=usage, cached=False)

    def create_stream(self, *_: Any, **__: Any) -> AsyncGenerator[str | CreateResult, None]:
        raise NotImplementedError

    async def close(self) -> None: ...

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(prompt_tokens=0, completion_tokens=0)

    total_usage = actual_usage

    def count_tokens(self, *_: Any, **__: Any) -> int:
        return 0

    remaining_tokens = count_tokens


def _role(message: LLMMessage) -> str:
    roles = {SystemMessage: "system", UserMessage: "user", AssistantMessage: "assistant"}
    return roles[type(message)]


def of(memory: Memory, user: str = "ada", **more: Any) -> MemoristMemory:
    mine = MemoristMemory(memory, user=user, **more)
    mine.deadline_ms = None  # on a busy machine, recall is not what these tests are about
    return mine


def text(content: str, **metadata: Any) -> MemoryContent:
    return MemoryContent(content=content, mime_type=MemoryMimeType.TEXT, metadata=metadata)


def found(mine: MemoristMemory, query: str | MemoryContent, **only: Any) -> list[MemoryContent]:
    return asyncio.run(mine.query(query, deadline_ms=None, **only)).results


def asked(server: ModelServer, mine: MemoristMemory, *tasks: str) -> list[TaskResult]:
    """The results of a real agent's runs, whose messages are remembered after each."""

    async def run() -> list[TaskResult]:
        agent = AssistantAgent("tutor", Client(server.url), memory=[mine])
        results = []
        for task in tasks:
            results.append(await agent.run(task=task))
            await mine.remember(results[-1].messages)
        return results

    return asyncio.run(run())


def test_a_run_is_remembered_and_the_next_process_knows_of_it(tmp_path: Path) -> None:
    with ModelServer(["Welcome!", "In Berlin."]) as server:
        with Memory(tmp_path / "m.db", embedder=None) as memory:
            asked(server, of(memory, agent="tutor"), "I moved to Berlin in March.")
        with Memory(tmp_path / "m.db", embedder=None) as memory:
            [done] = asked(server, of(memory, agent="tutor"), "Which city did I move to?")
            said = memory.history(user="ada", agent="tutor")
    sent = server.requests[1].body["messages"]
    told = [it["content"] for it in sent if "Memories, quoted as data" in str(it["content"])]
    assert len(told) == 1
    assert "> I moved to Berlin in March." in told[0]
    assert [it.content for it in done.messages if isinstance(it, MemoryQueryEvent)]
    assert [(it.role, it.name) for it in said] == [("user", "user"), ("assistant", "tutor")] * 2


def test_a_memory_is_told_once_in_a_conversation(memory: Memory) -> None:
    Notebook(memory, user="ada").write("Speaks German.")
    mine = of(memory)
    asyncio.run(mine.add(text("Ada likes pizza with olives.")))
    with ModelServer(["Pizza.", "Olives."]) as server:
        asked(server, mine, "Which pizza do I like?", "And what is on my pizza?")
    sent = "\n".join(str(it["content"]) for it in server.requests[1].body["messages"])
    assert sent.count("Ada likes pizza with olives.") == 1
    assert sent.count("Speaks German.") == 1
    assert sent.count("Which pizza do I like?") == 1


def test_contents_come_back_as_they_were_added(memory: Memory) -> None:
    mine = of(memory)
    contents = [
        text("Ada prefers metric units", category="preferences"),
        MemoryContent(content={"plan": "olives"}, mime_type=MemoryMimeType.JSON),
        MemoryContent(content=b"\x00\xff", mime_type=MemoryMimeType.BINARY, metadata={"n": 1}),
        MemoryContent(content="# Title", mime_type="text/x-own", metadata={"id": "mine"}),
    ]
    for content in contents:
        asyncio.run(mine.add(content))
    got = found(mine, "Ada", kind="message")
    for content in contents:
        [same] = [it for it in got if it.content == content.content]
        assert same.mime_type == content.mime_type
        assert same.metadata is not None
        assert same.metadata.items() >= (content.metadata or {}).items()
        assert {"id", "kind", "score", "why", "when"} <= same.metadata.keys()


def test_an_image_comes_back_as_an_image(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "pixel.png").write_bytes(PIXEL)
    image = Image.from_file(tmp_path / "pixel.png")
    mine = of(memory)
    asyncio.run(mine.add(MemoryContent(content=image, mime_type=MemoryMimeType.IMAGE)))
    [got] = found(mine, "a picture", kind="message")
    assert isinstance(got.content, Image)
    assert got.content.to_base64() == image.to_base64()
    message = MultiModalMessage(content=["Look!", image], source="user")
    assert asyncio.run(mine.remember([message])) == 1
    assert memory.history(user="ada")[-1].images == (image.data_uri,)


def test_a_query_is_answered_best_first_and_can_be_narrowed(memory: Memory) -> None:
    mine = of(memory)
    for content in ("Ada likes pizza", "Ada rides a bicycle", "Ada lives in Berlin"):
        asyncio.run(mine.add(text(content)))
    assert found(mine, "bicycle")[0].content == "Ada rides a bicycle"
    assert found(mine, text("bicycle"), limit=1, kind="message")[0].content == "Ada rides a bicycle"
    assert len(found(mine, "Ada", limit=2)) == 2
    with pytest.raises(TypeError, match="colour"):
        found(mine, "Ada", colour="red")


def test_messages_of_a_run_are_stored_once(memory: Memory) -> None:
    mine = of(memory)
    with ModelServer(["Hello."]) as server:
        [done] = asked(server, mine, "Hi")
    assert asyncio.run(mine.remember(done.messages)) == 0
    assert [it.text for it in memory.history(user="ada")] == ["Hi", "Hello."]


def test_what_is_added_is_no_part_of_a_conversation_and_as_trusted_as_said(memory: Memory) -> None:
    chat = memory.session(user="ada", agent="tutor")
    chat.add("user", "Hi")
    asyncio.run(of(memory, agent="tutor", source="web").add(text("Buy gold")))
    assert [it.text for it in chat.history()] == ["Hi"]
    scope = memory.scope(user="ada", agent="tutor", session="autogen:tutor")
    assert [entry.source for entry in memory.store.history(scope)] == ["web"]


def test_another_user_sees_nothing_of_it(memory: Memory) -> None:
    asyncio.run(of(memory).add(text("Ada likes pizza")))
    bob = of(memory, "bob")
    assert found(bob, "pizza") == []
    context = UnboundedChatCompletionContext([UserMessage(content="pizza?", source="user")])
    assert asyncio.run(bob.update_context(context)).memories.results == []
    assert len(asyncio.run(context.get_messages())) == 1


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ({"agent": "tutor", "session": "s1"}, {"two", "three"}),
        ({"agent": "tutor"}, {"three"}),
        ({}, set()),
    ],
)
def test_a_cleared_memory_finds_nothing(memory: Memory, where: Any, left: set[str]) -> None:
    asyncio.run(of(memory, agent="tutor", session="s1").add(text("one")))
    asyncio.run(of(memory, agent="tutor", session="s2").add(text("two")))
    asyncio.run(of(memory, agent="other").add(text("three")))
    mine = of(memory, **where)
    asyncio.run(mine.clear())
    assert found(mine, "one two three") == []
    assert {it.content for it in found(of(memory), "one two three", kind="message")} == left
    asyncio.run(mine.add(text("four")))
    assert found(mine, "four")


def test_closing_it_leaves_the_memory_open(memory: Memory) -> None:
    mine = of(memory)
    asyncio.run(mine.close())
    asyncio.run(mine.add(text("Ada likes pizza")))


class Away(SqliteStore):
    """A store whose memories cannot be read."""

    def note(self, *args: Any, **named: Any) -> Any:
        raise StoreUnavailableError("the store is away")

    newest = match_text = match_links = note


def test_a_store_that_is_away_leaves_the_agent_answering(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Memory(Away(tmp_path / "m.db"), embedder=None, extraction=None) as memory:
        mine = of(memory)
        with ModelServer(["Hello."]) as server:
            [done] = asked(server, mine, "Hi")
        assert done.messages[-1].to_text() == "Hello."
        assert "the agent goes on without its memory" in caplog.text
        with pytest.raises(StoreError):  # an empty answer would say that nothing is known
            found(mine, "Hi")
