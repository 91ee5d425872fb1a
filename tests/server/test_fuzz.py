"""Odd requests to a real server: each is answered, none with a failure of ours or another's words.

A failure names its seed and number: `make_shot(world, seed, number)` makes the same request again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorist import Memory
from memorist.server.auth import Keys
from tests.support.http_fuzz import World, operations_of
from tests.support.http_fuzz_run import Found, Fuzzed, fire, serving_elsewhere
from tests.support.http_odd import WORD

SECRET = "heliotrope-4711"  # the canary's; nobody else ever says it
MOST_GROWTH_MIB = 200
LISTS = ("messages", "sessions", "memories", "facts", "articles")


@dataclass(frozen=True, slots=True)
class Keyring:
    """Who asks: users of one tenant and of another, an admin, and the canary in its cage."""

    users: list[str]
    admin: str
    canary: str
    spare: list[str]


def make_keys(database: Path) -> Keyring:
    with Memory(database, embedder=None) as memory:
        keys = Keys(memory.keys)
        users = [keys.create(tenant="default", user=user) for user in ("fuzz", "alice ", "%")]
        users.append(keys.create(tenant="other", user="canary"))
        return Keyring(
            [one.text for one in users],
            keys.create(tenant="default", user=None).text,
            keys.create(tenant="default", user="cage").text,
            [keys.create(tenant="default", user="spare").record.id for _ in range(9)],
        )


def furnish(client: httpx.Client, word: str) -> dict[str, list[str]]:
    """One of everything, and more; the ids by the names of the path's parts."""
    ids: dict[str, list[str]] = {"session_id": ["s0", "s1"], "job_id": ["1", "2", "3"]}

    def add(kind: str, path: str, **body: Any) -> None:
        answer = client.post(path, json=body)
        assert answer.status_code == 201, answer.text
        told = answer.json()
        ids.setdefault(kind, []).append(told.get("id") or told["message_ids"][0])

    for number in range(6):
        about = f"{word} number {number}"
        add(
            "message_id",
            "/api/messages",
            role="user",
            content=f"I moved to Berlin, {about}.",
            message_id=f"m{number}",
            session=f"s{number % 2}",
            unfinished=number % 2 == 0,
        )
        add("memory_id", "/api/memories", text=f"Likes tea, {about}.")
        add("fact_id", "/api/facts", subject="Ada", predicate=f"likes {number}", object=about)
        add("article_id", "/api/articles", title=about, text=f"# Returns\n\nWithin {about} days.")
    client.put("/api/notes", json={"text": word, "base_version": 0}).raise_for_status()
    return ids


def kept(client: httpx.Client) -> list[Any]:
    """All that a user has."""
    answers = [client.get(f"/api/{name}", params={"limit": 500}) for name in LISTS]
    answers.append(client.get("/api/notes"))
    return [answer.raise_for_status().json() for answer in answers]


@contextmanager
def fuzzing(folder: Path) -> Iterator[tuple[Fuzzed, World, httpx.Client]]:
    """A furnished server, what there is to ask of it, and the canary's client."""
    keys = make_keys(folder / "fuzz.db")
    with serving_elsewhere(folder / "fuzz.db", folder / "log") as server:
        clients = [
            httpx.Client(
                base_url=server.url, headers={"Authorization": f"Bearer {key}"}, timeout=30
            )
            for key in (keys.users[0], keys.canary)
        ]
        with clients[0] as fuzzer, clients[1] as canary:
            ids = {**furnish(fuzzer, WORD), "key_id": keys.spare}
            furnish(canary, SECRET)
            document = fuzzer.get("/openapi.json").json()
            world = World(
                operations_of(document),
                document["components"]["schemas"],
                keys.users,
                keys.admin,
                ids,
                f"127.0.0.1:{server.port}",
            )
            yield server, world, canary


def fuzz(folder: Path, *, count: int, seed: int) -> Found:
    print(f"seed {seed}")
    with fuzzing(folder) as (server, world, canary):
        settle(canary)
        before = kept(canary)
        warm = fire(world, server.port, seed, range(min(1_000, count // 2)), [SECRET])
        small = server.memory_mib()
        found = fire(world, server.port, seed, range(min(1_000, count // 2), count), [SECRET])
        found.statuses += warm.statuses
        found.reached += warm.reached
        assert warm.wrong + found.wrong == [], "\n".join((warm.wrong + found.wrong)[:5])
        assert server.process.poll() is None, "the same process lives"
        assert httpx.get(f"{server.url}/health").json()["status"] == "ok"
        assert httpx.get(f"{server.url}/ready").status_code == 200
        assert server.memory_mib() - small < MOST_GROWTH_MIB
        assert kept(canary) == before, "what is another's is as it was"
    logged = server.log.read_text(errors="replace")
    assert WORD not in logged
    assert SECRET not in logged
    with Memory(folder / "fuzz.db", embedder=None) as memory:
        assert memory.store.check()["integrity"] == "ok"
    return found


def settle(client: httpx.Client) -> None:
    """Wait until what was said is thought about: that may add memories."""
    until = time.monotonic() + 30
    while client.get("/api/jobs", params={"dead": False}).json()["items"]:
        assert time.monotonic() < until
        time.sleep(0.05)


def check(folder: Path, count: int, seed: int) -> None:
    found = fuzz(folder, count=count, seed=seed)
    assert found.statuses.total() >= count
    assert found.statuses["200"] + found.statuses["201"] > count / 5  # many get to the memory
    assert len(found.reached) > 45  # operations that said yes


def test_odd_requests_are_answered_and_touch_nobody_else(tmp_path: Path) -> None:
    check(tmp_path, 20_000, seed=7)


@pytest.mark.prove
def test_a_hundred_thousand_odd_requests_are_answered(tmp_path: Path) -> None:
    check(tmp_path, 100_000, seed=int.from_bytes(os.urandom(4), "big"))


def test_an_answer_is_not_held_back(tmp_path: Path) -> None:
    """A socket that waits for the client's receipt would take 40 ms for each."""
    took = []
    with (
        serving_elsewhere(tmp_path / "prompt.db", tmp_path / "log") as server,
        httpx.Client(base_url=server.url) as client,
    ):
        for _ in range(20):
            began = time.perf_counter()
            assert client.get("/health").status_code == 200
            took.append(time.perf_counter() - began)
    assert min(took) < 0.03
