"""Embedders elsewhere: real HTTP servers that speak the real formats, with every kind of luck."""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from memorist import ConfigError, ProviderError
from memorist.providers import http, remote
from memorist.providers.embedder import Embedder
from memorist.providers.langchain import LangChainEmbedder
from memorist.providers.remote import OpenAIEmbedder

KEY = "sk-secret-of-ada"
SECRET = "ada's secret text"
Answer = tuple[int, Any, dict[str, str]]


class Provider(ThreadingHTTPServer):
    """Answers with what was queued for it, then as a provider in good health."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.queued: list[Answer | Callable[[dict[str, Any]], Answer]] = []
        self.asked: list[dict[str, Any]] = []
        self.seen: list[tuple[str, str | None]] = []
        self.proxy_logins: list[str | None] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def queue(self, status: int, body: object, **headers: str) -> None:
        self.queued.append((status, body, {k.replace("_", "-"): v for k, v in headers.items()}))


class Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        self.server.proxy_logins.append(self.headers.get("Proxy-Authorization"))
        status, body, headers = self.answer(asked)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(data)))
        with contextlib.suppress(ConnectionError):  # the reader may have gone
            self.end_headers()
            self.wfile.write(data)

    def answer(self, asked: dict[str, Any]) -> Answer:
        if self.server.queued:
            queued = self.server.queued.pop(0)
            return queued(asked) if callable(queued) else queued
        rows = [vector_of(text, asked.get("dimensions", 4)) for text in asked["input"]]
        return 200, openai_answer(rows), {}

    def log_message(self, *_: object) -> None:
        """Quietly."""


def vector_of(text: str, width: int) -> list[float]:
    return [float(len(text)), *(float(text.count(letter)) for letter in "aeiounrst"[: width - 1])]


def openai_answer(rows: list[list[float]]) -> dict[str, Any]:
    items = [
        {"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)
    ]
    usage = {"prompt_tokens": 8, "total_tokens": 8}
    return {"object": "list", "data": items, "model": "test", "usage": usage}


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setattr(http, "FIRST_WAIT_S", 0.01)
    with Provider() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def openai(provider: Provider) -> OpenAIEmbedder:
    return OpenAIEmbedder("test", api_key=KEY, base_url=f"{provider.url}/v1", timeout_s=2)


@pytest.fixture
def ollama(provider: Provider) -> OpenAIEmbedder:
    """A server that cuts long texts."""
    return OpenAIEmbedder("nomic", base_url=provider.url, timeout_s=2, window_chars=1_000)


def failure(embedder: Embedder) -> str:
    """What the error says, having made sure that it tells neither the key nor the text."""
    with pytest.raises(ProviderError) as caught:
        embedder.embed([SECRET])
    said = "".join(traceback.format_exception(caught.value)) + repr(embedder)
    assert KEY not in said
    assert SECRET not in said
    return str(caught.value)


def test_openai_is_asked_in_its_format(provider: Provider, openai: OpenAIEmbedder) -> None:
    vectors = openai.embed(["one", "three"])

    assert provider.asked == [{"model": "test", "input": ["one", "three"]}]
    assert provider.seen == [("/v1/embeddings", f"Bearer {KEY}")]
    assert openai.name == "openai/test"
    assert vectors.shape == (2, 4)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1])


def test_dimensions_are_asked_for_and_named(provider: Provider) -> None:
    embedder = OpenAIEmbedder("test", base_url=f"{provider.url}/v1/", dimensions=3)

    assert embedder.embed_query("one").shape == (3,)
    assert embedder.name == "openai/test/3"
    assert provider.asked[0]["dimensions"] == 3
    assert provider.seen == [("/v1/embeddings", None)]


def test_vectors_come_in_the_order_of_the_texts(provider: Provider, openai: OpenAIEmbedder) -> None:
    answer = openai_answer([[1.0, 0.0], [0.0, 2.0]])
    answer["data"].reverse()
    provider.queue(200, answer)

    assert openai.embed(["a", "b"]).tolist() == [[1, 0], [0, 1]]


def test_many_texts_go_in_batches(
    provider: Provider, openai: OpenAIEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "BATCH_CHARS", 50)
    texts = ["x" * (place % 20 + 1) for place in range(200)]
    vectors = openai.embed(texts)

    assert [text for asked in provider.asked for text in asked["input"]] == texts
    assert all(len("".join(asked["input"])) <= 50 for asked in provider.asked)
    assert np.array_equal(vectors[-1], openai.embed_query(texts[-1]))


def test_no_batch_is_longer_than_its_limit(provider: Provider, ollama: OpenAIEmbedder) -> None:
    ollama.embed(["x"] * 150)

    assert [len(asked["input"]) for asked in provider.asked] == [64, 64, 22]


def test_a_long_text_is_sent_whole_in_windows(provider: Provider, ollama: OpenAIEmbedder) -> None:
    text = "".join(f"word{number} " for number in range(500))
    vectors = ollama.embed([text, "short"])
    sent = provider.asked[0]["input"]

    assert "".join(sent) == text + "short"
    assert max(map(len, sent)) <= 1_000
    assert vectors.shape == (2, 4)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1])


def test_no_texts_cost_no_request(provider: Provider, openai: OpenAIEmbedder) -> None:
    assert len(openai.embed([])) == 0
    assert provider.asked == []


def test_an_empty_text_has_a_vector(provider: Provider, openai: OpenAIEmbedder) -> None:
    assert np.linalg.norm(openai.embed_query("  ")) == pytest.approx(1)
    assert all(asked["input"] == [remote.BLANK] for asked in provider.asked)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_an_error_that_passes_is_waited_for(
    provider: Provider, openai: OpenAIEmbedder, status: int
) -> None:
    provider.queue(status, {"error": {"message": SECRET}})
    provider.queue(status, b"<html>")

    assert len(openai.embed(["a"])) == 1
    assert len(provider.asked) == 3


def test_a_server_that_stays_ill_is_given_up(provider: Provider, ollama: OpenAIEmbedder) -> None:
    for _ in range(9):
        provider.queue(503, {"error": SECRET})

    assert "asked 4 times: HTTP 503" in failure(ollama)
    assert len(provider.asked) == 4


def test_the_wait_is_as_long_as_the_server_asks(provider: Provider, openai: OpenAIEmbedder) -> None:
    provider.queue(429, {}, Retry_After="1")
    started = time.monotonic()
    openai.embed(["a"])

    assert time.monotonic() - started >= 1


TOMORROW = formatdate(time.time() + 86_400, usegmt=True)


@pytest.mark.parametrize("told", ["86400", pytest.param(TOMORROW, id="a date")])
def test_no_wait_is_longer_than_the_bound(
    provider: Provider, openai: OpenAIEmbedder, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    monkeypatch.setattr(http, "LONGEST_WAIT_S", 0.02)
    provider.queue(429, {}, Retry_After=told)
    started = time.monotonic()
    openai.embed(["a"])

    assert time.monotonic() - started < 2


@pytest.mark.parametrize("told", ["soon", "-5", "", "Wed, 99 Foo 2026 00:00:00 GMT"])
def test_a_wait_that_cannot_be_read_is_our_own(
    provider: Provider, openai: OpenAIEmbedder, told: str
) -> None:
    provider.queue(429, {}, Retry_After=told)

    assert len(openai.embed(["a"])) == 1


def test_an_empty_purse_is_not_waited_for(provider: Provider, openai: OpenAIEmbedder) -> None:
    provider.queue(429, {"error": {"message": SECRET, "code": "insufficient_quota"}})

    assert "insufficient_quota" in failure(openai)
    assert len(provider.asked) == 1


def test_a_question_is_asked_once(provider: Provider, openai: OpenAIEmbedder) -> None:
    provider.queue(503, {})

    with pytest.raises(ProviderError, match="asked once: HTTP 503"):
        openai.embed_query("a")
    assert len(provider.asked) == 1


@pytest.mark.parametrize(
    ("status", "code", "cure"),
    [
        (401, "invalid_api_key", "check the API key"),
        (403, "forbidden", "check the API key"),
        (404, "model_not_found", "check base_url and the model's name"),
        (400, "invalid_request_error", "too long"),
        (418, "teapot", "see the server's log"),
    ],
)
def test_a_refusal_names_its_cure(
    provider: Provider, openai: OpenAIEmbedder, status: int, code: str, cure: str
) -> None:
    provider.queue(status, {"error": {"message": f"{SECRET} {KEY}", "code": code}})
    said = failure(openai)

    assert f"HTTP {status} ({code})" in said
    assert cure in said
    assert len(provider.asked) == 1


@pytest.mark.parametrize("code", [SECRET, KEY, 7, None, ["x"], "x" * 100])
def test_a_code_that_could_quote_is_not_repeated(
    provider: Provider, openai: OpenAIEmbedder, code: object
) -> None:
    provider.queue(400, {"error": {"code": code}})

    assert "HTTP 400: " in failure(openai)


def test_a_redirection_is_not_followed_with_the_key(
    provider: Provider, openai: OpenAIEmbedder
) -> None:
    provider.queue(302, b"", Location=f"{provider.url}/elsewhere")

    assert "points elsewhere" in failure(openai)
    assert len(provider.asked) == 1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "no JSON"),
        (b"", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        ([], "without data"),
        (None, "without data"),
        ({"data": None}, "without data"),
        ({"data": {}}, "not rows"),
        ({"data": [SECRET]}, "without data"),
        ({"data": [{"index": 0}]}, "without data"),
        ({"data": [{"index": 5, "embedding": [1.0]}]}, "numbered"),
        ({"data": [{"index": "0", "embedding": [1.0]}]}, "numbered"),
        (openai_answer([]), "not rows"),
        (openai_answer([[1.0], [1.0]]), "2 vectors for 1 texts"),
        (openai_answer([[]]), "not rows"),
        (openai_answer([[1.0, math.nan]]), "not finite"),
        (openai_answer([[1.0, math.inf]]), "not finite"),
        (openai_answer([[0.0, 0.0]]), "zero"),
        ({"data": [{"index": 0, "embedding": [None]}]}, "not finite"),
        ({"data": [{"index": 0, "embedding": SECRET}]}, "not rows"),
        ({"data": [{"index": 0, "embedding": [[1.0]]}]}, "not rows"),
        ({"data": [{"index": 0, "embedding": [10**400]}]}, "not rows"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused(
    provider: Provider, openai: OpenAIEmbedder, body: object, reason: str
) -> None:
    provider.queue(200, body)

    assert reason in failure(openai)


def test_vectors_of_unequal_length_are_refused(provider: Provider, ollama: OpenAIEmbedder) -> None:
    provider.queue(200, openai_answer([[1.0, 2.0], [1.0]]))

    with pytest.raises(ProviderError, match="not rows of numbers"):
        ollama.embed(["a", "b"])


def test_a_model_that_changes_its_length_is_refused(
    provider: Provider, openai: OpenAIEmbedder
) -> None:
    openai.embed(["a"])
    provider.queue(200, openai_answer([[1.0, 2.0]]))

    assert "2 dimensions, not 4" in failure(openai)


def test_an_answer_cut_off_is_asked_for_again(provider: Provider, openai: OpenAIEmbedder) -> None:
    provider.queue(200, b'{"data": [', Content_Length="500")

    assert len(openai.embed(["a"])) == 1
    assert len(provider.asked) == 2


def test_a_proxy_of_the_environment_is_used(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", provider.url.replace("//", "//ada:pass%20word@"))
    monkeypatch.setenv("no_proxy", "direct.example")
    OpenAIEmbedder("m", base_url="http://models.example").embed(["a"])

    assert provider.seen == [("http://models.example/embeddings", None)]
    assert provider.proxy_logins == ["Basic YWRhOnBhc3Mgd29yZA=="]
    with pytest.raises(ProviderError, match="gaierror"):
        OpenAIEmbedder("m", base_url="http://direct.example").embed_query("a")


def test_a_server_on_this_machine_needs_no_proxy(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")

    assert len(OpenAIEmbedder("m", base_url=provider.url).embed(["a"])) == 1


def test_an_answer_without_end_is_refused(
    provider: Provider, openai: OpenAIEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MAX_BYTES", 100)
    provider.queue(200, b"x" * 101)

    assert "more than 100 bytes" in failure(openai)


def test_a_silent_server_costs_its_time_and_no_more(provider: Provider) -> None:
    embedder = OpenAIEmbedder("m", base_url=provider.url, timeout_s=0.1)

    def sleep(_: object) -> Answer:
        time.sleep(0.5)
        return 200, {}, {}

    provider.queued.append(sleep)
    started = time.monotonic()

    with pytest.raises(ProviderError, match="TimeoutError"):
        embedder.embed_query("a")
    assert time.monotonic() - started < 0.45


def test_nobody_there_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "FIRST_WAIT_S", 0.001)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        port = server.server_address[1]
    said = failure(OpenAIEmbedder("m", base_url=f"http://127.0.0.1:{port}"))

    assert "ConnectionRefusedError; is it running?" in said


@pytest.mark.parametrize(
    "url", ["", "localhost:11434", "file:///etc/passwd", "http://", f"http://ada:{KEY}@host"]
)
def test_a_base_url_that_cannot_be_one_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIEmbedder("m", base_url=url)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY}\r\nX: y", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_refused_unquoted(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIEmbedder("m", api_key=key)
    assert KEY not in str(caught.value)


def test_langchain_embeddings_serve_as_an_embedder() -> None:
    embedder: Embedder = LangChainEmbedder(DeterministicFakeEmbedding(size=8), name="fake/8")
    vectors = embedder.embed(["a", "b"])

    assert embedder.name == "fake/8"
    assert vectors.shape == (2, 8)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1])
    assert np.allclose(vectors[0], embedder.embed_query("a"))
    assert len(embedder.embed([])) == 0


class Broken(Embeddings):
    """Fails as its provider does, quoting all it knows; or answers with nonsense."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.answer is None:
            raise RuntimeError(f"{texts} {KEY}")
        answer: list[list[float]] = self.answer
        return answer

    def embed_query(self, text: str) -> list[float]:
        raise KeyError(text)


def test_a_failing_langchain_object_is_an_error_of_ours() -> None:
    embedder = LangChainEmbedder(Broken(), name="broken")

    assert "broken failed with RuntimeError: try Broken alone" in failure(embedder)
    with pytest.raises(ProviderError, match="KeyError"):
        embedder.embed_query(SECRET)


@pytest.mark.parametrize("answer", [[], [[]], [[math.nan]], [[1.0], [1.0]], "no", [["x"]]])
def test_nonsense_from_langchain_is_refused(answer: object) -> None:
    assert failure(LangChainEmbedder(Broken(answer), name="broken")).startswith("broken")


def test_a_langchain_object_that_changes_its_length_is_refused() -> None:
    broken = Broken([[1.0, 2.0]])
    embedder = LangChainEmbedder(broken, name="changing")
    embedder.embed(["a"])
    broken.answer = [[1.0, 2.0, 3.0]]

    assert "3 dimensions, not 2" in failure(embedder)
