"""Quotation: recalled words stand in a window as data, which no text can leave.

Each line of a quoted text begins with "> ", whatever a text calls a line. The lines that do not
are ours, and hold of others' words only names, as one word among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memorist.records.query import Hit
from memorist.records.text import PASSAGE_CHARS

MARK = "> "
_CONTROL = re.compile(r"[^\w .,'’&()/#+@-]+")


def quoted(text: str) -> str:
    """The text with a mark before each line; "\\r", "\\u2028" and their like end lines too."""
    return "\n".join(f"{MARK}{line}" for line in text.splitlines() or [""])


def label(text: str, most: int = 80) -> str:
    """Others' words fit to stand in a line of ours."""
    return " ".join(_CONTROL.sub(" ", text).split())[:most].strip()


def day(moment: datetime) -> str:
    """A date as people write it."""
    return f"{moment.day} {moment:%B %Y}"


@dataclass(frozen=True, slots=True)
class Quote:
    """Something to be quoted: who or what it is, its text, when it was said, and its id.

    `score` says how well it fits the question, `excerpt` which part of it does.
    """

    id: str
    source: str
    text: str
    at: datetime | None = None
    score: float = 0.0
    excerpt: str = ""
    date: str = field(init=False, repr=False)  # the line above the first quotation of a day
    body: str = field(init=False, repr=False)  # the text, quoted; both are asked for often

    def __post_init__(self) -> None:
        object.__setattr__(self, "date", f"{day(self.at)}\n" if self.at else "")
        object.__setattr__(self, "body", quoted(self.text))

    def numbered(self, number: int) -> str:
        """The quotation under its number, which an answer may cite."""
        source = f" {self.source}:" if self.source else ""
        return f"[{number}]{source}\n{self.body}\n"


def quote_of(hit: Hit, whole: str | None = None) -> Quote:
    """What was recalled, in whole where that is known, with who said it, or what it is."""
    said_by = label(hit.speaker or hit.role or "")
    source = said_by if hit.kind == "message" else hit.kind
    return Quote(hit.id, source, whole or hit.text, hit.created_at, hit.score, hit.text)


def may_be_a_part(hit: Hit) -> bool:
    """Whether there may be more of the message than what was found of it."""
    return hit.why.start > 0 or len(hit.text) >= PASSAGE_CHARS // 2


def block(intro: str, quotes: Sequence[Quote], first: int = 1) -> str:
    """Quotations in the order of their dates, each date above the first that has it."""
    lines, shown = [f"{intro}\n"], ""
    for number, quote in enumerate(in_order(quotes), start=first):
        if quote.date != shown:
            lines.append(quote.date)
            shown = quote.date
        lines.append(quote.numbered(number))
    return "".join(lines)


def in_order(quotes: Iterable[Quote]) -> list[Quote]:
    """Oldest first; what has no date keeps its place at the front."""
    return sorted(quotes, key=lambda quote: quote.at.timestamp() if quote.at else 0.0)
