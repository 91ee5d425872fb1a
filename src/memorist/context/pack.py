"""Packing: as many quotations as fit, the best first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memorist.context.quote import Quote
from memorist.context.tokens import Counter

WIDEST = 999  # no number of a quotation takes more tokens
LEAST_SCORE = 1e-6  # what is worth nothing is worth less the longer it is, too


class Packing:
    """Quotations and what each of them takes in a block; counted once, and all in one go."""

    def __init__(self, counter: Counter, frame: str) -> None:
        self._counter = counter
        self._frame = frame
        self._tokens: dict[str, int] = {}

    def pick(self, quotes: Sequence[Quote], room: int) -> list[Quote]:
        """The best that fit; what does not is passed over for what does.

        Of what is too long, the part that was found comes last, if it still fits.
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
        """Take what fits, the best first; how much is left."""
        shown = [quote.numbered(WIDEST) for quote in quotes]
        self._count(shown)
        costs = [self._tokens[text] for text in shown]
        dates = {quote.date for quote in picked}
        order = sorted(range(len(quotes)), key=lambda at: -_worth(quotes[at], costs[at]))
        for quote, cost in ((quotes[at], costs[at]) for at in order):
            cost += 0 if quote.date in dates else self._tokens[quote.date]
            if cost <= left:
                left -= cost
                picked.append(quote)
                dates.add(quote.date)
        return left

    def _count(self, texts: Sequence[str]) -> None:
        fresh = [text for text in dict.fromkeys(texts) if text not in self._tokens]
        self._tokens.update(zip(fresh, self._counter.texts(fresh), strict=True))


def _worth(quote: Quote, tokens: int) -> float:
    """How well it fits, a little less the more room it takes: two short ones may say more."""
    return max(quote.score, LEAST_SCORE) / float(max(tokens, 1) ** 0.15)
