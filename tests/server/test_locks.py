"""What one caller writes stops no other: the lock's timeout, the cap on messages, large answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorist import Memory, SqliteStore, connect
from memorist.config import Settings
from memorist.errors import ConfigError, StoreBusyError, TooLargeError
from memorist.server.auth import Guard
from memorist.server.http.app import Limits, build_app
from tests.server.test_mcp_http import call, failure
from tests.server.test_mcp_http import post as post_mcp
from tests.support.http_server import Served, serving
from tests.support.mcp_http import make_app, serving_here
from tests.unit.test_cli import start

LIMIT = "MEMORIST_MAX_MESSAGE_BYTES"
MOST = 10_000


@contextmanager
def a_server(memory: Memory) -> Iterator[httpx.Client]:
    """Ada's client of a server on this memory."""
    app = build_app(memory, Guard(memory.keys), Limits(requests_per_s=0))
    with serving(app) as url:
        server = Served(url, memory)
        with server.clients:
            yield server.client()


@contextmanager
def writing(store: SqliteStore) -> Iterator[None]:
    """Somebody in the same process who holds the lock and does not let go."""
    begun, let_go = threading.Event(), threading.Event()

    def work(_: Any) -> None:
        begun.set()
        let_go.wait(30)

    thread = threading.Thread(target=lambda: store._engine.write("", work))
    thread.start()
    assert begun.wait(30)
    try:
        yield
    finally:
        let_go.set()
        thread.join(30)


def test_a_lock_that_is_held_too_long_is_503_and_then_works_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "m.db", patience_seconds=0.2)
    with Memory(store, embedder=None, extraction=None) as memory, a_server(memory) as ada:
        memory.remember("I moved to Berlin", user="ada", session="s")
        with writing(store):
            with pytest.raises(StoreBusyError, match="patience_seconds"):
                memory.remember("I moved to Oslo", user="ada")
            answer = ada.post("/api/messages", json={"role": "user", "content": "Oslo"})
            assert answer.status_code == 503, answer.text
            assert answer.headers["Retry-After"] == "1"
            assert answer.json()["code"] == "store_busy"
            assert ada.get("/api/messages").json()["items"][0]["message"][
                "content"
            ]  # readers go on
            assert ada.get("/health").status_code == 200
        answer = ada.post("/api/messages", json={"role": "user", "content": "Oslo"})
        assert answer.status_code == 201


def test_a_message_that_is_too_long_is_refused_at_every_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory(
        SqliteStore(tmp_path / "m.db", max_message_bytes=MOST), embedder=None, extraction=None
    ) as memory:
        refuses_long_messages(memory)
    said = start(
        tmp_path, "remember", "-", "--create", "--db", "c.db", said=b"12345678901", **{LIMIT: "10"}
    )
    assert said.returncode == 1
    assert LIMIT in said.stderr.decode()
    assert "Traceback" not in said.stderr.decode()
    monkeypatch.setenv(LIMIT, "20")
    with Memory(tmp_path / "small.db", embedder=None, extraction=None) as small:
        small.remember("a" * 20, user="ada")
        with pytest.raises(TooLargeError, match="21 bytes"):
            small.remember("a" * 21, user="ada")
    for wrong in ("0", "-1", "ten", "9" * 100, "0" * 12 + "9" * 12):
        with pytest.raises(ConfigError, match=LIMIT):
            Settings.from_environment({LIMIT: wrong})


def refuses_long_messages(memory: Memory) -> None:
    long = "ab " * (MOST // 3 + 1)
    with pytest.raises(TooLargeError, match=LIMIT):
        memory.remember(long, user="ada")
    chat = memory.session(user="ada")
    reply = chat.stream(flush_s=0)
    reply.write("b" * 4_000)
    reply.write("b" * 4_000)
    with pytest.raises(TooLargeError, match=LIMIT):
        reply.write("b" * 4_000)
    assert len(str(chat.history()[0].content)) == 8_000  # what had come before stays
    with a_server(memory) as ada:
        for content in (long, ["é" * (MOST // 2 + 1)], {"deep": [long]}):
            answer = ada.post("/api/messages", json={"role": "user", "content": content})
            assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
            assert LIMIT in answer.json()["detail"]
        begun = {"role": "assistant", "content": "", "message_id": "m", "unfinished": True}
        assert ada.post("/api/messages", json=begun).status_code == 201
        for at, status in ((0, 200), (6_000, 413)):
            more = {"text": "a" * 6_000, "at": at}
            assert ada.post("/api/messages/m/append", json=more).status_code == status
        revised = ada.put("/api/messages/m", json={"role": "assistant", "content": long})
        assert revised.status_code == 413
        key = ada.headers["Authorization"].removeprefix("Bearer ")
        with (
            connect(str(ada.base_url), key=key) as remote,
            pytest.raises(TooLargeError, match=LIMIT),
        ):
            remote.remember(long, user="ada")
    with serving_here(make_app(memory)) as url:
        assert LIMIT in failure(post_mcp(url, call("remember", content=long)))


def test_an_answer_that_is_too_large_is_refused_before_anything_is_written(memory: Memory) -> None:
    with a_server(memory) as ada:

        def batch(asks: list[Any], puts: list[Any]) -> httpx.Response:
            return ada.post("/api/entries/batch", json={"asks": asks, "puts": puts})

        for number in range(3):
            value = {"text": "a" * 3_000_000}
            put = {"op": "put", "namespace": ["a"], "key": str(number), "value": value}
            assert batch([], [put]).status_code == 200
        late = {"op": "put", "namespace": ["a"], "key": "late", "value": {"n": 1}}
        refused = batch([{"op": "search", "prefix": ["a"]}], [late])
        assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
        answer = batch([{"op": "get", "namespace": ["a"], "key": "late"}], [])
        assert answer.json()["answers"] == [[]]
        answer = batch([{"op": "search", "prefix": ["a"], "limit": 2}], [late])
        assert [entry["key"] for entry in answer.json()["answers"][0]] == ["2", "1"]
