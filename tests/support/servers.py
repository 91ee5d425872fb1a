"""Real `memorist serve` processes, each with what it starts."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from contextlib import suppress
from urllib.parse import urlsplit

import httpx

from tests.support.forked import Forked
from tests.support.waiting import PATIENCE_S

_started: list[ServerProcess] = []


class ServerProcess:
    """One `memorist serve` of the user ada; `settings` are its MEMORIST_ variables."""

    def __init__(self, target: str, *options: str, port: int = 0, **settings: str) -> None:
        self._how = target, options, settings
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed when all are ended
        self._url = ""
        command = ("serve", "--port", port, "--create", "--db", target, "--user", "ada", *options)
        self.child = Forked(
            "memorist",
            *command,
            ready=("memorist.server.http.run", "memorist.store.postgres.store"),
            environment=_environment(settings),
            stderr=self._errors.fileno(),
            session=True,  # a group of its own, to be ended as one
        )
        _started.append(self)

    @property
    def url(self) -> str:
        """Where it listens, as it says itself."""
        while not self._url:
            line = self.child.stdout.readline().decode()
            assert line, f"the server ended with {self.child.wait()}: {self.said()}"
            if line.split()[:1] == ["page"]:
                self._url = line.split()[1]
        return self._url

    def until_up(self) -> ServerProcess:
        """Wait for its first answer."""
        limit = time.monotonic() + PATIENCE_S
        with httpx.Client(timeout=PATIENCE_S) as client:
            while time.monotonic() < limit and self.child.poll() is None:
                with suppress(httpx.TransportError):
                    assert client.get(f"{self.url}/health").status_code == 200
                    return self
                time.sleep(0.05)
        raise AssertionError(f"the server did not start: {self.said()}")

    def again(self) -> ServerProcess:
        """Another process at the same address."""
        target, options, settings = self._how
        return ServerProcess(target, *options, port=urlsplit(self.url).port or 0, **settings)

    def signal(self, number: signal.Signals, *, group: bool = False) -> None:
        """Send a signal to it, or to all it has started too, as a terminal does."""
        (os.killpg if group else os.kill)(self.child.pid, number)

    def ended(self) -> int:
        """How it ended, and everything it had started: nobody holds its output any more."""
        self.child.communicate(timeout=PATIENCE_S)
        return self.child.wait()

    def said(self) -> str:
        """What it wrote to stderr."""
        self._errors.seek(0)
        return self._errors.read()

    def kill(self) -> None:
        """`kill -9`, and whatever it had started with it."""
        with suppress(ProcessLookupError):
            self.signal(signal.SIGKILL, group=True)
        self.ended()


def end_servers() -> None:
    """Kill what a test left running."""
    while _started:
        server = _started.pop()
        server.kill()
        server._errors.close()


def _environment(settings: dict[str, str]) -> dict[str, str]:
    """Ours without what is set for Memorist, and with what is set here."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORIST_")}
    return kept | {f"MEMORIST_{name.upper()}": value for name, value in settings.items()}
