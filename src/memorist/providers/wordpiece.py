"""WordPiece: text to the numbers that BERT models read, in pure Python."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

_MAX_WORD_CHARS = 100
_IDEOGRAPH = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f"
    "\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\U0002f800-\U0002fa1f"
)
_ASCII_WORD = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
_IDEOGRAPHS = re.compile(f"([{_IDEOGRAPH}])")


class WordPiece:
    """The uncased tokenizer of BERT over a vocabulary, one piece a line."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        pieces = {piece.rstrip("\n"): id_ for id_, piece in enumerate(vocabulary)}
        self.start, self.stop, self.unknown = (pieces[f"[{it}]"] for it in ("CLS", "SEP", "UNK"))
        self._pieces = pieces
        self._longest = max(map(len, pieces))
        # A chat repeats its words: most are looked up, few are cut.
        self._cut = lru_cache(maxsize=65_536)(self._cut_word)

    def encode(self, text: str, limit: int) -> list[int]:
        """At most `limit` pieces of the text, without the marks at its ends."""
        ids: list[int] = []
        for word in split(text):
            ids += self._cut(word)
            if len(ids) >= limit:
                return ids[:limit]
        return ids

    def _cut_word(self, word: str) -> Sequence[int]:
        """The longest known pieces from the left, or one unknown for the whole word."""
        if len(word) > _MAX_WORD_CHARS:
            return (self.unknown,)
        ids, start = [], 0
        while start < len(word):
            mark = "##" if start else ""
            for stop in range(min(len(word), start + self._longest), start, -1):
                found = self._pieces.get(mark + word[start:stop])
                if found is not None:
                    ids.append(found)
                    start = stop
                    break
            else:
                return (self.unknown,)
        return tuple(ids)


def split(text: str) -> list[str]:
    """Words and signs in lower case, without accents, ideographs apart."""
    if text.isascii():
        if text.isprintable():
            return _ASCII_WORD.findall(text.lower())
        text = "".join(_clean(char) for char in text)
        return _ASCII_WORD.findall(text.lower())
    text = _IDEOGRAPHS.sub(r" \1 ", "".join(_clean(char) for char in text))
    words = []
    for word in text.split():
        plain = unicodedata.normalize("NFD", word.lower())
        words += _split_signs(char for char in plain if unicodedata.category(char) != "Mn")
    return words


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


def _is_sign(char: str) -> bool:
    if char.isascii():
        return not char.isalnum()
    return unicodedata.category(char)[0] == "P"


def read_pieces(folder: Path) -> WordPiece:
    """The tokenizer over the model's own vocabulary."""
    with (folder / "vocab.txt").open(encoding="utf-8") as lines:
        return WordPiece(lines)
