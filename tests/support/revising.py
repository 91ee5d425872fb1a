"""A revise node at work, and what it called, for the tests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage

from memorist import Memory
from memorist.agents.mcp_manager import McpManager, McpResult
from memorist.agents.revise import ReviseNode

SECRET = "swordfish"
NOTHING = {
    "memory_update_triggered": False,
    "memory_tools_used": [],
    "memory_analysis": "",
    "memory_update_error": "",
}
SAYINGS = {
    "store_concept": "Overfitting means that a model learns its training data by heart.",
    "store_episode": "On Monday Ada missed the train to Hamburg.",
    "store_fact": "Ada lives in Berlin.",
    "store_procedure": "To release: run the tests, tag the commit, push the tag.",
    "store_working_memory": "Ada waits for the review of her pull request.",
}


class Recorder(McpManager):
    """A manager that keeps what it was asked to call."""

    def __init__(self, target: Any, **options: Any) -> None:
        super().__init__(target, **{"timeout_s": 120, **options})
        self.calls: list[tuple[str, dict[str, Any]]] = []

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> McpResult:
        self.calls.append((name, dict(arguments)))
        return await super().call_tool(name, arguments)

    def named(self, name: str) -> list[dict[str, Any]]:
        return [arguments for called, arguments in self.calls if called == name]


def written(state: dict[str, Any]) -> dict[str, Any]:
    """What a node wrote into a state."""
    return {key: state[key] for key in NOTHING}


def run(
    target: Any, *states: Any, model: Any = None, **options: Any
) -> tuple[list[dict[str, Any]], Recorder]:
    """What a node writes into each state, and what it called."""

    async def main() -> tuple[list[dict[str, Any]], Recorder]:
        async with Recorder(target) as manager:
            node = ReviseNode(manager, model, **options)
            return [written(await node.execute(state)) for state in states], manager

    return asyncio.run(main())


def talk(count: int) -> dict[str, Any]:
    """A conversation of so many messages."""
    kinds = (HumanMessage, AIMessage)
    messages = [kinds[n % 2](f"Message {n}.", id=f"m{n}") for n in range(count)]
    return {"messages": messages, "session_id": "s1", "user_id": "ada"}


def stored(memory: Memory, user: str = "ada", session: str = "s1") -> list[tuple[str, Any]]:
    return [(it.role, it.content) for it in memory.history(user=user, session=session)]


def call(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "args": {"content": SAYINGS[name], **more}}
