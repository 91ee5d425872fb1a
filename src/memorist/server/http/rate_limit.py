"""How often one caller may ask: token buckets in memory, for the few that ask too often."""

from __future__ import annotations

import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memorist.errors import RateLimitedError
from memorist.server.http.asgi import REQUESTS, refuse, values
from memorist.server.http.authenticate import is_public

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_CALLERS = 10_000  # whose buckets are kept; who asked longest ago is forgotten first
STARTS = ("http.response.start", "websocket.http.response.start")
# How a key or a token looks. Nobody guesses one: what looks so is worth being looked up.
SHAPE = re.compile(rb"bearer +(mk_[0-9a-f]{16}_[\w-]{43}|[\w-]+\.[\w-]+\.[\w-]*) *", re.IGNORECASE)

Clock = Callable[[], float]
Caller = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rate:
    """So many a second in the long run, and so many at once; none a second is no limit."""

    per_s: float
    burst: float


@dataclass(frozen=True, slots=True)
class Bucket:
    """What a caller had left at a time; below nothing is a debt."""

    tokens: float
    at: float


def refilled(bucket: Bucket, rate: Rate, now: float) -> Bucket:
    """The bucket with what has flowed in since; a clock that goes back adds nothing."""
    flowed = max(0.0, now - bucket.at) * rate.per_s
    return Bucket(min(rate.burst, bucket.tokens + flowed), now)


def wait_s(bucket: Bucket, rate: Rate) -> float:
    """How long until the bucket holds one."""
    return max(0.0, 1.0 - bucket.tokens) / rate.per_s


def spent(bucket: Bucket, rate: Rate) -> Bucket:
    """The bucket with one less; the debt stays within one burst."""
    return Bucket(max(-rate.burst, bucket.tokens - 1.0), bucket.at)


class Buckets:
    """A bucket for each of the callers of late."""

    def __init__(self, rate: Rate, *, clock: Clock, most: int = MOST_CALLERS) -> None:
        self.rate = rate
        self._clock = clock
        self._most = most
        self._held: OrderedDict[Caller, Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def wait_s(self, caller: Caller) -> float:
        """How long the caller must wait for one."""
        return wait_s(self._now(caller), self.rate) if self.rate.per_s else 0.0

    def spend(self, caller: Caller) -> None:
        """Take one from the caller's bucket, be it there or not."""
        if self.rate.per_s:
            self._held[caller] = spent(self._now(caller), self.rate)
            self._held.move_to_end(caller)
        if len(self._held) > self._most:
            self._held.popitem(last=False)

    def _now(self, caller: Caller) -> Bucket:
        now = self._clock()
        return refilled(self._held.get(caller, Bucket(self.rate.burst, now)), self.rate, now)


class Rates:
    """Lets each caller ask so often; stands behind authentication, which knows who it is."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        per_s: float = 100.0,
        burst: float = 200.0,
        clock: Clock = time.monotonic,
    ) -> None:
        self._app = app
        self._buckets = Buckets(Rate(per_s, max(1.0, burst)), clock=clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let through who has one left; others are told when to come back."""
        if scope["type"] in REQUESTS:
            caller = caller_of(scope)
            if wait := self._buckets.wait_s(caller):
                error = RateLimitedError("too many requests; wait, then retry", retry_after_s=wait)
                await refuse(error, scope, receive, send)
                return
            self._buckets.spend(caller)
        await self._app(scope, receive, send)


class FailedLogins:
    """Slows down who shows no good key: counts answers of 401 by address.

    Many may share an address, so whoever has a good key, or asks for what is public, never waits.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        per_s: float = 10.0,
        burst: float = 50.0,
        clock: Clock = time.monotonic,
    ) -> None:
        self._app = app
        self._buckets = Buckets(Rate(per_s, max(1.0, burst)), clock=clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let them be asked who they are; where too many failed, a 401 becomes a 429."""
        if scope["type"] not in REQUESTS or is_public(scope):
            await self._app(scope, receive, send)
            return
        caller, refused = address_of(scope), False

        async def too_often() -> bool:
            wait = self._buckets.wait_s(caller)
            if wait:
                words = "too many requests without a valid key; wait, then retry"
                await refuse(RateLimitedError(words, retry_after_s=wait), scope, receive, send)
            return bool(wait)

        async def counting(message: Message) -> None:
            nonlocal refused
            if message["type"] in STARTS and message["status"] == 401:
                refused = await too_often()
                if not refused:
                    self._buckets.spend(caller)
            if not refused:
                await send(message)

        if looks_good(scope) or not await too_often():
            await self._app(scope, receive, counting)


def looks_good(scope: Scope) -> bool:
    """Whether the request shows one key or token, be it a good one or not."""
    shown = values(scope, b"authorization")
    return len(shown) == 1 and bool(SHAPE.fullmatch(shown[0]))


def caller_of(scope: Scope) -> Caller:
    """Who is counted: the principal where one is known, else the address."""
    who = scope.get("state", {}).get("principal")
    return address_of(scope) if who is None else ("principal", who.tenant, who.user or "", who.name)


def address_of(scope: Scope) -> Caller:
    """The client's address; of IPv6 the network, since one host has as many as it likes."""
    host = (scope.get("client") or ("",))[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "address", host
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        network = ipaddress.IPv6Network((int(address) >> 64 << 64, 64))
        return "address", str(mapped or network)
    return "address", str(address)
