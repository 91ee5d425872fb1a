"""The concurrency limit and the rate limits: nobody waits for another caller's requests."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from asyncio import to_thread
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import ASGIApp, Receive, Scope, Send

from memorist import Extraction, Memory, Message, SqliteStore
from memorist.errors import ProviderError
from memorist.records.scope import Principal
from memorist.server.auth import Guard, Keys
from memorist.server.http.app import Limits, build_app
from memorist.server.http.limits import (
    ADMIN_FACTOR,
    FACTORS,
    MAX_CONCURRENT,
    QUEUE_FACTOR,
    ConcurrencyLimit,
    LoginThrottle,
    RateLimit,
    TokenBuckets,
    WorkerThreads,
    address_of,
    caller_of,
    has_credential,
)
from tests.support.asgi import Answer, call, hello, request
from tests.support.http_server import Served, keys_of, serving
from tests.support.waiting import until

ADA = Principal(tenant="acme", user="ada", name="k1")
MCP = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


class SlowModel:
    """Thinks until it is let go, and counts who waits for it."""

    name = "slow"

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.waiting = 0
        self._lock = threading.Lock()

    def complete(self, messages: Sequence[Any], *, schema: Any = None, **_: Any) -> Any:
        if schema is not None:
            raise ProviderError("it is only for summaries")
        with self._lock:
            self.waiting += 1
        self.let_go.wait(30)
        with self._lock:
            self.waiting -= 1
        raise ProviderError("it has nothing to say")


@contextmanager
def slow(path: Path, sessions: int) -> Iterator[tuple[Served, SlowModel]]:
    """A server whose model is slow, and Eve's sessions that wait to be summed up."""
    model = SlowModel()
    with (
        Memory(path / "m.db", embedder=None, extraction=Extraction(model=model)) as memory,
        serving(build_app(memory, Guard(memory.keys), Limits(requests_per_s=0))) as url,
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
        until(lambda: model.waiting == MAX_CONCURRENT)
        began = time.perf_counter()
        assert ada.get("/api/sessions").status_code == 200
        assert ada.get("/ready").status_code == 200
        assert time.perf_counter() - began < 3
        assert model.waiting == MAX_CONCURRENT
        model.let_go.set()
        assert {answer.result() for answer in answers} == {200}


def hung_up(served: Served, key: str, numbers: range, done: Callable[[], bool]) -> None:
    """Ask over MCP for summaries, and disconnect as soon as something is so."""
    address = httpx.URL(served.url)
    with ExitStack() as stack:
        for number in numbers:
            params = {"name": "summarize_session", "arguments": {"session_id": f"s{number}"}}
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            body = json.dumps(call).encode()
            lines = [f"{name}: {value}" for name, value in MCP.items()]
            lines += [f"Authorization: Bearer {key}", f"Content-Length: {len(body)}"]
            head = "\r\n".join(["POST /mcp?tools=all HTTP/1.1", "Host: localhost", *lines, "", ""])
            connection = socket.create_connection((address.host, address.port or 0))
            stack.enter_context(connection).sendall(head.encode() + body)
        until(done, 30)


def test_who_hangs_up_has_no_room_for_more_until_the_work_is_done(tmp_path: Path) -> None:
    with slow(tmp_path, 2 * MAX_CONCURRENT) as (served, model):
        ada, key = served.client("ada"), served.key("eve")
        hung_up(served, key, range(MAX_CONCURRENT), lambda: model.waiting == MAX_CONCURRENT)
        ends_at = time.monotonic() + 1
        more = range(MAX_CONCURRENT, 2 * MAX_CONCURRENT)
        hung_up(served, key, more, lambda: time.monotonic() > ends_at)
        assert model.waiting == MAX_CONCURRENT
        began = time.perf_counter()
        assert ada.get("/api/sessions/active").status_code in (200, 404)
        assert time.perf_counter() - began < 3


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
        (Principal(tenant="acme", name="k2"), {}, 2 * ADMIN_FACTOR),
        (ADA, {"path": "/api/messages/m1/updates"}, round(2 * FACTORS["stream"])),
        (ADA, {"path": "/api/events"}, round(2 * FACTORS["stream"])),
        (ADA, {"path": "/api/messages/m1/updates", "method": "POST"}, 2),
        (ADA, {"headers": [(b"content-length", b"65536")]}, 1),
        (None, {}, 30),
    ],
)
def test_so_many_are_worked_on_at_once(
    who: Principal | None, more: dict[str, Any], room: int
) -> None:
    async def run() -> None:
        busy = Busy()
        app = ConcurrencyLimit(busy, max_concurrent=2)
        tasks = [asked(app, who, **more) for _ in range(9 if who else 30)]
        await settle()
        assert busy.at_once == min(room, len(tasks))
        busy.let_go.set()
        assert {answer.status for answer in await asyncio.gather(*tasks)} == {200}

    asyncio.run(run())


def test_all_keys_of_a_user_count_as_one_and_another_user_has_turns_of_their_own() -> None:
    async def run() -> None:
        busy = Busy()
        app = ConcurrencyLimit(busy, max_concurrent=2)
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
        app = ConcurrencyLimit(busy, max_concurrent=1, max_wait_s=0.02)
        first = asked(app, ADA)
        answer = await asked(app, ADA)
        assert answer.status == 429
        assert answer.all(b"retry-after") == [b"1"]
        assert "too many requests at once" in json.dumps(answer.problem)
        busy.let_go.set()
        assert (await first).status == (await asked(app, ADA)).status == 200

    asyncio.run(run())


def test_a_line_that_is_too_long_takes_nobody_else() -> None:
    async def run() -> None:
        busy = Busy()
        app = ConcurrencyLimit(busy, max_concurrent=1)
        waiting = [asked(app, ADA) for _ in range(1 + QUEUE_FACTOR)]
        await settle()
        assert (await asked(app, ADA)).status == 429
        busy.let_go.set()
        assert {answer.status for answer in await asyncio.gather(*waiting)} == {200}

    asyncio.run(run())


def test_who_leaves_the_line_takes_no_turn_with_them() -> None:
    async def run() -> None:
        busy = Busy()
        app = ConcurrencyLimit(busy, max_concurrent=1)
        first, leaving, last = asked(app, ADA), asked(app, ADA), asked(app, ADA)
        await settle()
        leaving.cancel()
        busy.let_go.set()
        assert (await first).status == (await last).status == 200

    asyncio.run(run())


def test_a_turn_lasts_as_long_as_its_threads() -> None:
    let_go = threading.Event()
    later: list[asyncio.Task[None]] = []

    async def leaves(scope: Scope, receive: Receive, send: Send) -> None:
        later.append(asyncio.create_task(to_thread(lambda: None)))
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await to_thread(let_go.wait, 10)
        await hello(scope, receive, send)

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(WorkerThreads(2))
        app = ConcurrencyLimit(leaves, max_concurrent=1, max_wait_s=0.05)
        assert (await asked(app, ADA)).status == 200
        assert (await asked(app, ADA)).status == 429
        let_go.set()
        assert (await asked(app, ADA)).status == 200
        await asyncio.gather(*later)
        await asyncio.sleep(0.05)

    asyncio.run(run())


def test_an_app_that_fails_gives_its_turn_back() -> None:
    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise ProviderError("away")

    app = ConcurrencyLimit(fails, max_concurrent=1, max_wait_s=0.01)
    for _ in range(3):
        with pytest.raises(ProviderError):
            call(app, request(state={"principal": ADA}))


def test_none_at_once_is_no_limit() -> None:
    assert (
        call(ConcurrencyLimit(hello, max_concurrent=0), request(state={"principal": ADA})).status
        == 200
    )


# Rate limits

KEY = b"Bearer mk_0123456789abcdef_" + b"A" * 43
WRONG = KEY[:-1] + b"B"
STEPS = st.lists(st.tuples(st.floats(0, 3), st.booleans()), max_size=60)


@dataclass
class Clock:
    """A clock that a test moves."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def statuses(app: ASGIApp, scopes: list[Scope]) -> list[int]:
    return [call(app, scope).status for scope in scopes]


def by(who: Principal | None = None, **more: Any) -> Scope:
    return request(state={"principal": who} if who else {}, **more)


async def locked(scope: Scope, receive: Receive, send: Send) -> None:
    """An app that knows nobody but who has the key."""
    shown = [value for name, value in scope["headers"] if name == b"authorization"]
    status = 200 if shown == [KEY] or scope["path"] == "/health" else 401
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@given(STEPS)
def test_no_more_pass_than_the_burst_and_what_flows_in(steps: list[tuple[float, bool]]) -> None:
    clock, passed = Clock(), 0
    buckets = TokenBuckets(10.0, 5.0, clock=clock)
    for pause, asks in steps:
        clock.now += pause
        if asks and not buckets.wait_s(("a",)):
            passed += 1
            buckets.spend(("a",))
        assert passed <= 5.0 + 10.0 * clock.now + 1e-6


@given(st.integers(0, 20))
def test_after_the_wait_there_is_a_token_and_the_debt_is_one_burst_at_most(spent: int) -> None:
    clock = Clock()
    buckets = TokenBuckets(10.0, 5.0, clock=clock)
    for _ in range(spent):
        buckets.spend(("a",))
    wait_s = buckets.wait_s(("a",))
    assert wait_s <= 0.6 + 1e-9
    clock.now += wait_s + 1e-9
    assert buckets.wait_s(("a",)) == 0


def test_a_clock_that_goes_back_gives_nothing() -> None:
    clock = Clock(10.0)
    buckets = TokenBuckets(1.0, 1.0, clock=clock)
    buckets.spend(("a",))
    clock.now = 5.0
    assert buckets.wait_s(("a",)) == 1.0


def test_who_asks_too_often_waits_and_then_may_again() -> None:
    clock = Clock()
    app = RateLimit(hello, TokenBuckets(0.5, 3, clock=clock))
    assert statuses(app, [by()] * 4) == [200, 200, 200, 429]
    answer = call(app, by())
    assert answer.problem["code"] == "rate_limited"
    assert answer.all(b"retry-after") == [b"2"]
    clock.now += 2
    assert statuses(app, [by()] * 2) == [200, 429]


def test_callers_do_not_wait_for_each_other() -> None:
    app = RateLimit(hello, TokenBuckets(1, 1, clock=Clock()))
    people = [
        Principal(tenant="a", user="ada"),
        Principal(tenant="b", user="ada"),
        Principal(tenant="a", user="bob"),
        Principal(tenant="a"),
    ]
    assert statuses(app, [by(who) for who in people]) == [200] * 4
    assert statuses(app, [by(who) for who in people]) == [429] * 4


def test_a_caller_is_the_same_from_every_address() -> None:
    app = RateLimit(hello, TokenBuckets(1, 1, clock=Clock()))
    ada = Principal(tenant="a", user="ada")
    elsewhere = by(ada, client=("192.0.2.9", 1))
    assert statuses(app, [by(ada), elsewhere]) == [200, 429]


def test_nobody_can_take_the_name_of_an_address() -> None:
    assert caller_of(by(Principal(tenant="address", user="192.0.2.1"))) != caller_of(by())


def test_no_rate_is_no_limit() -> None:
    app = RateLimit(hello, TokenBuckets(0, 0))
    assert statuses(app, [by()] * 300) == [200] * 300


def test_only_so_many_callers_are_kept_and_the_oldest_are_forgotten() -> None:
    buckets = TokenBuckets(1, 1, clock=Clock(), max_callers=100)
    for number in range(1_000):
        buckets.spend(("address", str(number)))
    assert len(buckets) == 100
    assert buckets.wait_s(("address", "999")) > 0
    assert buckets.wait_s(("address", "0")) == 0
    for number in range(1_000):
        buckets.wait_s(("peek", str(number)))
    assert len(buckets) == 100


def test_who_asks_still_is_not_forgotten() -> None:
    buckets = TokenBuckets(1, 1, clock=Clock(), max_callers=2)
    for name in ("steady", "a", "steady", "b", "steady", "c"):
        buckets.spend(("address", name))
    assert buckets.wait_s(("address", "steady")) > 0


def shows(key: bytes) -> Scope:
    return request((b"authorization", key))


@pytest.mark.parametrize("asks", [request(), shows(b"Bearer x"), shows(WRONG)])
def test_who_shows_no_good_key_is_slowed_down_by_address(asks: Scope) -> None:
    clock = Clock()
    app = LoginThrottle(locked, TokenBuckets(1, 3, clock=clock))
    elsewhere = request(client=("192.0.2.9", 1))
    assert statuses(app, [asks] * 4) == [401, 401, 401, 429]
    assert statuses(app, [elsewhere]) == [401]
    answer = call(app, asks)
    assert answer.problem["code"] == "rate_limited"
    assert [it["type"] for it in answer.sent] == ["http.response.start", "http.response.body"]
    clock.now += 1
    assert statuses(app, [asks] * 2) == [401, 429]


def test_a_good_key_and_what_is_public_never_wait_for_those_who_guess() -> None:
    app = LoginThrottle(locked, TokenBuckets(1, 1, clock=Clock()))
    assert statuses(app, [shows(WRONG)] * 100) == [401, *[429] * 99]
    assert statuses(app, [shows(KEY), request(path="/health")] * 100) == [200] * 200


def test_what_is_no_key_is_not_looked_up_once_too_many_failed() -> None:
    asked: list[bytes] = []

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope["path"])
        await locked(scope, receive, send)

    app = LoginThrottle(counted, TokenBuckets(1, 1, clock=Clock()))
    statuses(app, [request(), shows(b"Bearer x"), shows(b"Basic eA=="), shows(WRONG), request()])
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("shown", "good"),
    [
        ([KEY], True),
        ([KEY.replace(b"Bearer ", b"bearer  ")], True),
        ([b"Bearer a.b-_.c"], True),
        ([KEY, KEY], False),
        ([], False),
        ([b""], False),
        ([KEY + b"A"], False),
        ([b"mk_"], False),
        ([b"Basic " + KEY], False),
        ([b"Bearer a.b"], False),
        ([b"Bearer " + b"x" * 90], False),
    ],
)
def test_one_key_or_token_has_credential(shown: list[bytes], good: bool) -> None:
    assert has_credential(request(*((b"Authorization", one) for one in shown))) is good


def test_keys_as_they_are_made_look_good(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "m.db") as store:
        for _ in range(50):
            made = Keys(keys_of(store)).create(tenant="t", user="ada")
            assert has_credential(shows(f"Bearer {made.text}".encode()))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("192.0.2.1", "192.0.2.2", False),
    ],
)
def test_an_ipv6_network_is_one_caller(one: str, other: str, same: bool) -> None:
    found = [address_of(request(client=(host, 1))) for host in (one, other)]
    assert (found[0] == found[1]) is same


@pytest.mark.parametrize("client", [None, ("", 0), ("testclient", 1)])
def test_a_client_without_an_address_is_counted_too(client: Any) -> None:
    app = RateLimit(hello, TokenBuckets(1, 1, clock=Clock()))
    assert statuses(app, [by(client=client)] * 2) == [200, 429]


def test_the_lifespan_is_not_counted() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope == {"type": "lifespan"}

    for layer in (RateLimit(app, TokenBuckets(1, 1)), LoginThrottle(app, TokenBuckets(1, 1))):
        for _ in range(3):
            call(layer, {"type": "lifespan"})
