"""Packing: as many quotations as fit, the best first."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.context.quote import Quote
from recollect.context.tokens import Counter

WIDEST = 999  # no number of a quotation takes more tokens


class Packing:
    """Quotations and what each of them takes in a block; counted once, and all in one go."""

    def __init__(self, counter: Counter, frame: str) -> None:
        self._counter = counter
        self._frame = frame
        self._tokens: dict[str, int] = {}

    def pick(self, quotes: Sequence[Quote], already: Sequence[Quote], room: int) -> list[Quote]:
        """Those that are in already, and of the others, best first, all that still fit.

        What does not fit is passed over for what does.
        """
        shown = {quote: quote.numbered(WIDEST) for quote in quotes}
        self._count([self._frame, *shown.values(), *(quote.date for quote in quotes)])
        picked, dates = list(already), {quote.date for quote in already}
        inside = {quote.id for quote in already}
        left = room if already else room - self._tokens[self._frame]
        for quote in sorted(quotes, key=lambda one: -_worth(one, self._tokens[shown[one]])):
            cost = self._tokens[shown[quote]]
            cost += 0 if quote.date in dates else self._tokens[quote.date]
            if quote.id not in inside and cost <= left:
                left -= cost
                picked.append(quote)
                inside.add(quote.id)
                dates.add(quote.date)
        return picked

    def _count(self, texts: Sequence[str]) -> None:
        fresh = [text for text in dict.fromkeys(texts) if text not in self._tokens]
        self._tokens.update(zip(fresh, self._counter.texts(fresh), strict=True))


def _worth(quote: Quote, tokens: int) -> float:
    """How well it fits, a little less the more room it takes: two short ones may say more."""
    return quote.score / float(max(tokens, 1) ** 0.15)
