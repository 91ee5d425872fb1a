"""A sentence that states something, what its rules match, and what its dates mean."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from memorist.language.dates import DateSpan, find_dates
from memorist.language.lexicon import Language, Rule, plain
from memorist.language.patterns import PatternMatch
from memorist.lifecycle.clauses import Clauses
from memorist.lifecycle.marks import MarkedPart

STATEMENT_EDGES = " ,;:—–-，；：、(（"
OWN = frozenset(("identity", "preference"))  # groups of what is true of the speaker alone
_DONE_TOO = OWN | {"decision", "project", "event"}
_STAY = timedelta(days=32)  # shorter than that, nobody lives in a place
_LEAD_CHARS = 12  # before a date: "from", "as of"
# Whether a date without its year means the last one (-1) or the next one (1).
_LEANS: Mapping[str, int] = {"plan": 1, "event": -1, "identity": -1, "relation": -1, "decision": -1}


class RuleMatch(NamedTuple):
    """A rule that matches a sentence, and where."""

    rule: Rule
    parts: PatternMatch
    language: Language

    @property
    def is_marked(self) -> bool:
        """Whether the reader found it, not a rule."""
        return isinstance(self.parts, MarkedPart)


class Statement(NamedTuple):
    """A sentence that states something, its speaker and its time."""

    text: str
    clauses: Clauses
    speaker: str
    said_at: datetime
    ahead: bool = False  # it is about the future

    def dates(self, group: str) -> list[DateSpan]:
        """The dates it names; its group of rules says whether they are past or future."""
        lean = 1 if self.ahead and group != "event" else _LEANS.get(group, 0)
        if lean not in self.clauses.dates:
            self.clauses.dates[lean] = find_dates(self.clauses.text, self.said_at, lean)
        return self.clauses.dates[lean]

    def all_dates(self, group: str, matches: list[RuleMatch]) -> list[DateSpan]:
        """The dates it names, those in the clauses of plans as a plan's, all others by a group."""
        plans = [match for match in matches if match.rule.group == "plan"]
        clauses = [self.clauses.around(*match.parts.span()) for match in plans]
        ahead = {span.place: span for span in self.dates("plan")}
        return [
            ahead.get(span.place, span)
            if any(first <= span.place[0] < last for first, last in clauses)
            else span
            for span in self.dates(group)
        ]

    def told(self, matches: list[RuleMatch]) -> str:
        """The clauses from the first to the last that a rule matches."""
        spans = [match.parts.span() for match in matches]
        start, end = min(span[0] for span in spans), max(span[1] for span in spans)
        first, last = self.clauses.around(min(start + 1, end), end)
        return self.text[first:last].strip(STATEMENT_EDGES)

    def without_idle(self, matches: list[RuleMatch]) -> list[RuleMatch]:
        """The matches, without those of `alone` rules in clauses that other rules read."""
        read = [
            self.clauses.around(*match.parts.span())
            for match in matches
            if not match.rule.alone and match.rule.group not in ("relation", "figure", "done")
        ]
        return [
            match
            for match in matches
            if not match.rule.alone or all(distance(span, match.parts.span()) > 0 for span in read)
        ]

    def without_called_off(self, matches: list[RuleMatch]) -> list[RuleMatch]:
        """The matches, without those of what a clause says will not be."""
        off = [match for match in matches if match.rule.off and match.rule.group == "done"]
        read = [self.clauses.around(*match.parts.span()) for match in off]
        return [
            match
            for match in matches
            if match.rule.off
            or match.rule.gone
            or all(distance(span, match.parts.span()) > 0 for span in read)
        ]

    def is_about_other(self, match: RuleMatch) -> bool:
        """Whether a rule without a subject matches what the words before it say of others."""
        if match.is_marked:
            return False
        cues, (start, end) = match.language.cues, match.parts.span()
        named = match.parts.groupdict()
        if named.get("relation") or named.get("thing") or cues["own"].search(self.text[start:end]):
            return False
        joined = match.language.joins.match(plain(match.parts[0]))  # "and work at Siemens"
        if match.rule.group not in (_DONE_TOO if joined else OWN):
            return False
        first, _ = self.clauses.around(start, start + 1)
        before = self.text[first : start + (joined.end() if joined else 0)]
        return bool(cues["subjects"].search(plain(before).rstrip()))

    def is_planned(self, match: RuleMatch, day: DateSpan) -> bool:
        """Whether a date ahead is when a claim begins, not of something else that is to come."""
        if match.rule.group == "plan":
            return True
        cues, (start, end) = match.language.cues, match.parts.span()
        first, last = self.clauses.around(min(start + 1, end - 1), end)
        if not first <= day.place[0] < last:  # "first day at Lumen next week, as an engineer"
            return self.ahead and not cues["own"].search(self.clauses.text[first:last])
        said = self.clauses.text[first : max(end, day.place[0])]
        led = self.clauses.text[max(first, day.place[0] - _LEAD_CHARS) : day.place[1]]
        return bool(cues["from"].search(led)) or not cues["states"].search(said)

    def dates_claim(self, match: RuleMatch, day: DateSpan) -> bool:
        """Whether a date is when a claim began: a sister is one before, a figure may be a date."""
        if match.rule.predicate == "related":
            return False
        if match.rule.group != "figure":
            return True
        led = self.clauses.text[max(0, day.place[0] - _LEAD_CHARS) : day.place[1]]
        apart = distance(match.parts.span("object"), day.place) > 0
        return apart and bool(match.language.cues["from"].search(led))

    def end_of(self, match: RuleMatch, spans: list[DateSpan]) -> DateSpan | None:
        """The date ahead until which a claim holds, if its clause names one: "until June"."""
        first, last = self.clauses.around(*match.parts.span())
        for span in (it for it in spans if it.end > self.said_at):
            led = self.clauses.text[max(first, span.place[0] - _LEAD_CHARS) : span.place[1]]
            if first <= span.place[0] < last and match.language.cues["until"].search(led):
                return span
        return None

    def is_of_home(self, match: RuleMatch) -> bool:
        """Whether a place is said of a flat or a street, and of no move: "the flat is in Mitte"."""
        cues, (first, last) = match.language.cues, self.clauses.around(*match.parts.span())
        moved = cues["settles"].search(self.clauses.text)
        return not moved and bool(cues["dwellings"].search(self.clauses.text[first:last]))

    def is_stay(self, match: RuleMatch) -> bool:
        """Whether a place is where the speaker only is for some days: "in Oslo until Friday"."""
        cues, (first, last) = match.language.cues, self.clauses.around(*match.parts.span())
        clause = self.clauses.text[first:last]
        if cues["settles"].search(clause):
            return False
        spans = [it for it in self.dates("plan") if first <= it.place[0] < last]
        until = self.end_of(match, spans)
        if until is not None:
            return until.end - self.said_at < _STAY
        return bool(cues["brief"].search(clause)) or any(
            span.end > self.said_at
            and span.end - span.start < _STAY
            and not cues["from"].search(clause[: span.place[0] - first][-_LEAD_CHARS:])
            for span in spans
        )

    def part(self, match: RuleMatch, name: str) -> str:
        """A part of a match, as it was written."""
        return self.text[match.parts.start(name) : match.parts.end(name)]


def distance(one: tuple[int, int], other: tuple[int, int]) -> int:
    return max(one[0] - other[1], other[0] - one[1], 0)
