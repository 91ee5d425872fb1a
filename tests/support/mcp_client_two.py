"""A client of the second MCP SDK, run by a Python that has it.

It is told a database, and then a server's command, or the address of one and who is asking.

It is not imported by the tests: their own Python has the first SDK.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters  # type: ignore[attr-defined]
from mcp.client.streamable_http import streamable_http_client

from memorist import Memory
from memorist.server.mcp.server import build_server


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
        assert (await client.read_resource("memorist://notes/ada")).contents
        asked = {"question": "Berlin?", "user_id": "ada"}
        assert (await client.get_prompt("ask_with_memory", asked)).messages


async def main() -> None:
    """Talk to the server in both modes, and to one in this process."""
    database, first, *rest = sys.argv[1:]
    for mode in ("auto", "legacy"):
        if first.startswith("http"):
            async with httpx2.AsyncClient(headers={"Authorization": rest[0]}) as http:
                asking: Any = http  # the first SDK, which this is not, has another
                streams = streamable_http_client(first, http_client=asking)
                await talk(Client(streams, mode=mode), {})
        else:
            env = {**os.environ, "MEMORIST_URL": database}
            server = StdioServerParameters(command=first, args=rest, env=env)
            await talk(Client(server, mode=mode), {})
        print(mode)
    with Memory(":memory:", embedder=None, thinking=None) as memory:
        await talk(Client(build_server(memory)), {"user_id": "ada"})
    print("here")


asyncio.run(main())
