"""The Embedder and Reranker contracts, and the checks of vectors from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
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
    An embedder that reads its model from this machine has a method `load`, called ahead. One that
    can tell from vectors how likely a later message updates an earlier one has
    `update_chances(earlier, later)`: a chance for each row of `earlier`, given one `later`. Where
    it is missing, no messages are linked. One that can also read them has
    `confirm_updates(earlier, later, chances)`: better chances for the texts that may be updated.
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

        return self._embed(texts) if texts else np.empty((0, self._width or 0), np.float32)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        raise NotImplementedError

    def _check(self, rows: object, count: int, who: str) -> Vectors:
        """One finite row of unit length for each of `count` texts, as wide as those before."""
        import numpy as np

        try:
            matrix = np.asarray(rows, np.float64)
        except (TypeError, ValueError, OverflowError):
            matrix = np.empty(0)
        if matrix.ndim != 2 or matrix.shape[1] == 0:
            raise ProviderError(f"{who} answered with vectors that are not rows of numbers")
        if len(matrix) != count:
            raise ProviderError(f"{who} answered with {len(matrix)} vectors for {count} texts")
        if self._width not in (None, matrix.shape[1]):
            cure = "give another model another embedder"
            raise ProviderError(
                f"{who} gave {matrix.shape[1]} dimensions, not {self._width}: {cure}"
            )
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise ProviderError(f"{who} answered with a vector that is zero or not finite")
        self._width = matrix.shape[1]
        vectors: Vectors = (matrix / lengths).astype(np.float32)
        return vectors
