"""Document 000, the revise node: its names and its examples."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from memorist import Memory
from memorist.agents.langchain import MemoristChatMessageHistory
from memorist.agents.mcp_manager import McpManager
from memorist.agents.react import create_react_agent
from memorist.agents.revise import ReviseNode, ReviseState
from memorist.agents.toolbox import Toolbox
from memorist.agents.tools import memory_tools
from memorist.errors import MemoristError
from memorist.server.mcp.server import build_server
from memorist.testing.scripted import ScriptedChatModel
from tests.documents.names import uses
from tests.support.mcp_http import ADA, make_app, serving_here
from tests.support.mcp_servers import over_stdio
from tests.support.revising import NOTHING, SAYINGS, SECRET, call, run, stored, talk

STATE = {"messages": [HumanMessage("Hello.")], "session_id": "s1", "user_id": "ada"}


class OnlyCalls:
    """A manager that does nothing but pass calls on to a server, and keeps what it was sent."""

    def __init__(self, manager: McpManager | None = None) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._manager = manager

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        self.calls.append((name, dict(arguments)))
        return await self._manager.call_tool(name, arguments) if self._manager else {"stored": True}


@uses("ReviseNode", "ReviseNode.execute", "messages", "session_id", "user_id")
@uses("store_session_message", "message_type", "role", "content", "importance_score")
@uses("ReviseNode.mcp_manager", "mcp_manager.call_tool", "should_update", "summarize_session")
@uses("force_update", "memory_update_triggered", "memory_update_error", "capabilities")
def test_a_double_with_only_call_tool_is_called_to_the_letter() -> None:
    mcp_manager = AsyncMock()
    node = ReviseNode(mcp_manager)
    for count in (4, 5, 7, 10, 15):
        mcp_manager.call_tool.reset_mock()
        state = talk(count) | {"capabilities": {"tools": ["search"]}}
        result = asyncio.run(node.execute(state))
        assert result == state | NOTHING
        asked = [it.args[1] for it in mcp_manager.call_tool.call_args_list[-1:]]
        summary = {"session_id": "s1", "user_id": "ada", "force_update": False}
        assert (asked == [summary]) == (count % 5 == 0)
    only_calls = OnlyCalls()
    asyncio.run(
        ReviseNode(only_calls).execute({"messages": talk(1)["messages"], "session_id": "s"})
    )
    message = {
        "session_id": "s",
        "user_id": "anonymous",
        "message_type": "humanmessage",
        "role": "user",
        "content": "Message 0.",
        "importance_score": 0.7,
    }
    assert only_calls.calls == [("store_session_message", message)]


@uses("create_react_agent", "react_agent.execute", "user_query", "memory_tools_used")
@uses("store_concept", "store_episode", "store_fact", "store_procedure", "store_working_memory")
@uses("memory_analysis", "ReviseNode._intelligent_memory_update", "ReviseNode._save_conversation")
def test_five_kinds_are_stored_through_a_manager_that_only_calls_tools(memory: Memory) -> None:
    async def main() -> list[dict[str, Any]]:
        async with McpManager(build_server(memory, program=True)) as manager:
            memory_tools = [it for it in await manager.list_tools() if it.name in SAYINGS]
            model = ScriptedChatModel([call("store_fact", user_id="ada"), "I stored one."])
            react_agent = create_react_agent(memory_tools, manager, model)
            analysis_result = await react_agent.execute("Store where Ada lives.")
            kinds: list[Any] = [[call(name) for name in SAYINGS], "I stored four more."]
            node = ReviseNode(OnlyCalls(manager), ScriptedChatModel(kinds))
            state = STATE | {"user_query": "Hello."}
            await node._save_conversation(state)
            update = await node._intelligent_memory_update(state, "s1", "ada")
            return [analysis_result, update]

    analysis_result, update = asyncio.run(main())
    said = analysis_result["messages"]
    assert [message.type for message in said] == ["human", "ai", "tool", "ai"]
    assert said[-1].text == "I stored one."
    assert update == {
        "memory_update_triggered": True,
        "memory_tools_used": list(SAYINGS),
        "memory_analysis": "I stored four more.",
        "memory_update_error": "",
    }
    kept = {item.kind: (item.text, item.scope.session) for item in memory.memories.list(user="ada")}
    assert kept["fact"] == (SAYINGS["store_fact"], None)  # by the first agent, of no session
    assert kept["episode"] == (SAYINGS["store_episode"], "s1")
    assert len(kept) == 5
    assert stored(memory) == [("user", "Hello.")]


@uses("ReviseNode._get_message_role")
def test_the_role_of_a_message_follows_from_its_class() -> None:
    messages = [HumanMessage("x"), AIMessage("x"), ToolMessage("x", tool_call_id="c"), object()]
    roles = [ReviseNode._get_message_role(message) for message in [*messages, SystemMessage("x")]]
    assert roles == ["user", "assistant", "tool", "system", "system"]


@uses("OptimizedAgentState", "memory_revision", "memory_revision.status", "get_stream_writer")
@uses("memory_revision.memory_updated", "trace_node")
def test_in_a_graph_the_changed_keys_are_merged_and_two_events_are_streamed(memory: Memory) -> None:
    async def main() -> tuple[list[Any], dict[str, Any]]:
        async with McpManager(build_server(memory, program=True)) as manager:
            graph: Any = StateGraph(ReviseState)
            graph.add_node("revise", ReviseNode(manager).execute)
            graph.add_edge(START, "revise")
            graph.add_edge("revise", END)
            modes: Any = ["custom", "updates"]
            parts = [it async for it in graph.compile().astream(talk(5), stream_mode=modes)]
            outside = await ReviseNode(manager).execute(talk(5))
            return parts, outside

    parts, outside = asyncio.run(main())
    assert parts == [
        ("custom", {"memory_revision": {"status": "starting", "session_id": "s1"}}),
        ("custom", {"memory_revision": {"status": "completed", "memory_updated": True}}),
        ("updates", {"revise": NOTHING}),
    ]
    assert outside == talk(5) | NOTHING


def test_errors_are_told_without_the_words_of_a_user() -> None:
    async def fail(*_: Any) -> None:
        raise RuntimeError(SECRET)

    mcp_manager = AsyncMock(call_tool=fail)
    result = asyncio.run(ReviseNode(mcp_manager).execute(STATE))
    assert result["memory_update_error"].endswith("the MCP manager failed (RuntimeError)")
    assert result["messages"] == STATE["messages"]
    with pytest.raises(MemoristError, match="MEMORIST_MODEL"):
        create_react_agent([], mcp_manager)


def test_tool_calls_names_ids_and_status_are_read_back_as_they_were(memory: Memory) -> None:
    calls: list[Any] = [{"name": "search", "args": {"q": "Kiel"}, "id": "c1", "type": "tool_call"}]
    messages: list[BaseMessage] = [
        HumanMessage("Look it up.", name="ada", id="m0"),
        AIMessage("", tool_calls=calls, name="tutor", id="m1"),
        ToolMessage("no such host", name="search", tool_call_id="c1", status="error", id="m2"),
    ]
    run(build_server(memory, program=True), STATE | {"messages": messages})
    read = MemoristChatMessageHistory(memory, "s1", user="ada").messages
    assert [(it.id, it.name, it.text) for it in read] == [
        (it.id, it.name, it.text) for it in messages
    ]
    assert isinstance(read[1], AIMessage)
    assert read[1].tool_calls == calls
    assert isinstance(read[2], ToolMessage)
    assert (read[2].tool_call_id, read[2].status) == ("c1", "error")


REQUIRED = {"query": "Kiel", "content": "Hello.", "id": "Kiel", "role": "user", "session_id": "s1"}

NAMED = {"recall": {"query": "Kiel"}, "summarize_session": {"session_id": "s1"}}


async def _call_with_null(manager: McpManager) -> None:
    """Call every tool with its own user, and null for whatever is optional."""
    for tool in await manager.list_tools():
        arguments: dict[str, Any] = dict.fromkeys(tool.schema["properties"])
        required = set(tool.schema.get("required", ())) - {"user_id"}
        arguments |= {name: REQUIRED[name] for name in required}
        if tool.name == "correct":
            arguments["text"] = "Goodbye."
        answer = await manager.call_tool(tool.name, arguments | {"user_id": "ada"})
        assert not answer.failed, (tool.name, answer.text)


@asynccontextmanager
async def _over_http(url: str) -> AsyncIterator[ClientSession]:
    async with (
        httpx.AsyncClient(headers=ADA, timeout=60) as http,
        streamable_http_client(url, http_client=http) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


@pytest.mark.parametrize("user", [None, "ada"])
@pytest.mark.parametrize("tools", ["assistant", "revise", "all"])
def test_every_tool_takes_null_and_its_own_user(
    memory: Memory, user: str | None, tools: Any
) -> None:
    async def main() -> None:
        async with McpManager(build_server(memory, user=user, tools=tools)) as manager:
            await _call_with_null(manager)
            if user:
                name = "summarize_session" if tools == "revise" else "recall"
                refused = await manager.call_tool(name, {**NAMED[name], "user_id": "bob"})
                assert "another user" in refused.text

    asyncio.run(main())


def test_every_transport_takes_null_and_its_own_user(memory: Memory, tmp_path: Path) -> None:
    async def main(url: str) -> None:
        for target in (lambda: _over_http(url), over_stdio(tmp_path / "a.db", "--user", "ada")):
            async with McpManager(target, timeout_s=120) as manager:
                await _call_with_null(manager)

    with serving_here(make_app(memory)) as url:
        asyncio.run(main(url))


def test_the_toolbox_and_its_langchain_tools_take_null(memory: Memory) -> None:
    box = Toolbox(memory, user="ada", session="s1")
    for tool in memory_tools(box):
        fields: Any = tool.tool_call_schema.model_fields  # type: ignore[union-attr]
        needed = {name: REQUIRED[name] for name, it in fields.items() if it.is_required()}
        nulls = {name: None for name in fields if name not in needed}
        answer = tool.invoke(
            {"name": tool.name, "args": {**nulls, **needed}, "id": "c", "type": "tool_call"}
        )
        assert answer.status == "success", (tool.name, answer.text)
    assert box.recall("Hello.", limit=None)  # type: ignore[arg-type]
