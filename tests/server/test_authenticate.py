"""The layer that lets in whom the guard knows, and nobody else."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from memorist.memory import Memory
from memorist.records.message import Message
from memorist.records.scope import Principal, Scope
from memorist.server.auth import Guard, Keys
from memorist.server.http import middleware
from memorist.server.http.app import build_app
from memorist.server.http.middleware import Authenticate
from memorist.server.http.tokens import JwtTokens, PublishedKeys
from memorist.store.base import Store
from memorist.store.postgres.store import PostgresStore
from memorist.store.sqlite.store import SqliteStore
from tests.support.asgi import Answer, hello, request
from tests.support.http_server import keys_of, serving
from tests.support.tokens import signed

Sent = list[dict[str, Any]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with SqliteStore(tmp_path / "m.db") as opened:
        yield opened


def ask(
    guard: Guard, path: str = "/api/recall", *headers: str, **more: Any
) -> tuple[Principal | str | None, Sent]:
    """Who the app behind the layer was told is calling, and what the layer sent itself."""
    reached: list[Principal | str | None] = []
    sent: Sent = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope.get("state", {}).get("principal", "nobody, and let in"))

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    scope = {
        "type": "http",
        "path": path,
        "method": "GET",
        "state": {"request_id": "r1"},
        "headers": [(b"authorization", header.encode("latin-1")) for header in headers],
        **more,
    }
    asyncio.run(Authenticate(app, guard)(scope, receive, send))
    return (reached[0] if reached else None), sent


def let_in(*asked: Any, **more: Any) -> bool:
    reached, sent = ask(*asked, **more)
    assert (reached is None) is bool(sent)
    return reached is not None


def status(sent: Sent) -> int:
    return int(sent[0]["status"])


def test_the_app_is_told_who_is_calling(store: Store) -> None:
    new = Keys(keys_of(store)).create(tenant="acme", user="ada")
    reached, sent = ask(Guard(keys_of(store)), "/api/recall", f"Bearer {new.text}")
    assert reached == Principal(tenant="acme", user="ada", name=new.record.id)
    assert sent == []


def test_nobody_is_answered_with_a_problem_that_says_how_to_ask(store: Store) -> None:
    reached, [start, body] = ask(Guard(keys_of(store)))
    assert reached is None
    headers = dict(start["headers"])
    assert start["status"] == 401
    assert headers[b"www-authenticate"] == b"Bearer"
    assert headers[b"content-type"] == b"application/problem+json"
    assert b'"code": "unauthorized"' in body["body"]
    assert b'"request_id": "r1"' in body["body"]


@pytest.mark.parametrize(
    "path", ["/", "/health", "/ready", "/docs", "/openapi.json", "/web/page.js"]
)
def test_what_is_public_is_anybodys(store: Store, path: str) -> None:
    assert ask(Guard(keys_of(store)), path) == ("nobody, and let in", [])
    assert ask(Guard(keys_of(store)), path, "Bearer nonsense") == ("nobody, and let in", [])


@pytest.mark.parametrize(
    "path",
    [
        "",
        "//",
        "/health/",
        "/Health",
        "/health/x",
        "/healthx",
        "/web",
        "/web/../api/recall",
        "/web/..",
        "/web/x/../../api",
        "/web/..\\api",
        "/api",
        "/api/chat",
        "/mcp",
        "/metrics",
        "/docs/",
        "/ready\n",
        "/openapi.json/",
        "/./health",
        "/nowhere",
        "http://x/health",
    ],
)
def test_all_else_is_not(store: Store, path: str) -> None:
    assert not let_in(Guard(keys_of(store)), path)


def test_a_server_below_a_path_of_its_own_has_the_same_public_places(store: Store) -> None:
    guard = Guard(keys_of(store))
    assert let_in(guard, "/memory/health", root_path="/memory")
    assert not let_in(guard, "/memory/api/recall", root_path="/memory")
    assert not let_in(guard, "/memoryhealth", root_path="/memory")


def test_a_websocket_needs_a_key_also_on_public_paths(store: Store) -> None:
    for path in ("/", "/api/stream"):
        reached, sent = ask(Guard(keys_of(store)), path, type="websocket")
        assert (reached, sent) == (None, [{"type": "websocket.close", "code": 1008}])
    key = Keys(keys_of(store)).create(tenant="acme", user="ada").text
    assert let_in(Guard(keys_of(store)), "/", f"Bearer {key}", type="websocket")


def test_the_start_and_the_end_of_the_server_need_nobody(store: Store) -> None:
    assert let_in(Guard(keys_of(store)), type="lifespan")


def test_two_headers_are_one_too_many(store: Store) -> None:
    header = f"Bearer {Keys(keys_of(store)).create(tenant='acme', user='ada').text}"
    assert let_in(Guard(keys_of(store)), "/api", header)
    assert not let_in(Guard(keys_of(store)), "/api", header, header)


def test_a_local_guard_lets_everyone_in_as_its_user_but_nobody_with_a_key() -> None:
    reached, _ = ask(Guard.local("default", "me"), "/api")
    assert isinstance(reached, Principal)
    assert reached.user == "me"
    for headers in (["Bearer x"], ["Bearer x", "Bearer y"], [""]):
        assert not let_in(Guard.local("default", "me"), "/api", *headers)


def test_what_a_refused_caller_sent_is_not_logged_and_the_kind_is(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    new = Keys(keys_of(store)).create(tenant="acme", user="ada")
    Keys(keys_of(store)).revoke("acme", new.record.id)
    _, sent = ask(Guard(keys_of(store)), "/api", f"Bearer {new.text}")
    assert status(sent) == 401
    assert "r1: authentication failed: this key was revoked" in caplog.text
    assert new.text[20:] not in caplog.text + str(sent)


def test_a_store_that_is_away_is_a_503_and_not_a_401(store: Store) -> None:
    key = Keys(keys_of(store)).create(tenant="acme", user="ada").text
    store.close()
    _, sent = ask(Guard(keys_of(store)), "/api", f"Bearer {key}")
    assert status(sent) == 503


def test_keys_are_looked_up_off_the_event_loop(store: Store) -> None:
    threads: list[threading.Thread] = []

    class Watched(Guard):
        def authenticate(self, authorization: str | None) -> Principal:
            threads.append(threading.current_thread())
            return super().authenticate(authorization)

    key = Keys(keys_of(store)).create(tenant="acme", user="ada").text
    assert let_in(Watched(keys_of(store)), "/api", f"Bearer {key}")
    assert threading.main_thread() not in threads


def test_callers_are_known_while_all_other_threads_are_busy(store: Store) -> None:
    let_go, header = (
        threading.Event(),
        f"Bearer {Keys(keys_of(store)).create(tenant='t', user='ada').text}",
    )

    async def run() -> list[int]:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        slow = loop.run_in_executor(None, let_go.wait, 10)
        answer = await asyncio.wait_for(
            asked(Authenticate(hello, Guard(keys_of(store))), header), 5
        )
        let_go.set()
        await slow
        return [answer.status]

    assert asyncio.run(run()) == [200]


def test_keys_are_known_while_the_issuer_of_tokens_hangs(store: Store) -> None:
    header = f"Bearer {Keys(keys_of(store)).create(tenant='t', user='ada').text}"
    with socket.create_server(("127.0.0.1", 0)) as hung:
        url = f"http://127.0.0.1:{hung.getsockname()[1]}/keys"
        layer = Authenticate(hello, Guard(keys_of(store), JwtTokens(keys=PublishedKeys(url))))

        async def run() -> list[int]:
            junk = [asyncio.create_task(asked(layer, f"Bearer {signed()}")) for _ in range(12)]
            fetching, _ = await asyncio.to_thread(hung.accept)
            answer = await asked(layer, header)
            assert not all(one.done() for one in junk)  # which else would have held it up
            await asyncio.wait(junk, timeout=2, return_when=asyncio.FIRST_COMPLETED)
            fetching.close()
            return [answer.status, *[one.status for one in await asyncio.gather(*junk)]]

        assert asyncio.run(run()) == [200, *[503] * 12]


async def asked(layer: Authenticate, header: str) -> Answer:
    answer = Answer()

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        answer.sent.append(message)

    await layer(request((b"authorization", header.encode())), receive, send)
    return answer


# PostgreSQL


def test_a_key_opens_and_is_revoked_on_postgres_from_another_server(
    postgres_with_tables: str,
) -> None:
    with PostgresStore(postgres_with_tables) as here, PostgresStore(postgres_with_tables) as there:
        new = Keys(keys_of(here)).create(tenant="acme", user="ada")
        header = f"Bearer {new.text}"
        assert let_in(Guard(keys_of(there)), "/api", header)
        Keys(keys_of(here)).revoke("acme", new.record.id)
        assert not let_in(Guard(keys_of(there)), "/api", header)
        rotated = Keys(keys_of(there)).create(tenant="acme", user=None)
        assert Guard(keys_of(here)).authenticate(f"Bearer {rotated.text}").admin


def test_keys_are_read_without_an_owner_and_words_are_not(postgres_with_tables: str) -> None:
    with PostgresStore(postgres_with_tables) as store:
        Keys(keys_of(store)).create(tenant="acme", user="ada")
        store.append(Scope(tenant="acme", user="ada", session="s"), [Message("user", "secret")])
    with psycopg.connect(postgres_with_tables, autocommit=True) as connection:
        connection.execute("SET ROLE memorist_app")
        row = connection.execute("SELECT count(*) FROM api_keys").fetchone()
        assert row == (1,)
        row = connection.execute("SELECT count(*) FROM chat_message_history").fetchone()
        assert row == (0,)
        for refused in ("DELETE FROM api_keys", "TRUNCATE api_keys"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(refused.encode())


@pytest.mark.parametrize("header", ["Forwarded", "Via", "X-Forwarded-For", "X-Real-IP"])
def test_an_open_server_is_not_opened_further_by_a_proxy(tmp_path: Path, header: str) -> None:
    with (
        Memory(tmp_path / "m.db", embedder=None, extraction=None) as memory,
        serving(build_app(memory, Guard.local("default", "me"))) as url,
    ):
        assert httpx.get(f"{url}/api/sessions").status_code == 200
        refused = httpx.get(f"{url}/api/sessions", headers={header: "192.0.2.7"})
        assert refused.status_code == 403
        assert "--auth" in refused.json()["detail"]


def test_a_stream_ends_when_its_key_is_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(middleware, "RECHECK_S", 0.0)  # else it may be heard for as long
    with (
        Memory(tmp_path / "memory.db", embedder=None, extraction=None) as memory,
        serving(build_app(memory, Guard(memory.keys))) as url,
    ):
        key = Keys(memory.keys).create(tenant="default", user="ada")
        chat = memory.session(user="ada")
        reply = chat.stream(flush_s=0)
        reply.write("before")
        headers = {"Authorization": f"Bearer {key.text}"}
        path = f"{url}/api/messages/{reply.id}/updates"
        with httpx.stream("GET", path, params={"timeout_s": 300}, headers=headers) as stream:
            lines = stream.iter_lines()
            assert any("before" in line for line in lines)
            Keys(memory.keys).revoke("default", key.record.id)
            reply.write("after")
            assert not any("after" in line for line in lines)  # which end, though it goes on
