"""The Embedder and Reranker contracts, and checks of the vectors that embedders give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from memorist.errors import ProviderError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    """One row for each text, of length 1."""


class Embedder(Protocol):
    """Turns texts into vectors; texts that mean the same lie near each other.

    `name` says which model in which variant: vectors of two names are never compared. Both
    methods may be called from several threads and raise ProviderError where they cannot embed.
    An embedder that reads its model from this machine has a method `load`, called ahead.
    """

    @property
    def name(self) -> str: ...
    def embed(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages; all of a long text counts, not only its beginning."""

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question, one row; fast, since a recall waits for it."""


class Reranker(Protocol):
    """Scores the best candidates once more, within the time that a recall has left."""

    def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text answers the question; higher is better."""


class CheckedEmbedder:
    """Base of embedders whose vectors come from elsewhere: every answer is checked."""

    name: str
    _width: int | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages; all of a long text counts, not only its beginning."""
        import numpy as np

        if not texts:
            return np.empty((0, self._width or 0), np.float32)
        return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        raise NotImplementedError

    def _check(self, rows: object, count: int, who: str) -> Vectors:
        """Unit vectors of `count` rows, as wide as those before."""
        vectors = unit_rows(rows, count, who, self._width)
        self._width = vectors.shape[1]
        return vectors


def unit_rows(rows: object, count: int, who: str, width: int | None = None) -> Vectors:
    """One finite row of unit length for each of `count` texts, all of one width."""
    import numpy as np

    try:
        matrix = np.asarray(rows, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ProviderError(f"{who} answered with vectors that are not rows of numbers") from None
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ProviderError(f"{who} answered with vectors that are not rows of numbers")
    if len(matrix) != count:
        raise ProviderError(f"{who} answered with {len(matrix)} vectors for {count} texts")
    if width is not None and matrix.shape[1] != width:
        cure = "give another model another embedder"
        raise ProviderError(f"{who} gave {matrix.shape[1]} dimensions, not {width}: {cure}")
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise ProviderError(f"{who} answered with a vector that is zero or not finite")
    vectors: Vectors = (matrix / lengths).astype(np.float32)
    return vectors


def embed_in_windows(
    texts: Sequence[str], size: int, embed: Callable[[list[str]], Vectors]
) -> Vectors:
    """The vectors of texts of any length: the mean of their parts, weighted by length."""
    import numpy as np

    parts, owners = [], []
    for owner, text in enumerate(texts):
        for part in cut_text(text, size):
            parts.append(part)
            owners.append(owner)
    vectors = embed(parts)
    if len(parts) == len(texts):
        return vectors
    sums = np.zeros((len(texts), vectors.shape[1]), np.float32)
    np.add.at(sums, owners, vectors * np.array([[len(part)] for part in parts], np.float32))
    means: Vectors = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return means


def cut_text(text: str, size: int) -> list[str]:
    """Parts of equal length, none longer than `size`; together they are the text."""
    count = -(-len(text) // size) or 1
    bounds = [len(text) * part // count for part in range(count + 1)]
    return [text[start:stop] for start, stop in pairwise(bounds)]
