"""A server is killed with `kill -9` while an answer streams: what was heard is in the store.

`python -m tests.server.test_chat_kill TARGET MODEL_URL` is that server.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorist import Memory
from memorist.config import Settings
from memorist.server.auth import Guard
from memorist.server.chat import ChatRuntime
from memorist.server.http.app import build_app
from memorist.server.http.run import Address, serve
from tests.server.test_chat import JSON, read_events, say
from tests.support.forked import Forked
from tests.support.http_server import serving
from tests.support.model_server import ModelServer, quote_messages

COUNT = {"message": "Count", "asked_id": "count"}
HERE = "tests.server.test_chat_kill"  # __name__, unless this is that server
ANSWER = " ".join(f"word{number}" for number in range(60))


def main(target: str, model_url: str) -> None:
    """Serve until killed; the first line says where."""
    here = settings(target, model_url)
    serve(here, Address("127.0.0.1", 0), ready=lambda at: print(at.url, flush=True))


def settings(target: str, model_url: str) -> Settings:
    return Settings(
        url=target, user="ada", embedder="none", auth="off", model="stub", model_url=model_url
    )


def go_on(memory: Memory, model: ModelServer) -> tuple[str, str]:
    """What another server on the same store answers to the next message, and to the one before."""
    chats = ChatRuntime.of(settings("", model.url))
    app = build_app(memory, Guard.local(memory.tenant_name, "ada"), chats=chats)
    with serving(app) as url, httpx.Client(base_url=url, timeout=60) as client:
        told = str(say(client, "Go on")["message"])
        again = client.post("/api/chat", json=COUNT, headers=JSON)
        return told, again.json()["message"]


@contextmanager
def running(target: str, model_url: str) -> Iterator[tuple[Forked, httpx.Client]]:
    child = Forked(HERE, target, model_url, ready=(HERE, "langchain.agents", "langchain_openai"))
    try:
        url = child.stdout.readline().decode().strip()
        with httpx.Client(base_url=url, timeout=60) as client:
            until_it_answers(client)
            yield child, client
    finally:
        child.kill()
        child.communicate()


def until_it_answers(client: httpx.Client) -> None:
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        with suppress(httpx.ConnectError):
            assert client.get("/health").status_code == 200
            return
        time.sleep(0.05)
    raise AssertionError("the server did not start")


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "memory.db")
    return str(request.getfixturevalue("postgres_with_tables"))


def reply(body: dict[str, Any]) -> Any:
    """A long answer to whoever listens to it; what is extracted is quoted."""
    return ANSWER if body.get("stream") else quote_messages(body)


def listen(child: Forked, client: httpx.Client, heard: list[str]) -> None:
    with client.stream("POST", "/api/chat", json=COUNT) as answer:
        for piece in answer.iter_text():
            heard.append(piece)
            if "word7" in "".join(heard):
                child.kill()


def heard_until_killed(child: Forked, client: httpx.Client) -> str:
    """Listen for a while, kill the server, and say what was heard."""
    heard: list[str] = []
    with pytest.raises(httpx.RemoteProtocolError):
        listen(child, client, heard)
    text = "".join(heard)
    told = read_events(text.rpartition("\n\n")[0])
    return "".join(data["text"] for name, data in told if name == "token")


def test_a_server_killed_in_the_midst_of_an_answer_leaves_what_was_heard(target: str) -> None:
    with ModelServer(reply, mode="slow", byte_every_s=0.0005) as model:
        with running(target, model.url) as (child, client):
            heard = heard_until_killed(child, client)
        with Memory(target, embedder=None, extraction=None) as memory:
            asked, part = memory.history(user="ada")
            assert (asked.role, asked.text) == ("user", "Count")
            assert part.role == "assistant"
            assert part.unfinished
            assert part.text.startswith("word0 word1 ")
            assert ANSWER.startswith(part.text)
            # What is in the air for less than the tenth of a second between two flushes may go.
            assert len(heard) - len(part.text) < 100, (heard, part.text)
            model.mode = "ok"
            assert go_on(memory, model) == (ANSWER, ANSWER)
            texts = [(it.text, it.unfinished) for it in memory.history(user="ada")]
        *_, said, again = [[one["content"] for one in it.body["messages"]] for it in model.requests]
    assert said[-3:] == ["Count", part.text, "Go on"]
    assert again[-1].endswith("Count")
    assert texts == [("Count", False), (ANSWER, False), ("Go on", False), (ANSWER, False)]


if __name__ == "__main__":
    main(*sys.argv[1:])
