"""The clauses of a sentence, and which of them state something."""

from __future__ import annotations

from bisect import bisect_right, insort

from memorist.language.dates import DateSpan
from memorist.language.patterns import Pattern
from memorist.language.text import HIDDEN

_ASKED = Pattern(r"[?？]\W*$")
_FILLER_CHARS = 6  # before what a clause begins with: "haha"
_REMARK_CHARS = 20  # of a clause that only comments on another


class Clauses:
    """The clauses of a sentence; those that state nothing are blanked, letter for letter."""

    def __init__(self, text: str, pauses: Pattern) -> None:
        self.text = text
        self.dates: dict[int, list[DateSpan]] = {}
        cuts = [pause.span() for pause in pauses.finditer(text)]
        self._starts = [0, *(end for _, end in cuts if end < len(text))]
        self._ends = [*(start for start, end in cuts if end < len(text)), len(text)]

    def around(self, start: int, end: int) -> tuple[int, int]:
        """From the start of the clause of one place to the end of that of another."""
        first = bisect_right(self._starts, start) - 1
        return self._starts[first], max(self._ends[bisect_right(self._starts, end - 1) - 1], end)

    def split(self, end: int, start: int) -> None:
        """End a clause at a place inside of it, and begin another at the next."""
        insort(self._ends, end)
        insort(self._starts, start)

    def blank(self, cue: Pattern, *, rest: bool = False, begun: bool = False) -> None:
        """Blank each clause with a cue, with `rest` all that follow, with `begun` if it begins."""
        for found in cue.finditer(self.text):
            first = min(found.start() + 1, len(self.text) - 1)  # after the edge of its first word
            start, end = self.around(first, first + 1)
            begins = begun and found.start() - start < _FILLER_CHARS
            remarks = (rest or begun) and end - start < _REMARK_CHARS
            if remarks and start:  # "…, just kidding" is about what precedes
                start = self.around(start - 1, start)[0]
            self._hide(start, len(self.text) if rest or begins else end)

    def hide(self, cue: Pattern) -> None:
        """Blank just what a cue matches, which may go over several clauses."""
        for found in cue.finditer(self.text):
            self._hide(*found.span())

    def blank_questions(self, asks: Pattern) -> None:
        """Blank the clauses that ask for something; a question does so to its end."""
        asked = bool(_ASKED.search(self.text))
        asking = [start for start in self._starts if asks.match(self.text[start:])]
        if asked:
            self._hide((asking or self._starts[-1:])[0], len(self.text))
        for start in asking:
            self._hide(*self.around(start, start + 1))

    def _hide(self, start: int, end: int) -> None:
        self.text = self.text[:start] + HIDDEN * (end - start) + self.text[end:]
