"""Quotations: recalled text stands in a window as data, and cannot pose as anything else.

Every line of a quoted text begins with "> ", whatever the text counts as a line end. Lines without
that mark are ours; other people's words are not in them, not even a name or a title.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from math import log

from memorist.context.tokens import TokenCounter
from memorist.language.text import PASSAGE_CHARS
from memorist.records.query import Hit

MARK = "> "
ALSO = "also:\n"
JUST_SAID = timedelta(seconds=10)  # in which a message may have no vector, so that it ranks low
QUOTED_SHARE = 0.45  # of the best hit's ranking: fewer tokens for the same evidence than a floor
_CONTROL = re.compile(r"[^\w .,'’&()/#+@-]+")


def quoted(text: str) -> str:
    """The text with a mark before each line; "\\r", "\\u2028" and the like end lines too."""
    return "\n".join(f"{MARK}{line}" for line in text.splitlines() or [""])


def label(text: str, most: int = 80) -> str:
    """A name or a title on one line, of harmless characters."""
    return " ".join(_CONTROL.sub(" ", text).split())[:most].strip()


@dataclass(frozen=True, slots=True)
class Quote:
    """Something to quote: its id, its role or kind, its text, and when it was said.

    `score` tells how well it fits the question, `excerpt` is the part of it that was found. `name`
    is who said it or where it stands: the words of others, so it is quoted above the text. The line
    before tells that it is there, as a text may begin with a name, too.
    """

    id: str
    source: str
    text: str
    at: datetime | None = None
    score: float = 0.0
    excerpt: str = ""
    name: str = ""
    date: str = field(init=False, repr=False)  # "3 March 2026", the line above those of a day
    header: str = field(init=False, repr=False)  # who said it, above what one says in a row
    body: str = field(init=False, repr=False)  # the text, quoted; all are needed often

    def __post_init__(self) -> None:
        object.__setattr__(self, "date", _day(self.at.date()) if self.at else "")
        source = f"{self.source}{', named' if self.name else ''}:\n" if self.source else ""
        name = f"{quoted(f'{self.name}:')}\n" if self.name else ""
        object.__setattr__(self, "header", source + name)
        object.__setattr__(self, "body", f"{quoted(self.text)}\n")

    def numbered(self, number: int) -> str:
        """The quotation with its number, which an answer may cite."""
        break_ = " " if self.source else "\n"
        return f"[{number}]{break_}{self.header}{self.body}"


@lru_cache(maxsize=1_024)
def _day(day: date) -> str:
    return f"{day.day} {day:%B %Y}\n"


def quote_of(hit: Hit, whole: str | None = None) -> Quote:
    """A hit as a quotation, with the `whole` text of its message if that is known."""
    is_message = hit.kind == "message"
    over = f"partly {hit.partly_over}" if hit.partly_over else hit.over
    labels = (hit.role if is_message else hit.kind, hit.origin, over)
    source = ", ".join(filter(None, labels))
    name = label(hit.speaker or "") if is_message else ""
    rank = sum(hit.why.parts.values())
    return Quote(hit.id, source, whole or hit.text, hit.created_at, rank, hit.text, name)


def near_the_best(hits: Sequence[Hit]) -> list[Hit]:
    """The hits whose ranking is at least a share of the best one's, and what was just said."""
    ranks = [*map(_rank, hits)]
    least, ranked = QUOTED_SHARE * max(ranks, default=0.0), zip(hits, ranks, strict=True)
    return [hit for hit, rank in ranked if rank >= least or _has_no_vector_yet(hit)]


def _has_no_vector_yet(hit: Hit) -> bool:
    return hit.why.age < JUST_SAID and "meaning" not in hit.why.scores


def _rank(hit: Hit) -> float:
    """What the hit was ranked by: closer together than probabilities.

    What the net adds is left out: it tells what comes first, not how much may be of use.
    """
    return sum(part for name, part in hit.why.parts.items() if name != "learned")


def may_be_a_part(hit: Hit) -> bool:
    """Whether the message may be longer than the passage that was found."""
    return hit.why.start > 0 or len(hit.text) >= PASSAGE_CHARS // 2


def block(intro: str, quotes: Sequence[Quote], *, numbered: bool = False) -> str:
    """Quotations below an intro, undated ones and the oldest first, dates above their first.

    Unless they are numbered, who said several in a row is told once, and "also:" above the others.
    """
    lines, date, above = [f"{intro}\n"], "", None
    ordered = sorted(quotes, key=lambda quote: quote.at.timestamp() if quote.at else 0.0)
    for number, quote in enumerate(ordered, start=1):
        if quote.date != date:
            lines.append(quote.date)
            date, above = quote.date, None
        header = ALSO if quote.header == above else quote.header or "\n"
        lines.append(quote.numbered(number) if numbered else f"{header}{quote.body}")
        above = quote.header
    return "".join(lines)


WIDEST = 999  # the number that a numbered quotation is counted with


class Packing:
    """Chooses quotations for a number of tokens; each text is counted only once."""

    def __init__(self, counter: TokenCounter, frame: str) -> None:
        self._counter = counter
        self._frame = frame
        self._tokens: dict[str, int] = {}

    def pick(self, quotes: Sequence[Quote], room: int) -> list[Quote]:
        """The best quotations that fit into `room` tokens; ones that do not fit are skipped.

        Of those that are too long, the excerpts that were found come last, if they fit.
        """
        self._count([self._frame, *(quote.date for quote in quotes)])
        picked: list[Quote] = []
        left = self._add(quotes, picked, room - self._tokens[self._frame])
        inside = {quote.id for quote in picked}
        parts = [
            replace(quote, text=quote.excerpt)
            for quote in quotes
            if quote.id not in inside and 0 < len(quote.excerpt) < len(quote.text)
        ]
        self._add(parts, picked, left)
        return picked

    def _add(self, quotes: Sequence[Quote], picked: list[Quote], left: int) -> int:
        """Add what fits to `picked`, the best first; return the tokens that are left."""
        shown = [f"{quote.header}{quote.body}" for quote in quotes]
        self._count(shown)
        costs = zip(quotes, (self._tokens[text] for text in shown), strict=True)
        dates = {quote.date for quote in picked}
        for quote, cost in sorted(costs, key=_worth, reverse=True):
            cost += 0 if quote.date in dates else self._tokens[quote.date]
            if cost <= left:
                left -= cost
                picked.append(quote)
                dates.add(quote.date)
        return left

    def _count(self, texts: Sequence[str]) -> None:
        fresh = [text for text in dict.fromkeys(texts) if text not in self._tokens]
        self._tokens.update(zip(fresh, self._counter.texts(fresh), strict=True))


def _worth(costed: tuple[Quote, int]) -> float:
    """The score, a little lower for long quotations: two short ones may say more."""
    quote, tokens = costed
    return quote.score - 0.15 * log(max(tokens, 1))
