"""Embedders on a server that speaks OpenAI's wire format, as many do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from memorist.errors import ProviderError
from memorist.providers.embedder import CheckedEmbedder
from memorist.providers.http import ATTEMPTS, Endpoint
from memorist.records.values import batches

if TYPE_CHECKING:
    from memorist.providers.embedder import Vectors

BATCH_TEXTS = 64
BATCH_CHARS = 100_000
BLANK = "."  # servers refuse an empty text


class OpenAIEmbedder(CheckedEmbedder):
    """A model behind POST {base_url}/embeddings: OpenAI, vLLM, Ollama, llama.cpp, LM Studio, …

    A long text is sent in windows of `window_chars`. Take fewer for Ollama, which cuts what is too
    long for the model: `base_url="http://127.0.0.1:11434/v1", window_chars=1_000`.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str = "",
        base_url: str = "https://api.openai.com/v1",
        dimensions: int | None = None,
        timeout_s: float = 30.0,
        window_chars: int = 8_000,
    ) -> None:
        self.name = f"openai/{model}" + (f"/{dimensions}" if dimensions else "")
        url = f"{base_url.rstrip('/')}/embeddings"
        self._endpoint = Endpoint(url, api_key, timeout_s=timeout_s)
        self._fields = {"model": model} | ({"dimensions": dimensions} if dimensions else {})
        self._width = dimensions
        self._window_chars = window_chars

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question; asked for once, since a recall waits for it."""
        vector: Vectors = self._embed([text], attempts=1)[0]
        return vector

    def _embed(self, texts: Sequence[str], attempts: int = ATTEMPTS) -> Vectors:
        """The vectors of texts of any length: the mean of their windows, weighted by length."""
        import numpy as np

        windows, owners = [], []
        for owner, text in enumerate(texts):
            for window in _windows(text if text.strip() else BLANK, self._window_chars):
                windows.append(window)
                owners.append(owner)
        asked = batches(windows, len, most=BATCH_TEXTS, most_size=BATCH_CHARS)
        vectors = np.concatenate([self._ask(batch, attempts) for batch in asked])
        if len(windows) == len(texts):
            return vectors
        sums = np.zeros((len(texts), vectors.shape[1]), np.float32)
        lengths = np.array([[len(window)] for window in windows], np.float32)
        np.add.at(sums, owners, vectors * lengths)
        means: Vectors = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return means

    def _ask(self, batch: list[str], attempts: int) -> Vectors:
        answer = self._endpoint.post({**self._fields, "input": batch}, attempts=attempts)
        return self._check(self._rows(answer), len(batch), repr(self._endpoint))

    def _rows(self, answer: Any) -> object:
        """The vectors in the order of the texts; servers may finish them in another."""
        try:
            items = answer["data"]
            rows = {item.get("index", n): item["embedding"] for n, item in enumerate(items)}
        except (KeyError, TypeError, AttributeError):
            raise ProviderError(f"{self._endpoint} answered without data and embeddings") from None
        if set(rows) != set(range(len(items))):
            raise ProviderError(f"{self._endpoint} numbered its vectors wrongly")
        return [rows[place] for place in range(len(items))]


def _windows(text: str, size: int) -> Iterator[str]:
    """Parts of equal length, none longer than `size`; together they are the text."""
    count = -(-len(text) // size)
    for part in range(count):
        yield text[len(text) * part // count : len(text) * (part + 1) // count]
