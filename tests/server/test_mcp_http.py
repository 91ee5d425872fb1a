"""MCP over HTTP: whose memory a call is about, what is refused, and that nothing is lost."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.sessions import StreamableHttpConnection
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp import ClientSession, McpError
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

from memorist import Memory, Notebook
from memorist.agents.assistant import ADDED
from memorist.agents.toolbox import NAMES
from memorist.server.mcp import server as server_module
from memorist.server.mcp.http import LONGEST_ID, MOST_BYTES, McpApp, body_refusal
from tests.support.mcp_fuzz import CALLS
from tests.support.mcp_http import ADA, ADMIN, make_app, serving_elsewhere, serving_here
from tests.support.mcp_servers import over_stdio, structured

TYPES = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
BOB = {"Authorization": "Bearer acme/bob"}
ELSEWHERE = {"Authorization": "Bearer globex/ada"}


@pytest.fixture
def url(memory: Memory) -> Iterator[str]:
    with serving_here(make_app(memory)) as url:
        yield url


@asynccontextmanager
async def client_of(url: str, headers: Mapping[str, str] = ADA) -> AsyncIterator[ClientSession]:
    """The SDK's own client, as somebody."""
    async with (
        httpx.AsyncClient(headers=dict(headers), timeout=60) as http,
        streamable_http_client(url, http_client=http) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return request("tools/call", name=tool, arguments=arguments)


def post(url: str, message: Any, headers: Mapping[str, str] = ADA) -> httpx.Response:
    """What one POST is answered, without any session."""
    return httpx.post(url, headers={**TYPES, **headers}, content=json.dumps(message), timeout=30)


def result(answer: httpx.Response) -> dict[str, Any]:
    """What an answer holds, be it an event or plain JSON."""
    assert answer.status_code == 200, answer.text
    lines = [line for line in answer.text.splitlines() if "jsonrpc" in line]
    found: dict[str, Any] = json.loads(lines[-1].removeprefix("data: "))["result"]
    return found


def failure(answer: httpx.Response) -> str:
    """What a tool says that refuses."""
    found = result(answer)
    assert found["isError"]
    return str(found["content"][0]["text"])


# Who is asking, and whose memory it is


def test_each_request_says_whose_memory_it_is(url: str) -> None:
    """Whatever session it claims to be of."""
    for who in (ADA, BOB, ELSEWHERE):
        said = f"I am {who['Authorization']}."
        assert not result(post(url, call("remember", content=said), who))["isError"]
    for who in (ADA, BOB, ELSEWHERE):
        claimed = {**who, "Mcp-Session-Id": "ada's"}
        found = result(post(url, call("recall", query="I am Bearer"), claimed))
        texts = [it["text"] for it in found["structuredContent"]["found"]]
        assert texts == [f"I am {who['Authorization']}."]


def test_a_user_may_name_themselves_and_nobody_else(url: str) -> None:
    assert not result(post(url, call("remember", content="Hi.", user_id="ada")))["isError"]
    for tool, arguments in CALLS.items():
        assert "another user" in failure(post(url, call(tool, **arguments | {"user_id": "bob"})))


def test_an_admin_names_the_user_in_each_call(url: str, memory: Memory) -> None:
    for tool, arguments in CALLS.items():
        nobody = {key: value for key, value in arguments.items() if key != "user_id"}
        assert "give user_id" in failure(post(url, call(tool, **nobody), ADMIN)), tool
    assert not result(post(url, call("remember", content="Hi.", user_id="bob"), ADMIN))["isError"]
    assert [it.content for it in memory.tenant("acme").history(user="bob")] == ["Hi."]
    assert memory.history(user="bob") == []


def test_resources_and_prompts_are_the_callers_too(url: str, memory: Memory) -> None:
    for user in ("ada", "bob"):
        Notebook(memory.tenant("acme"), user=user).append(f"These are of {user}.")

    async def read(session: ClientSession, uri: str) -> str:
        [content] = (await session.read_resource(AnyUrl(uri))).contents
        return str(content.text)  # type: ignore[union-attr]

    async def talk() -> None:
        asked = {"question": "Whose?"}
        async with client_of(url) as ada, client_of(url, ADMIN) as admin:
            assert await read(ada, "memorist://notes") == "These are of ada."
            assert await read(admin, "memorist://notes/bob") == "These are of bob."
            with pytest.raises(McpError, match="another user"):
                await read(ada, "memorist://notes/bob")
            with pytest.raises(McpError, match="give user_id"):
                await read(admin, "memorist://notes")
            [message] = (await ada.get_prompt("ask_with_memory", asked)).messages
            assert "These are of ada." in message.content.text  # type: ignore[union-attr]
            with pytest.raises(McpError, match="another user"):
                await ada.get_prompt("ask_with_memory", {**asked, "user_id": "bob"})
            with pytest.raises(McpError, match=r"Missing required arguments: .*question"):
                await ada.get_prompt("ask_with_memory", {})
            with pytest.raises(McpError, match="no such prompt"):
                await ada.get_prompt("SECRET", {})
            with pytest.raises(McpError, match=r"takes only question, user_id$"):
                await ada.get_prompt("ask_with_memory", {**asked, "SECRET": "SECRET"})

    asyncio.run(talk())


def test_nobody_known_is_told_nothing(url: str) -> None:
    for message in (request("tools/list"), call("recall", query="x"), request("ping")):
        answer = post(url, message, {})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"


def test_a_call_by_python_has_no_caller(memory: Memory) -> None:
    with pytest.raises(Exception, match="no known caller"):
        asyncio.run(McpApp(memory).servers["all"].call_tool("recall", {"query": "x"}))


def test_the_user_is_an_argument_that_may_be_left_out(url: str) -> None:
    tools = result(post(url, request("tools/list")))["tools"]
    for tool in tools:
        assert "user_id" in tool["inputSchema"]["properties"]
        assert "user_id" not in tool["inputSchema"].get("required", [])
        assert "admin" in tool["inputSchema"]["properties"]["user_id"]["description"]
    assert tuple(tool["name"] for tool in tools) == (*NAMES, *ADDED)


# Every tool, every transport


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_client_calls_every_tool(transport: str, url: str, tmp_path: Path) -> None:
    results: dict[str, Any] = {}

    async def call_all(session: ClientSession) -> None:
        for name, arguments in CALLS.items():  # the client checks results by their schemas
            results[name] = structured(await session.call_tool(name, arguments))

    async def over_pipes() -> None:
        server = over_stdio(tmp_path / "a.db", "--user", "ada")
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            await call_all(session)

    async def over_http() -> None:
        async with client_of(url) as session:
            await call_all(session)

    if transport == "stdio":
        asyncio.run(over_pipes())
    else:
        asyncio.run(over_http())
    assert results.keys() == set(NAMES)
    assert results["remember"]["stored"]
    assert results["store_fact"]["fact_id"]


def test_fifty_writes_at_once_are_fifty_messages(url: str, memory: Memory) -> None:
    async def run() -> None:
        async with client_of(url) as session, asyncio.TaskGroup() as group:
            for number in range(50):
                content = f"This is number {number}."
                group.create_task(session.call_tool("remember", {"content": content}))

    asyncio.run(run())
    said = sorted(str(message.content) for message in memory.tenant("acme").history(user="ada"))
    assert said == sorted(f"This is number {number}." for number in range(50))


def test_any_server_answers_any_call(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    with ExitStack() as stack:
        first, second = (stack.enter_context(serving_elsewhere(database)) for _ in "12")
        hello = request(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "test", "version": "1"},
        )
        assert result(post(first, hello))["serverInfo"]["name"] == "memorist"
        result(post(second, call("remember", content="I live in Berlin.")))
        found = result(post(first, call("recall", query="Berlin")))
    assert found["structuredContent"]["found"][0]["text"] == "I live in Berlin."


def test_langchains_adapters_load_and_call_the_tools(url: str) -> None:
    async def run() -> Any:
        connection = StreamableHttpConnection(transport="streamable_http", url=url, headers=ADA)
        async with MultiServerMCPClient({"memory": connection}).session("memory") as session:
            tools = {tool.name: tool for tool in await load_mcp_tools(session)}
            assert tuple(tools) == (*NAMES, *ADDED)
            for name, arguments in CALLS.items():
                assert await tools[name].ainvoke(arguments)
            return await tools["recall"].ainvoke({"query": "Berlin"})

    [block] = asyncio.run(run())
    assert "I moved to Berlin in March." in block["text"]


# Long work


class SlowMemory(Memory):
    """Recalls in its own time."""

    def recall(self, question: str, **options: Any) -> Any:
        time.sleep(0.3 if question == "slow" else 0.6)
        return super().recall(question, **options)


def test_each_call_hears_of_its_own_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "PROGRESS_S", 0.05)
    heard = {"slow": 0, "slower": 0}

    async def talk(url: str) -> None:
        async def ask(session: ClientSession, question: str) -> None:
            async def hear(progress: float, total: float | None, message: str | None) -> None:
                heard[question] += 1

            arguments = {"query": question}
            structured(await session.call_tool("recall", arguments, progress_callback=hear))

        async with client_of(url) as session, asyncio.TaskGroup() as group:
            for question in heard:
                group.create_task(ask(session, question))

    with (
        SlowMemory(":memory:", embedder=None, extraction=None) as memory,
        serving_here(make_app(memory)) as url,
    ):
        asyncio.run(talk(url))
    assert 2 <= heard["slow"] < heard["slower"]


# What is refused


def test_what_is_no_request_is_refused_with_its_reason() -> None:
    def why(body: bytes) -> str:
        refused = body_refusal(body)
        assert refused is not None, body
        assert refused.status_code == 400
        return str(json.loads(bytes(refused.body))["error"]["message"])

    def deep(levels: int) -> bytes:
        params = b'{"a":' * levels + b"1" + b"}" * levels
        return b'{"jsonrpc":"2.0","method":"ping","params":' + params + b"}"

    assert body_refusal(deep(100)) is None
    for body in (b"", b"{", b"\xff", b"[NaN]", b"9" * 5_000, b'"\\ud800"', b'{"\\uDFFF": 1}'):
        assert "not JSON" in why(body)
    for body in (deep(300), b"[" * 100_000):
        assert "too deep" in why(body)
    good = request("ping")
    wrong: dict[str, Any]
    for wrong in (
        {"jsonrpc": "1.0"},
        {"id": 1.5},
        {"id": None},
        {"id": True},
        {"id": {}},
        {"id": 2**63},
        {"id": "x" * (LONGEST_ID + 1)},
        {"method": 1},
        {"params": []},
        {"params": None},
    ):
        assert "not one JSON-RPC" in why(json.dumps(good | wrong).encode())
    for other in ([], [good], "x", None, {}, {"jsonrpc": "2.0", "id": 1, "result": {}}):
        assert "not one JSON-RPC" in why(json.dumps(other).encode())
    assert body_refusal(json.dumps(good).encode()) is None
    assert (
        body_refusal(b'{"jsonrpc":"2.0","method":"ping","params":{"x":"\\ud83d\\ude00"}}') is None
    )


def test_large_bodies_wrong_types_and_other_methods_are_refused(url: str) -> None:
    large = call("remember", content="x" * MOST_BYTES)
    assert post(url, large).status_code == 413

    def parts() -> Iterator[bytes]:
        for _ in range(9):
            yield b" " * 1024 * 1024

    assert httpx.post(url, headers={**TYPES, **ADA}, content=parts()).status_code == 413
    ping = request("ping")
    for kind in ("text/plain", "", "application/json, text/plain", "multipart/form-data"):
        assert post(url, ping, {**ADA, "content-type": kind}).status_code == 415
    assert post(url, ping, {**ADA, "accept": "text/html"}).status_code == 406
    for method in ("GET", "DELETE", "PUT", "OPTIONS"):
        answer = httpx.request(method, url, headers={**TYPES, **ADA})
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    five = call("remember", content="x" * 5 * 1024 * 1024)  # more than the SDK takes by itself
    assert post(url, five).status_code == 200


def test_errors_and_the_log_repeat_nothing_of_a_request(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for message in (
        request("SECRET"),
        request("tools/call", name=["SECRET"]),
        call("SECRET"),
        call("recall", query={"SECRET": 1}),
        call("recall", query="x", SECRET=1),
        request("prompts/get", name="SECRET"),
        request("initialize", SECRET="SECRET"),
        request("logging/setLevel", level="SECRET"),
        request("completion/complete", ref="SECRET"),
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": "SECRET"}},
        {"jsonrpc": "2.0", "SECRET": "SECRET"},
        ["SECRET"],
    ):
        answer = post(url, message)
        assert answer.status_code < 500
        assert "SECRET" not in answer.text
    assert caplog.records
    assert "SECRET" not in caplog.text


# The app itself


def test_an_app_may_be_run_again(memory: Memory) -> None:
    mcp = McpApp(memory)
    for said in ("Once.", "Twice."):
        with serving_here(make_app(memory, mcp)) as url:
            result(post(url, call("remember", content=said)))
    history = memory.tenant("acme").history(user="ada")
    assert [it.content for it in history] == ["Once.", "Twice."]


def test_an_app_that_does_not_run_says_so(memory: Memory) -> None:
    with pytest.raises(RuntimeError, match="lifespan"):
        asyncio.run(McpApp(memory)({"type": "http"}, None, None))  # type: ignore[arg-type]


def test_making_a_server_leaves_the_log_as_it_is(memory: Memory) -> None:
    root = logging.getLogger()
    before = list(root.handlers), root.level
    McpApp(memory)
    assert (list(root.handlers), root.level) == before
