"""The embedders that run on this machine, offline: MiniLM, its word vectors and its tokenizer."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorist.errors import ProviderError
from memorist.forks import ProcessPart, fork_safe
from memorist.language.text import minilm_folder
from memorist.records.values import normalize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memorist.providers.embedder import Vectors

    Forward = Callable[[NDArray[np.int32]], Vectors]

UPDATE_CURVE = (1.13, 0.63, 0.35)  # a constant, and what the odds by vectors and by reading count
WINDOW = 254  # pieces of text; with the marks at both ends, the 256 the model was trained on
MAX_WORD_CHARS = 100
_IDEOGRAPHS = re.compile(
    "([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f"
    "\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\U0002f800-\U0002fa1f])"
)
_ASCII_WORD = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")


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

    name = "memorist-minilm-2/int8"
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

    def __repr__(self) -> str:
        return f"MiniLM(threads={self._threads})"

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
        return WordPiece(folder), _open_model(folder, self._threads)

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

        from memorist.providers.reader import update_odds

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

    name = "memorist-static-2/256"
    width = 256

    def __repr__(self) -> str:
        return "StaticEmbedder()"

    def _vector(self, text: str) -> Vectors:
        self.load()
        pieces, table, scale = self._model
        ids = pieces.encode(text) or [pieces.unknown]
        vector: Vectors = scale[ids] @ table[ids]
        return vector

    def _open(self, folder: Path) -> tuple[WordPiece, NDArray[np.int8], NDArray[np.float32]]:
        import numpy as np

        table = np.load(folder / "static.npy", mmap_mode="r")
        return WordPiece(folder), table, np.load(folder / "static_scale.npy")


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


def open_session(file: Path, threads: int) -> Any:
    """A session of onnxruntime, or None where it has no wheel: Intel Macs and musl."""
    # Its builds of 2026 report home and leave an id in the user's cache unless told before.
    for name in ("ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED"):
        os.environ.setdefault(name, "1")
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that wait busily for the next text would take the processor from everybody else.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not _has_vnni():  # or products of signed 8 bits overflow, on x86
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 3  # a machine without a GPU is no news
    options.enable_cpu_mem_arena = False  # or one long batch is held for ever
    try:
        return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common class of their own
        raise ProviderError(f"onnxruntime cannot open all-MiniLM-L6-v2: {error}") from error


def _has_vnni() -> bool:
    """Whether the processor is known to multiply 8-bit numbers without overflow."""
    with contextlib.suppress(OSError):
        return "vnni" in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    return False


class WordPiece:
    """The uncased tokenizer of BERT: text to the numbers of pieces in the model's vocabulary."""

    def __init__(self, folder: Path) -> None:
        with (folder / "vocab.txt").open(encoding="utf-8") as lines:
            pieces = {piece.rstrip("\n"): id_ for id_, piece in enumerate(lines)}
        self.start, self.stop, self.unknown = map(pieces.__getitem__, ("[CLS]", "[SEP]", "[UNK]"))
        self._pieces = pieces
        self._longest = max(map(len, pieces))
        # A chat repeats its words: most are looked up, few are cut.
        self._cut = lru_cache(maxsize=65_536)(self._cut_word)

    def encode(self, text: str) -> list[int]:
        """The pieces of a text, without the marks at its ends."""
        return [id_ for word in split(text) for id_ in self._cut(word)]

    def words(self, text: str) -> list[tuple[str, Sequence[int], int, int]]:
        """The words of a text: the pieces of each, and where it starts and ends."""
        return [(word, self._cut(word), start, end) for word, start, end in places(text)]

    def _cut_word(self, word: str) -> Sequence[int]:
        """The longest known pieces from the left, or one unknown for the whole word."""
        if len(word) > MAX_WORD_CHARS:
            return (self.unknown,)
        ids, start = [], 0
        while start < len(word):
            mark = "##" if start else ""
            for stop in range(min(len(word), start + self._longest), start, -1):
                id_ = self._pieces.get(mark + word[start:stop])
                if id_ is not None:
                    ids.append(id_)
                    start = stop
                    break
            else:
                return (self.unknown,)
        return tuple(ids)


def split(text: str) -> list[str]:
    """Words and signs in lower case, without accents, ideographs apart."""
    if not text.isprintable() or "\ufffd" in text:
        text = "".join(map(_clean, text))
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    text = _IDEOGRAPHS.sub(r" \1 ", text)
    words = []
    for word in text.split():
        plain = normalize("NFD", word.lower())
        words += _split_signs(char for char in plain if unicodedata.category(char) != "Mn")
    return words


def places(text: str) -> list[tuple[str, int, int]]:
    """The words that `split` makes of a text, each with its start and end."""
    if text.isascii() and text.isprintable():
        return [(word[0], *word.span()) for word in _ASCII_WORD.finditer(text.lower())]
    found: list[tuple[str, int, int]] = []
    follows = False  # whether the next letter belongs to the last word
    for place, char in enumerate(text):
        char = _clean(char)
        if char.isspace():
            follows = False
            continue
        alone = bool(_IDEOGRAPHS.match(char))
        for letter in char if alone else normalize("NFD", char.lower()):
            if unicodedata.category(letter) == "Mn" or letter.isspace():
                continue
            apart = alone or _is_sign(letter)
            if follows and not apart:
                word, start, _ = found[-1]
                found[-1] = word + letter, start, place + 1
            else:
                found.append((letter, place, place + 1))
            follows = not apart
    return found


def _is_sign(char: str) -> bool:
    return not char.isalnum() if char.isascii() else unicodedata.category(char)[0] == "P"


def _clean(char: str) -> str:
    if char in " \t\n\r":
        return " "
    category = unicodedata.category(char)
    if category in ("Cc", "Cf", "Co") or char == "\ufffd":
        return ""
    return " " if category == "Zs" else char


def _split_signs(chars: Iterable[str]) -> list[str]:
    words, word = [], ""
    for char in chars:
        if _is_sign(char):
            words += [word, char] if word else [char]
            word = ""
        else:
            word += char
    return [*words, word] if word else words
