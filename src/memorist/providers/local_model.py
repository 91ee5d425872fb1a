"""What the models on this machine share: the word pieces they read, and what runs them."""

import contextlib
import os
import re
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from memorist.errors import ProviderError
from memorist.records.values import normalize

WINDOW = 254  # pieces of text; with the marks at both ends, the 256 the models were trained on
MAX_WORD_CHARS = 100
_IDEOGRAPHS = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f"
    "\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\U0002f800-\U0002fa1f]"
)
_NOT_ASCII = re.compile(r"[^\t\n\r -~]")  # or a control character, which is no text
_ASCII_WORD = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")


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


@cache
def word_pieces(folder: Path) -> WordPiece:
    """The tokenizer of the models in a folder; one for all of a process, as it is slow to read."""
    return WordPiece(folder)


def split(text: str) -> list[str]:
    """Words and signs in lower case, without accents, ideographs apart."""
    if not _NOT_ASCII.search(text):
        return _ASCII_WORD.findall(text.lower())
    return [word for word, _, _ in places(text)]


def places(text: str) -> list[tuple[str, int, int]]:
    """The words that `split` makes of a text, each with its start and end."""
    lower = text.lower()  # not letter by letter: a word's last sigma is another
    if not _NOT_ASCII.search(text):
        return [(word[0], *word.span()) for word in _ASCII_WORD.finditer(lower)]
    found: list[tuple[str, int, int]] = []
    word, start, end = "", 0, 0
    for place, char in enumerate(lower if len(lower) == len(text) else text):
        for letter, is_alone in _letters(char):
            if not is_alone:
                start = start if word else place
                word += letter
                end = place + 1
                continue
            if word:
                found.append((word, start, end))
                word = ""
            if letter != " ":
                found.append((letter, place, place + 1))
    return [*found, (word, start, end)] if word else found


@lru_cache(maxsize=65_536)
def _letters(char: str) -> Sequence[tuple[str, bool]]:
    """The letters of a character, without accents, and whether each stands alone, as spaces do."""
    category = unicodedata.category(char)
    if char in " \t\n\r" or category == "Zs":
        return ((" ", True),)
    if category in ("Cc", "Cf", "Co") or char == "\ufffd":
        return ()
    if char.isspace():
        return ((" ", True),)
    letters = [it for it in normalize("NFD", char.lower()) if unicodedata.category(it) != "Mn"]
    is_ideograph = bool(_IDEOGRAPHS.match(char))
    return tuple((it, is_ideograph or _is_sign(it)) for it in letters)


def _is_sign(char: str) -> bool:
    return not char.isalnum() if char.isascii() else unicodedata.category(char)[0] == "P"
