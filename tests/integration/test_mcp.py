"""The MCP server, by the SDK's own client: in this process, over stdio, through LangChain."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.sessions import StdioConnection
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp import ClientSession, McpError
from mcp.client.stdio import stdio_client
from mcp.shared.memory import create_connected_server_and_client_session
from pydantic import AnyUrl

from memorist import Extraction, Library, Memory, Notebook, __version__
from memorist.agents.assistant import ADDED
from memorist.agents.toolbox import NAMES
from memorist.providers.chat_model import Reply
from memorist.server.mcp import server as server_module
from memorist.server.mcp.server import NOTHING, build_server
from memorist.testing.scripted import ScriptedChatModel
from tests.support.mcp_servers import command, environment, over_stdio, structured

Talk = Callable[[ClientSession], Awaitable[None]]


def here(memory: Memory, talk: Talk, **options: Any) -> None:
    """Let a client talk to a server in this process."""

    async def run() -> None:
        server = build_server(memory, **{"tools": "all", **options})
        async with create_connected_server_and_client_session(server) as session:
            await talk(session)

    asyncio.run(run())


@asynccontextmanager
async def started(database: Path, *options: str, **more: str) -> AsyncIterator[ClientSession]:
    """A client of a server that was started for it."""
    async with (
        stdio_client(over_stdio(database, *options, **more)) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


async def failure(session: ClientSession, tool: str, arguments: dict[str, Any]) -> str:
    """What a tool says that refuses."""
    result = await session.call_tool(tool, arguments)
    assert result.isError
    [block] = result.content
    assert block.type == "text"
    return block.text


def test_every_tool_tells_what_it_does_takes_and_gives(memory: Memory) -> None:
    async def talk(session: ClientSession) -> None:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert tuple(tools) == (*NAMES, *ADDED)
        for tool in tools.values():
            properties = tool.inputSchema["properties"]
            assert tool.description
            assert all(one["description"] for one in properties.values()), tool.name
            assert bool(tool.outputSchema) == (tool.name in NAMES)
            assert "user_id" in tool.inputSchema["required"]
        assert tools["recall"].annotations
        assert tools["recall"].annotations.readOnlyHint
        message = tools["store_session_message"].inputSchema
        assert message["properties"]["importance_score"]["default"] == 0.7
        assert set(message["required"]) == {"user_id", "session_id", "role", "content"}

    here(memory, talk)


def test_a_server_for_one_user_asks_nobody_for_the_user(memory: Memory) -> None:
    async def talk(session: ClientSession) -> None:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        asking = [
            name for name, tool in tools.items() if "user_id" in tool.inputSchema["properties"]
        ]
        assert asking == ["store_session_message", "summarize_session"]
        assert "user_id" not in tools["summarize_session"].inputSchema["required"]
        structured(await session.call_tool("remember", {"content": "I moved to Berlin."}))
        assert "another user" in await failure(
            session, "summarize_session", {"session_id": "s1", "user_id": "bob"}
        )

    here(memory, talk, user="ada", agent="tutor")
    assert [it.content for it in memory.history(user="ada", agent="tutor")] == [
        "I moved to Berlin."
    ]


def test_every_tool_works_and_its_result_has_the_shape_it_promised(memory: Memory) -> None:
    Library(memory).add("Returns", "You may return it within 30 days.", "returns.md")
    kept = {"content": "The build needs Python 3.11.", "importance": 0.8, "tags": ["build"]}
    calls: dict[str, dict[str, Any]] = {
        "remember": {"content": '{"json": ["stays", "text"]}'},
        "recall": {"query": "json", "limit": 1},
        "store_session_message": {
            "session_id": "s1",
            "message_type": "humanmessage",
            "role": "user",
            "content": "Hello.",
            "importance_score": 0.7,
            "message_id": "m1",
        },
        "store_concept": kept,
        "store_episode": kept | {"content": "On Monday the build broke for an hour."},
        "store_fact": {
            "content": "Ada speaks German.",
            "subject": "Ada",
            "predicate": "speaks",
            "object": "German",
        },
        "store_procedure": kept | {"content": "First run make lint, then run make test."},
        "store_working_memory": kept | {"content": "Waiting for the review of the pull request."},
        "summarize_session": {"session_id": "s1", "force_update": True},
        "manage_long_term_memory": {"operation": "append", "content": '{"also": "text"}'},
        "retrieve_context": {
            "query": "How long may I return it?",
            "top_k": 1,
            "reserved_tokens": 100,
        },
    }
    results: dict[str, Any] = {}

    async def talk(session: ClientSession) -> None:
        for name, arguments in calls.items():  # the client checks results by their schemas
            result = await session.call_tool(name, {"user_id": "ada", **arguments})
            results[name] = structured(result)

    here(memory, talk)
    assert results.keys() == set(NAMES)
    assert results["recall"]["found"][0]["text"] == '{"json": ["stays", "text"]}'
    assert results["store_session_message"] == {
        "message_id": "m1",
        "session_id": "s1",
        "role": "assistant",
        "stored": True,
    }
    assert results["store_fact"]["fact_id"]
    assert results["summarize_session"]["messages"] == 1
    assert results["retrieve_context"]["found"][0]["citation"] == "Returns (returns.md)"
    assert Notebook(memory, user="ada").read() == '{"also": "text"}'
    kinds = {item.kind for item in memory.memories.list(user="ada")}
    assert kinds == {"concept", "episode", "fact", "procedure", "working"}


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("recall", {"query": "x", "user_id": "ada", "limit": "SECRET"}, "limit: Input should be"),
        ("recall", {"query": "SECRET"}, "user_id: Field required"),
        ("recall", {"query": "SECRET", "user_id": ""}, "give user_id"),
        (
            "recall",
            {"query": "SECRET", "user_id": "ada", "SECRET": 1},
            "takes only query, limit, user_id",
        ),
        ("remember", {"content": {"SECRET": 1}, "user_id": "ada"}, "content"),
        ("store_fact", {"content": "SECRET", "subject": "SECRET", "user_id": "ada"}, "or none"),
        ("manage_long_term_memory", {"operation": "SECRET", "user_id": "ada"}, "'append'"),
    ],
)
def test_a_wrong_call_is_an_error_that_repeats_nothing_of_it(
    memory: Memory, tool: str, arguments: dict[str, Any], said: str
) -> None:
    async def talk(session: ClientSession) -> None:
        text = await failure(session, tool, arguments)
        assert said in text
        assert "SECRET" not in text

    here(memory, talk)


def test_a_dead_store_is_an_error_and_the_server_goes_on(memory: Memory) -> None:
    memory.close()

    async def talk(session: ClientSession) -> None:
        for _ in range(2):
            text = await failure(session, "remember", {"content": "SECRET", "user_id": "ada"})
            assert text
            assert "SECRET" not in text
        assert (await session.list_tools()).tools

    here(memory, talk)


def test_notes_and_sessions_are_resources(memory: Memory) -> None:
    Notebook(memory, user="ada", agent="tutor").append("Speaks German.")
    memory.remember("Hello.", user="ada", agent="tutor", session="a/b c")

    async def talk(session: ClientSession) -> None:
        async def read(uri: str) -> str:
            [content] = (await session.read_resource(AnyUrl(uri))).contents
            text: str = content.text  # type: ignore[union-attr]
            return text

        listed = [str(one.uri) for one in (await session.list_resources()).resources]
        assert listed == ["memorist://notes", "memorist://sessions"]
        templates = (await session.list_resource_templates()).resourceTemplates
        assert all(one.description for one in templates)
        assert "memorist://notes/{user}/{agent}" in [one.uriTemplate for one in templates]
        assert await read("memorist://notes/ada/tutor") == "Speaks German."
        assert await read("memorist://notes") == "Speaks German."
        assert json.loads(await read("memorist://sessions"))[0]["id"] == "a/b c"
        [said] = json.loads(await read("memorist://sessions/ada/a%2Fb%20c"))
        assert (said["role"], said["text"]) == ("user", "Hello.")
        with pytest.raises(McpError, match="another user"):
            await read("memorist://notes/bob")

    here(memory, talk, user="ada", agent="tutor")


def test_a_prompt_brings_what_is_remembered_as_a_quotation(memory: Memory) -> None:
    memory.remember("I moved to Berlin in March.", user="ada")

    async def talk(session: ClientSession) -> None:
        [prompt] = (await session.list_prompts()).prompts
        assert prompt.description
        assert all(argument.description for argument in prompt.arguments or ())
        asked = {"question": "When did I move to Berlin?", "user_id": "ada"}
        [message] = (await session.get_prompt(prompt.name, asked)).messages
        assert "> I moved to Berlin in March." in message.content.text  # type: ignore[union-attr]
        with pytest.raises(McpError, match="give user_id"):
            await session.get_prompt(prompt.name, {"question": "Where do I live?"})

    here(memory, talk)


class SlowModel:
    """Summarises, but not at once."""

    name = "slow"

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        timeout_s: float,
        schema: Mapping[str, Any] | None = None,
    ) -> Reply:
        time.sleep(0.5)
        return Reply("## Request and intent\n- Swans were seen.", 10, 10)


def test_long_work_tells_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "PROGRESS_S", 0.05)
    beats: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        beats.append(progress)

    async def talk(session: ClientSession) -> None:
        arguments = {"session_id": "s1", "user_id": "ada"}
        result = await session.call_tool("summarize_session", arguments, progress_callback=hear)
        assert structured(result)["updated"]

    with Memory(":memory:", embedder=None, extraction=Extraction(model=SlowModel())) as memory:
        for number in range(12):
            memory.remember(f"I saw {number} swans on the lake.", user="ada", session="s1")
        here(memory, talk)
    assert len(beats) >= 3
    assert beats == sorted(beats)


def test_fifty_writes_at_once_are_fifty_messages(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            started(tmp_path / "a.db", "--user", "ada") as session,
            asyncio.TaskGroup() as group,
        ):
            for number in range(50):
                content = f"This is number {number}."
                group.create_task(session.call_tool("remember", {"content": content}))

    asyncio.run(run())
    with Memory(tmp_path / "a.db", embedder=None, extraction=None) as memory:
        said = {message.content for message in memory.history(user="ada")}
    assert said == {f"This is number {number}." for number in range(50)}


def test_the_server_says_who_it_is(tmp_path: Path) -> None:
    async def run() -> None:
        server = over_stdio(tmp_path / "a.db")
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            said = await session.initialize()
        assert (said.serverInfo.name, said.serverInfo.version) == ("memorist", __version__)
        assert said.instructions

    asyncio.run(run())


def test_what_one_client_stored_another_recalls(tmp_path: Path) -> None:
    async def run() -> None:
        database, said = tmp_path / "a.db", {"content": "I moved to Berlin in March."}
        async with started(database, "--user", "ada") as first:
            structured(await first.call_tool("remember", said))
        async with started(database, MEMORIST_USER="ada") as second:
            found = structured(await second.call_tool("recall", {"query": "Berlin"}))["found"]
            assert found[0]["text"] == said["content"]
            [notes, _] = (await second.list_resources()).resources
            assert (await second.read_resource(notes.uri)).contents
        async with started(database) as third:
            arguments = {"query": "Berlin", "user_id": "bob"}
            assert structured(await third.call_tool("recall", arguments)) == {
                "found": [],
                "note": NOTHING,
            }
            assert "user_id" in await failure(third, "recall", {"query": "Berlin"})
            asked = {"question": "Berlin?", "user_id": "ada"}
            assert (await third.get_prompt("ask_with_memory", asked)).messages

    asyncio.run(run())


def test_nothing_but_the_protocol_is_written_to_standard_output(tmp_path: Path) -> None:
    def request(number: int, method: str, **params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    hello = {"protocolVersion": "2025-06-18", "capabilities": {},
             "clientInfo": {"name": "test", "version": "1"}}  # fmt: skip
    calls = [("remember", {"content": "Grüße aus Berlin"}), ("recall", {"query": "Berlin"}),
             ("recall", {"limit": "x"}), ("nothing", {}), ("summarize_session", {})]  # fmt: skip
    lines: list[dict[str, Any]] = [
        request(0, "initialize", **hello),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(
            request(number, "tools/call", name=name, arguments=arguments)
            for number, (name, arguments) in enumerate(calls, start=1)
        ),
    ]
    env = environment(tmp_path / "a.db", MEMORIST_EMBEDDER="minilm", MEMORIST_USER="ada")
    pipe = subprocess.PIPE
    with subprocess.Popen(command(), stdin=pipe, stdout=pipe, stderr=pipe, env=env) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        server.stdin.flush()
        replies = [json.loads(server.stdout.readline()) for _ in range(len(calls) + 1)]
        rest, errors = server.communicate(timeout=30)
    assert sorted(reply["id"] for reply in replies) == list(range(len(calls) + 1))
    assert rest == b""
    assert server.returncode == 0, errors


def test_an_agent_uses_the_tools_through_langchains_adapters(tmp_path: Path) -> None:
    said = {"content": "I moved to Berlin in March."}
    script = [
        {"name": "remember", "args": said},
        {"name": "recall", "args": {"query": "Berlin"}},
        {"name": "recall", "args": {"query": "Berlin", "limit": 0.5}},
        "In Berlin.",
    ]

    async def run() -> list[Any]:
        server = over_stdio(tmp_path / "a.db", "--user", "ada")
        connection = StdioConnection(
            transport="stdio", command=server.command, args=server.args, env=server.env
        )
        async with MultiServerMCPClient({"memory": connection}).session("memory") as session:
            tools = await load_mcp_tools(session)
            assert [tool.name for tool in tools] == [*NAMES, *ADDED]
            agent = create_agent(ScriptedChatModel(script), tools=tools)
            result = await agent.ainvoke({"messages": [HumanMessage("Where do I live?")]})
            return list(result["messages"])

    messages = asyncio.run(run())
    answers = [message for message in messages if isinstance(message, ToolMessage)]
    assert messages[-1].content == "In Berlin."
    assert said["content"] in answers[1].text
    assert answers[1].artifact["structured_content"]["found"][0]["kind"] == "message"
    assert answers[2].status == "error"


def test_the_command_line_starts_without_the_sdk() -> None:
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "import memorist.cli.main\n"
        "assert not {'langchain', 'langchain_core', 'pydantic'} & sys.modules.keys()\n"
        "try: import memorist.server.mcp.server\n"
        "except ImportError as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        'MissingExtraError this needs an optional part: pip install "memorist[mcp]"'
    )
