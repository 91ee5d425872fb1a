"""Embedders on a server: OpenAI's wire format, which many servers speak, and Ollama's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from memorist.errors import ProviderError
from memorist.providers.embedder import CheckedEmbedder, embed_in_windows
from memorist.providers.http import ATTEMPTS, Endpoint

if TYPE_CHECKING:
    from memorist.providers.embedder import Vectors

BATCH_TEXTS = 64
BATCH_CHARS = 100_000
BLANK = "."  # servers refuse an empty text


class _RemoteEmbedder(CheckedEmbedder):
    """What both servers have in common: windows and batches."""

    _endpoint: Endpoint
    _window_chars: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self._endpoint!r})"

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question; asked for once, since a recall waits for it."""
        vector: Vectors = self._embed([text], attempts=1)[0]
        return vector

    def _embed(self, texts: Sequence[str], attempts: int = ATTEMPTS) -> Vectors:
        import numpy as np

        def ask(batch: list[str]) -> Vectors:
            answer = self._endpoint.post(self._body(batch), attempts=attempts)
            return self._check(self._rows(answer), len(batch), repr(self._endpoint))

        def embed_all(parts: list[str]) -> Vectors:
            return np.concatenate([ask(batch) for batch in _batches(parts)])

        filled = [text if text.strip() else BLANK for text in texts]
        return embed_in_windows(filled, self._window_chars, embed_all)

    def _body(self, batch: list[str]) -> dict[str, object]:
        raise NotImplementedError

    def _rows(self, answer: object) -> object:
        raise NotImplementedError


class OpenAIEmbedder(_RemoteEmbedder):
    """A model behind POST {base_url}/embeddings: OpenAI, vLLM, llama.cpp, LM Studio, …"""

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
        self._model = model
        self._dimensions = self._width = dimensions
        self._window_chars = window_chars

    def _body(self, batch: list[str]) -> dict[str, object]:
        size = {"dimensions": self._dimensions} if self._dimensions else {}
        return {"model": self._model, "input": batch, **size}

    def _rows(self, answer: object) -> object:
        """The vectors in the order of the texts; servers may finish them in another."""
        try:
            items = answer["data"]  # type: ignore[index]  # garbage raises what is caught
            places = [item.get("index", place) for place, item in enumerate(items)]
            if sorted(places) != list(range(len(places))):
                raise ProviderError(f"{self._endpoint} numbered its vectors wrongly")
            rows = {place: item["embedding"] for place, item in zip(places, items, strict=True)}
            return [rows[place] for place in range(len(places))]
        except (KeyError, TypeError, AttributeError):
            raise ProviderError(f"{self._endpoint} answered without data and embeddings") from None


class OllamaEmbedder(_RemoteEmbedder):
    """A model that Ollama runs. It cuts long texts silently, so they are sent in short windows."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "http://127.0.0.1:11434",
        timeout_s: float = 30.0,
        window_chars: int = 1_000,
    ) -> None:
        self.name = f"ollama/{model}"
        self._endpoint = Endpoint(f"{base_url.rstrip('/')}/api/embed", timeout_s=timeout_s)
        self._model = model
        self._window_chars = window_chars

    def _body(self, batch: list[str]) -> dict[str, object]:
        return {"model": self._model, "input": batch}

    def _rows(self, answer: object) -> object:
        try:
            return answer["embeddings"]  # type: ignore[index]  # garbage raises what is caught
        except (KeyError, TypeError):
            raise ProviderError(f"{self._endpoint} answered without embeddings") from None


def _batches(texts: list[str]) -> Iterator[list[str]]:
    """Runs of texts, neither too many nor too long together."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == BATCH_TEXTS or size + len(text) > BATCH_CHARS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    yield batch
