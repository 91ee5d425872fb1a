"""The MCP sessions of the revise node: opened, broken, hung and revived, in every transport."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from langchain_core.messages import HumanMessage
from mcp import StdioServerParameters
from mcp.shared.memory import create_connected_server_and_client_session

from memorist import Memory
from memorist.agents.mcp_manager import McpManager
from memorist.agents.revise import ReviseNode
from memorist.errors import InvalidError, StoreUnavailableError
from memorist.server.mcp.server import build_server
from memorist.testing.scripted import ScriptedChatModel
from tests.support.forked import PID_FILE
from tests.support.mcp_servers import over_stdio
from tests.support.revising import NOTHING, SECRET, call, run, stored, talk, written


class Hanging:
    """A model's answer that does not come before `go`."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()

    def __call__(self, _: Any) -> str:
        self.asked.set()
        self.go.wait(60)
        return "late"


def test_a_model_that_hangs_is_left_after_the_timeout(memory: Memory) -> None:
    model = Hanging()

    async def main() -> dict[str, Any]:
        async with McpManager(build_server(memory, program=True)) as manager:
            assert (
                written(await ReviseNode(manager).execute(talk(1))) == NOTHING
            )  # the session is open
            try:
                node = ReviseNode(manager, ScriptedChatModel(model), timeout_s=3)
                return written(await node.execute(talk(2)))
            finally:
                model.go.set()  # the event loop waits for its threads

    assert asyncio.run(main())["memory_update_error"] == "revise: not done within 3 s"
    assert model.asked.is_set()
    assert len(stored(memory)) == 2


def test_what_is_no_json_is_refused_before_it_ends_the_session(memory: Memory) -> None:
    async def main() -> None:
        async with McpManager(build_server(memory, program=True)) as manager:
            with pytest.raises(InvalidError, match="recall cannot be sent as JSON"):
                await manager.call_tool("recall", {"query": "half \ud83d", "user_id": "ada"})
            asked = {"query": "whole", "user_id": "ada"}
            assert not (await manager.call_tool("recall", asked)).failed

    asyncio.run(main())


def test_whoever_cancels_the_node_is_not_held_up(memory: Memory) -> None:
    async def main() -> None:
        async with McpManager(build_server(memory, program=True)) as manager:
            model = Hanging()
            node = ReviseNode(manager, ScriptedChatModel(model))
            task = asyncio.create_task(node.execute(talk(1)))
            await asyncio.to_thread(model.asked.wait, 60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            model.go.set()

    asyncio.run(main())


# Sessions: one that is open, stdio, HTTP


def test_an_open_session_is_used_and_left_open(memory: Memory) -> None:
    async def main() -> None:
        async with create_connected_server_and_client_session(
            build_server(memory, program=True)
        ) as session:
            async with McpManager(session) as manager:
                assert written(await ReviseNode(manager).execute(talk(1))) == NOTHING
            assert (await session.list_tools()).tools

    asyncio.run(main())
    assert stored(memory)


def test_a_function_may_open_the_session_and_each_event_loop_has_its_own(memory: Memory) -> None:
    opened = []

    @asynccontextmanager
    async def open_session() -> AsyncIterator[Any]:
        opened.append("opened")
        async with create_connected_server_and_client_session(
            build_server(memory, program=True)
        ) as session:
            yield session
        opened.append("closed")

    manager = McpManager(open_session)
    node = ReviseNode(manager)
    for count in (1, 2):
        assert written(asyncio.run(node.execute(talk(count)))) == NOTHING
    assert opened.count("opened") == 2
    assert len(stored(memory)) == 2


def test_two_event_loops_may_take_turns(memory: Memory) -> None:
    opened = []

    @asynccontextmanager
    async def open_session() -> AsyncIterator[Any]:
        opened.append(asyncio.get_running_loop())
        async with create_connected_server_and_client_session(
            build_server(memory, program=True)
        ) as session:
            yield session

    manager = McpManager(open_session)
    with asyncio.Runner() as first, asyncio.Runner() as second:
        for _ in range(2):
            for runner in (first, second):
                assert runner.run(manager.list_tools())
        assert opened == [first.get_loop(), second.get_loop()]
        for runner in (first, second):
            runner.run(manager.close())


def test_over_http(memory: Memory) -> None:
    async def main() -> dict[str, Any]:
        app = build_server(memory, program=True).streamable_http_app()
        config = uvicorn.Config(app, port=0, log_level="error", ws="none")
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        async with McpManager(f"http://127.0.0.1:{port}/mcp") as manager:
            update = written(await ReviseNode(manager).execute(talk(5)))
        server.should_exit = True
        await serving
        return update

    assert asyncio.run(main()) == NOTHING
    assert len(stored(memory)) == 5


def started(tmp_path: Path) -> tuple[StdioServerParameters, Callable[[], int]]:
    """`memorist mcp`, and the id of its newest process."""
    server = over_stdio(tmp_path / "a.db", "--program")
    line = f"exec {shlex.join([server.command, *server.args])}"
    env = {**(server.env or {}), PID_FILE: f"{tmp_path}/pid"}
    told = StdioServerParameters(command="sh", args=["-c", line], env=env)
    return told, lambda: int((tmp_path / "pid").read_text())


def history(tmp_path: Path) -> list[tuple[str, Any]]:
    with Memory(tmp_path / "a.db", embedder=None, extraction=None) as memory:
        return stored(memory)


def test_over_stdio_in_two_processes_nothing_is_stored_twice(tmp_path: Path) -> None:
    server, _ = started(tmp_path)
    model = ScriptedChatModel([call("store_fact"), "Stored.", "Nothing new."])
    [first], _ = run(server, talk(2), model=model)
    [second], _ = run(server, talk(3), model=model)
    assert first["memory_tools_used"] == ["store_fact"]
    assert second == NOTHING | {"memory_analysis": "Nothing new."}
    assert len(history(tmp_path)) == 3


def died(tmp_path: Path, kill: Callable[[ReviseNode, int], Awaitable[Any]]) -> list[dict[str, Any]]:
    """What the node gives while and after its server is killed."""
    server, pid = started(tmp_path)

    async def main() -> list[dict[str, Any]]:
        async with McpManager(server, timeout_s=120) as manager:
            node = ReviseNode(manager)
            return [
                written(await node.execute(talk(1))),
                await kill(node, pid()),
                written(await node.execute(talk(3))),
            ]

    return asyncio.run(main())


def test_a_server_that_dies_in_a_call_is_an_error_and_the_next_run_catches_up(
    tmp_path: Path,
) -> None:
    async def kill(node: ReviseNode, pid: int) -> dict[str, Any]:
        assert isinstance(node.mcp_manager, McpManager)
        tools = await node.mcp_manager.list_tools()
        os.kill(pid, signal.SIGSTOP)  # so that the call is still under way when it dies
        calling = asyncio.create_task(node.mcp_manager.call_tool(tools[0].name, {"query": SECRET}))
        await asyncio.sleep(0.2)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(StoreUnavailableError, match="the MCP server failed") as failed:
            await calling
        assert SECRET not in str(failed.value)
        return {}

    assert died(tmp_path, kill)[2] == NOTHING
    assert len(history(tmp_path)) == 3


def test_a_server_that_dies_under_the_node_leaves_it_answering(tmp_path: Path) -> None:
    async def kill(node: ReviseNode, pid: int) -> dict[str, Any]:
        many = talk(400) | {"messages": [HumanMessage(f"{SECRET} {n}") for n in range(400)]}
        running = asyncio.create_task(node.execute(many))
        while len(await asyncio.to_thread(history, tmp_path)) < 2:  # it is at work
            await asyncio.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        return written(await running)

    _, update, after = died(tmp_path, kill)
    assert update["memory_update_error"].startswith("store_session_message: StoreUnavailableError")
    assert SECRET not in str(update)
    assert after == NOTHING


def test_a_server_that_died_between_two_runs_is_started_anew(tmp_path: Path) -> None:
    async def kill(node: ReviseNode, pid: int) -> dict[str, Any]:
        os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(0.1)
        return written(await node.execute(talk(2)))

    assert died(tmp_path, kill) == [NOTHING] * 3
    assert len(history(tmp_path)) == 3


def test_a_server_that_hangs_is_waited_for_no_longer_than_told(tmp_path: Path) -> None:
    server, pid = started(tmp_path)

    async def main() -> dict[str, Any]:
        async with McpManager(server, timeout_s=60) as manager:
            assert written(await ReviseNode(manager).execute(talk(1))) == NOTHING
            os.kill(pid(), signal.SIGSTOP)  # it answers nothing until it is told to go on
            try:
                return written(await ReviseNode(manager, timeout_s=0.5).execute(talk(2)))
            finally:
                os.kill(pid(), signal.SIGCONT)

    assert asyncio.run(main())["memory_update_error"] == "revise: not done within 0.5 s"


@pytest.mark.parametrize("target", ["http://127.0.0.1:9/mcp", "a command that is not there"])
def test_a_server_that_is_not_there_is_an_error(target: str) -> None:
    where = target if ":" in target else StdioServerParameters(command=target)
    [update], _ = run(where, talk(5), model=ScriptedChatModel([]))
    assert "StoreUnavailableError: the MCP server failed" in update["memory_update_error"]


def test_a_start_that_hangs_is_given_up_and_tried_anew(tmp_path: Path) -> None:
    """Also where whoever waited for it has less patience than the manager."""
    server, _ = started(tmp_path)
    line = f"test -e {tmp_path}/second || {{ touch {tmp_path}/second; exec sleep 60; }}; "
    told = StdioServerParameters(command="sh", args=["-c", line + server.args[1]], env=server.env)

    async def main() -> list[dict[str, Any]]:
        async with McpManager(told, timeout_s=1) as manager:
            first = written(await ReviseNode(manager, timeout_s=0.3).execute(talk(1)))
            await asyncio.sleep(1)
            manager._timeout_s = 30
            return [first, written(await ReviseNode(manager).execute(talk(1)))]

    first, second = asyncio.run(main())
    assert first["memory_update_error"] == "revise: not done within 0.3 s"
    assert second == NOTHING
