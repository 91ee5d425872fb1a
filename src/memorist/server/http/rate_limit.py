"""Rate limits: token buckets in memory, by caller and, for failed logins, by address."""

from __future__ import annotations

import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memorist.errors import RateLimitedError
from memorist.server.http.authentication import is_public
from memorist.server.http.problems import REQUESTS, header_values, refuse

MAX_CALLERS = 10_000  # whose buckets are kept; the least recent caller is dropped first
# The form of an API key or a JWT. Nobody guesses one, so looking such a one up is never throttled.
CREDENTIAL = re.compile(
    rb"bearer +(mk_[0-9a-f]{16}_[\w-]{43}|[\w-]+\.[\w-]+\.[\w-]*) *", re.IGNORECASE
)

Clock = Callable[[], float]
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
        clock: Clock = time.monotonic,
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


class RateLimit:
    """Limits the requests of each caller; stands behind authentication, which knows the caller."""

    def __init__(self, app: ASGIApp, buckets: TokenBuckets) -> None:
        self._app = app
        self._buckets = buckets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app answer a caller who has a token; others get 429 with Retry-After."""
        if scope["type"] in REQUESTS:
            caller = caller_of(scope)
            if wait_s := self._buckets.wait_s(caller):
                text = "too many requests; wait, then retry"
                error = RateLimitedError(text, retry_after_s=wait_s)
                await refuse(error, scope, receive, send)
                return
            self._buckets.spend(caller)
        await self._app(scope, receive, send)


class LoginThrottle:
    """Limits the responses of 401 by address: after too many, they become 429.

    Many callers may share an address, so a valid key and a public path never wait.
    """

    def __init__(self, app: ASGIApp, buckets: TokenBuckets) -> None:
        self._app = app
        self._buckets = buckets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app authenticate the request, unless its address has failed too often."""
        if scope["type"] not in REQUESTS or is_public(scope):
            await self._app(scope, receive, send)
            return
        address, throttled = address_of(scope), False

        async def throttle() -> bool:
            wait_s = self._buckets.wait_s(address)
            if wait_s:
                text = "too many requests without a valid key; wait, then retry"
                await refuse(RateLimitedError(text, retry_after_s=wait_s), scope, receive, send)
            return bool(wait_s)

        async def count_failures(message: Message) -> None:
            nonlocal throttled
            if message.get("status") == 401:
                throttled = await throttle()
                if not throttled:
                    self._buckets.spend(address)
            if not throttled:
                await send(message)

        if has_credential(scope) or not await throttle():
            await self._app(scope, receive, count_failures)


def has_credential(scope: Scope) -> bool:
    """Whether the request shows one text that has the form of a key or a token."""
    sent = header_values(scope, b"authorization")
    return len(sent) == 1 and bool(CREDENTIAL.fullmatch(sent[0]))


def caller_of(scope: Scope) -> Caller:
    """Whose bucket counts: the principal's if there is one, otherwise the address's."""
    who = scope.get("state", {}).get("principal")
    return address_of(scope) if who is None else ("principal", who.tenant, who.user or "", who.name)


def address_of(scope: Scope) -> Caller:
    """The client's address; of IPv6 its /64 network, since one host has as many as it likes."""
    host = (scope.get("client") or ("",))[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "address", host
    if isinstance(address, ipaddress.IPv6Address):
        network = ipaddress.IPv6Network((int(address) >> 64 << 64, 64))
        return "address", str(address.ipv4_mapped or network)
    return "address", str(address)
