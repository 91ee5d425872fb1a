"""Limits of one caller: requests per second (token buckets) and requests at once (slots).

A request keeps its slot until its response is complete and every thread that worked for it is
done, so that a client that disconnects early cannot start more work than one that waits.
"""

import asyncio
import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memorist.errors import RateLimitedError
from memorist.records.scope import Principal
from memorist.server.http.middleware import (
    FILES,
    PROBES,
    CheckMiddleware,
    declared_length,
    is_public,
    path_of,
)
from memorist.server.http.problems import REQUESTS, header_values, refuse

MAX_CALLERS = 10_000  # whose buckets are kept; the least recent caller is dropped first
MAX_CONCURRENT = 16
THREADS = 64  # for the work of all callers; more than one caller has slots
MAX_WAIT_S = 5.0
ADMIN_FACTOR = 3  # an admin's key asks for many users
# A stream that waits for updates does hardly any work, a large body or an export a good deal.
FACTORS = {"stream": 4.0, "large": 1 / 8, "": 1.0}
LARGE_BYTES = 16_384
QUEUE_FACTOR = 4  # so many times the slots may wait for one
# The form of an API key or a JWT. Nobody guesses one, so looking such a one up is never throttled.
BEARER = re.compile(rb"bearer +(mk_[0-9a-f]{16}_[\w-]{43}|[\w-]+\.[\w-]+\.[\w-]*) *", re.IGNORECASE)

Caller = tuple[str, ...]


class TokenBuckets:
    """A token bucket for each recent caller: `per_s` tokens flow in, up to `burst`.

    `per_s=0` means no limit. A bucket may go into debt, by one burst at most.
    """

    def __init__(
        self,
        per_s: float,
        burst: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        max_callers: int = MAX_CALLERS,
    ) -> None:
        self._per_s = per_s
        self._burst = max(1.0, burst)
        self._clock = clock
        self._max_callers = max_callers
        self._buckets: OrderedDict[Caller, tuple[float, float]] = OrderedDict()  # tokens, as of

    def __len__(self) -> int:
        return len(self._buckets)

    def wait_s(self, caller: Caller) -> float:
        """How long until the caller has a token."""
        return max(0.0, 1.0 - self._tokens(caller)) / self._per_s if self._per_s else 0.0

    def refusal(self, caller: Caller, text: str) -> RateLimitedError | None:
        """The error for a caller who has no token."""
        wait_s = self.wait_s(caller)
        return RateLimitedError(text, retry_after_s=wait_s) if wait_s else None

    def spend(self, caller: Caller) -> None:
        """Take a token of the caller's, even if there is none."""
        if not self._per_s:
            return
        tokens = max(-self._burst, self._tokens(caller) - 1.0)
        self._buckets[caller] = tokens, self._clock()
        self._buckets.move_to_end(caller)
        if len(self._buckets) > self._max_callers:
            self._buckets.popitem(last=False)

    def _tokens(self, caller: Caller) -> float:
        now = self._clock()
        tokens, as_of = self._buckets.get(caller, (self._burst, now))
        return min(self._burst, tokens + max(0.0, now - as_of) * self._per_s)


class RateLimit(CheckMiddleware):
    """Limits the requests of each caller; stands behind authentication, which knows the caller."""

    def __init__(self, app: ASGIApp, buckets: TokenBuckets) -> None:
        super().__init__(app)
        self._buckets = buckets

    async def check(self, scope: Scope) -> None:
        if path_of(scope) in PROBES:
            return  # a monitor shares its address with others
        caller = caller_of(scope)
        if error := self._buckets.refusal(caller, "too many requests; wait, then retry"):
            raise error
        self._buckets.spend(caller)


class LoginThrottle:
    """Limits the 401s of an address: then it gets 429. Valid keys and public paths never wait."""

    def __init__(self, app: ASGIApp, buckets: TokenBuckets) -> None:
        self._app = app
        self._buckets = buckets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app authenticate the request, unless its address has failed too often."""
        if scope["type"] not in REQUESTS or is_public(scope):
            await self._app(scope, receive, send)
            return
        address = address_of(scope)
        text = "too many requests without a valid key; wait, then retry"
        error = None if has_credential(scope) else self._buckets.refusal(address, text)

        async def count_failures(message: Message) -> None:
            nonlocal error
            if message.get("status") == 401:
                if error := self._buckets.refusal(address, text):
                    await refuse(error, scope, receive, send)
                else:
                    self._buckets.spend(address)
            if error is None:
                await send(message)

        if error is None:
            await self._app(scope, receive, count_failures)
        else:
            await refuse(error, scope, receive, send)


def has_credential(scope: Scope) -> bool:
    """Whether the request shows one text that has the form of a key or a token."""
    sent = header_values(scope, b"authorization")
    return len(sent) == 1 and bool(BEARER.fullmatch(sent[0]))


def caller_of(scope: Scope) -> Caller:
    """Whose bucket counts: the principal's if there is one, otherwise the address's."""
    who = scope.get("state", {}).get("principal")
    return address_of(scope) if who is None else ("principal", who.tenant, who.user or "", who.name)


def address_of(scope: Scope) -> Caller:
    """The client's address; of IPv6 its /64 network, since one host has as many as it likes."""
    return _address((scope.get("client") or ("",))[0])


@lru_cache(maxsize=1_024)
def _address(host: str) -> Caller:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "address", host
    if isinstance(address, ipaddress.IPv6Address):
        network = ipaddress.IPv6Network((int(address) >> 64 << 64, 64))
        return "address", str(address.ipv4_mapped or network)
    return "address", str(address)


class Slot:
    """A request's place under the limit; freed when the last part of its work has ended."""

    def __init__(self, free: Callable[[], None]) -> None:
        self._free = free
        self._parts = 1

    def begin_part(self) -> bool:
        """Count another part of the work, unless all has ended."""
        self._parts += bool(self._parts)
        return bool(self._parts)

    def end_part(self) -> None:
        """End one part of the work."""
        self._parts -= 1
        if not self._parts:
            self._free()


_slot: ContextVar[Slot | None] = ContextVar("the slot of the current request", default=None)


class WorkerThreads(ThreadPoolExecutor):
    """The event loop's thread pool; each call counts as work of the request that made it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Run a call in a thread."""
        future = super().submit(fn, *args, **named)
        slot = _slot.get()
        if slot is not None and slot.begin_part():
            loop = asyncio.get_running_loop()

            def done(_: Future[Any]) -> None:
                with suppress(RuntimeError):  # the loop is closed: the server has ended
                    loop.call_soon_threadsafe(slot.end_part)

            future.add_done_callback(done)
        return future


class _CallerSlots(asyncio.Semaphore):
    """The free slots of one caller, and how many requests wait for one."""

    waiting = 0


class ConcurrencyLimit:
    """Works on so many requests of a caller at once; more wait a little, then get 429."""

    def __init__(
        self, app: ASGIApp, *, max_concurrent: int = MAX_CONCURRENT, max_wait_s: float = MAX_WAIT_S
    ) -> None:
        self._app = app
        self._max_concurrent = max_concurrent
        self._max_wait_s = max_wait_s
        # A caller's slots are kept for as long as a request holds or waits for one.
        self._callers: WeakValueDictionary[Caller, _CallerSlots] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app answer once the caller has a free slot; public paths are not counted."""
        who = scope.get("state", {}).get("principal") if scope["type"] in REQUESTS else None
        if who is None or not self._max_concurrent:
            await self._app(scope, receive, send)
            return
        path = path_of(scope)
        is_large = declared_length(scope) > LARGE_BYTES or path in (*FILES, "/api/export")
        kind = "large" if is_large else ""
        if scope.get("method") == "GET" and path.endswith(("/updates", "/events")):
            kind = "stream"
        slot = await self._acquire(who, kind)
        if slot is None:
            error = RateLimitedError("too many requests at once; wait for answers, then retry")
            await refuse(error, scope, receive, send)
            return
        before = _slot.set(slot)
        try:
            await self._app(scope, receive, send)
        finally:
            _slot.reset(before)
            slot.end_part()

    async def _acquire(self, who: Principal, kind: str) -> Slot | None:
        """A slot of the caller's; none if that takes too long or too many wait already."""
        # All keys of a user count together; an admin's keys do not, as each serves many users.
        caller = who.tenant, who.user or "", "" if who.user else who.name, kind
        factor = (ADMIN_FACTOR if who.admin else 1) * FACTORS[kind]
        size = max(1, round(self._max_concurrent * factor))
        slots = self._callers.setdefault(caller, _CallerSlots(size))
        if slots.waiting >= max(size, self._max_concurrent) * QUEUE_FACTOR:
            return None
        if not slots.locked():
            await slots.acquire()  # at once
            return Slot(slots.release)
        slots.waiting += 1
        try:
            async with asyncio.timeout(self._max_wait_s):
                await slots.acquire()
        except TimeoutError:
            return None
        finally:
            slots.waiting -= 1
        return Slot(slots.release)
