"""Many large requests at once: a real server process stays small, and alive to others."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.shields import head, raw, read_all, status_of, wait_until

MIB = 1024 * 1024
TYPE = "Content-Type: application/json"
SERVER = """
import asyncio, json, sys, uvicorn
from memorist.server.http.body_limit import Bodies
from memorist.server.http.request_id import Identify

async def app(scope, receive, send):
    message = await receive()
    value = await asyncio.to_thread(json.loads, message["body"] or b"0")
    await asyncio.sleep(0.02)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"taken"})

options = {"log_level": "error", "lifespan": "off", "ws": "none"}
uvicorn.run(Identify(Bodies(app)), fd=int(sys.argv[1]), **options)
"""

BEATS = """
import select, sys, time
from tests.support.shields import head, raw, status_of

while not select.select([sys.stdin], [], [], 0.02)[0]:
    began = time.monotonic()
    lines = ["Content-Type: application/json", "Content-Length: 2"]
    assert status_of(raw(int(sys.argv[1]), head("POST", *lines), b"[]")) == 200
    print(time.monotonic() - began)
"""


class Process:
    """A server of its own, and how much memory it has needed at most."""

    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self._status = Path(f"/proc/{pid}/status")

    def most_mib(self) -> float:
        [line] = [it for it in self._status.read_text().splitlines() if it.startswith("VmHWM")]
        return int(line.split()[1]) / 1024


@pytest.fixture
def server() -> Iterator[Process]:
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        fd = listener.fileno()
        process = subprocess.Popen([sys.executable, "-c", SERVER, str(fd)], pass_fds=[fd])
        try:
            found = Process(listener.getsockname()[1], process.pid)
            wait_until(lambda: status_of(raw(found.port, head("GET"))) == 200, 30)
            yield found
        finally:
            process.terminate()
            process.wait(10)


def at_once(times: int, work: Callable[[], int]) -> Counter[int]:
    """How often each status came when all do it together; 0 stands for a lost connection."""
    found: Counter[int] = Counter()

    def one() -> None:
        status = 0
        with contextlib.suppress(OSError, IndexError):
            status = work()
        found[status] += 1

    threads = [threading.Thread(target=one) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def post(port: int, body: bytes, *lines: str) -> int:
    """Send it all, however long it takes, and read the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(head("POST", TYPE, *lines))
            connection.sendall(body)
        return status_of(read_all(connection))


@contextlib.contextmanager
def beating(port: int, times_s: list[float]) -> Iterator[None]:
    """Meanwhile, how long a small request takes, again and again; in a process of its own."""
    command = [sys.executable, "-c", BEATS, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield
        told, _ = process.communicate(b"stop")
    times_s.extend(sorted(map(float, told.split())))


def storm(server: Process, times: int, *, chunked: bool) -> tuple[Counter[int], float, list[float]]:
    """The statuses of many large posts, how much the server grew, and what small ones took."""
    text = b'"' + b"x" * (8 * MIB - 2) + b'"'
    said = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(text)}"
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(text), text) if chunked else text
    before = server.most_mib()
    times_s: list[float] = []
    with beating(server.port, times_s):
        found = at_once(times, lambda: post(server.port, body, said))
    return found, server.most_mib() - before, times_s


def test_twenty_large_posts_at_once_stay_within_bounds(server: Process) -> None:
    found, grown_mib, _ = storm(server, 20, chunked=False)
    assert set(found) <= {200, 503}
    assert found[200] >= 8
    assert grown_mib <= 200


@pytest.mark.prove
@pytest.mark.parametrize("chunked", [False, True])
def test_two_hundred_large_posts_at_once_stay_within_bounds(server: Process, chunked: bool) -> None:
    found, grown_mib, times_s = storm(server, 200, chunked=chunked)
    p99 = times_s[int(len(times_s) * 0.99)]
    print(f"{dict(found)}, grew by {grown_mib:.0f} MiB, small ones p99 {p99 * 1000:.0f} ms")
    assert set(found) <= {200, 503}
    assert found[200] >= 4
    assert grown_mib <= 200
    assert post(server.port, b"[]", "Content-Length: 2") == 200


@pytest.mark.prove
def test_many_bodies_that_never_come_leave_room_for_others(server: Process) -> None:
    before = server.most_mib()
    with contextlib.ExitStack() as open_:
        for _ in range(300):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            open_.enter_context(connection)
            connection.sendall(head("POST", TYPE, f"Content-Length: {8 * MIB}") + b"[")
        began = time.monotonic()
        assert post(server.port, b"[]", "Content-Length: 2") == 200
        assert time.monotonic() - began < 1
        time.sleep(12)  # the window is over: all of them were told
        large = b'"' + b"x" * MIB + b'"'
        assert post(server.port, large, f"Content-Length: {len(large)}") == 200
    assert server.most_mib() - before <= 200
