"""The gist of a question: of a long one, its beginning and its end.

People paste logs and code into a chat, and ask before or after them. All of it could not be
embedded and looked for in time, and would not say better what is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
QUESTION_CHARS = 2_000  # of which the words and the names are looked for
GIST_CHARS = 600  # that are embedded: what is asked, and not much of what was pasted
_GAP = " ... "


def gist(text: str, most: int = GIST_CHARS) -> str:
    """A text that is not longer than that, or so much of its two ends, in whole words."""
    text = text.strip() if len(text) > most else text
    if len(text) <= most:
        return text
    half = (most - len(_GAP)) // 2
    head, tail = text[: half + 1], text[-half - 1 :]  # one more, to see whether a word ends there
    words, rest = head.rsplit(maxsplit=1)[0], tail.split(maxsplit=1)[-1]
    return f"{words[:half]}{_GAP}{rest[-half:]}"


def ends(items: Sequence[T], most: int) -> list[T]:
    """The first and the last of many, together so many; all of a few."""
    if len(items) <= most:
        return list(items)
    first = most // 2
    return [*items[:first], *items[len(items) - (most - first) :]]
