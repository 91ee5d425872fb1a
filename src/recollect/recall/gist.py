"""The gist of a question: of a long one, its beginning and its end.

People paste logs and code into a chat, and ask before or after them. All of it could not be
embedded and looked for in time, and would not say better what is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
QUESTION_CHARS = 2_000  # of which the words and the names are looked for
GIST_CHARS = 600  # that are embedded: what is asked, and not much of what was pasted
_GAP = " ... "
_TORN_END = re.compile(r"(?<=\s)\S{0,40}\Z")  # longer is no word: it is cut anywhere
_TORN_START = re.compile(r"\A\S{0,40}(?=\s)")


def gist(text: str, most: int = GIST_CHARS) -> str:
    """A text that is not longer than that, or so much of its two ends, in whole words."""
    if len(text) <= most or len(text := text.strip()) <= most:
        return text
    half = (most - len(_GAP)) // 2
    # One character more than is wanted, to see whether a word ends there.
    head, tail = _TORN_END.sub("", text[: half + 1]), _TORN_START.sub("", text[-half - 1 :])
    return f"{head[:half].rstrip()}{_GAP}{tail[-half:].lstrip()}"


def ends(items: Sequence[T], most: int) -> list[T]:
    """The first and the last of many, together so many; all of a few."""
    if len(items) <= most:
        return list(items)
    first = most // 2
    return [*items[:first], *items[len(items) - (most - first) :]]
