"""Rates: who asks too often is told when to come back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import ASGIApp, Receive, Scope, Send

from memorist import SqliteStore
from memorist.server.auth import Keys
from memorist.server.http.rate_limit import (
    Bucket,
    Buckets,
    FailedLogins,
    Rate,
    Rates,
    address_of,
    caller_of,
    looks_good,
    refilled,
    spent,
    wait_s,
)
from tests.support.shields import call, hello, request

RATE = Rate(10.0, 5.0)
KEY = b"Bearer mk_0123456789abcdef_" + b"A" * 43
WRONG = KEY[:-1] + b"B"
STEPS = st.lists(st.tuples(st.floats(0, 3), st.booleans()), max_size=60)


@dataclass
class Clock:
    """A clock that a test moves."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Someone:
    tenant: str
    user: str | None = None
    name: str = ""


def statuses(app: ASGIApp, scopes: list[Scope]) -> list[int]:
    return [call(app, scope).status for scope in scopes]


def by(who: Someone | None = None, **more: Any) -> Scope:
    return request(state={"principal": who} if who else {}, **more)


async def locked(scope: Scope, receive: Receive, send: Send) -> None:
    """An app that knows nobody but who has the key."""
    shown = [value for name, value in scope["headers"] if name == b"authorization"]
    status = 200 if shown == [KEY] or scope["path"] == "/health" else 401
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@given(STEPS)
def test_in_any_time_no_more_pass_than_the_burst_and_what_flows_in(
    steps: list[tuple[float, bool]],
) -> None:
    bucket, now, passed = Bucket(RATE.burst, 0.0), 0.0, 0
    for pause, asks in steps:
        now += pause
        bucket = refilled(bucket, RATE, now)
        if asks and not wait_s(bucket, RATE):
            bucket, passed = spent(bucket, RATE), passed + 1
        assert 0 <= bucket.tokens <= RATE.burst
        assert passed <= RATE.burst + RATE.per_s * now + 1e-6


@given(st.floats(-5, 5), st.floats(0, 100))
def test_after_the_wait_there_is_one(tokens: float, at: float) -> None:
    bucket = Bucket(tokens, at)
    later = refilled(bucket, RATE, at + wait_s(bucket, RATE))
    assert later.tokens >= 1 - 1e-9


def test_a_clock_that_goes_back_gives_nothing() -> None:
    assert refilled(Bucket(1.0, 10.0), RATE, 5.0).tokens == 1.0


def test_a_debt_stays_within_one_burst() -> None:
    bucket = Bucket(0.0, 0.0)
    for _ in range(100):
        bucket = spent(bucket, RATE)
    assert bucket.tokens == -RATE.burst


def test_who_asks_too_often_waits_and_then_may_again() -> None:
    clock = Clock()
    app = Rates(hello, per_s=0.5, burst=3, clock=clock)
    assert statuses(app, [by()] * 4) == [200, 200, 200, 429]
    answer = call(app, by())
    assert answer.problem["code"] == "rate_limited"
    assert answer.all(b"retry-after") == [b"2"]
    clock.now += 2
    assert statuses(app, [by()] * 2) == [200, 429]


def test_callers_do_not_wait_for_each_other() -> None:
    app = Rates(hello, per_s=1, burst=1, clock=Clock())
    people = [Someone("a", "ada"), Someone("b", "ada"), Someone("a", "bob"), Someone("a", None)]
    assert statuses(app, [by(who) for who in people]) == [200] * 4
    assert statuses(app, [by(who) for who in people]) == [429] * 4


def test_a_caller_is_the_same_from_every_address() -> None:
    app = Rates(hello, per_s=1, burst=1, clock=Clock())
    ada = Someone("a", "ada")
    elsewhere = by(ada, client=("192.0.2.9", 1))
    assert statuses(app, [by(ada), elsewhere]) == [200, 429]


def test_nobody_can_take_the_name_of_an_address() -> None:
    assert caller_of(by(Someone("address", "192.0.2.1"))) != caller_of(by())


def test_no_rate_is_no_limit() -> None:
    app = Rates(hello, per_s=0, burst=0)
    assert statuses(app, [by()] * 300) == [200] * 300


def test_the_default_is_generous() -> None:
    app = Rates(hello, clock=Clock())
    assert statuses(app, [by()] * 201) == [*[200] * 200, 429]


def test_only_so_many_callers_are_kept_and_the_oldest_are_forgotten() -> None:
    buckets = Buckets(Rate(1, 1), clock=Clock(), most=100)
    for number in range(1_000):
        buckets.spend(("address", str(number)))
    assert len(buckets) == 100
    assert buckets.wait_s(("address", "999")) > 0
    assert buckets.wait_s(("address", "0")) == 0
    for number in range(1_000):
        buckets.wait_s(("peek", str(number)))
    assert len(buckets) == 100


def test_who_asks_still_is_not_forgotten() -> None:
    buckets = Buckets(Rate(1, 1), clock=Clock(), most=2)
    for name in ("steady", "a", "steady", "b", "steady", "c"):
        buckets.spend(("address", name))
    assert buckets.wait_s(("address", "steady")) > 0


def shows(key: bytes) -> Scope:
    return request((b"authorization", key))


@pytest.mark.parametrize("asks", [request(), shows(b"Bearer x"), shows(WRONG)])
def test_who_shows_no_good_key_is_slowed_down_by_address(asks: Scope) -> None:
    clock = Clock()
    app = FailedLogins(locked, per_s=1, burst=3, clock=clock)
    elsewhere = request(client=("192.0.2.9", 1))
    assert statuses(app, [asks] * 4) == [401, 401, 401, 429]
    assert statuses(app, [elsewhere]) == [401]
    answer = call(app, asks)
    assert answer.problem["code"] == "rate_limited"
    assert [it["type"] for it in answer.sent] == ["http.response.start", "http.response.body"]
    clock.now += 1
    assert statuses(app, [asks] * 2) == [401, 429]


def test_a_good_key_and_what_is_public_never_wait_for_those_who_guess() -> None:
    app = FailedLogins(locked, per_s=1, burst=1, clock=Clock())
    assert statuses(app, [shows(WRONG)] * 100) == [401, *[429] * 99]
    assert statuses(app, [shows(KEY), request(path="/health")] * 100) == [200] * 200


def test_what_is_no_key_is_not_looked_up_once_too_many_failed() -> None:
    asked: list[bytes] = []

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope["path"])
        await locked(scope, receive, send)

    app = FailedLogins(counted, per_s=1, burst=1, clock=Clock())
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
def test_one_key_or_token_looks_good(shown: list[bytes], good: bool) -> None:
    assert looks_good(request(*((b"Authorization", one) for one in shown))) is good


def test_keys_as_they_are_made_look_good(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "m.db") as store:
        for _ in range(50):
            made = Keys(store).create(tenant="t", user="ada")
            assert looks_good(shows(f"Bearer {made.text}".encode()))


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
    app = Rates(hello, per_s=1, burst=1, clock=Clock())
    assert statuses(app, [by(client=client)] * 2) == [200, 429]


def test_the_lifespan_is_not_counted() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope == {"type": "lifespan"}

    for layer in (Rates(app, per_s=1, burst=1), FailedLogins(app)):
        for _ in range(3):
            call(layer, {"type": "lifespan"})
