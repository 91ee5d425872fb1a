"""StaticEmbedder: a text is the mean of its word pieces' vectors. Thousands of texts a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memorist.language.synonyms import minilm_folder
from memorist.providers.wordpiece import read_pieces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memorist.providers.embedder import Vectors
    from memorist.providers.wordpiece import WordPiece

    Table = tuple[WordPiece, NDArray[np.int8], NDArray[np.float32]]


class StaticEmbedder:
    """Word vectors distilled from all-MiniLM-L6-v2: far faster, and blind to word order.

    For machines that import a lot. 256 dimensions; needs numpy alone.
    """

    name = "minilm-static-256/1"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: Table | None = None

    def __repr__(self) -> str:
        return "StaticEmbedder()"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages, each the mean of all its pieces."""
        import numpy as np

        pieces, table, scale = self._load()
        vectors = np.empty((len(texts), table.shape[1]), np.float32)
        for row, text in enumerate(texts):
            # A text without pieces is as good as unknown.
            ids = pieces.encode(text, sys.maxsize) or [pieces.unknown]
            vectors[row] = scale[ids] @ table[ids]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question."""
        vector: Vectors = self.embed([text])[0]
        return vector

    def load(self) -> None:
        """Read the model now, and not with the first text."""
        self._load()

    def _load(self) -> Table:
        import numpy as np

        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    folder = minilm_folder()
                    table = np.load(folder / "static.npy", mmap_mode="r")
                    scale = np.load(folder / "static_scale.npy")
                    self._loaded = read_pieces(folder), table, scale
        return self._loaded
