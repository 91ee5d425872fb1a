"""The tools of a chat's assistant, by the SDK's own client: what a model reads and can do."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from mcp import ClientSession
from mcp.client.stdio import stdio_client
from mcp.types import ListToolsResult

from memorist import Memory
from memorist.agents.assistant import MATCHES, NOTHING, REVISING, TOOLS, ToolSet
from memorist.providers.tokenizer import tokenizer_for
from memorist.server.mcp.server import McpServer, UserArgument
from tests.integration.test_mcp import here
from tests.server.api import an_api
from tests.server.test_mcp_http import client_of
from tests.support.mcp_servers import over_stdio

MOST_TOKENS = 1_200
Ask = Callable[..., Awaitable[str]]

LISTING = """
import asyncio
from memorist import Memory
from memorist.language.lexicon import language
from memorist.server.mcp.server import build_server
with Memory(":memory:", embedder=None, extraction=None) as memory:
    server = build_server(memory, user="ada")
    before = language.cache_info().currsize
    asyncio.run(server.list_tools())  # which ends when its threads do
    print(before, language.cache_info().currsize)
"""


def asking(session: ClientSession) -> Ask:
    """A function that calls a tool and gives the text that a model reads."""

    async def ask(tool: str, /, **arguments: Any) -> str:
        result = await session.call_tool(tool, arguments)
        [block] = result.content
        assert block.type == "text"
        assert not result.isError, block.text
        assert result.structuredContent is None
        return block.text

    return ask


def first_id(text: str) -> str:
    found = re.search(r"\[([^]]+)\]", text)
    assert found, text
    return found[1]


@pytest.mark.parametrize("user_argument", get_args(UserArgument))
def test_the_definitions_cost_a_chat_little(user_argument: UserArgument) -> None:
    def listed(tools: ToolSet) -> ListToolsResult:
        server = McpServer(lambda _: None, user_argument, tools)  # type: ignore[arg-type,return-value]
        return ListToolsResult(tools=asyncio.run(server.list_tools()))

    assistant = listed("assistant")
    assert [tool.name for tool in assistant.tools] == list(TOOLS)
    sent = assistant.model_dump_json(by_alias=True, exclude_none=True)
    assert tokenizer_for("gpt-5").count([sent])[0] < MOST_TOKENS
    assert tokenizer_for("claude-sonnet-4-5").count([sent])[0] < MOST_TOKENS
    assert {tool.name for tool in listed("revise").tools} == set(REVISING)
    names = [tool.name for tool in listed("all").tools]
    assert {*REVISING, *TOOLS} - {"notes"} <= set(names)  # there: manage_long_term_memory
    assert len(names) == len(set(names))


def test_forget_that_and_no_i_moved_work_from_inside_a_chat(tmp_path: Path) -> None:
    async def run() -> None:
        server = over_stdio(tmp_path / "a.db", "--user", "ada", "--tools", "assistant")
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            await talk(asking(session))

    async def talk(ask: Ask) -> None:
        assert await ask("recall", query="Where do I live?") == NOTHING
        munich = first_id(await ask("remember", content="I live in Munich."))
        await ask("remember", content="The user's cat is called Zuse.")
        found = await ask("recall", query="Where do I live? In Munich?")
        assert found.startswith(f"[{munich}] 20")
        known = await ask("list")
        assert "I live in Munich." in known
        assert "Zuse" in known

        # No, I moved: by words first, which change nothing, then by the id that they show.
        shown = await ask("correct", id="lives in Munich", text="I live in Berlin now.")
        assert shown.startswith("Nothing changed yet.")
        assert munich in shown
        done = await ask("correct", id=munich, text="I live in Berlin now.")
        assert "I live in Munich." in done
        known = await ask("list", words="live")
        assert "Berlin" in known
        assert "Munich" not in known
        lines = (await ask("recall", query="Where do I live: Munich or Berlin?")).splitlines()
        [old] = [line for line in lines if "Munich" in line]
        assert "(until " in old
        assert old == lines[-1]
        assert any("Berlin" in line for line in lines[:-1])

        # No, that was wrong.
        await ask("correct", id=first_id(done), undo=True)
        assert "Munich" in await ask("list", words="live")
        assert "Berlin" not in await ask("list", words="live")

        # The cat's name was not understood by any rule, and is corrected all the same.
        cat = first_id(await ask("recall", query="Zuse the cat"))
        await ask("correct", id=cat, text="My cat is called Turing.")
        assert "Zuse" not in await ask("list")

        # Forget that.
        shown = await ask("forget", id="Munich")
        assert shown.startswith("Nothing changed yet.")
        assert f"[{munich}]" in shown
        assert "made of it" in shown
        assert "I live in Munich." in await ask("forget", id=f"[{munich}]")
        assert "Munich" not in await ask("recall", query="Munich")
        assert "Munich" not in await ask("list")
        await ask("notes", operation="append", content="## Plans\n- learn to sail")
        assert "learn to sail" in await ask("notes")

    asyncio.run(run())
    with Memory(tmp_path / "a.db", embedder=None, extraction=None) as memory:
        [zuse] = [it for it in memory.memories.list(user="ada", state="over") if "Zuse" in it.text]
        assert [it.text for it in memory.memories.chain(zuse.id, user="ada")] == [
            "The user's cat is called Zuse.",
            "My cat is called Turing.",
        ]


@pytest.fixture
def thinking() -> Iterator[Memory]:
    """A memory that extracts."""
    with Memory(":memory:", embedder=None) as opened:
        yield opened


def test_what_the_user_said_is_corrected_and_forgotten_too(thinking: Memory) -> None:
    memory = thinking
    memory.remember("I work at Siemens. I have a dog called Rex.", user="ada")
    memory.facts.add("Ada", "plays", "chess", user="ada")
    memory.jobs.catch_up(300)

    async def talk(session: ClientSession) -> None:
        ask = asking(session)
        said = first_id(await ask("recall", query="Siemens"))
        several = await ask("correct", id=said, text="I work at Bosch.")
        assert several.startswith("Several things were made of this")
        [line] = [line for line in several.splitlines() if "Siemens" in line]
        await ask("correct", id=first_id(line), text="I work at Bosch.")
        [chess] = [line for line in (await ask("list")).splitlines() if "chess" in line]
        await ask("correct", id=first_id(chess), text="I play Go.")
        known = await ask("list", limit=50)
        assert "Bosch" in known
        assert "Go." in known
        assert "Siemens" not in known
        assert "chess" not in known
        [rex] = [line for line in known.splitlines() if "dog called Rex" in line]
        gone = await ask("forget", id=first_id(rex))
        assert f"[{said}]" in gone  # the message still says so
        assert len((await ask("forget", id="Rex")).splitlines()) <= MATCHES + 1
        refused = await session.call_tool("correct", {"id": said})
        assert refused.isError

    here(memory, talk, user="ada", tools="assistant")
    memory.jobs.catch_up(300)
    facts = memory.facts.list(user="ada", subject="user")
    assert {fact.object for fact in facts if fact.predicate == "works at"} == {"Bosch"}
    assert not {"Siemens", "chess", "Rex"} & {fact.object for fact in facts}


def test_over_http_the_address_or_else_the_key_says_which_tools(tmp_path: Path) -> None:
    async def names(url: str, key: str) -> set[str]:
        async with client_of(url, {"Authorization": key}) as session:
            return {tool.name for tool in (await session.list_tools()).tools}

    with an_api(tmp_path) as api:
        ada, url = api.ada.headers["authorization"], f"{api.url}/mcp"
        assert asyncio.run(names(url, ada)) == set(TOOLS)
        assert asyncio.run(names(f"{url}?tools=revise", ada)) == set(REVISING)
        assert len(asyncio.run(names(f"{url}?tools=all", ada))) == 14
        refused = api.ada.post("/mcp?tools=SECRET", json={})
        assert (refused.status_code, "SECRET" in refused.text) == (404, False)


def test_the_rules_of_remember_are_loaded_while_a_client_reads_the_list_of_tools() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTING], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0", "1"]
