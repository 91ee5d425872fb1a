"""Load over HTTP/1.1: many connections that stay open, from one thread, cheaply.

`steady` sends at a constant rate and counts each answer from when its request was due, not from
when it could be sent, so that a server that stalls cannot hide it. `flat_out` sends the next
request of a connection as soon as the one before is answered.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
LATE = re.compile(rb'"late": ?\["')
TIMEOUT_S = 30.0

Requests = Iterator[bytes]


@dataclass
class Took:
    """How long answers took, in seconds; how many were none, or named channels that were late."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    late: int = 0
    lasted_s: float = 0.0

    @property
    def per_s(self) -> float:
        return len(self.seconds) / self.lasted_s if self.lasted_s else 0.0

    def ms(self, percent: int) -> float:
        """So many of a hundred took at most this."""
        if len(self.seconds) < 2:
            return sum(self.seconds) * 1_000
        return statistics.quantiles(self.seconds, n=100, method="inclusive")[percent - 1] * 1_000

    def more(self, other: Took) -> None:
        """Count these too."""
        self.seconds += other.seconds
        self.errors += other.errors
        self.late += other.late
        self.lasted_s += other.lasted_s


def request(url: str, method: str, path: str, body: bytes = b"", key: str = "") -> bytes:
    """A request as it is sent."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {urlsplit(url).netloc}"]
    lines.append("Accept: application/json")
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Connection:
    """One connection, asked one thing at a time; opened anew after a failure."""

    def __init__(self, url: str) -> None:
        self._place = urlsplit(url).hostname, urlsplit(url).port
        self._pair: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self) -> None:
        self._pair = await asyncio.open_connection(*self._place)

    async def ask(self, sent: bytes) -> tuple[bytes, bytes]:
        """Ask, and read the whole answer: its status and its body."""
        if self._pair is None:
            await self.open()
        assert self._pair is not None
        reader, writer = self._pair
        writer.write(sent)
        head = await reader.readuntil(b"\r\n\r\n")
        length = LENGTH.search(head)
        if length is None:
            raise ConnectionError("an answer without a length")
        return head[9:12], await reader.readexactly(int(length[1]))

    def close(self) -> None:
        if self._pair is not None:
            self._pair[1].close()
        self._pair = None


@asynccontextmanager
async def connected(url: str, count: int) -> AsyncIterator[list[Connection]]:
    """So many connections to a server."""
    connections = [Connection(url) for _ in range(count)]
    try:
        await asyncio.gather(*(connection.open() for connection in connections))
        yield connections
    finally:
        for connection in connections:
            connection.close()


async def flat_out(url: str, requests: Requests, *, connections: int, seconds: float) -> Took:
    """As much as so many connections get done."""
    took = Took()

    async def work(connection: Connection) -> None:
        while (now := time.perf_counter()) < began + seconds:
            await timed(connection, next(requests), now, took)

    async with connected(url, connections) as pool:
        began = time.perf_counter()
        await asyncio.gather(*map(work, pool))
        took.lasted_s = time.perf_counter() - began
    return took


async def steady(
    url: str, requests: Requests, *, rate: float, connections: int, seconds: float
) -> Took:
    """So many a second; one that finds every connection busy waits, and that counts."""
    took = Took()

    async def work(connection: Connection) -> None:
        for at in due:
            await asyncio.sleep(at - time.perf_counter())
            await timed(connection, next(requests), at, took)

    async with connected(url, connections) as pool:
        began = time.perf_counter()
        due = (began + number / rate for number in range(int(rate * seconds)))
        await asyncio.gather(*map(work, pool))
        took.lasted_s = time.perf_counter() - began
    return took


async def timed(connection: Connection, sent: bytes, since: float, took: Took) -> None:
    """Send a request, and count what it took since it was due."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            status, body = await connection.ask(sent)
    except (OSError, EOFError, TimeoutError) as error:
        connection.close()
        took.errors.append(type(error).__name__)
        return
    if not status.startswith(b"2"):
        took.errors.append(f"{status.decode()} {body[:200]!r}")
        return
    took.seconds.append(time.perf_counter() - since)
    took.late += bool(LATE.search(body))


def in_turn(*kinds: Requests) -> Requests:
    """One of each, again and again."""
    return itertools.chain.from_iterable(zip(*kinds, strict=False))
