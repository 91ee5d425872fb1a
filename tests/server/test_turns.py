"""Turns: whoever keeps the server busy waits for themselves, and nobody else does."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from memorist import Memory, Message, Thinking
from memorist.aio_life import in_thread
from memorist.errors import ProviderError
from memorist.server.auth import Guard
from memorist.server.http.app import Limits, build_app
from memorist.server.http.concurrency_limit import (
    FOR_ADMINS,
    FOR_STREAMS,
    IN_LINE,
    MOST,
    Threads,
    Turns,
)
from memorist.server.principal import Principal
from tests.support.http_server import Served, serving
from tests.support.shields import Answer, call, hello, request

ADA = Principal(tenant="acme", user="ada", name="k1")
MCP = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


class SlowModel:
    """Thinks until it is let go, and counts who waits for it."""

    name = "slow"

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.thinking = 0
        self._lock = threading.Lock()

    def complete(self, messages: Sequence[Any], *, schema: Any = None, **_: Any) -> Any:
        if schema is not None:
            raise ProviderError("it is only for summaries")
        with self._lock:
            self.thinking += 1
        self.let_go.wait(30)
        with self._lock:
            self.thinking -= 1
        raise ProviderError("it has nothing to say")


def until(true: Callable[[], bool]) -> None:
    """Wait until something is so."""
    for _ in range(1_000):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it took too long")


@contextmanager
def slow(path: Path, sessions: int) -> Iterator[tuple[Served, SlowModel]]:
    """A server whose model is slow, and Eve's sessions that wait to be summed up."""
    model = SlowModel()
    with (
        Memory(path / "m.db", embedder=None, thinking=Thinking(model=model)) as memory,
        serving(build_app(memory, Guard(memory.store), Limits(requests_per_s=0))) as url,
    ):
        served = Served(url, memory)
        for number in range(sessions):
            said = [Message("user", f"hello {it}") for it in range(12)]
            memory.remember(said, user="eve", session=f"s{number}")
        with served.clients:
            try:
                yield served, model
            finally:
                model.let_go.set()


def test_one_users_slow_requests_leave_the_others_fast(tmp_path: Path) -> None:
    with slow(tmp_path, 45) as (served, model), ThreadPoolExecutor(45) as crowd:
        ada, eve = served.client("ada"), served.client("eve")

        def compress(number: int) -> int:
            return eve.post("/api/compress", json={"session": f"s{number}"}).status_code

        answers = [crowd.submit(compress, number) for number in range(45)]
        until(lambda: model.thinking == MOST)
        began = time.perf_counter()
        assert ada.get("/api/sessions").status_code == 200
        assert ada.get("/ready").status_code == 200
        assert time.perf_counter() - began < 1
        assert model.thinking == MOST
        model.let_go.set()
        assert {answer.result() for answer in answers} == {200}


def test_who_hangs_up_has_no_room_for_more_until_the_work_is_done(tmp_path: Path) -> None:
    with slow(tmp_path, 2 * MOST) as (served, model), ThreadPoolExecutor(MOST) as crowd:
        ada, eve = served.client("ada"), served.client("eve")

        def summarize(number: int) -> None:
            named = {"session_id": f"s{number}", "user_id": "eve"}
            told = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "summarize_session", "arguments": named},
            }
            with suppress(httpx.ReadTimeout):
                eve.post("/mcp", headers=MCP, json=told, timeout=1)

        for some in (range(MOST), range(MOST, 2 * MOST)):
            list(crowd.map(summarize, some))
            until(lambda: model.thinking >= MOST)
        assert model.thinking == MOST
        began = time.perf_counter()
        assert ada.get("/api/sessions/active").status_code in (200, 404)
        assert time.perf_counter() - began < 1


# Layers


class Busy:
    """An app that answers when it is let go."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()
        self.at_once = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.at_once += 1
        await self.let_go.wait()
        await hello(scope, receive, send)


def asked(app: Any, who: Principal | None, **more: Any) -> asyncio.Task[Answer]:
    """A request that is being answered."""
    answer = Answer()
    scope = request(state={"principal": who} if who else {}, **more)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        answer.sent.append(message)

    async def ask() -> Answer:
        await app(scope, receive, send)
        return answer

    return asyncio.create_task(ask())


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("who", "more", "room"),
    [
        (ADA, {}, 2),
        (Principal(tenant="acme", name="k2"), {}, 2 * FOR_ADMINS),
        (ADA, {"path": "/api/messages/m1/updates"}, 2 * FOR_STREAMS),
        (ADA, {"path": "/api/messages/m1/updates", "method": "POST"}, 2),
        (None, {}, 30),
    ],
)
def test_so_many_are_worked_on_at_once(
    who: Principal | None, more: dict[str, Any], room: int
) -> None:
    async def run() -> None:
        busy = Busy()
        app = Turns(busy, most=2)
        tasks = [asked(app, who, **more) for _ in range(10 if who else 30)]
        await settle()
        assert busy.at_once == min(room, len(tasks))
        busy.let_go.set()
        assert {answer.status for answer in await asyncio.gather(*tasks)} == {200}
        assert app._lines == {}

    asyncio.run(run())


def test_all_keys_of_a_user_count_as_one_and_another_user_has_turns_of_their_own() -> None:
    async def run() -> None:
        busy = Busy()
        app = Turns(busy, most=2)
        other = Principal(tenant="acme", user="ada", name="k2")
        tasks = [asked(app, who) for who in (ADA, other, other)]
        await settle()
        assert busy.at_once == 2
        strangers = [("acme", "bob"), ("other", "ada")]
        tasks += [asked(app, Principal(tenant=one, user=user)) for one, user in strangers]
        tasks += [asked(app, ADA, path="/api/messages/m1/updates")]
        await settle()
        assert busy.at_once == 5
        busy.let_go.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())


def test_who_waits_too_long_is_told_to_come_back() -> None:
    async def run() -> None:
        busy = Busy()
        app = Turns(busy, most=1, wait_s=0.02)
        first = asked(app, ADA)
        answer = await asked(app, ADA)
        assert answer.status == 429
        assert answer.all(b"retry-after") == [b"1"]
        assert "too many requests at once" in json.dumps(answer.problem)
        busy.let_go.set()
        assert (await first).status == (await asked(app, ADA)).status == 200
        assert app._lines == {}

    asyncio.run(run())


def test_a_line_that_is_too_long_takes_nobody_else() -> None:
    async def run() -> None:
        busy = Busy()
        app = Turns(busy, most=1)
        waiting = [asked(app, ADA) for _ in range(1 + IN_LINE)]
        await settle()
        assert (await asked(app, ADA)).status == 429
        busy.let_go.set()
        assert {answer.status for answer in await asyncio.gather(*waiting)} == {200}

    asyncio.run(run())


def test_who_leaves_the_line_takes_no_turn_with_them() -> None:
    async def run() -> None:
        busy = Busy()
        app = Turns(busy, most=1)
        first, leaving, last = asked(app, ADA), asked(app, ADA), asked(app, ADA)
        await settle()
        leaving.cancel()
        busy.let_go.set()
        assert (await first).status == (await last).status == 200
        assert app._lines == {}

    asyncio.run(run())


def test_a_turn_lasts_as_long_as_its_threads() -> None:
    let_go = threading.Event()
    later: list[asyncio.Task[None]] = []

    async def leaves(scope: Scope, receive: Receive, send: Send) -> None:
        later.append(asyncio.create_task(in_thread(lambda: None)))
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await in_thread(let_go.wait, 10)
        await hello(scope, receive, send)

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(Threads(2))
        app = Turns(leaves, most=1, wait_s=0.05)
        assert (await asked(app, ADA)).status == 200
        assert (await asked(app, ADA)).status == 429
        let_go.set()
        assert (await asked(app, ADA)).status == 200
        await asyncio.gather(*later)
        await asyncio.sleep(0.05)
        assert app._lines == {}

    asyncio.run(run())


def test_an_app_that_fails_gives_its_turn_back() -> None:
    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise ProviderError("away")

    app = Turns(fails, most=1, wait_s=0.01)
    for _ in range(3):
        with pytest.raises(ProviderError):
            call(app, request(state={"principal": ADA}))
    assert app._lines == {}


def test_none_at_once_is_no_limit() -> None:
    assert call(Turns(hello, most=0), request(state={"principal": ADA})).status == 200
