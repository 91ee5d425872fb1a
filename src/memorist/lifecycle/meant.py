"""What facts a statement means: what a correction corrects, which plan has another date now."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from memorist.language.dates import dated, find_dates
from memorist.language.lexicon import languages_of, plain
from memorist.language.likeness import is_passed_over, is_put_off, is_reversed
from memorist.language.patterns import Pattern, escape
from memorist.language.people import People, names_someone
from memorist.language.text import is_single_valued, stems
from memorist.lifecycle.marks import RELATED
from memorist.records.memories import FIRST, PLANS, Candidate, Claim, Fact, MemoryItem, plain_text

_VERSION = Pattern(r"\s+v?\d[\w.]*$")
_DAY = re.compile(r"(\d{1,2})(st|nd|rd|th|\.)?")
_FIGURE = re.compile(r"\w*\d+(?:[.:]\d+)*\w*")
_DAY_ALONE = re.compile(r"^\D*\b\d{1,2}(?:st|nd|rd|th|\.|[号日]|-\w{1,2})?$")


def meant_by(
    candidate: Candidate, instead: tuple[str, str], item: MemoryItem, stated: Sequence[Fact]
) -> tuple[str, str]:
    """What is right and what is wrong in a memory; a correction may name only what is right."""
    right, wrong = instead
    right = next((one.object for one in candidate.claims if right.endswith(one.object)), right)
    if wrong:  # "not the 5th but the 12th of May" leaves no "12th of May of May"
        first, _, rest = right.partition(" ")
        return (first if rest and f"{wrong} {rest}" in item.text else right), wrong
    spans = find_dates(item.text, item.created_at, 1)
    told = item.text[slice(*spans[0].place)] if spans else ""
    if day := _DAY.fullmatch(right) if told else None:
        number = _DAY.search(told)
        return (right if number and number[2] else day[1]), number[0] if number else ""
    figures = _FIGURE.findall(item.text)
    if right.isdecimal() and len(figures) == 1:  # "at 3pm", "make that 4"
        return re.sub(r"\d+", right, figures[0], count=1), figures[0]
    if find_dates(right, candidate.said_at, 1):
        return right, told
    lead, _, last = told.rpartition(" ")  # "on Friday": there is no boss called Thursday
    dates = find_dates(f"{lead} {right}", item.created_at, 1) if lead else []
    if any(it.place[1] > len(lead) for it in dates):
        return right, last
    single = [fact.object for fact in stated if is_single_valued(fact.predicate)]
    single = single or [fact.object for fact in stated if names_someone(fact.predicate)]
    return right, single[0] if len(single) == 1 else ""


def in_new_dates(item: MemoryItem, text: str) -> str:
    """The corrected text of a memory, with what its dates mean now at the end of it.

    What else stands in brackets there is the user's own.
    """
    told, _, meant = item.text.removesuffix("]").rpartition(" [")
    dates, at = set(meant.split("; ")), item.created_at
    known = {lean: {it.text for it in find_dates(told, at, lean)} & dates for lean in (1, -1, 0)}
    if not item.text.endswith("]") or set().union(*known.values()) != dates:
        return text
    told, lean = text.rpartition(" [")[0], max(known, key=lambda lean: len(known[lean]))
    return dated(told, find_dates(told, at, lean))


def named(thing: str) -> Pattern:
    """A thing in a text, as a whole word."""
    return Pattern(rf"(?:^|\W)(?P<span>{escape(thing)})(?:\W|$)", ignore_case=True)


def end_of(thing: str, fact: Fact, candidate: Candidate) -> datetime | None:
    """When a fact that had an end is over, once its object is corrected: a plan after its day."""
    days = find_dates(thing, candidate.said_at, 1) if fact.valid_to else []
    return max((it.end for it in days if it.end > candidate.said_at), default=fact.valid_to)


def put_off(claim: Claim, facts: Sequence[Fact], candidate: Candidate) -> list[Fact]:
    """The open plan that a claim is the new date of: of several, the last that was told."""
    meant = [
        fact
        for fact in facts
        if fact.predicate in PLANS
        and (fact.said_at or FIRST) <= candidate.said_at
        and {*fact.sources}.isdisjoint(candidate.sources)
        and is_put_off(fact.object, claim.object, candidate.said_at)
    ]
    last = max(meant, key=lambda fact: fact.said_at or FIRST, default=None)
    return [fact for fact in meant if last and fact.sources == last.sources]


def partly(claim: Claim, facts: Sequence[Fact], items: Sequence[MemoryItem] = ()) -> list[Fact]:
    """The one open fact that a claim ends in some of its words: "sold the Golf", "an old Golf".

    Of what somebody has, the words of its memory may name it: "my road bike, a Boardman".
    """
    words = {*stems(claim.object)} if claim.ends and claim.predicate not in PLANS else set[str]()
    open_ = [fact for fact in facts if words and fact.valid_to is None]
    meant = [fact for fact in open_ if words <= {*stems(fact.object)}]
    if not meant and (claim.predicate == "owns" or _is_pet(claim)):
        naming = {item.id for item in items if words <= {*stems(item.text)}}
        meant = [fact for fact in open_ if fact.memory in naming]
    return meant if len(meant) == 1 else []


def _is_pet(claim: Claim) -> bool:
    """Whether a claim names a pet by what it is: "we gave the dog away"."""
    word, languages = plain(claim.object).lower(), languages_of(claim.object)
    kinds = (RELATED.get(one.relations.get(word, "")) for one in languages)
    return claim.predicate == "has pet" and claim.predicate in kinds


def redated(candidate: Candidate, claim: Claim, older: Sequence[Fact]) -> Candidate:
    """The candidate; "moved to the 10th" is the 10th of the month that the plan was for."""
    end = max((fact.valid_to for fact in older if fact.valid_to), default=None)
    day = next(iter(find_dates(claim.object, candidate.said_at, 1)), None)
    if end is None or day is None or not _DAY_ALONE.search(claim.object[slice(*day.place)]):
        return candidate
    month = max((end - timedelta(days=1)).replace(day=1), candidate.said_at)
    right = next(iter(find_dates(claim.object, month, 1)))
    dated = replace(claim, valid_to=right.end)
    claims = tuple(dated if it is claim else it for it in candidate.claims)
    text = candidate.text.replace(day.text, right.text)
    kind = "episode" if candidate.kind == "working" else candidate.kind
    return replace(candidate, claims=claims, text=text, kind=kind, expires_at=None)


def is_mistaken(claim: Claim, candidate: Candidate, people: People) -> bool:
    """Whether a known person is taken for another, though no word says so: a wife for a friend."""
    if claim.ends or not people.knows_otherwise(claim.predicate, claim.object):
        return False
    words = plain_text(candidate.text).split()
    return not any(word in one.relations for one in languages_of(candidate.text) for word in words)


def other_versions(claim: Claim, rivals: Sequence[Fact], candidate: Candidate) -> list[Fact]:
    """What was used before in another version, or said the other way round: "tea over coffee"."""
    name = _VERSION.sub("", claim.object).lower()
    if claim.predicate == "prefers":
        before = [fact for fact in rivals if {*fact.sources}.isdisjoint(candidate.sources)]
        return [
            fact
            for fact in before
            if is_reversed(fact.object, claim.object) or is_passed_over(fact.object, claim.object)
        ]
    if claim.predicate != "uses" or name == claim.object.lower():
        return [fact for fact in rivals if is_reversed(fact.object, claim.object)]
    return [
        fact
        for fact in rivals
        if _VERSION.sub("", fact.object).lower() == name != fact.object.lower()
        and not fact.is_about(claim.object)
        and not {*fact.sources} & {*candidate.sources}  # a message may name several
    ]
