"""The gist of a question: of a long one, its beginning and its end.

People paste logs and code into a chat, and ask before or after them. All of it could not be
embedded and looked for in time, and would not say better what is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
# In bytes, since letters of most scripts cost an embedder more than those of English.
QUESTION_BYTES = 2_000  # in which words and names are looked for
GIST_BYTES = 320  # that are embedded: some 80 pieces, within the default deadline
_GAP = " ... "
_TORN_END = re.compile(r"(?<=\s)\S{0,20}\Z")  # longer is no word: it is cut anywhere
_TORN_START = re.compile(r"\A\S{0,20}(?=\s)")


def gist(text: str, most: int = GIST_BYTES) -> str:
    """A text of so many bytes or less as it is, of others the two ends, in whole words."""
    if len(text) <= most // 4 or len(text.encode(errors="replace")) <= most:
        return text
    spelled = text.strip().encode(errors="replace")
    if len(spelled) <= most:
        return text.strip()
    half = (most - len(_GAP)) // 2
    head = _TORN_END.sub("", spelled[:half].decode(errors="ignore"))
    tail = _TORN_START.sub("", spelled[-half:].decode(errors="ignore"))
    return f"{head.rstrip()}{_GAP}{tail.lstrip()}"


def ends(items: Sequence[T], most: int) -> list[T]:
    """The first and the last of many, together so many; all of a few."""
    if len(items) <= most:
        return list(items)
    first = most // 2
    return [*items[:first], *items[len(items) - (most - first) :]]
