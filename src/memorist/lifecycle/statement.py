"""A sentence that states something, what its rules match, and what its dates mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from memorist.language.dates import DateSpan, find_dates
from memorist.language.lexicon import Language, Rule, languages_of, plain
from memorist.language.patterns import PatternMatch
from memorist.language.people import names_someone
from memorist.language.text import HIDDEN
from memorist.lifecycle.clauses import Clauses
from memorist.lifecycle.marks import CERTAIN, RELATED, SURER_THAN_RULES, MarkedPart
from memorist.records.memories import COUPLES, PLANS
from memorist.records.values import later

STATEMENT_EDGES = " ,;:—–-，；：、(（"
OWN = frozenset(("identity", "preference"))  # groups of what is true of the speaker alone
POSTS = frozenset(("works at", "works as", "studies at"))
_DETAILS = frozenset(("birthday", "email", "phone", "address"))  # of which others have one, too
# What is said by saying what will not be: "I can't do dairy", "no sugar this month".
_REFUSALS = frozenset(("avoids", "dislikes", "diet", "allergic to"))
_HAD_TOO = frozenset(("related", "has child", "has pet"))
_DONE_TOO = OWN | {"decision", "project", "event"}
_WORD_END = re.compile(r"^\S+(?=\s)")
_WORD = re.compile(r"\w+")
_STAY = timedelta(days=32)  # shorter than that, nobody lives in a place; what happened is news
_PLANNED = timedelta(days=183)  # for which a plan without a day is taken to be one
_REMARKS = 3  # in brackets, one after the other: "my mate (the tall one) got a job"
_MENTION_CHARS = 8  # around those named: "my Anna"
_LEAD_CHARS = 12  # before a date: "from", "as of"
_DUE_CHARS = 8  # before a date: "by", "before"
_DATED_CHARS = 20  # between a partner and since when they are one: "Anna and I married in 2015"
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

    @property
    def is_surer_than_rules(self) -> bool:
        """Whether the reader found it, and is believed where a rule reads other words."""
        return isinstance(self.parts, MarkedPart) and self.parts.chance >= SURER_THAN_RULES

    @property
    def is_certain(self) -> bool:
        """Whether the reader found it, and nothing hides it."""
        return isinstance(self.parts, MarkedPart) and self.parts.chance >= CERTAIN

    @property
    def is_plan(self) -> bool:
        """Whether a rule finds a plan by more than its date."""
        return self.rule.predicate in PLANS and not (self.rule.alone or self.is_marked)

    def has_stated(self, place: int) -> bool:
        """Whether it has stated something before a place, and not only named a relative there."""
        named = [name for name, part in self.parts.groupdict().items() if part]
        spans = [self.parts.span(name) for name in named if name in ("relation", "object")]
        start, end = self.parts.span()
        if "object" in named and self.parts.end("object") >= end - 1 and not self.is_marked:
            end = self.parts.start("object")  # which may run on
        around = end - start - sum(stop - first for first, stop in spans if stop <= end)
        return end <= place + 1 and (self.rule.group != "relation" or around > _MENTION_CHARS)


class Statement(NamedTuple):
    """A sentence that states something, its speaker and its time."""

    text: str
    clauses: Clauses
    speaker: str
    said_at: datetime
    ahead: bool = False  # it is about the future
    plans: Sequence[tuple[int, int]] = ()  # where it tells of plans
    moved: bool = False  # what was said before it is that the speaker has moved

    def dates(self, group: str) -> list[DateSpan]:
        """The dates it names; its group of rules says whether they are past or future."""
        lean = 1 if self.ahead and group != "event" else _LEANS.get(group, 0)
        if lean not in self.clauses.dates:
            self.clauses.dates[lean] = find_dates(self.clauses.text, self.said_at, lean)
        return self.clauses.dates[lean]

    def all_dates(self, group: str, matches: list[RuleMatch]) -> list[DateSpan]:
        """The dates it names, those of plans and of ends ahead as such, all others by a group."""
        plans = [match for match in matches if match.rule.group == "plan"]
        clauses = [self.clauses.around(*match.parts.span()) for match in plans]
        begun = [it for it in matches if not it.rule.ends]
        days = [day for it in begun for day in (self.end_of(it), self.first_day(it)) if day]
        return [
            self.as_planned(span, [*clauses, *(day.place for day in days)])
            for span in self.dates(group)
        ]

    def as_planned(self, day: DateSpan, plans: Sequence[tuple[int, int]]) -> DateSpan:
        """A date, taken for one that is to come if it lies where plans are told."""
        if not any(first <= day.place[0] < last for first, last in plans):
            return day
        return next((it for it in self.dates("plan") if it.place == day.place), day)

    def told(self, matches: list[RuleMatch]) -> tuple[int, int]:
        """From where the first clause that a rule matches begins to where the last one ends.

        One that goes on about "it" is told with the clause before: "a whippet, she's called Pixel".
        """
        spans = [match.parts.span() for match in matches]
        start, end = min(span[0] for span in spans), max(span[1] for span in spans)
        first, last = self.clauses.around(min(start + 1, end), end)
        cues, said = matches[0].language.cues, plain(self.text[first:last])
        if first and (cues["names"].search(said) or cues["refers"].search(said)):
            before, _ = self.clauses.around(first - 1, last)
            first = first if HIDDEN in self.clauses.text[before:first] else before
        return first, last

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
        """The matches, without those of what a clause says will not be; a refusal is a claim."""
        off = [match for match in matches if match.rule.off and match.rule.group == "done"]
        read = [self.clauses.around(*match.parts.span()) for match in off]
        return [
            match
            for match in matches
            if match.rule.off
            or match.rule.gone
            or match.rule.predicate in (*_REFUSALS, *COUPLES)
            or all(distance(span, match.parts.span()) > 0 for span in read)
        ]

    def without_past_plans(self, matches: list[RuleMatch]) -> list[RuleMatch]:
        """The matches, without plans of a clause that tells what was done: "sind … umgezogen"."""
        done = [it for it in matches if it.rule.group == "event" and not it.is_marked]
        read = [it.parts.span() for it in done]
        return [
            match
            for match in matches
            if match.rule.group != "plan"
            or match.rule.predicate
            or not any(distance(span, match.parts.span()) == 0 for span in read)
        ]

    def is_about_other(self, match: RuleMatch) -> bool:
        """Whether a rule without a subject matches what the words before it say of others."""
        if self._is_had_by_other(match) or self.is_of_another(match):
            return True
        if match.is_marked:
            return not match.is_certain and self._goes_on_about(match)
        cues, start = match.language.cues, match.parts.start()
        named = match.parts.groupdict()
        has = match.rule.predicate == "related"  # "she got a cat called Milo"
        if (named.get("relation") and not has) or named.get("thing"):
            return False
        if self._names_speaker(match):
            return False
        if cues["own"].search(plain(match.parts[0])) and match.rule.predicate:
            return True  # "my colleague Sven uses Vim"
        joined = match.language.joins.match(plain(match.parts[0]))  # "and work at Siemens"
        if match.rule.group not in (_DONE_TOO if joined else OWN) and not has:
            return False
        before = (
            self._said_before(start) + self.text[start : start + (joined.end() if joined else 0)]
        )
        return bool(cues["subjects"].search(plain(before).rstrip()))

    def _said_before(self, start: int) -> str:
        """What its clause says before a place, without the last remarks in brackets."""
        said: list[str] = []
        for _ in range(_REMARKS):
            first, _ = self.clauses.around(start, start + 1)
            before = self.text[:start].rstrip()
            first = start if before.endswith(")") else first
            said.insert(0, self.text[first:start] if not said else self.text[first:start].rstrip())
            led = before if first == start else self.text[:first].rstrip()
            if not led.endswith(")") or "(" not in led:
                break
            start = led.rindex("(")
        return " ".join(said)

    def _names_speaker(self, match: RuleMatch) -> bool:
        """Whether a match names the speaker, and not only as whose colleague somebody is."""
        told, pronouns = plain(match.parts[0]), match.language.pronouns
        owns = [it.span() for it in match.language.cues["own"].finditer(told)]
        is_bare = match.rule.group in (*OWN, "project") and match.language.spaced
        if not is_bare or pronouns is None:
            return bool(owns)
        relatives = [it.span("person") for it in pronouns.mention.finditer(told)]
        return any(all(distance(own, it) > 0 for it in relatives) for own in owns)

    def _is_had_by_other(self, match: RuleMatch) -> bool:
        """Whether others have whom a match names: "my sister had twins, Max and Ruby".

        What a wife or a husband has is the speaker's, too; it is no wife.
        """
        predicate = str(match.rule.predicate)
        if predicate not in _HAD_TOO and not (match.is_marked and names_someone(predicate)):
            return False
        named = "object" if match.parts.groupdict().get("object") else 0
        told = plain(self.text[: match.parts.start(named)])
        is_own = match.language.cues["own"].search(plain(match.parts[0]))
        if not is_own and match.language.cues["whose"].search(told):
            return True  # "her husband and the kids, Max and Ruby"
        return any(
            (had not in COUPLES or predicate in COUPLES)
            and not match.language.cues["own"].search(told[end:])
            for had, end in _had_by(told, match.language)
        )

    def is_of_spouse(self, match: RuleMatch) -> bool:
        """Whether a rule says what the speaker's wife or husband has."""
        found = _had_by(match.parts[0], match.language)
        return match.rule.predicate in _HAD_TOO and any(had in COUPLES for had, _ in found)

    def _goes_on_about(self, match: RuleMatch) -> bool:
        """Whether a sentence that names another first, and no speaker, says what a mark reads."""
        is_own = match.language.cues["own"].search(plain(self.text))
        if match.rule.group not in OWN or match.rule.ends or is_own:
            return False
        told = plain(self.text[: match.parts.start()])
        first = _WORD_END.search(told)
        return first is not None and bool(
            match.language.cues["subjects"].search(told[: first.end()])
        )

    def is_of_another(self, match: RuleMatch) -> bool:
        """Whether a birthday or an address is that of somebody named: "Anna's email is …"."""
        if match.rule.predicate not in _DETAILS:
            return False
        start, end = match.parts.span("object" if match.parts.groupdict().get("object") else 0)
        first, last = self.clauses.around(start, end)
        cues, told = match.language.cues, plain(self.text[first:last])
        named = [it.end() for it in cues["anothers"].finditer(told)]
        begins = [end if end <= start - first else 0 for end in named]
        return any(not cues["own"].search(told[begin : start - first]) for begin in begins)

    def is_planned(self, match: RuleMatch, day: DateSpan) -> bool:
        """Whether a date ahead is when a claim begins, not of something else that is to come."""
        if match.rule.group == "plan":
            return True
        cues, (start, end) = match.language.cues, match.parts.span()
        first, last = self.clauses.around(min(start + 1, end - 1), end)
        told = self.clauses.text[first : min(last, max(end, day.place[0]))]
        if cues["nows"].search(told):  # "it's Linz now but from June I'll be in Vienna"
            return False
        if not first <= day.place[0] < last:  # "first day at Lumen next week, as an engineer"
            return self.ahead and not cues["own"].search(self.clauses.text[first:last])
        said = self.clauses.text[first : max(end, day.place[0])]
        is_led = cues["from"].search(self._led(day, first))
        if match.rule.predicate in COUPLES:  # "me and Tom want to go to Rome in June"
            return bool(is_led)
        return bool(is_led) or not cues["states"].search(said)

    def _led(self, day: DateSpan, first: int) -> str:
        """A date with what leads to it in its clause: "from June"."""
        return self.clauses.text[max(first, day.place[0] - _LEAD_CHARS) : day.place[1]]

    def is_of_plan(self, first: int, last: int, day: DateSpan) -> bool:
        """Whether a date, taken for a past one, is that of a plan outside of some clauses."""
        outside = day.start <= self.said_at and not first <= day.place[0] < last
        return outside and any(start <= day.place[0] < end for start, end in self.plans)

    def dates_claim(self, match: RuleMatch, day: DateSpan) -> bool:
        """Whether a date is when a claim began: a sister is one before, a figure may be a date.

        A date far from a partner is that of something else: "me and Tom want to see Rome in June".
        """
        if match.is_marked and match.rule.predicate in COUPLES:
            return distance(match.parts.span(), day.place) <= _DATED_CHARS
        if match.rule.predicate == "related":
            return False
        if match.rule.group != "figure":
            return True
        apart = distance(match.parts.span("object"), day.place) > 0
        return apart and bool(match.language.cues["from"].search(self._led(day, 0)))

    def clause_of(self, match: RuleMatch) -> tuple[int, int]:
        """Where the clause of a match begins and ends; a match begins at the edge of a word."""
        start, end = match.parts.span()
        first, last = self.clauses.around(min(start + 1, end - 1), end)
        if first and self.says_only_dates(first, last, match):
            first = self.clauses.around(max(first - 1, 0), end)[0]  # they are that clause's
        return first, last

    def needs_clause(self, match: RuleMatch) -> bool:
        """Whether a plan is told by its clause alone: a mere date, or what another one plans."""
        start, end = match.parts.span()
        if not match.is_marked or match.rule.ends:
            return False
        before = plain(self.text[self.clauses.around(start, end)[0] : start]).rstrip()
        is_of_other = before and match.language.cues["subjects"].search(before)
        return bool(is_of_other) or self.says_only_dates(start, end, match)

    def says_only_dates(self, first: int, last: int, match: RuleMatch) -> bool:
        """Whether all that a stretch of text says is dates, or what moves or starts then."""
        spans = [it.place for it in self.dates(match.rule.group)]
        spans = [span for span in spans if span[0] < last and first < span[1]]
        start, end = (spans[0][0], spans[-1][1]) if spans else (last, last)
        around = f"{self.text[first:start]} {self.text[end:last]}"
        for cue in ("moves", "starting"):
            around = match.language.cues[cue].sub(" ", plain(around))
        return match.language.common.issuperset(_WORD.findall(around.lower()))

    def is_moved(self, match: RuleMatch) -> bool:
        """Whether a plan is said to have another date now, one that is ahead."""
        first, last = self.clause_of(match)
        days = (it for it in self.dates(match.rule.group) if first <= it.place[0] < last)
        ahead = any(day.end > self.said_at for day in days)
        told = self.clauses.text[first:last]
        return ahead and any(one.cues["moves"].search(told) for one in languages_of(self.text))

    def end_of_plan(self, match: RuleMatch) -> datetime | None:
        """When the last day ahead that a plan names is over; a task that is due by then goes on."""
        first, last = self.clause_of(match)
        days = [it for it in self.dates(match.rule.group) if first <= it.place[0] < last]
        if match.rule.standing:  # a request, which is hidden by now
            days = find_dates(self.text[match.parts.start() : match.parts.end()], self.said_at, 1)
        spans = ((max(first, it.place[0] - _DUE_CHARS), it.place[1] + 2) for it in days)
        led = (self.clauses.text[start:end] for start, end in spans)
        if any(map(match.language.cues["due"].search, led)):
            return None
        ends = [it.end for it in days if it.end > self.said_at]
        brief = match.language.cues["brief"].search(self.clauses.text[first:last])
        if ends:
            return max(ends)
        lasts = _STAY if brief or match.rule.predicate != PLANS[0] else _PLANNED
        return later(self.said_at, lasts)

    def end_of(self, match: RuleMatch) -> DateSpan | None:
        """The date ahead until which a claim holds, if its clause names one: "until June"."""
        first, last = self.clauses.around(*match.parts.span())
        holds = match.language.cues["states"].search(self.clauses.text[first:last])
        spans = self.dates("plan" if holds else match.rule.group)  # next June, or the last
        for span in (it for it in spans if it.end > self.said_at):
            led = match.language.cues["until"].search(self._led(span, first))
            if first <= span.place[0] < last and led:
                return span
        return None

    def first_day(self, match: RuleMatch) -> DateSpan | None:
        """The day ahead on which the speaker moves to a home that is found, or starts in a post."""
        cues, (first, last) = match.language.cues, self.clauses.around(*match.parts.span())
        told = self.clauses.text[first:last]
        if match.rule.predicate in POSTS and cues["posts"].search(told):
            begins, apart = cues["starting"], _DUE_CHARS
        elif match.rule.predicate == "lives in" and not cues["lived"].search(told):
            begins, apart = cues["moving"], _LEAD_CHARS
        else:
            return None
        days = [span for span in self.dates("plan") if span.start > self.said_at]
        places = [found.span() for found in begins.finditer(self.clauses.text)]
        near = (day for place in places for day in days if distance(place, day.place) < apart)
        return next(near, None)

    def is_of_home(self, match: RuleMatch) -> bool:
        """Whether a place is said of a flat or a street, and of no move: "the flat is in Mitte"."""
        cues, (first, last) = match.language.cues, self.clauses.around(*match.parts.span())
        moved = self.moved or cues["settles"].search(self.clauses.text)
        return not moved and bool(cues["dwellings"].search(self.clauses.text[first:last]))

    def is_sought(self, match: RuleMatch) -> bool:
        """Whether a post is one that the speaker asks for: "I applied for a job at Siemens"."""
        named = "object" if match.parts.groupdict().get("object") else 0
        first, last = self.clauses.around(*match.parts.span(named))
        said, end = self.clauses.text[first:last], match.parts.end(named) - first
        sought = match.language.cues["seeks"].search(said)  # "joined the Selwood bowls club"
        if sought is None or sought.start() >= end:
            return False
        return not match.language.joins.search(said[sought.end() : end])

    def lasts(self, match: RuleMatch) -> bool:
        """Whether what is planned until a date is so all the time, and not to be done by then."""
        first, last = self.clauses.around(*match.parts.span())
        return bool(match.language.cues["lasts"].search(self.clauses.text[first:last]))

    def is_stay(self, match: RuleMatch) -> bool:
        """Whether a place is where the speaker only is for some days: "in Oslo until Friday"."""
        cues, (first, last) = match.language.cues, self.clauses.around(*match.parts.span())
        clause = self.clauses.text[first:last]
        if cues["settles"].search(clause):
            return False
        spans = [it for it in self.dates("plan") if first <= it.place[0] < last]
        until = self.end_of(match)
        if until is not None:
            return until.end - self.said_at < _STAY
        return bool(cues["brief"].search(clause)) or any(
            span.end > self.said_at
            and span.end - span.start < _STAY
            and not cues["from"].search(self._led(span, first))
            for span in spans
        )

    def part(self, match: RuleMatch, name: str) -> str:
        """A part of a match, as it was written."""
        return self.text[match.parts.start(name) : match.parts.end(name)]


def distance(one: tuple[int, int], other: tuple[int, int]) -> int:
    return max(one[0] - other[1], other[0] - one[1], 0)


def _had_by(told: str, language: Language) -> Iterator[tuple[str, int]]:
    """The predicates that name relatives of whom a text tells what they have, and where."""
    for had in language.cues["theirs"].finditer(told):
        relation = language.relations.get((had["relation"] or "").lower(), "")
        yield RELATED.get(relation, ""), had.end()
