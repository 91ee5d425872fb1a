"""POST /api/chat without a model: what is stored, recalled, and would have been sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorist import Library, Memory
from memorist.config import Settings
from memorist.server.auth import Guard, Keys
from memorist.server.chat import ChatRuntime, ChatSettings, ChatToolbox
from memorist.server.http.app import build_app
from tests.support.http_server import serving

JSON = {"Accept": "application/json"}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        yield memory


@pytest.fixture
def client(memory: Memory) -> Iterator[httpx.Client]:
    chats = ChatRuntime(settings=ChatSettings(deadline_ms=None))  # however busy the machine is
    app = build_app(memory, Guard.local("default", "ada"), chats=chats)
    with serving(app) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


def say(client: httpx.Client, text: str, **fields: Any) -> dict[str, Any]:
    """The whole of a turn."""
    answer = client.post("/api/chat", json={"message": text, **fields}, headers=JSON)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def events(client: httpx.Client, text: str, **fields: Any) -> list[tuple[str, Any]]:
    """The events of a turn."""
    answer = client.post("/api/chat", json={"message": text, **fields})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    return read_events(answer.text)


def read_events(text: str) -> list[tuple[str, Any]]:
    told = []
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            fields = dict(line.split(": ", 1) for line in lines)
            told.append((fields["event"], json.loads(fields["data"])))
    return told


def test_without_a_model_it_says_so_and_shows_what_it_would_have_sent(
    client: httpx.Client, memory: Memory
) -> None:
    say(client, "My bike is in the cellar.")
    told = dict(events(client, "Where is my bike?"))
    assert list(told) == ["session", "memory", "context", "notice", "receipt", "done"]
    assert told["notice"]["code"] == "no_model"
    for name in ("MEMORIST_MODEL=", "MEMORIST_MODEL_URL=", "MEMORIST_MODEL_KEY"):
        assert name in told["notice"]["text"]
    [hit] = told["memory"]["hits"]
    assert hit["text"] == "My bike is in the cellar."
    assert hit["why"]["ranks"]
    sent = told["context"]["messages"]
    assert sent[0]["role"] == "system"
    assert sent[-1]["content"].endswith("Where is my bike?")
    assert told["receipt"] == told["context"]["receipt"]
    assert told["receipt"]["used"] == sum(part["tokens"] for part in told["receipt"]["parts"])
    assert told["done"]["message_id"] is None
    [first, second] = memory.history(user="ada")  # and nothing that no assistant said
    assert (first.role, second.role, second.text) == ("user", "user", "Where is my bike?")
    assert second.message_id == told["done"]["asked_id"]


def test_who_accepts_only_json_gets_one_answer(client: httpx.Client) -> None:
    told = say(client, "Where is my bike?")
    assert told["message"] is None
    assert told["notice"].startswith("No model is configured")
    assert told["context"]["messages"][-1]["content"] == "Where is my bike?"
    assert told["memory"]["hits"] == []


def test_a_session_goes_on_and_a_foreign_one_is_as_good_as_none(
    client: httpx.Client, memory: Memory
) -> None:
    first = say(client, "Hello")
    assert not first["confirmed"]
    again = say(client, "Hello again", session_id=first["session_id"])
    assert (again["session_id"], again["confirmed"]) == (first["session_id"], True)
    unnamed = say(client, "And again")
    assert (unnamed["session_id"], unnamed["confirmed"]) == (first["session_id"], False)

    tutor = say(client, "Hello tutor", agent_id="tutor", session_id=first["session_id"])
    assert tutor["session_id"] != first["session_id"]
    assert not tutor["confirmed"]
    bobs = memory.session(user="bob").id
    mine = say(client, "Is it Bob's?", session_id=bobs)
    assert (mine["session_id"], mine["confirmed"]) == (first["session_id"], False)
    memory.forget(user="ada", session=first["session_id"])
    fresh = say(client, "Gone?", session_id=first["session_id"])
    assert fresh["session_id"] != first["session_id"]
    assert memory.history(user="bob") == []


def test_a_key_says_whose_memory_it_is_and_an_admin_names_the_user(memory: Memory) -> None:
    keys = Keys(memory.keys)
    own = keys.create(tenant=memory.tenant_name, user="ada").text
    admin = keys.create(tenant=memory.tenant_name, user=None).text
    with serving(build_app(memory, Guard(memory.keys))) as url:

        def status(key: str, **fields: Any) -> int:
            headers = {**JSON, "Authorization": f"Bearer {key}"}
            body = {"message": "Hello", **fields}
            return httpx.post(f"{url}/api/chat", json=body, headers=headers).status_code

        assert status(own) == 200
        assert status(own, user="bob") == 403
        assert status(admin) == 422
        assert status(admin, user="bob") == 200
        assert status("wrong") == 401
    assert len(memory.history(user="ada")) == len(memory.history(user="bob")) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"message": ""},
        {"message": "  \n"},
        {"message": 7},
        {"message": "a\x00b"},
        {"message": "a\ud800b"},
        {"message": "a", "session": "b"},
    ],
)
def test_what_is_no_message_is_refused_and_nothing_is_stored(
    body: dict[str, Any], client: httpx.Client, memory: Memory
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.post("/api/chat", content=json.dumps(body), headers=headers)
    assert (answer.status_code, answer.json()["code"]) in [(422, "invalid"), (422, "message")]
    assert memory.history(user="ada") == []


def test_what_is_wrong_is_said_in_words_that_fit(client: httpx.Client) -> None:
    empty = client.post("/api/chat", json={"message": ""}).json()["detail"]
    assert empty == "message must say something"
    for body in list[object]([[], None, "Hello"]):
        detail = client.post("/api/chat", json=body).json()["detail"]
        assert detail in ("body: Input should be a JSON object", "body: Field required")


def test_a_message_sent_again_under_its_id_is_stored_once(
    client: httpx.Client, memory: Memory
) -> None:
    def sent(text: str) -> httpx.Response:
        body = {"message": text, "asked_id": "one"}
        return client.post("/api/chat", json=body, headers=JSON)

    assert sent("Hello").json()["asked_id"] == sent("Hello").json()["asked_id"]
    assert len(memory.history(user="ada")) == 1
    other = sent("Something else")
    assert (other.status_code, other.json()["code"]) == (409, "conflict")


def test_the_settings_that_name_no_model_open_none() -> None:
    assert ChatRuntime.of(Settings(url=":memory:")).model is None


def test_the_tools_of_a_chat_look_into_the_users_own_articles(memory: Memory) -> None:
    Library(memory, user="ada").add("Ada's returns", "You may return it within 30 days.")
    Library(memory).add("Shared returns", "You may return it within 14 days.")
    found = ChatToolbox(memory).for_user("ada").retrieve_context("How long may I return it?")
    assert [article["title"] for article in found] == ["Ada's returns"]
