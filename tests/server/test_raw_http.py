"""Broken HTTP over raw sockets, which schemathesis cannot send: every request is answered or
closed, none with a failure of ours or another's words, and the server lives on.

A failure names its seed: the same seed makes the same bytes again.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from memorist import Memory
from memorist.config import Settings
from memorist.server.auth import Keys
from memorist.server.http.run import Address, _beside, _bind, serve
from tests.support.forked import Forked
from tests.support.hostile import HOSTILE_SHAPES
from tests.support.waiting import until

WORD = b"zqxjword"  # in what is sent; never in an error, never in a log
SECRET = "heliotrope-4711"  # of another user
MAX_GROWTH_MIB = 200
HERE = "tests.server.test_raw_http"  # __name__, unless this is the server
TARGETS = [
    b"POST /api/messages", b"POST /api/recall", b"GET /api/messages", b"POST /api/messages/batch",
    b"POST /api/context", b"GET /api/facts", b"POST /api/forget", b"PUT /api/notes",
    b"POST /mcp", b"GET /health", b"GET /web/index.html", b"DELETE /api/memories/1",
]  # fmt: skip
BODIES = [
    b'{"role": "user", "content": "' + WORD + b'"}',
    b'{"question": "' + WORD + b'", "limit": "' + WORD + b'"}',
    b'{"' + WORD + b'": 1}',
    b'{"messages": [{"role": "' + WORD + b'"}]}',
    b'{"question": "\\ud800' + WORD + b'"}',
    b'{"question": "' + WORD + b"\\u0000" + b'", "deadline_ms": NaN}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "' + WORD + b'"}',
    b'["' + WORD + b'"]', b"null", b"", b"\xff\xfe" + WORD, b"[" * 5_000, b'{"a":' * 500,
]  # fmt: skip
# Where a text goes in: TEXT becomes a run of one of the hostile shapes.
ENTRIES = [
    (b"POST /api/messages", '{"role": "user", "content": TEXT}'),
    (b"POST /api/messages", '{"role": "user", "content": "hi", "name": TEXT}'),
    (b"POST /api/messages/batch", '{"messages": [{"role": "assistant", "content": TEXT}]}'),
    (b"POST /api/recall", '{"question": TEXT}'),
    (b"POST /api/context", '{"question": TEXT, "max_tokens": 500}'),
    (b"POST /api/memories", '{"text": TEXT}'),
    (b"POST /api/facts", '{"subject": TEXT, "predicate": "is", "object": TEXT}'),
    (b"PUT /api/notes", '{"text": TEXT, "base_version": 0}'),
    (b"POST /api/articles", '{"title": TEXT, "text": TEXT}'),
    (b"POST /api/articles/retrieve", '{"query": TEXT}'),
]
HEADERS = [
    b"Content-Length: -1", b"Content-Length: 5, 6", b"Content-Length: 99999999999999999999",
    b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: \x0bchunked", b"Expect: 100-continue",
    b"Host: evil.example", b"Host: localhost", b"Connection: Upgrade", b"Upgrade: h2c",
    b"Authorization: Bearer " + WORD, b"Authorization: " + WORD * 2_000, b"X-Request-Id: a\tb",
    b"Content-Type: text/plain", b"Content-Type: application/json; charset=utf-16",
    b"Content-Encoding: gzip", b"Origin: null", b"X: " + b"y" * 70_000, b": empty", b"no colon",
    b" folded", b"N\x00ul: x", b"Last-Event-ID: " + WORD,
    b"Range: bytes=0-" + b"9" * 50, b"Cookie: \xff\xfe", b"X-Forwarded-For: 1.2.3.4",
    b"Sec-Fetch-Site: cross-site", b"Sec-Fetch-Site: " + WORD,
]  # fmt: skip
PATHS = [
    b"", b"?", b"?cursor=" + WORD, b"?limit=" + b"9" * 400, b"?user=%00", b"?%ff=%fe", b"/%2e%2e/",
    b"/..%2f..%2fetc/passwd", b"/%", b"/%zz", b"/\x00", b"#x", b"//", b"/" + WORD,
    b"?" + b"a=1&" * 9_000,
]  # fmt: skip


def main(database: str) -> None:
    """Serve; the first line says at which port."""
    settings = Settings(url=database, embedder="none", auth="on", rate=0.0, hosts="localhost")
    serve(settings, Address("127.0.0.1", 0), ready=lambda at: print(at.port, flush=True))


@dataclass(frozen=True, slots=True)
class Process:
    """A server in a process of its own."""

    port: int
    process: Forked
    log: Path

    def memory_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1_024


@contextmanager
def running(database: Path, log: Path) -> Iterator[Process]:
    """The real server, which writes down all that it logs."""
    with log.open("a") as errors:
        process = Forked(HERE, database, ready=(HERE,), stderr=errors.fileno())
    try:
        port = process.stdout.readline().strip()
        assert port, log.read_text()
        server = Process(int(port), process, log)
        until(lambda: answer(server.port, b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n"))
        yield server
    finally:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)


def answer(port: int, data: bytes, *, whole: bool = True, hang_up: bool = False) -> bytes:
    """What comes back until the server closes; a request that is not whole is ended."""
    received = b""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(data)
        if not whole:
            connection.shutdown(socket.SHUT_WR)
        if not hang_up:
            while block := connection.recv(65536):
                received += block
    return received


def whole_request(chance: random.Random, key: str) -> bytes:
    """A request that is odd in its contents alone."""
    if chance.random() < 0.3:
        target, form = chance.choice(ENTRIES)
        shape, size = chance.choice(HOSTILE_SHAPES), chance.choice([100, 900, 15_000, 60_000])
        text = shape * (size // len(shape.encode()))
        body = form.replace("TEXT", json.dumps(text, ensure_ascii=chance.random() < 0.5)).encode()
    else:
        body, target = chance.choice(BODIES), chance.choice(TARGETS)
    headers = [
        b"Host: localhost",
        b"Connection: close",
        b"Authorization: Bearer " + key.encode(),
        b"Content-Type: application/json",
        b"Content-Length: %d" % (0 if target.startswith((b"GET", b"DELETE")) else len(body)),
    ]
    return b"\r\n".join([target + b" HTTP/1.1", *headers, b"", body])


def broken_request(chance: random.Random, key: str) -> bytes:
    """A request that is broken in one or several ways."""
    body = chance.choice(BODIES)
    target = chance.choice(TARGETS) + (chance.choice(PATHS) if chance.random() < 0.4 else b"")
    version = chance.choice([b"HTTP/1.1"] * 8 + [b"HTTP/1.0", b"HTTP/2.0", b"HTTP/1.", b""])
    headers = [
        b"Host: localhost",
        b"Authorization: Bearer " + key.encode(),
        b"Content-Type: application/json",
    ]
    chunked = chance.random() < 0.3
    if chunked:
        size = chance.choice([b"%x" % len(body)] * 4 + [b"-1", b"zz", b"f" * 20, b"5;x=" + WORD])
        headers.append(b"Transfer-Encoding: chunked")
        body = size + b"\r\n" + body + b"\r\n0\r\n\r\n"
    else:
        length = len(body) + chance.choice([0] * 8 + [-1, 1, 1_000])
        headers.append(b"Content-Length: %d" % length)
    for _ in range(chance.choice([0, 0, 1, 1, 2])):
        headers.insert(chance.randrange(len(headers) + 1), chance.choice(HEADERS))
    data = b"\r\n".join([target + b" " + version, *headers, b"", body])
    for _ in range(chance.choice([0, 0, 0, 1, 5])):
        at = chance.randrange(len(data))
        data = data[:at] + bytes([chance.randrange(256)]) + data[at + chance.randrange(2) :]
    return data[: chance.randrange(len(data))] if chance.random() < 0.1 else data


def check(folder: Path, count: int, seed: int) -> None:
    database = folder / "raw.db"
    with Memory(database, embedder=None) as memory:
        key = Keys(memory.keys).create(tenant="default", user="fuzz").text
        memory.remember([{"role": "user", "content": SECRET}], user="cage")
    chance, statuses = random.Random(seed), Counter[bytes]()
    with running(database, folder / "log") as server:
        for number in range(count):
            if number == min(200, count // 2):
                before_mib = server.memory_mib()
            whole = chance.random() < 0.3
            data = (whole_request if whole else broken_request)(chance, key)
            hang_up = chance.random() < 0.05
            received = answer(server.port, data, whole=whole, hang_up=hang_up)
            found = re.findall(rb"HTTP/1\.1 (\d{3})", received)
            statuses.update(found)
            told = (seed, number, data[:300], received[:300])
            assert not [status for status in found if status[:1] == b"5"], told
            assert SECRET.encode() not in received, told
            assert WORD not in received or found[:1] in ([b"200"], [b"201"]), told
        assert server.process.poll() is None
        assert httpx.get(f"http://127.0.0.1:{server.port}/ready").status_code == 200
        assert server.memory_mib() - before_mib < MAX_GROWTH_MIB
    logged = server.log.read_text(errors="replace")
    assert WORD.decode() not in logged
    assert SECRET not in logged
    assert statuses[b"200"] + statuses[b"201"] > count / 50, statuses
    with Memory(database, embedder=None) as memory:
        assert memory.check()["integrity"] == "ok"
        assert memory.history(user="cage")[0].text == SECRET


def test_broken_requests_are_answered_and_touch_nobody_else(tmp_path: Path) -> None:
    check(tmp_path, 300, seed=7)


@pytest.mark.prove
def test_a_hundred_thousand_broken_requests_are_answered(tmp_path: Path) -> None:
    check(tmp_path, 100_000, seed=int.from_bytes(os.urandom(4), "big"))


@pytest.mark.parametrize("several", [False, sys.platform == "linux"])
def test_an_answer_is_not_held_back(several: bool) -> None:
    """Without TCP_NODELAY the end of each answer waits for the client's receipt, for 40 ms."""

    async def accepted() -> int:
        told: asyncio.Queue[int] = asyncio.Queue()

        def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            wire = writer.get_extra_info("socket")
            told.put_nowait(wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = _bind(Address("127.0.0.1", 0))
        if several:
            with listening:
                listening = _beside(listening)
        async with await asyncio.start_server(accept, sock=listening):
            with socket.create_connection(listening.getsockname()):
                return await told.get()

    assert asyncio.run(accepted()) != 0


if __name__ == "__main__":
    main(*sys.argv[1:])
