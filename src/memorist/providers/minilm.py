"""The embedders that run on this machine, offline: MiniLM and its word vectors."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorist.forks import ProcessPart, fork_safe
from memorist.language.text import minilm_folder
from memorist.providers.local_model import WINDOW, WordPiece, open_session, word_pieces
from memorist.providers.reader import update_odds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memorist.providers.embedder import Vectors

    Forward = Callable[[NDArray[np.int32]], Vectors]

UPDATE_CURVE = (1.06, 0.68, 0.71)  # a constant, and what the odds by vectors and by reading count


class _LocalEmbedder(ProcessPart):
    """An embedder whose model is a file on this machine, read with the first text."""

    width: int

    def __init__(self) -> None:
        self._lock = fork_safe(threading.Lock())
        self._model: Any = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages; all of a long text counts, not only its beginning."""
        import numpy as np

        vectors = np.empty((len(texts), self.width), np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._vector(text)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question."""
        vector: Vectors = self.embed([text])[0]
        return vector

    def load(self) -> None:
        """Read the model now instead of with the first text."""
        if self._model is None:
            with self._lock:
                if self._model is None:
                    self._model = self._open(minilm_folder())

    def _vector(self, text: str) -> Vectors:
        raise NotImplementedError

    def _open(self, folder: Path) -> Any:
        raise NotImplementedError


class MiniLM(_LocalEmbedder):
    """all-MiniLM-L6-v2, trained on for memory, in 8 bits: 384 dimensions, without a network.

    A text longer than the model's window is cut into windows of equal length, and its vector is
    their mean.
    """

    name = "memorist-minilm-3/int8"
    width = 384

    def __init__(self, *, threads: int | None = None) -> None:
        super().__init__()
        # On two processors the other one searches meanwhile; more than two threads gain little.
        self._threads = threads or min(max((os.cpu_count() or 1) // 2, 1), 2)
        self.watch_process()

    def after_fork(self, *, in_child: bool) -> None:
        if in_child and self._threads > 1:  # the model's own threads are gone
            _open_model.cache_clear()
            self._model = None

    def _vector(self, text: str) -> Vectors:
        """The sum of the windows' vectors; a window counts by its length.

        One window at a time: 8-bit roundings span all that runs together, so that a text's vector
        would depend on its neighbours, and on a processor a batch is no faster.
        """
        import numpy as np

        self.load()
        pieces, forward = self._model
        ids = pieces.encode(text)
        count = -(-len(ids) // WINDOW) or 1
        total: Vectors = np.zeros(self.width, np.float32)
        for part in range(count):
            inner = ids[len(ids) * part // count : len(ids) * (part + 1) // count]
            window = [pieces.start, *inner, pieces.stop]
            total += len(window) * forward(np.array([window], np.int32))[0]
        return total

    def _open(self, folder: Path) -> tuple[WordPiece, Forward]:
        return word_pieces(folder), _open_model(folder, self._threads)

    def update_chances(self, earlier: Vectors, later: Vectors) -> Vectors:
        """How likely a later message updates each of the earlier ones, by their vectors."""
        import numpy as np

        inner, shift, outer, constant = _update_weights(minilm_folder())
        product = earlier * later
        alike = product.sum(axis=1, keepdims=True)
        same = np.broadcast_to(later, earlier.shape)
        rows = np.concatenate([product, np.abs(earlier - later), same, earlier, alike], axis=1)
        told = np.maximum(rows @ inner + shift, 0) @ outer + constant
        chances: Vectors = 1 / (1 + np.exp(-told))
        return chances

    def confirm_updates(self, earlier: Sequence[str], later: str, chances: Vectors) -> Vectors:
        """The chances once more, with both texts read; the same where no reader can be opened."""
        import numpy as np

        if (read := update_odds(earlier, later)) is None:
            return chances
        constant, by_vectors, by_reader = UPDATE_CURVE
        likely = np.clip(chances, 1e-6, 1 - 1e-6)
        odds = np.log(likely / (1 - likely)) * by_vectors + np.asarray(read) * by_reader + constant
        confirmed: Vectors = (1 / (1 + np.exp(-odds))).astype(np.float32)
        return confirmed


class StaticEmbedder(_LocalEmbedder):
    """Word vectors distilled from `MiniLM`: far faster, and blind to word order.

    A text is the mean of its word pieces' vectors. For machines that import a lot: thousands of
    texts a second. 256 dimensions; needs numpy alone.
    """

    name = "memorist-static-3/256"
    width = 256

    def _vector(self, text: str) -> Vectors:
        self.load()
        pieces, table, scale = self._model
        ids = pieces.encode(text) or [pieces.unknown]
        vector: Vectors = scale[ids] @ table[ids]
        return vector

    def _open(self, folder: Path) -> tuple[WordPiece, NDArray[np.int8], NDArray[np.float32]]:
        import numpy as np

        table = np.load(folder / "static.npy", mmap_mode="r")
        return word_pieces(folder), table, np.load(folder / "static_scale.npy")


@cache
def _update_weights(folder: Path) -> list[Vectors]:
    """A small net on two vectors, layer by layer; trained on stories of change."""
    import numpy as np

    with np.load(folder / "updates.npz") as weights:
        return [weights[it].astype(np.float32) for it in ("inner", "shift", "outer", "constant")]


@cache  # the embedders of a process share one model
def _open_model(folder: Path, threads: int) -> Forward:
    session = open_session(folder / "model.onnx", threads)
    if session is None:
        from memorist.providers.minilm_numpy import NumpyMiniLM

        return NumpyMiniLM(folder)

    def forward(ids: NDArray[np.int32]) -> Vectors:
        vectors: Vectors = session.run(None, {"ids": ids})[0]
        return vectors

    return forward
