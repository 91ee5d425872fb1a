"""MCP in the whole app: at its one address, behind keys, hosts, origins and limits."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx

from memorist import Memory
from memorist.agents.assistant import ADDED
from memorist.agents.toolbox import NAMES
from memorist.server.auth import Guard
from memorist.server.http.app import Limits, build_app
from tests.server.api import an_api, post
from tests.server.test_mcp_http import TYPES, call, client_of, request, result
from tests.support.http_server import serving
from tests.support.mcp_fuzz import CALLS
from tests.support.mcp_servers import structured


def ask(client: httpx.Client, message: Any, **headers: str) -> httpx.Response:
    return client.post("/mcp?tools=all", json=message, headers={**TYPES, **headers})


def test_a_key_says_whose_memory_it_is(tmp_path: Path) -> None:
    async def talk(url: str, key: str) -> None:
        async with client_of(f"{url}/mcp?tools=all", {"Authorization": key}) as session:
            assert tuple(tool.name for tool in (await session.list_tools()).tools) == (
                *NAMES,
                *ADDED,
            )
            for name, arguments in CALLS.items():
                structured(await session.call_tool(name, arguments))

    with an_api(tmp_path) as api:
        asyncio.run(talk(api.url, api.ada.headers["authorization"]))
        assert [it.content for it in api.memory.history(user="ada", session="s1")] == ["Hello."]
        foreign = ask(api.eve, call("recall", query="Berlin", user_id="ada"))
        assert "another user" in foreign.text
        for client, found in ((api.admin, True), (api.stranger, False)):
            answer = result(ask(client, call("recall", query="Berlin", user_id="ada")))
            assert bool(answer["structuredContent"]["found"]) is found
        nobody = httpx.post(f"{api.url}/mcp", json=request("tools/list"), headers=TYPES)
        assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, "Bearer")


def test_only_a_programs_key_may_say_who_spoke(tmp_path: Path) -> None:
    """Models are not users: a user's key and an admin's may be in the hands of a model."""
    with an_api(tmp_path) as api:
        whose: list[dict[str, Any]] = [{"user": "ada"}, {"admin": True}]
        keys = [
            post(api.admin, "/api/keys", status=201, program=True, **named)["key"]
            for named in whose
        ]
        programs = [
            httpx.Client(base_url=api.url, headers={"Authorization": f"Bearer {key}"})
            for key in keys
        ]
        for number, client in enumerate([api.ada, api.admin, *programs]):
            for role in ("user", "system"):
                named = {"session_id": f"{number}-{role}", "user_id": "ada", "role": role}
                answer = result(ask(client, call("store_session_message", content="Hm", **named)))
                expected = role if client in programs else "assistant"
                assert answer["structuredContent"]["role"] == expected
                [message] = api.memory.history(user="ada", session=f"{number}-{role}")
                assert message.role == expected
        for client in programs:
            client.close()


def test_foreign_hosts_and_origins_are_refused_and_our_own_are_not(tmp_path: Path) -> None:
    ping = request("ping")
    with an_api(tmp_path) as api:
        assert ask(api.ada, ping, host="evil.example").status_code == 421
        assert ask(api.ada, ping, origin="https://evil.example").status_code == 403
        port = httpx.URL(api.url).port
        for host in (f"localhost:{port}", "127.0.0.1", f"[::1]:{port}"):
            own = ask(api.ada, ping, host=host, origin=f"http://{host}")
            assert own.status_code == 200, own.text


def test_a_chunked_body_is_bounded_by_the_limit_of_the_app(memory: Memory) -> None:
    app = build_app(memory, Guard.local("default", "ada"), Limits(body_bytes=10_000))
    with serving(app) as url:
        chunks = iter([b" " * 6_000] * 2)
        assert httpx.post(f"{url}/mcp", headers=TYPES, content=chunks).status_code == 413
        ping = iter([b" " * 6_000, json.dumps(request("ping")).encode()])
        assert httpx.post(f"{url}/mcp", headers=TYPES, content=ping).status_code == 200


def test_what_is_too_much_or_no_json_is_refused(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        large = ask(api.ada, call("remember", content="x" * 8 * 1024 * 1024))
        assert large.status_code == 413
        for kind in ("text/plain", "multipart/form-data"):
            assert ask(api.ada, request("ping"), **{"content-type": kind}).status_code == 415
        deep: Any = {}
        for _ in range(300):
            deep = {"a": deep}
        assert ask(api.ada, request("ping", deep=deep)).status_code in (400, 422)
        for method in ("GET", "DELETE", "PUT"):
            assert api.ada.request(method, "/mcp", headers=TYPES).status_code == 405
