"""A network between us and PostgreSQL that breaks around a COMMIT, or stands still."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class Proxy:
    """Passes bytes on. Every few commits it cuts the line after the server committed and before
    the client hears so; and every few more requests, before the server hears them."""

    def __init__(self, url: str, *, cut_every: int = 10**9) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._door = socket.create_server(("127.0.0.1", 0))
        netloc = f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{self._door.getsockname()[1]}"
        self.url = parts._replace(netloc=netloc, query="sslmode=disable").geturl()
        self.lost_answers = 0
        self._commits, self._requests = itertools.count(1), itertools.count(1)
        self._cut_every = cut_every
        self._open: list[socket.socket] = [self._door]
        self._threads: list[threading.Thread] = []
        self._flows = threading.Event()
        self._flows.set()

    def __enter__(self) -> Self:
        self._run(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        cut(*self._open)
        self._flows.set()
        for thread in self._threads:
            thread.join()

    def lose_next_answer(self) -> None:
        """Let the next commit be done, and nobody hear of it."""
        self._commits = itertools.count(self._cut_every)

    def freeze(self) -> None:
        """From now on take connections and bytes, and never answer."""
        self._flows.clear()

    def thaw(self) -> None:
        """Pass on what has come meanwhile, and go on."""
        self._flows.set()

    def _run(self, work: object, *arguments: object) -> None:
        assert callable(work)
        self._threads.append(threading.Thread(target=work, args=arguments))
        self._threads[-1].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the door was closed
            while True:
                client, _ = self._door.accept()
                self._open.append(client)
                self._flows.wait()
                server = socket.create_connection(self._server)
                self._open.append(server)
                self._run(self._to_server, client, server)
                self._run(self._to_client, client, server)

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65_536):
                self._flows.wait()
                if next(self._requests) % (10 * self._cut_every) == 0:
                    break
                server.sendall(data)
        cut(client, server)

    def _to_client(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65_536):
                self._flows.wait()
                if is_commit(data) and next(self._commits) % self._cut_every == 0:
                    self.lost_answers += 1
                    break
                client.sendall(data)
        cut(client, server)


def is_commit(answer: bytes) -> bool:
    """Whether the server says that a transaction is over: one of its own, or statements at once."""
    several, ends = answer.count(b"C\0\0\0") > 1, answer.endswith(b"Z\0\0\0\x05I")
    return b"COMMIT\0" in answer or (several and ends)


def cut(*sockets: socket.socket) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
