"""Twenty-eight users whose names look like one another, or like something to be interpreted.

What each says is theirs alone, by whichever route anybody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorist import Memory
from memorist.server.auth import Guard
from memorist.server.http.app import Limits, build_app
from tests.support.examples import LONG
from tests.support.hostile import HOSTILE_IDS
from tests.support.http_server import Served, serving

LISTS = "messages sessions memories facts notes notes/versions articles jobs audit".split()
Things = dict[str, str]


def word(number: int) -> str:
    """What only this user says."""
    return f"secretword{number:02}x"


def furnish(admin: httpx.Client, user: str, number: int) -> Things:
    """One of everything for a user; the ids by what they are of."""
    said, ids = f"The code is {word(number)}.", {}
    bodies: dict[str, dict[str, Any]] = {
        "messages": {"role": "user", "content": said, "session": f"s{number}"},
        "memories": {"text": said},
        "facts": {"subject": "Ada", "predicate": "says", "object": word(number)},
        "articles": {"title": word(number), "text": said, "uri": "same.md"},
    }
    for kind, body in bodies.items():
        answer = admin.post(f"/api/{kind}", json={**body, "user": user})
        assert answer.status_code == 201, answer.text
        ids[kind] = answer.json().get("id") or answer.json()["message_ids"][0]
    wrote = admin.put("/api/notes", json={"text": said, "base_version": 0, "user": user})
    assert wrote.status_code == 200, wrote.text
    return ids


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path: Path = tmp_path_factory.mktemp("hostile") / "memory.db"
    with (
        Memory(path, embedder=None, extraction=None) as memory,
        serving(build_app(memory, Guard(memory.keys), Limits(requests_per_s=0))) as url,
    ):
        server = Served(url, memory)
        with server.clients:
            yield server


@pytest.fixture(scope="module")
def admin(served: Served) -> httpx.Client:
    return served.client(None)


@pytest.fixture(scope="module")
def things(admin: httpx.Client) -> list[Things]:
    return [furnish(admin, user, number) for number, user in enumerate(HOSTILE_IDS)]


def words_in(text: str) -> set[int]:
    return {number for number in range(len(HOSTILE_IDS)) if word(number) in text}


def everything_of(admin: httpx.Client, user: str) -> str:
    """All that a user is shown, by every route that lists, finds or fills."""
    told = [admin.get(f"/api/{name}", params={"user": user}) for name in LISTS]
    asks: dict[str, dict[str, Any]] = {
        "recall": {"question": "What is the code?", "limit": 200, "deadline_ms": 5_000},
        "context": {"question": "What is the code?", "library": True, "deadline_ms": 5_000},
        "articles/retrieve": {"query": "the code", "top_k": 100, "deadline_ms": 5_000},
    }
    told += [admin.post(f"/api/{path}", json={**ask, "user": user}) for path, ask in asks.items()]
    assert {answer.status_code for answer in told} == {200}
    return "".join(answer.text for answer in told)


def test_there_are_twenty_eight_of_them() -> None:
    assert len(set(HOSTILE_IDS)) == len(HOSTILE_IDS)


def test_a_key_of_one_is_no_key_of_another(served: Served, things: list[Things]) -> None:
    for number, user in enumerate(HOSTILE_IDS):
        client = served.client(user)
        assert words_in(client.get("/api/messages").text) == {number}
        others = HOSTILE_IDS[number + 1 :] + HOSTILE_IDS[:number]
        for other in others if LONG else others[::9]:
            asked = client.get("/api/messages", params={"user": other})
            assert asked.status_code == 403, (user[:20], other[:20])


def test_nobody_sees_changes_or_forgets_what_another_said(
    admin: httpx.Client, things: list[Things]
) -> None:
    for number, user in enumerate(HOSTILE_IDS):
        for other in (number + 1, number + 9) if LONG else (number + 1,):
            for answer in touch(admin, user, things[other % len(things)]):
                request = answer.request
                assert answer.status_code in (404, 422), (request.method, request.url, answer.text)
                assert not words_in(answer.text)
    for number, user in enumerate(HOSTILE_IDS):
        # Each is shown all of theirs and no one else's, though all before were forgotten.
        assert words_in(everything_of(admin, user)) == {number}, user[:20]
        gone = admin.post("/api/forget", json={"user": user, "everything": True, "scrub": False})
        assert gone.status_code == 200, gone.text
        assert not words_in(everything_of(admin, user))


def touch(admin: httpx.Client, user: str, theirs: Things) -> Iterator[httpx.Response]:
    """Try to read, change and remove by another's ids."""
    message, memory, fact = (theirs[kind] for kind in ("messages", "memories", "facts"))
    me = {"user": user}
    for kind in ("messages", "memories", "facts", "articles"):
        yield admin.get(f"/api/{kind}/{theirs[kind]}", params=me)
    yield admin.get(f"/api/messages/{message}/revisions", params=me)
    yield admin.get(f"/api/messages/{message}/updates", params={**me, "timeout_s": 0.1})
    yield admin.put(f"/api/messages/{message}", json={**me, "role": "user", "content": "no"})
    yield admin.post(f"/api/messages/{message}/append", json={**me, "text": "no", "at": 0})
    yield admin.patch(f"/api/facts/{fact}", json={**me, "object": "no"})
    for kind, id_ in (("memories", memory), ("facts", fact)):
        yield admin.post(f"/api/{kind}/{id_}/retract", json=me)
        yield admin.post(f"/api/{kind}/{id_}/undo", json=me)
    for kind in ("memories", "articles"):
        yield admin.delete(f"/api/{kind}/{theirs[kind]}", params=me)
    for what in ({"message": message}, {"memory": memory}, {"memory": fact}):
        yield admin.post("/api/forget", json={**me, **what, "scrub": False})
