"""Pieces: the sentences and longer clauses of a text in any script, in their own words."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_PIECE_CHARS = 320

_FENCED = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_END = re.compile(r"(?<![.!?…;])[.!?…;]+[\"'”’»)\]]*(?=\s)|[。！？；।॥؟۔]+[”」』）]*|\n+")
_LAST_WORD = re.compile(r"(?:^|\W)(?:[^\W\d_]|\d{1,2})$")  # an initial, or an ordinal


def pieces(text: str) -> Iterator[str]:
    """The pieces of what a text says, without its code; an endless one is cut to length."""
    if "```" in text or "~~~" in text:
        text = _FENCED.sub("\n", text)
    start = 0
    for end in _END.finditer(text):
        if end[0] == "." and _LAST_WORD.search(text, max(0, end.start() - 3), end.start()):
            continue
        yield from _whole(text[start : end.end()])
        start = end.end()
    yield from _whole(text[start:])


def _whole(piece: str) -> Iterator[str]:
    if len(piece) > MAX_PIECE_CHARS:
        piece = cut(piece, MAX_PIECE_CHARS)
    if any(map(str.isalnum, piece)):
        yield piece


def cut(text: str, longest: int) -> str:
    """The beginning of a text, up to a word's end where there are words, with a mark."""
    if len(text) <= longest:
        return text
    head = text[: longest - 1]
    space = head.rfind(" ", longest // 2)
    return f"{head[:space] if space > 0 else head}…"
