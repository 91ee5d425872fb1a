"""Send odd requests over many connections to a server in a process of its own, and watch it.

python -m tests.support.http_fuzz_run database log   # the server; prints its port
"""

from __future__ import annotations

import http.client
import io
import json
import logging
import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.http_fuzz import Shot, World, make_shot
from tests.support.http_odd import WORD

PATIENCE_S = 10.0
CONNECTIONS = 6
AT_ONCE = 8  # requests that are sent before an answer is read
LEFT_AFTER_S = 0.02
_RSS = re.compile(r"VmRSS:\s+(\d+) kB")


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """A server that runs elsewhere."""

    port: int
    process: subprocess.Popen[str]
    log: Path

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def memory_mib(self) -> float:
        """What it takes of the machine's memory."""
        found = _RSS.search(Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) / 1_024


@contextmanager
def serving_elsewhere(database: Path, log: Path) -> Iterator[Fuzzed]:
    """The real server on a database, which writes down all that it logs."""
    command = [sys.executable, "-m", "tests.support.http_fuzz_run", str(database), str(log)]
    with log.open("a") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        port = process.stdout.readline()
        assert port.strip(), log.read_text()
        server = Fuzzed(int(port), process, log)
        _wait(server)
        yield server
    finally:
        process.terminate()
        process.communicate(timeout=30)


def _wait(server: Fuzzed) -> None:
    for _ in range(600):
        try:
            with socket.create_connection(("127.0.0.1", server.port), 1) as one:
                one.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                if one.recv(100):
                    return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(server.log.read_text())


@dataclass(slots=True)
class Found:
    """What came of it."""

    statuses: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    reached: Counter[str] = field(default_factory=Counter)  # operations that said yes


def fire(world: World, port: int, seed: int, numbers: range, secrets: Sequence[str]) -> Found:
    """Send the requests of these numbers; what must not be is told with the bytes that did it."""
    found = Found()
    gunners = [
        _Gunner(world, port, seed, numbers[start::CONNECTIONS], secrets, found)
        for start in range(CONNECTIONS)
    ]
    threads = [threading.Thread(target=one.run, daemon=True) for one in gunners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


class _Gunner:
    """Sends a share of the requests, several at a time over one connection."""

    def __init__(
        self,
        world: World,
        port: int,
        seed: int,
        numbers: range,
        secrets: Sequence[str],
        found: Found,
    ) -> None:
        self.world = world
        self.port = port
        self.seed = seed
        self.numbers = numbers
        self.secrets = [one.encode() for one in secrets]
        self.found = found
        self.wire: _Wire | None = None

    def run(self) -> None:
        waiting: list[Shot] = []
        for number in self.numbers:
            shot = make_shot(self.world, self.seed, number)
            if shot.way != "whole":
                self._alone(shot)
                continue
            waiting.append(shot)
            if len(waiting) == AT_ONCE:
                self._together(waiting)
                waiting = []
        self._together(waiting)
        self._hang_up()

    def _hang_up(self) -> None:
        if self.wire is not None:
            self.wire.close()
        self.wire = None

    def _together(self, shots: list[Shot]) -> None:
        """Send them, then read as many answers; those after a closed one are sent again."""
        while shots:
            try:
                wire = self.wire = self.wire or _Wire(self.port)
                fresh = wire.answered == 0
                done = wire.ask(shots, self._look)
            except TimeoutError:
                self._tell(shots[0], "nothing came for so long")
                self._hang_up()
                shots = shots[1:]
                continue
            if done < len(shots):
                self._hang_up()
                if not done and fresh:
                    self._tell(shots[0], "no answer")
                    done = 1
            shots = shots[done:]

    def _alone(self, shot: Shot) -> None:
        """Send what breaks a connection, on one of its own."""
        wire = _Wire(self.port)
        try:
            if shot.way == "leave":
                wire.leave(shot)
            else:
                wire.ask([shot], self._look)
            self.found.statuses[shot.way] += 1
        except TimeoutError:
            self._tell(shot, "nothing came for so long")
        finally:
            wire.close()

    def _look(self, shot: Shot, answer: http.client.HTTPResponse, body: bytes) -> None:
        """Whether an answer is one that may be."""
        status = answer.status
        self.found.statuses[str(status)] += 1
        if status < 300:
            self.found.reached[shot.name] += 1
        told = body + repr(answer.getheaders()).encode()
        if status >= 500 and not (status == 503 and answer.getheader("Retry-After")):
            self._tell(shot, f"{status}: {body[:500]!r}")
        elif any(secret in told for secret in self.secrets):
            self._tell(shot, f"{status}, and what is another's: {body[:500]!r}")
        elif status >= 400 and WORD.encode() in told and WORD.encode() not in _echo(answer):
            self._tell(shot, f"{status}, which repeats what was sent: {body[:500]!r}")
        elif status >= 400 and not _is_told(shot, answer, body):
            self._tell(shot, f"{status}, in a form of its own: {body[:500]!r}")

    def _tell(self, shot: Shot, what: str) -> None:
        sent = repr(shot.sent if len(shot.sent) < 2_000 else shot.sent[:2_000] + b"...")
        self.found.wrong.append(
            f"seed={self.seed} number={shot.number} {shot.name}\n  {what}\n  {sent}"
        )


def _echo(answer: http.client.HTTPResponse) -> bytes:
    """The caller's own id of the request, which is given back."""
    return (answer.getheader("X-Request-Id") or "").encode()


def _is_told(shot: Shot, answer: http.client.HTTPResponse, body: bytes) -> bool:
    """Whether an error is told as all are; what is no HTTP never gets to us, MCP has its own."""
    if shot.method == "HEAD" or not answer.getheader("X-Request-Id") or b"jsonrpc" in body:
        return True
    if answer.getheader("Content-Type") != "application/problem+json":
        return False
    told: dict[str, Any] = json.loads(body)
    known = {"type", "title", "status", "detail", "code", "request_id", "fields"}
    return told["status"] == answer.status and bool(told["code"]) and told.keys() <= known


class _Wire:
    """One connection, on which several may be asked before the first answer."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = _Kept(self.socket)
        self.answered = 0

    def ask(self, shots: Sequence[Shot], look: Any) -> int:
        """How many were answered before the connection was closed."""
        with suppress(ConnectionError):  # it may have answered before it closed
            self.socket.sendall(b"".join(shot.sent for shot in shots))
        for number, shot in enumerate(shots):
            answer = http.client.HTTPResponse(self.file, method=shot.method)  # type: ignore[arg-type]
            try:
                answer.begin()
                body = answer.read()
            except (http.client.HTTPException, ConnectionError):
                return number
            look(shot, answer, body)
            self.answered += 1
            if answer.will_close:
                return number + 1
        return len(shots)

    def leave(self, shot: Shot) -> None:
        """Send it, and go without a word."""
        with suppress(ConnectionError):
            self.socket.sendall(shot.sent)
            time.sleep(LEFT_AFTER_S)

    def close(self) -> None:
        """End it."""
        self.file.end()
        self.socket.close()


class _Kept(io.BufferedReader):
    """What comes over a socket, for one answer after the other: none of them closes it."""

    def __init__(self, wire: socket.socket) -> None:
        super().__init__(socket.SocketIO(wire, "r"), 65_536)

    def makefile(self, *_: Any) -> _Kept:
        """Itself, as the answer asks for a file."""
        return self

    def close(self) -> None:
        """Nothing yet."""

    def end(self) -> None:
        """Really close it."""
        super().close()


def main(database: str, log: str) -> None:
    """Serve with all that is logged written down."""
    from memorist.config import Settings
    from memorist.server.http.run import Address, serve

    logging.basicConfig(level=logging.DEBUG, filename=log, force=True)
    settings = Settings(url=database, auth="on", rate="0", embedder="none", durability="normal")
    serve(settings, Address("127.0.0.1", 0), ready=lambda at: print(at.port, flush=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
