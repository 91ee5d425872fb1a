"""Load for servers on one store: writers who retry anywhere, and readers who check what they see.

A writer's session is named after it, and its append `k` is `batch(name, k)` of the evidence. A
writer goes on to the next append when some server has acknowledged this one.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import httpx

from memorist.records.message import Message
from tests.crash.evidence import batch, batch_ids

GIVE_UP_S = 3.0  # waiting for a server, and ask another
AT_ONCE_S = 0.005  # as who gives up on a request that is under way
IMPATIENT, TWICE, LOOKS = 0.08, 0.15, 0.05  # how often a writer is, asks again, looks for it


@dataclass(frozen=True)
class Load:
    """Writers and readers at these servers, for as long as the block lasts."""

    urls: Sequence[str]
    seed: int
    writers: int = 6
    sessions: int = 3  # of each writer
    readers: int = 2
    acked: dict[str, int] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)  # what servers answered, by address
    over: threading.Event = field(default_factory=threading.Event)
    _jobs: list[Future[None]] = field(default_factory=list)

    def __enter__(self) -> Load:
        threads = ThreadPoolExecutor(self.writers + self.readers)
        clients = [Writer(self, number) for number in range(self.writers)]
        for client in clients:
            self.acked.update(dict.fromkeys(client.names, 0))
        readers = [Reader(self, self.writers + number) for number in range(self.readers)]
        self._jobs.extend(threads.submit(client.run) for client in [*clients, *readers])
        threads.shutdown(wait=False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let all come to an end; what one of them found wrong is raised here."""
        self.over.set()
        for found in [job.exception() for job in self._jobs]:
            if found is not None:
                raise found from error

    def go_on(self, seconds: float) -> None:
        """Let it run for a while, unless somebody has found something wrong."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit and not any(job.done() for job in self._jobs):
            time.sleep(0.05)

    def until_all_write(self, times: int = 10) -> None:
        """Let it run until every server has acknowledged so many more writes."""
        wanted = {f"{url} 201": self.told[f"{url} 201"] + times for url in self.urls}
        for _ in range(600):
            if all(self.told[one] >= count for one, count in wanted.items()):
                return
            self.go_on(0.1)
        raise AssertionError(f"of {wanted} there is {self.told}")


class Client:
    """One who asks now this server, now that."""

    def __init__(self, load: Load, number: int) -> None:
        self.load = load
        self.chance = random.Random(f"{load.seed} {number}")
        self._turns = itertools.cycle(load.urls)
        for _ in range(number):  # not all at the same one
            next(self._turns)

    def run(self) -> None:
        """Work until the load is over."""
        with httpx.Client() as http:
            while not self.load.over.is_set():
                self.work(http)

    def work(self, http: httpx.Client) -> None:
        """Do what this one does, once."""
        raise NotImplementedError

    def ask(self, http: httpx.Client, method: str, path: str, **sent: Any) -> Any:
        """Ask one server after another until one answers; only 503 may come between."""
        timeout = AT_ONCE_S if sent.pop("impatient", False) else GIVE_UP_S
        while True:
            url = next(self._turns)
            try:
                answer = http.request(method, f"{url}{path}", timeout=timeout, **sent)
            except httpx.TransportError:  # killed, stopped, or slower than we like
                self.load.told[f"{url} nothing"] += 1
                timeout = GIVE_UP_S
                time.sleep(0.01)
                continue
            self.load.told[f"{url} {answer.status_code}"] += 1
            if answer.status_code != 503:
                assert answer.is_success, f"{answer.status_code} {answer.text}"
                return answer.json()
            self.load.over.wait(float(answer.headers["Retry-After"]))


class Writer(Client):
    """Writes to sessions of its own, in order."""

    def __init__(self, load: Load, number: int) -> None:
        super().__init__(load, number)
        self.names = [f"w{number}s{session}" for session in range(load.sessions)]
        self._next = itertools.cycle(self.names)

    def work(self, http: httpx.Client) -> None:
        """Append once more, and now and then send the same again, or look for it."""
        name = next(self._next)
        number = self.load.acked[name]
        sent = as_request(name, number)
        stored = self.ask(http, "POST", **sent, impatient=self.chance.random() < IMPATIENT)
        self.load.acked[name] += 1
        if self.chance.random() < TWICE:
            again = self.ask(http, "POST", **sent)
            for what in ("session_id", "message_ids"):
                assert again[what] == stored[what], f"{name} {number}: {stored}, then {again}"
        if self.chance.random() < LOOKS:
            self.look_for(http, f"{name}n{number}p0")

    def look_for(self, http: httpx.Client, word: str) -> None:
        """What was acknowledged is recalled at once, by whichever server."""
        question = {"question": word, "limit": 3, "deadline_ms": 10_000}
        found = self.ask(http, "POST", "/api/recall", json=question)
        assert any(hit["text"].startswith(word) for hit in found["hits"]), (word, found)


class Reader(Client):
    """Reads sessions back page by page, each page from another server."""

    def work(self, http: httpx.Client) -> None:
        """Read a whole session: it holds a writer's first appends, none missing or twice."""
        name = self.chance.choice([name for name in self.load.acked if not is_active(name)])
        at_least, seen, cursor = self.load.acked[name], list[str](), None
        while True:
            asked = {"session": name, "limit": 20, **({"cursor": cursor} if cursor else {})}
            page = self.ask(http, "GET", "/api/messages", params=asked)
            seen = [*(word_of(item["message"]["content"]) for item in page["items"]), *seen]
            cursor = page["next"]
            if cursor is None:
                break
        at_most = self.load.acked[name] + 1
        wholes = [batch_ids(name, count) for count in range(at_least, at_most + 1)]
        assert seen in wholes, f"{name}: {at_least} to {at_most} appends, read {seen[-5:]}"


def as_request(name: str, number: int) -> dict[str, Any]:
    """A writer's append: sent again, its messages are known by their ids."""
    said = [_said(message) for message in batch(name, number)]
    where: dict[str, Any] = {"agent": name} if is_active(name) else {"session": name}
    body = {**where, **said[0]} if len(said) == 1 else {**where, "messages": said}
    path = "/api/messages" if len(said) == 1 else "/api/messages/batch"
    return {"path": path, "json": body}


def is_active(name: str) -> bool:
    """Whether the session has no name: it is whichever is active with an agent of this name."""
    return name.endswith("s0")


def word_of(content: object) -> str:
    """The id that a content carries."""
    return str(content).partition(" ")[0]


def _said(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": message.content, "message_id": message.message_id}
