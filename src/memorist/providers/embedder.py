"""The Embedder contract: text to vectors, by whoever does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    """One row for each text, of length 1."""


class Embedder(Protocol):
    """Turns texts into vectors; texts that mean the same lie near each other.

    `name` says which model in which variant: vectors of two names are never compared. Both
    methods may be called from several threads. They raise ProviderError when they cannot. One
    that reads its model from this machine has a method `load` for it, called ahead of the rest.
    """

    @property
    def name(self) -> str: ...
    def embed(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages; all of a long text counts, not only its beginning."""

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question, one row; fast, since somebody waits for it."""
