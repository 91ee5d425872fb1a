"""The claims of a sentence: each once, and of the right person."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from memorist.language.likeness import is_same_task
from memorist.language.text import is_single_valued
from memorist.lifecycle.marks import RELATED
from memorist.records.memories import PLANS, Claim


def claims_told(
    told: Iterable[Claim], figures: Iterable[Claim], speaker: str, said_at: datetime
) -> list[Claim]:
    """What a sentence tells: its claims, and those figures that these do not tell, too."""
    claims = _without_doubles(_each_once(_of_named([*told], speaker), said_at))
    more = _each_once(figures, said_at)
    return [*claims, *(it for it in more if not any(_is_figure_of(it, one) for one in claims))]


def _each_once(claims: Iterable[Claim], said_at: datetime) -> list[Claim]:
    """The claims; of those that differ in when they began alone, the one that names a date."""
    once: dict[Claim, Claim] = {}
    for claim in claims:
        known = once.setdefault(replace(claim, valid_from=None), claim)
        if known.valid_from == said_at:
            once[replace(claim, valid_from=None)] = claim
    return list(once.values())


def _of_named(claims: Sequence[Claim], speaker: str) -> list[Claim]:
    """The claims; those about one of several who are named have the name: "my sister Anna".

    There is one wife, whatever she is called.
    """
    named: dict[str, set[str]] = {}
    for claim in claims:
        if not claim.ends and not is_single_valued(claim.predicate):
            named.setdefault(claim.predicate, set()).add(claim.object)
    result = list[Claim]()
    for claim in claims:
        relation, _, said = claim.subject.removeprefix(start := f"{speaker}'s ").partition(" ")
        if claim.subject.startswith(start):
            names = named.get(RELATED.get(relation, f"has {relation}"), set())
            meant = [it for it in names if len(names) == 1 or (said and it.startswith(said))]
            claim = replace(claim, subject=" ".join((f"{start}{relation}", *meant)))
        result.append(claim)
    return result


def _without_doubles(claims: Sequence[Claim]) -> list[Claim]:
    """The claims, with each plan once: what is an appointment is no event as well."""
    plans = list[Claim]()
    avoided = [it.object for it in claims if it.predicate == "avoids"]
    claims = [  # who has given up alcohol may still be a vegetarian
        replace(it, single=False)
        if it.predicate == "diet" and any(thing in it.object for thing in avoided)
        else it
        for it in claims
    ]
    told = [it for it in claims if it.predicate in PLANS and not it.ends]
    for claim in sorted(told, key=_tells_plan, reverse=True):
        if not any(_is_double(claim, plan) for plan in plans):
            plans.append(claim)
    return [it for it in claims if it in plans or it not in told]


def _tells_plan(claim: Claim) -> tuple[bool, bool, int]:
    """How well a claim tells a plan: with its day, in one clause, and with all that is said."""
    first, comma, _ = claim.object.partition(",")
    in_one = not comma or any(map(str.isdigit, first))
    return claim.valid_to is not None, in_one, len(claim.object)


def _is_double(claim: Claim, plan: Claim) -> bool:
    same_day = claim.valid_to in (None, plan.valid_to)
    return same_day and is_same_task(plan.object, claim.object)


def _is_figure_of(figure: Claim, claim: Claim) -> bool:
    """Whether a figure is the day of a plan ("exam: 3 February") or told as another claim."""
    value, _, _ = figure.object.partition(" (")
    is_day = claim.predicate in PLANS and claim.valid_to and any(map(str.isalpha, value))
    return value == claim.object or bool(is_day and not claim.ends and value in claim.object)
