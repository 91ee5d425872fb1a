"""Any LangChain `Embeddings` as an embedder; LangChain itself is not imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from memorist.errors import ProviderError
from memorist.providers.vectors import unit_rows

if TYPE_CHECKING:
    from memorist.providers.embedder import Vectors


class Embeddings(Protocol):
    """What is used of LangChain's class of this name."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...
    def embed_query(self, text: str) -> list[float]: ...


class LangChainEmbedder:
    """Embeds by a LangChain object; `name` must change whenever its model does."""

    def __init__(self, embeddings: Embeddings, *, name: str) -> None:
        self.name = name
        self._embeddings = embeddings
        self._width: int | None = None

    def __repr__(self) -> str:
        return f"LangChainEmbedder({self.name!r})"  # theirs may show its key

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages, as the LangChain object makes them."""
        import numpy as np

        if not texts:
            return np.empty((0, self._width or 0), np.float32)
        try:
            rows: object = self._embeddings.embed_documents(list(texts))
        except Exception as error:  # noqa: BLE001 - whatever its own libraries raise
            raise self._failure(error) from None
        return self._check(rows, len(texts))

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question."""
        try:
            row = self._embeddings.embed_query(text)
        except Exception as error:  # noqa: BLE001 - whatever its own libraries raise
            raise self._failure(error) from None
        vector: Vectors = self._check([row], 1)[0]
        return vector

    def _check(self, rows: object, count: int) -> Vectors:
        vectors = unit_rows(rows, count, self.name, self._width)
        self._width = vectors.shape[1]
        return vectors

    def _failure(self, error: Exception) -> ProviderError:
        kind = type(self._embeddings).__name__
        # Not its text: that may quote what was to be embedded, or a key.
        return ProviderError(f"{self.name} failed with {type(error).__name__}: try {kind} alone")
