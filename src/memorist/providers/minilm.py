"""The embedders that run on this machine, offline: MiniLM and its word vectors."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from memorist.errors import ProviderError
from memorist.language.text import minilm_folder
from memorist.providers.wordpiece import read_pieces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memorist.providers.embedder import Vectors
    from memorist.providers.wordpiece import WordPiece

    Forward = Callable[[NDArray[np.int32]], Vectors]

Model = TypeVar("Model")

WIDTH = 384
WINDOW = 254  # pieces of text; with the marks at both ends, the 256 the model was trained on


class _LocalEmbedder(Generic[Model]):
    """An embedder whose model is a file on this machine, read with the first text."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: Model | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        raise NotImplementedError

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question."""
        vector: Vectors = self.embed([text])[0]
        return vector

    def load(self) -> None:
        """Read the model now instead of with the first text."""
        self._loaded()

    def _loaded(self) -> Model:
        if self._model is None:
            with self._lock:
                if self._model is None:
                    self._model = self._open(minilm_folder())
        return self._model

    def _open(self, folder: Path) -> Model:
        raise NotImplementedError


class MiniLM(_LocalEmbedder["tuple[WordPiece, Forward]"]):
    """all-MiniLM-L6-v2 in 8 bits: 384 dimensions, on this machine, without a network.

    A text longer than the model's window is cut into windows of equal length, and its vector is
    their mean.
    """

    name = "all-MiniLM-L6-v2/int8"

    def __init__(self, *, threads: int | None = None) -> None:
        super().__init__()
        # On two processors the other one searches meanwhile; more than two threads gain little.
        self._threads = threads or min(max((os.cpu_count() or 1) // 2, 1), 2)

    def __repr__(self) -> str:
        return f"MiniLM(threads={self._threads})"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages; all of a long text counts, not only its beginning."""
        import numpy as np

        if not texts:
            return np.empty((0, WIDTH), np.float32)
        pieces, forward = self._loaded()
        vectors = np.empty((len(texts), WIDTH), np.float32)
        for row, text in enumerate(texts):
            vectors[row] = _mean(forward, list(_windows(pieces, text)))
        return vectors

    def _open(self, folder: Path) -> tuple[WordPiece, Forward]:
        return read_pieces(folder), _open_model(folder, self._threads)


class StaticEmbedder(_LocalEmbedder["tuple[WordPiece, NDArray[np.int8], NDArray[np.float32]]"]):
    """Word vectors distilled from all-MiniLM-L6-v2: far faster, and blind to word order.

    A text is the mean of its word pieces' vectors. For machines that import a lot: thousands of
    texts a second. 256 dimensions; needs numpy alone.
    """

    name = "minilm-static-256/1"

    def __repr__(self) -> str:
        return "StaticEmbedder()"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages, each the mean of all its pieces."""
        import numpy as np

        pieces, table, scale = self._loaded()
        vectors = np.empty((len(texts), table.shape[1]), np.float32)
        for row, text in enumerate(texts):
            # A text without pieces counts as one unknown word.
            ids = pieces.encode(text, sys.maxsize) or [pieces.unknown]
            vectors[row] = scale[ids] @ table[ids]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def _open(self, folder: Path) -> tuple[WordPiece, NDArray[np.int8], NDArray[np.float32]]:
        import numpy as np

        table = np.load(folder / "static.npy", mmap_mode="r")
        return read_pieces(folder), table, np.load(folder / "static_scale.npy")


@cache  # the embedders of a process share one model
def _open_model(folder: Path, threads: int) -> Forward:
    # Its builds of 2026 report home and leave an id in the user's cache unless told before.
    for name in ("ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED"):
        os.environ.setdefault(name, "1")
    try:
        import onnxruntime
    except ImportError:  # it has no wheel for Intel Macs and musl
        from memorist.providers.minilm_numpy import NumpyMiniLM

        return NumpyMiniLM(folder)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that wait busily for the next text would take the processor from everybody else.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3  # a machine without a GPU is no news
    options.enable_cpu_mem_arena = False  # or one long batch is held for ever
    try:
        session = onnxruntime.InferenceSession(
            folder / "model.onnx", options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # its errors have no common class of their own
        raise ProviderError(f"onnxruntime cannot open all-MiniLM-L6-v2: {error}") from error

    def forward(ids: NDArray[np.int32]) -> Vectors:
        vectors: Vectors = session.run(None, {"ids": ids})[0]
        return vectors

    return forward


def _mean(forward: Forward, windows: Sequence[Sequence[int]]) -> Vectors:
    """One vector of unit length; a window counts by its length.

    One window at a time: 8-bit roundings span all that runs together, so that a text's vector
    would depend on its neighbours, and on a processor a batch is no faster.
    """
    import numpy as np

    total = np.zeros(WIDTH, np.float32)
    for window in windows:
        total += len(window) * forward(np.array([window], np.int32))[0]
    vector: Vectors = total / np.linalg.norm(total)
    return vector


def _windows(pieces: WordPiece, text: str) -> Iterator[list[int]]:
    """Parts of equal length with their marks, so that none is too short to mean anything."""
    ids = pieces.encode(text, sys.maxsize)
    count = -(-len(ids) // WINDOW) or 1
    for part in range(count):
        inner = ids[len(ids) * part // count : len(ids) * (part + 1) // count]
        yield [pieces.start, *inner, pieces.stop]
