"""Models that answer at once, the same each time, and tell what they were asked."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memorist.errors import ProviderError
from memorist.records.values import fold

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

Vectors = NDArray[np.float32]


@cache
def _direction(word: str, dimensions: int) -> Vectors:
    numbers = np.random.default_rng(zlib.crc32(word.encode())).standard_normal(dimensions)
    return numbers.astype(np.float32)


class WordEmbedder:
    """Texts that share words lie near each other. It refuses texts that hold `refused`."""

    def __init__(
        self, name: str = "by-words", dimensions: int = 64, refused: str | None = None
    ) -> None:
        self.name = name
        self.dimensions = dimensions
        self.refused = refused
        self.seen: list[str] = []
        self.batches = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.batches += 1
        self.seen += texts
        return self._vectors(texts)

    def embed_query(self, text: str) -> Vectors:
        return self._vectors([text])

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        if any(self.refused and self.refused in text for text in texts):
            raise ProviderError("the model refuses a text")
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in fold(text).split():
                row += _direction(word, self.dimensions)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        unit: Vectors = (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        return unit


class HungEmbedder(WordEmbedder):
    """Answers nothing until it is let go."""

    def __init__(self, *, texts: bool = True, questions: bool = True) -> None:
        super().__init__("hung")
        self.asked = threading.Event()
        self.let_go = threading.Event()
        self._texts, self._questions = texts, questions

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self._texts:
            self.let_go.wait()
        return super().embed(texts)

    def embed_query(self, text: str) -> Vectors:
        self.asked.set()
        if self._questions:
            self.let_go.wait()
        return super().embed_query(text)


class BrokenEmbedder(WordEmbedder):
    """Takes texts, and raises at every question."""

    def __init__(self, error: Exception) -> None:
        super().__init__("broken")
        self._error = error

    def embed_query(self, text: str) -> Vectors:
        raise self._error


def asked_in(messages: Sequence[BaseMessage]) -> str:
    """The question in a prompt, without what is quoted above it."""
    asked = next(it.text for it in reversed(messages) if it.type == "human")
    return str(asked).rpartition("The message to answer:\n")[2]
