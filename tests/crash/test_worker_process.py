"""The worker process of a `memorist serve`: it ends with its server, and loses nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from memorist import Memory
from memorist.providers.minilm import StaticEmbedder
from tests.support.servers import ServerProcess, end_servers
from tests.support.waiting import until

PLAIN = ("--rate", "0")
PATIENCE_S = 300.0  # what a dead worker had in hand is free after a minute


@pytest.fixture(autouse=True)
def _no_server_is_left_behind() -> Iterator[None]:
    yield
    end_servers()


def workers_of(server: ServerProcess) -> list[int]:
    """The ids of its worker processes: those beside the servers that do not listen."""
    columns = [part for name in ("pid", "ppid", "ni", "args") for part in ("-o", f"{name}=")]
    table = subprocess.run(
        ["ps", "-A", "-ww", *columns], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 3) for line in table.stdout.splitlines()]
    nice = os.nice(0)
    return [
        int(pid)
        for pid, parent, level, command in rows
        if int(parent) == server.child.pid and "spawn_main" in command and int(level) > nice
    ]


def idle(server: ServerProcess) -> bool:
    return not any(httpx.get(f"{server.url}/api/waiting").json()["waiting"].values())


def say(server: ServerProcess, text: str) -> None:
    said = {"role": "user", "content": text, "session": "s"}
    assert httpx.post(f"{server.url}/api/messages", json=said, timeout=60).status_code == 201


def metric(server: ServerProcess, name: str) -> float:
    lines = httpx.get(f"{server.url}/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def test_a_worker_that_cannot_work_says_why_in_a_line(tmp_path: Path) -> None:
    server = ServerProcess(str(tmp_path / "memory.db"), model="nobodys", log_level="error")
    assert server.ended() == 1
    assert "MEMORIST_MODEL: a model is" in server.said()
    assert "Traceback" not in server.said()


SEVERAL = pytest.param(("--workers", "2"), id="several", marks=pytest.mark.prove)  # it takes long


@pytest.mark.parametrize("options", [pytest.param((), id="one"), SEVERAL])
def test_a_worker_that_is_killed_is_started_again_and_ends_with_its_server(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = str(tmp_path / "memory.db")
    server = ServerProcess(path, *PLAIN, *options, embedder="none").until_up()
    say(server, "My friend Bob plays chess in Bonn.")
    until(lambda: idle(server))
    until(lambda: metric(server, "memorist_jobs_total") > 0)
    counted = metric(server, "memorist_jobs_total")
    [worker] = workers_of(server)
    os.kill(worker, signal.SIGKILL)
    until(lambda: metric(server, "memorist_worker_deaths") == 1)
    until(lambda: workers_of(server) not in ([], [worker]))
    until(lambda: httpx.get(f"{server.url}/health").json()["worker"] == "running")
    say(server, "My friend Eve plays the flute in Ulm.")
    until(lambda: idle(server))
    until(lambda: metric(server, "memorist_jobs_total") > counted)  # of both workers
    with Memory(path, embedder=None, extraction=None) as memory:
        assert len(memory.memories.list(user="ada")) == 2
    if options:  # a terminal's: each of them gets it
        server.signal(signal.SIGTERM)
    else:
        server.signal(signal.SIGKILL)
    server.ended()  # the worker, too: nobody holds its output any more
    assert "Traceback" not in server.said()


def test_a_service_manager_that_ends_the_whole_group_reads_no_warning(tmp_path: Path) -> None:
    server = ServerProcess(str(tmp_path / "memory.db"), *PLAIN, embedder="none").until_up()
    until(lambda: workers_of(server))
    server.signal(signal.SIGTERM, group=True)
    server.ended()
    assert "the worker ended" not in server.said()


def test_uses_are_noted_and_an_event_tells_what_the_worker_did(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    server = ServerProcess(path, *PLAIN, embedder="none").until_up()
    place = httpx.get(f"{server.url}/api/events", headers={"Accept": "application/json"}).json()
    say(server, "My friend Bob plays chess in Bonn.")
    until(lambda: idle(server))
    after = {"after": place["place"]}
    events = httpx.get(
        f"{server.url}/api/events", params=after, headers={"Accept": "application/json"}
    ).json()["items"]
    assert ("memory", "add") in [(event["kind"], event["change"]) for event in events]
    asked = {"question": "who plays chess?", "deadline_ms": 10_000}
    assert httpx.post(f"{server.url}/api/recall", json=asked, timeout=60).json()["hits"]
    until(lambda: httpx.get(f"{server.url}/api/memories").json()["items"][0]["uses"] == 1)


@pytest.mark.prove
def test_a_worker_killed_again_and_again_derives_everything_once(target: str) -> None:
    chance = random.Random(20_261_117)
    server = ServerProcess(target, *PLAIN, embedder="static").until_up()
    said = [f"My friend Bob{number} plays chess in Bonn." for number in range(60)]
    for number, text in enumerate(said):
        say(server, text)
        if number % 12 == 11:
            time.sleep(chance.uniform(0, 0.5))
            for worker in workers_of(server):
                os.kill(worker, signal.SIGKILL)
            until(lambda: workers_of(server), PATIENCE_S)
    until(lambda: idle(server), PATIENCE_S)
    server.signal(signal.SIGTERM)
    assert server.ended() == -signal.SIGTERM
    assert "Traceback" not in server.said()
    with Memory(target, embedder=None, extraction=None) as memory:
        assert memory.jobs.dead() == 0
        texts = {it.message_id: it.text for it in memory.history(user="ada")}
        made = [texts[id_] for it in memory.memories.list(user="ada") for id_ in it.sources]
        assert Counter(texts.values()) == Counter(said)
        assert max(Counter(made).values()) == 1
        assert (
            memory.store.unembedded(memory.scope(user="ada"), StaticEmbedder().name, limit=9) == {}
        )
