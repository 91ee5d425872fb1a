"""A client of the second MCP SDK, run by a Python that has it: a database, then a server's command.

It is not imported by the tests: their own Python has the first SDK.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from mcp import Client, StdioServerParameters  # type: ignore[attr-defined]

from recollect import Memory
from recollect.server.mcp import build_server


async def talk(client: Any, told: dict[str, str]) -> None:
    """Store, recall, fail and read."""
    async with client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert len(names) == 11, names
        stored = await client.call_tool("remember", {"content": "I live in Berlin.", **told})
        assert stored.structured_content["stored"], stored
        found = await client.call_tool("recall", {"query": "Berlin", **told})
        assert found.structured_content["found"][0]["text"] == "I live in Berlin."
        wrong = await client.call_tool("recall", {"query": "x", "limit": "SECRET", **told})
        assert wrong.is_error
        assert "SECRET" not in wrong.content[0].text
        assert (await client.read_resource("recollect://notes/ada")).contents
        asked = {"question": "Berlin?", "user_id": "ada"}
        assert (await client.get_prompt("ask_with_memory", asked)).messages


async def main() -> None:
    """Talk to the server over stdio in both modes, and to one in this process."""
    database, first, *rest = sys.argv[1:]
    server = StdioServerParameters(
        command=first, args=rest, env={**os.environ, "RECOLLECT_URL": database}
    )
    for mode in ("auto", "legacy"):
        await talk(Client(server, mode=mode), {})
        print(mode)
    with Memory(":memory:", embedder=None, thinking=None) as memory:
        await talk(Client(build_server(memory)), {"user_id": "ada"})
    print("here")


asyncio.run(main())
