"""How a `memorist serve` ends: quietly when told to, and with what it acknowledged when killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from memorist import Memory
from memorist.providers.minilm import MiniLM, StaticEmbedder
from tests.support.servers import ServerProcess, end_servers
from tests.support.waiting import until

ALL = "".join(f"word{number} " for number in range(100_000))


@pytest.fixture(autouse=True)
def _no_server_is_left_behind() -> Iterator[None]:
    yield
    end_servers()


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("served") / "memory.db")


def test_ctrl_c_ends_a_server_quietly_and_no_second_one_takes_its_port(path: str) -> None:
    server = ServerProcess(path, embedder="none").until_up()
    second = server.again()
    assert second.ended() == 1
    port = urlsplit(server.url).port
    assert second.said().startswith(f"ConfigError: cannot listen on http://127.0.0.1:{port} ")
    assert "Choose another with --port" in second.said()
    begun = {"role": "assistant", "content": "It is", "unfinished": True}
    [id_] = httpx.post(f"{server.url}/api/messages", json=begun).json()["message_ids"]
    with (
        httpx.stream("GET", f"{server.url}/api/messages/{id_}/updates") as reading,
        httpx.stream("GET", f"{server.url}/api/events") as following,
    ):
        lines, events = reading.iter_lines(), following.iter_lines()
        assert next(lines).startswith("event: ")
        assert next(events).startswith(":")
        server.signal(signal.SIGINT, group=True)
        assert "event: timeout" in list(lines)  # who reads along is not left hanging
        assert list(events)[-1] == ""
    # As shells count: by this signal; or 0, where whoever runs the tests has it ignored.
    assert server.ended() in (130, 0)
    assert server.said() == ""


@pytest.mark.parametrize("options", [(), ("--workers", "2")], ids=["one", "several"])
def test_ctrl_c_ends_a_server_as_quietly_while_its_processes_begin(
    path: str, options: tuple[str, ...]
) -> None:
    server = ServerProcess(path, *options, embedder="none")
    children = Path(f"/proc/{server.child.pid}/task")

    def begun() -> bool:
        listed = (thread / "children" for thread in children.iterdir())
        return len([pid for each in listed for pid in each.read_text().split()]) > len(options)

    until(begun)
    server.signal(signal.SIGINT, group=True)
    assert server.ended() in (130, 0)
    assert server.said() == ""


def test_ctrl_c_ends_the_command_as_quietly_while_it_is_loaded() -> None:
    code = (
        "import os, signal, sys, threading\n"
        "class Interrupted:\n"  # the moment at which the command line itself is imported
        "    def find_spec(self, name, *_):\n"
        "        if name == 'memorist.cli.main': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from memorist.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code, "serve"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_page_is_opened_in_the_browser_of_the_user(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = tmp_path / "browser"
    part, opened = tmp_path / "part", tmp_path / "opened"
    browser.write_text(f"#!/bin/sh\necho $1 > {part}\nmv {part} {opened}\n")
    browser.chmod(0o700)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    server = ServerProcess(path, "--open", embedder="none").until_up()
    until(opened.exists)
    assert opened.read_text().strip() == server.url


def shares(server: ServerProcess) -> dict[int, int]:
    """How many of 16 connections each of its processes serves that serves any."""
    port = urlsplit(server.url).port or 0
    with ExitStack() as stack:
        for _ in range(16):
            wire = stack.enter_context(closing(HTTPConnection("127.0.0.1", port, timeout=60)))
            wire.request("GET", "/health")
            assert wire.getresponse().read()
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        open_ = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{port:04X}")}
        listed = subprocess.run(["pgrep", "-P", str(server.child.pid)], capture_output=True)
        held = {pid: open_files(pid) & open_ for pid in map(int, listed.stdout.split())}
        # One of them is the socket that it listens on.
        return {pid: len(sockets) - 1 for pid, sockets in held.items() if len(sockets) > 1}


def open_files(pid: int) -> set[str]:
    """What a process has open; some may be closed meanwhile."""
    names: set[str] = set()
    with suppress(FileNotFoundError):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                names.add(os.readlink(file))
    return names


def test_two_processes_serve_together_divide_connections_and_replace_one_that_is_killed(
    path: str,
) -> None:
    server = ServerProcess(path, "--workers", "2", "--rate", "0", embedder="none")
    if sys.platform == "linux":  # others do not divide connections
        first = shares(server)  # at once: all serve when the server says where it is
        assert len(first) == 2
        assert sum(first.values()) == 16
    with httpx.Client(base_url=server.until_up().url, timeout=60) as client:

        def write(number: int) -> int:
            said = {"role": "user", "content": f"number {number}"}
            return client.post("/api/messages", json=said).status_code

        with ThreadPoolExecutor(8) as threads:
            assert set(threads.map(write, range(80))) == {201}
        stored = client.get("/api/messages", params={"limit": 500}).json()["items"]
        assert len(stored) == 80
    if sys.platform == "linux":
        doomed, other = first
        os.kill(doomed, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{doomed}").exists())
        until(lambda: len(shares(server)) == 2)
        assert other in shares(server)
    second = server.again()
    assert second.ended() == 1
    assert second.said().startswith("ConfigError: cannot listen on ")
    server.signal(signal.SIGTERM)
    assert server.ended() == 0
    assert server.said() == ""


def test_what_a_killed_server_acknowledged_of_a_growing_message_is_there(target: str) -> None:
    server = ServerProcess(target, "--rate", "0", embedder="none").until_up()
    said = {"role": "assistant", "content": "", "unfinished": True, "session": "crash"}
    begun = httpx.post(f"{server.url}/api/messages", json=said)
    assert begun.status_code == 201
    message = f"/api/messages/{begun.json()['message_ids'][0]}"
    acknowledged: list[int] = []
    with ThreadPoolExecutor(1) as thread:
        growing = thread.submit(
            grow_until_killed, f"{server.url}{message}/append", acknowledged.append
        )
        until(lambda: len(acknowledged) > 20)
        server.kill()
        growing.result()
    server = server.again().until_up()
    with httpx.Client(base_url=server.url, timeout=60) as client:
        held = client.get(message).json()["message"]
        assert held["unfinished"]
        assert ALL.startswith(held["content"])
        assert len(held["content"]) >= acknowledged[-1]
        goes_on(client, message, held["content"])


def grow_until_killed(address: str, note: Callable[[int], None]) -> None:
    """Append word by word until nobody answers; note how many characters were acknowledged."""
    at = 0
    with httpx.Client(timeout=60) as client:
        while True:
            text = ALL[at : ALL.index(" ", at) + 1]
            try:
                answer = client.post(address, json={"text": text, "at": at})
            except httpx.TransportError:
                return
            assert answer.status_code == 200, answer.text
            at += len(text)
            assert answer.json()["chars"] == at
            note(at)


def goes_on(client: httpx.Client, message: str, held: str) -> None:
    """Who was writing goes on where it was, and finishes; after that it is found by its words."""
    more = {"text": "and finally the end", "at": len(held), "finish": True}
    assert client.post(f"{message}/append", json=more).json()["unfinished"] is False
    again = client.post(f"{message}/append", json={"text": "more", "at": len(held)})
    assert again.status_code == 409
    assert client.get(message).json()["message"]["content"] == f"{held}and finally the end"
    asked = {"question": "finally the end", "deadline_ms": 10_000}
    hits = client.post("/api/recall", json=asked).json()["hits"]
    assert hits[0]["id"] == message.rpartition("/")[2]


@pytest.mark.prove
def test_servers_killed_over_a_change_of_embedder_leave_every_vector(target: str) -> None:
    said = [f"My friend number{number} plays chess in Bonn." for number in range(600)]
    with Memory(target, embedder=StaticEmbedder(), extraction=None) as memory:
        memory.remember(said, user="ada", session="s")
        memory.jobs.catch_up(300)
    chance = random.Random(20_261_116)
    server, waited = ServerProcess(target, "--rate", "0", embedder="minilm"), 0
    for _ in range(8):
        server.until_up()
        time.sleep(chance.uniform(0, 1.5))
        waited += sum(httpx.get(f"{server.url}/api/waiting").json()["waiting"].values())
        server.kill()
        server = server.again()
    with httpx.Client(base_url=server.until_up().url, timeout=60) as client:
        for _ in range(180):  # what the dead had in hand is free after a minute
            waiting = client.get("/api/waiting").json()["waiting"]
            if not any(waiting.values()):
                break
            time.sleep(1)
        assert not any(waiting.values()), waiting
    server.kill()
    assert waited, "all was done before the first kill"
    with Memory(target, extraction=None) as memory:
        name = MiniLM.name
        assert memory.store.unembedded(memory.scope(user="ada"), name, limit=9) == {}
        assert memory.jobs.dead() == 0
        assert [it.text for it in memory.history(user="ada", session="s", last=None)] == said
