"""Connections that give up a server which vanished or froze, after seconds."""

import socket
import struct
import time
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict

from memorist.store.rows import Row

T = TypeVar("T")

SILENCE_SECONDS = 3.0  # without an answer, before the server is asked whether it is there
PROBE_SECONDS = 3.0  # for that question
_ASK_FOR_TLS = struct.pack("!ii", 8, 80877103)  # the first packet of a connection; all answer it
# For the kernel, where a host sends nothing at all: it would wait for minutes, or hours.
DEFAULTS: dict[str, int | str] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8_000,
    "application_name": "memorist",
}


def defaults(url: str) -> dict[str, Any]:
    """The parameters of a connection that the URL leaves open."""
    own = conninfo_to_dict(url)
    several = {"target_session_attrs": "read-write"} if "," in str(own.get("host", "")) else {}
    return {name: value for name, value in {**DEFAULTS, **several}.items() if name not in own}


class WatchedConnection(psycopg.Connection[Row]):
    """A connection on which no statement waits forever.

    It is closed when the time for it is over (`until`), and before that when the server has been
    silent for a while and answers no new connection either. A slow statement is left alone.
    """

    until: float | None = None  # by the monotonic clock; None: for as long as the server answers
    heard_at = 0.0

    def wait(self, gen: PQGen[T], *args: Any, **named: Any) -> T:
        return super().wait(self._bounded(gen), *args, **named)

    def _bounded(self, gen: PQGen[T]) -> PQGen[T]:
        self.heard_at = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    self.heard_at = time.monotonic()
                else:
                    self._check()
                wanted = gen.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result

    def _check(self) -> None:
        """Raise if there is no point in waiting any longer."""
        now = time.monotonic()
        is_over = self.until is not None and now > self.until
        if is_over or (now > self.heard_at + SILENCE_SECONDS and not self._server_answers()):
            self.close()
            raise psycopg.OperationalError("the server does not answer")

    def _server_answers(self) -> bool:
        place = self.info.hostaddr or self.info.host, self.info.port
        if not place[0].startswith(("/", "@")):  # on this machine, which is there
            try:
                with socket.create_connection(place, PROBE_SECONDS) as line:
                    line.sendall(_ASK_FOR_TLS)
                    if not line.recv(1):
                        return False
            except OSError:
                return False
        self.heard_at = time.monotonic()
        return True
