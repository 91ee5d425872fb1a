"""What is refused, and how: a table over every operation."""

from __future__ import annotations

import http.server
import json
import re
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorist import Memory, Message
from memorist.errors import MemoristError, code_of
from memorist.server.auth import Guard
from memorist.server.http.app import Limits, build_app
from memorist.server.http.middleware import FILES as TAKE_FILES
from memorist.server.http.middleware import MAX_FILE_BYTES
from tests.server.api import ROUTES
from tests.server.test_chat_model import answers, talking
from tests.support.http_server import Served, serving
from tests.support.model_server import ModelServer

OPERATIONS = [
    (method, re.sub(r"\{\w+\}", "1", route.path), route)
    for route in ROUTES
    for method in route.methods or ()
]
WITH_BODY = [
    (method, path)
    for method, path, route in OPERATIONS
    if route.body_field or "requestBody" in (route.openapi_extra or {})
]
JSON = {"Content-Type": "application/json"}
TOO_MANY = 8 * 1024 * 1024 + 1
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def code(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-request-id"] == answer.json()["request_id"]
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.", "", "a b"]
)
def test_a_forged_host_is_refused_everywhere(served: Served, host: str) -> None:
    client = served.client()
    for method, path, _ in OPERATIONS:
        assert code(client.request(method, path, headers={"Host": host})) == (421, "wrong_host"), (
            path
        )


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://localhost.evil.example"]
)
def test_a_forged_origin_is_refused_everywhere(served: Served, origin: str) -> None:
    client = served.client()
    for method, path, _ in OPERATIONS:
        answer = client.request(method, path, headers={"Origin": origin})
        assert code(answer) == (403, "forbidden"), path
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""],
)
def test_a_body_that_is_not_json_is_refused_everywhere(served: Served, kind: str) -> None:
    client = served.client()
    for method, path in WITH_BODY:
        answer = client.request(method, path, content=b"{}", headers={"Content-Type": kind})
        wanted = "not_a_file" if path in TAKE_FILES else "not_json"
        assert code(answer) == (415, wanted), path


def test_a_body_of_more_than_8_mib_is_refused_everywhere_before_it_is_sent(served: Served) -> None:
    address, key = httpx.URL(served.url), served.key()
    for method, path in WITH_BODY:
        most = MAX_FILE_BYTES + 1 if path in TAKE_FILES else TOO_MANY
        with socket.create_connection((address.host, address.port or 0), 10) as wire:
            wire.sendall(
                f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {most}\r\n\r\n".encode()
            )
            assert wire.recv(20).startswith(b"HTTP/1.1 413 "), path


SOURCES = ["/etc/passwd", "file:///etc/passwd", "../secret.png", "http://127.0.0.1/a.png", "", "a"]
SOURCES += [
    "https://evil.example/a.png",
    "data:text/html,x",
    "//evil.example/a",
    "DATA:image/png,x",
]


def shown_as(source: str) -> list[dict[str, Any]]:
    """The ways in which models' APIs and LangChain name what is elsewhere."""
    image = {"type": "image_url", "image_url": {"url": source}}
    return [
        {"type": "image", "url": source},
        {"type": "image", "source": {"type": "url", "url": source}},
        {"type": "image", "source_type": "id", "id": source},
        {"type": "image", "path": source},
        {"type": "image", "data": source},
        {"type": "input_image", "image_url": source},
        {"type": "image", "mime_type": "image/png", "urls": [source]},
        {"type": "text", "text": "Look", "image_url": {"url": source}},
        {"image": {"format": "png", "source": {"s3Location": {"uri": source}}}},
        {"type": "tool_result", "tool_use_id": "1", "content": [image]},
        {"type": "tool_result", "tool_use_id": "1", "content": [[{"type": "x", "y": [image]}]]},
        {"type": "document", "source": {"type": "content", "content": [image]}},
        {
            "type": "computer_call_output",
            "output": {"type": "computer_screenshot", "image_url": source},
        },
    ]


FILES = ["/etc/passwd", "file:///etc/passwd", "http://169.254.169.254/x.pdf", "", "file-123"]


@pytest.mark.parametrize("source", FILES)
def test_files_and_sounds_by_path_or_address_are_refused(served: Served, source: str) -> None:
    client = served.client()
    for part in (
        {"type": "file", "file": {"file_data": source}},
        {"type": "file", "file_id": source},
        {"type": "file", "file": {"file_id": source}},
        {"type": "input_file", "file_url": source},
        {"type": "document", "source": {"type": "url", "url": source}},
        {"type": "audio", "url": source},
        {"type": "video_url", "video_url": {"url": source}},
        {"file_data": {"mime_type": "application/pdf", "file_uri": source}},
        {"type": "text-plain", "url": source},
        {"type": "media", "file_uri": source},
    ):
        said = {"role": "user", "content": [part]}
        assert code(client.post("/api/messages", json=said)) == (422, "image"), part


BYTES = "iVBORw0KGgo="
TAKEN: list[Any] = [
    [{"type": "image", "base64": BYTES, "mime_type": "image/png"}],
    [{"type": "image", "source_type": "base64", "data": BYTES, "mime_type": "image/png"}],
    [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": BYTES},
            "cache_control": {"type": "ephemeral", "ttl": "5m"},
        }
    ],
    [{"type": "input_image", "image_url": PIXEL, "detail": "low"}],
    [
        {
            "type": "file",
            "file": {"file_data": f"data:application/pdf;base64,{BYTES}", "filename": "http.pdf"},
        }
    ],
    [{"type": "input_audio", "input_audio": {"data": BYTES, "format": "wav"}}],
    [{"inline_data": {"mime_type": "image/png", "data": BYTES}}],
    [
        {
            "type": "document",
            "title": "A",
            "source": {"type": "text", "media_type": "text/plain", "data": "see http://a.example"},
        }
    ],
    [{"type": "text", "text": "http://a.example", "annotations": [{"url": "http://a.example"}]}],
    [{"type": "tool_use", "id": "1", "name": "fetch", "input": {"image_url": "http://a.example"}}],
    [{"type": "tool_result", "tool_use_id": "1", "content": "http://a.example/x.png"}],
    [{"type": "web_search_result", "url": "http://a.example", "title": "A"}],
    ["http://a.example/x.png"],
    {"url": "http://a.example", "file": "a.txt", "parts": [{"source": "web"}]},
]


@pytest.mark.parametrize("content", TAKEN)
def test_bytes_words_and_what_tools_say_are_taken(served: Served, content: Any) -> None:
    client = served.client(user="painter")
    told = client.post("/api/messages", json={"role": "user", "content": content})
    assert told.status_code == 201, told.text
    [id_] = told.json()["message_ids"]
    assert client.get(f"/api/messages/{id_}").json()["message"]["content"] == content


@pytest.mark.parametrize("source", SOURCES)
def test_images_by_path_or_address_are_refused(served: Served, source: str) -> None:
    client = served.client()
    id_ = client.post("/api/messages", json={"role": "user", "content": "Hi"}).json()[
        "message_ids"
    ][0]
    parts: list[Any] = [{"type": "image_url", "image_url": {"url": source}}]
    for said in (
        {"role": "user", "content": "Look", "images": [source]},
        {"role": "user", "content": parts},
        {"role": "user", "content": [{"type": "image_url", "image_url": source}]},
        {"role": "user", "content": [{"type": "text", "text": "Look"}, *parts]},
        {"role": "user", "content": parts[0]},
        *({"role": "user", "content": [part]} for part in shown_as(source)),
        {"role": "user", "content": [{"type": "image", "url": source}]},
        {
            "role": "user",
            "content": "Look",
            "structured_data": {"langchain": json.dumps({"content": shown_as(source)})},
        },
    ):
        assert code(client.post("/api/messages", json=said)) == (422, "image")
        assert code(client.post("/api/messages/batch", json={"messages": [said]})) == (422, "image")
        assert code(client.put(f"/api/messages/{id_}", json=said)) == (422, "image")
    asked = client.post("/api/context", json={"question": "What is it?", "images": [source]})
    assert code(asked) == (422, "image")


def test_images_by_bytes_are_taken(served: Served) -> None:
    client = served.client(user="painter")
    part = {"type": "image_url", "image_url": {"url": PIXEL}}
    for said in ({"content": "Look", "images": [PIXEL]}, {"content": [part]}):
        assert client.post("/api/messages", json={"role": "user", **said}).status_code == 201


OPENED: list[str] = []  # files that somebody opened; a hook stays for as long as Python runs
WATCHED: set[str] = set()


def _watch(name: str, given: tuple[Any, ...]) -> None:
    if name == "open" and given and str(given[0]) in WATCHED:
        OPENED.append(str(given[0]))


@contextmanager
def canaries(folder: Path) -> Iterator[tuple[list[str], list[str]]]:
    """A file and an address that nobody must come for, in all their forms, and who came."""
    hits: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hits.append(self.path)
            self.send_error(404)

    file = folder / "canary.png"
    file.write_bytes(b"\x89PNG\r\n\x1a\n canary")
    WATCHED.add(str(file))
    sys.addaudithook(_watch)
    OPENED.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}/canary.png"
    try:
        yield [f"file://{file}", address, str(file)], hits
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_no_context_of_a_server_reads_or_fetches_an_image(served: Served, tmp_path: Path) -> None:
    """Also not what the host's own program stored, which may name files that it may read."""
    client = served.client(user="host")
    with canaries(tmp_path) as (sources, hits):
        for number, source in enumerate(sources):
            part = {"type": "image_url", "image_url": {"url": source}}
            said = [Message("user", "Look", images=[source]), Message("user", [part])]
            served.memory.remember(said, user="host", session=f"s{number}")
            for path, ask in (
                ("/api/context", {"question": "What is it?", "session": f"s{number}"}),
                ("/api/chat", {"message": "What is it?", "session_id": f"s{number}"}),
                ("/api/compress", {"session": f"s{number}", "keep_last": 0}),
                ("/api/recall", {"question": "Look"}),
            ):
                answer = client.post(path, json=ask)
                assert answer.status_code == 200, answer.text
                assert "iVBOR" not in answer.text  # how a picture begins, as base64
        assert OPENED == []
        assert hits == []
        served.memory.remember(Message("user", [part]), user="host", session="own")
        served.memory.context("What?", user="host", session="own")  # a program's own may read it
        assert sources[-1:] == OPENED


def test_an_agent_of_a_server_reads_no_image_for_its_model(tmp_path: Path) -> None:
    with (
        canaries(tmp_path) as (sources, hits),
        ModelServer() as model,
        Memory(tmp_path / "memory.db", embedder=None, extraction=None) as memory,
        talking(memory, model) as client,
    ):
        for number, source in enumerate(sources):
            part = {"type": "image_url", "image_url": {"url": source}}
            memory.remember(Message("user", [part]), user="ada", session=f"s{number}")
            answers(model, "I see.")
            ask = {"message": "What is it?", "session_id": f"s{number}"}
            answer = client.post("/api/chat", json=ask, headers={"Accept": "application/json"})
            assert answer.json()["message"] == "I see.", answer.text
        assert OPENED == []
        assert hits == []


BAD_TEXTS = {"NUL": "a\x00b", "lone surrogate": "a\ud83db", "last surrogate": "\udfff"}


def asks_with(bad: str) -> list[tuple[str, str, Any, Any]]:
    """Requests that hold a text, and the library's own way to say the same."""

    def said(**fields: Any) -> Any:
        return lambda memory: memory.remember(
            Message(**{"role": "user", "content": "Hi", **fields}), user="ada"
        )

    return [
        ("POST", "messages", {"role": "user", "content": bad}, said(content=bad)),
        ("POST", "messages", {"role": "user", "content": [bad]}, said(content=[bad])),
        ("POST", "messages", {"role": "user", "name": bad}, said(name=bad)),
        ("POST", "messages", {"role": "user", "message_id": bad}, said(message_id=bad)),
        (
            "POST",
            "messages",
            {"role": "user", "structured_data": {bad: 1}},
            said(structured_data={bad: 1}),
        ),
        (
            "POST",
            "messages",
            {"role": "user", "agent": bad},
            lambda memory: memory.remember(Message("user", "Hi"), user="ada", agent=bad),
        ),
        (
            "POST",
            "messages",
            {"role": "user", "session": bad},
            lambda memory: memory.remember(Message("user", "Hi"), user="ada", session=bad),
        ),
        ("POST", "memories", {"text": bad}, lambda memory: memory.memories.add(bad, user="ada")),
        (
            "POST",
            "memories",
            {"text": f"{bad} tea", "sources": ["m1"]},
            lambda memory: memory.memories.add(f"{bad} tea", user="ada", sources=("m1",)),
        ),
        *(
            (
                "POST",
                "facts",
                {**TRIPLE, part: bad, "sources": ["m1"]},
                lambda memory, part=part: memory.facts.add(
                    *{**TRIPLE, part: bad}.values(), user="ada"
                ),
            )
            for part in TRIPLE
        ),
        ("POST", "forget", {"memory": bad}, lambda memory: memory.forget(user="ada", memory=bad)),
        ("POST", "forget", {"message": bad}, lambda memory: memory.forget(user="ada", message=bad)),
        (
            "POST",
            "recall",
            {"question": "q", "session": bad},
            lambda memory: memory.recall("q", user="ada", session=bad),
        ),
        ("POST", "context", {"question": bad}, lambda memory: memory.context(bad, user="ada")),
        (
            "POST",
            "context",
            {"question": "q", "system": bad},
            lambda memory: memory.context("q", user="ada", system=bad),
        ),
    ]


TRIPLE = {"subject": "Ada", "predicate": "likes", "object": "tea"}


@pytest.mark.parametrize("bad", BAD_TEXTS.values(), ids=BAD_TEXTS)
def test_text_that_no_store_keeps_is_refused_alike_by_both_stores_and_the_library(
    bad: str, tmp_path: Path, postgres_with_tables: str
) -> None:
    for where in (tmp_path / "memory.db", postgres_with_tables):
        with ExitStack() as stack:
            memory = stack.enter_context(Memory(where, embedder=None, extraction=None))
            limits = Limits(requests_per_s=0)
            url = stack.enter_context(
                serving(build_app(memory, Guard.local("default", "ada"), limits))
            )
            client = stack.enter_context(httpx.Client(base_url=url, timeout=60))
            for method, path, ask, own in asks_with(bad):
                answer = client.request(
                    method, f"/api/{path}", content=json.dumps(ask), headers=JSON
                )
                with pytest.raises(MemoristError) as told:
                    own(memory)
                wanted = (*code_of(told.value), str(told.value))
                assert (*code(answer), answer.json()["detail"]) == wanted, (path, ask.keys())
                assert answer.status_code == 422
            assert client.get("/api/messages").json()["items"] == []
