"""The claims of what a rule or the reader finds, and those of a sentence: each once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from memorist.language.dates import DateSpan
from memorist.language.lexicon import plain
from memorist.language.likeness import MOVED, is_same_task
from memorist.language.people import is_lifelong, names_someone
from memorist.language.text import is_single_valued
from memorist.lifecycle.marks import RELATED
from memorist.lifecycle.statement import POSTS, STATEMENT_EDGES, RuleMatch, Statement, distance
from memorist.records.memories import ANY, COUPLES, PLANS, Claim

ENDS_AT_PLACES = frozenset(
    "name,called,lives in,works at,works as,studies at,learns,uses,owns,married to".split(",")
)
_WHOLE = frozenset(("prefers", "is"))  # "tea over coffee" is one thing
_OPPOSITES = {"likes": "dislikes", "dislikes": "likes", "avoids": "likes"}
_DATES = frozenset(("birthday", *PLANS))  # not since that date
_PLANNED = ("lives in", "works at", "works as", "studies at", "diet")  # what plans may change
_NAMED = re.compile(r",? (?P<name>[^\W\d_a-zß-ÿа-яё][\w-]*)")


def claims_of(match: RuleMatch, statement: Statement) -> list[Claim]:
    """The claims of a match, and those that they end: "I hate coffee" ends "likes coffee".

    `valid_from` is when a claim began to hold or, if it ends one, when that ended. Predicates are
    English in any language.
    """
    rule, spans = match.rule, statement.dates(match.rule.group)
    first_day = None if rule.ends else statement.first_day(match)
    if rule.predicate is None or _is_of_a_moment(match, statement, first_day):
        return []
    subject, predicate = _topic(match, statement)
    if predicate == "born on" and spans and spans[0].relative:
        predicate = "birthday"
    start, stop, is_ahead = _period(match, statement, subject, predicate, first_day)
    is_plan = predicate in PLANS and not rule.ends
    is_figure = rule.group == "figure" and not rule.beside
    of_other = rule.ends and subject != statement.speaker  # whose past nobody needs
    is_within = rule.predicate == "lives in" and statement.is_of_home(match)

    def claim(thing: str, predicate: str = predicate, ends: bool = rule.ends) -> Claim:
        return Claim(
            subject=subject,
            predicate=predicate,
            object=thing,
            valid_from=start,
            valid_to=stop,
            single=is_figure or (is_single_valued(predicate) and not of_other),
            ends=ends or rule.off,
            off=rule.off,
            gone=rule.gone,
            within=is_within,
            moves=is_plan and statement.is_moved(match),
        )

    things = _things(match, statement, predicate, spans)
    ended: tuple[str, ...] = PLANS if rule.ends and predicate in PLANS else (predicate,)
    if rule.off:
        ended = (*PLANS, *_PLANNED) if predicate in PLANS else (*PLANS, predicate)
    claims = [claim(thing, predicate) for thing in things for predicate in ended]
    holds = not (rule.ends or rule.off or is_ahead)
    is_home = predicate == "lives in" and subject == statement.speaker and holds
    over = _also_over(match, statement, predicate, things, is_home=is_home)
    return [*claims, *(claim(*it, ends=True) for it in over)]


def _is_of_a_moment(match: RuleMatch, statement: Statement, first_day: DateSpan | None) -> bool:
    """Whether a place is only stayed at, or a post only asked for."""
    rule = match.rule
    if rule.predicate == "lives in" and not rule.ends and statement.is_stay(match):
        return True
    is_post = rule.predicate in POSTS and not (rule.ends or first_day)
    return is_post and statement.is_sought(match)


def _period(
    match: RuleMatch, statement: Statement, subject: str, predicate: str, first_day: DateSpan | None
) -> tuple[datetime, datetime | None, bool]:
    """From when to when a claim holds, as far as that is told, and whether it only begins ahead."""
    rule, spans = match.rule, statement.dates(match.rule.group)
    until = None if rule.ends else statement.end_of(match)
    near = _beginning(
        match, statement, [it for it in spans if not until or it.place != until.place]
    )
    if subject == statement.speaker:
        near = first_day or near
    is_dated = predicate not in _DATES and (rule.ends or not is_lifelong(predicate))
    start = near.start if near and is_dated else statement.said_at
    stop = None
    if predicate in PLANS and not rule.ends:
        stop = statement.end_of_plan(match)
    may_end = not names_someone(predicate)  # a brother stays one
    if until and may_end and (rule.predicate not in _DATES or statement.lasts(match)):
        stop = until.end
    return start, stop, near is not None and near.start > statement.said_at


def _also_over(
    match: RuleMatch, statement: Statement, predicate: str, things: list[str], *, is_home: bool
) -> Iterator[tuple[str, str]]:
    """Things, with their predicates, that are over with what a match claims of others."""
    for thing in things:
        if predicate == "event" and not (match.rule.ends or statement.ahead):
            done = [it for it, words in match.language.tasks.items() if words.search(plain(thing))]
            yield from ((task, plan) for task in done for plan in PLANS)
        if predicate in _OPPOSITES and not match.rule.ends:
            yield thing, _OPPOSITES[predicate]
        if predicate == "dislikes" and match.rule.standing:
            yield thing, "prefers"
        if is_home:  # who has moved plans it no more
            yield from ((f"{MOVED} {thing}", plan) for plan in PLANS)
    if things and match.parts.groupdict().get("former"):
        left = match.language.objects_of(statement.part(match, "former"), place=True)
        yield from ((thing, predicate) for thing in left)


def _beginning(match: RuleMatch, statement: Statement, spans: list[DateSpan]) -> DateSpan | None:
    """The date since which a claim holds or, if it ends one, when that ended."""
    start, end = match.parts.span()
    clause = statement.clauses.around(start, min(start + 2, end))
    spans = [span for span in spans if not statement.is_of_plan(*clause, span)]
    near = min(spans, key=lambda span: distance(span.place, match.parts.span()), default=None)
    if match.rule.ends and spans:  # "from 2015 to 2019"
        near = max(spans, key=lambda span: span.start)
    elif near:
        near = statement.as_planned(near, statement.plans)
    if near and near.start > statement.said_at and not statement.is_planned(match, near):
        return None
    return near if near and statement.dates_claim(match, near) else None


def _topic(match: RuleMatch, statement: Statement) -> tuple[str, str]:
    """Subject and predicate of a match's claims."""
    parts, language = match.parts.groupdict(), match.language
    predicate = str(match.rule.predicate)
    if topic := parts.get("topic"):
        named = language.favourites.get(topic.lower(), topic.lower())
        if match.rule.group == "figure":
            named = named.split()[-1]
        predicate = predicate.replace("{topic}", named)
    relation = language.relations.get((parts.get("relation") or "").lower())
    if predicate == "related":  # "my wife is Anna" tells of the speaker, not of the wife
        return statement.speaker, RELATED.get(str(relation), f"has {relation}")
    if relation:
        name = _NAMED.match(statement.text, match.parts.end("relation"))
        called = f" {name['name']}" if name else ""  # or another word with a capital
        return f"{statement.speaker}'s {relation}{called}", predicate
    thing = statement.part(match, "thing") if parts.get("thing") else statement.speaker
    return thing.removesuffix("'s").removesuffix("’s"), predicate


def _things(
    match: RuleMatch, statement: Statement, predicate: str, spans: list[DateSpan]
) -> list[str]:
    """The objects that a rule allows, those of figures with what they are of."""
    unless = match.rule.unless
    things = _objects(match, statement, predicate, spans)
    things = [thing for thing in things if not (unless and unless.search(plain(thing)))]
    if match.rule.alone and unless:
        first, last = statement.clauses.around(*match.parts.span())
        if unless.search(plain(statement.text[first:last].strip(STATEMENT_EDGES))):
            return []  # "moved in April" is no plan, whatever clause it goes on
    if match.parts.groupdict().get("topic") and match.rule.group == "figure":
        of = statement.part(match, "topic").lower()
        before = plain(statement.text[: match.parts.start("topic")]).lower().split()[-1:]
        pronouns = match.language.pronouns
        others = pronouns.owners if pronouns else frozenset[str]()  # "his price"
        if not (match.language.common | others).isdisjoint([*before, *plain(of).split()]):
            return []
        if " " in of:  # "£320 (day rate)": other rates are other matters
            things = [f"{thing} ({of})" for thing in things]
    return things


def _objects(
    match: RuleMatch, statement: Statement, predicate: str, spans: list[DateSpan]
) -> list[str]:
    """The objects of a match: the rule's own, a date, or words cut out of the sentence."""
    is_plan = predicate in PLANS
    if food := match.parts.groupdict().get("food"):
        return [f"{ANY} {match.language.foods[food.lower()]}"]
    if match.rule.object and not (is_plan and statement.needs_clause(match)):
        return [_without_lead(match.rule.object, match) if is_plan else match.rule.object]
    if predicate == "born on":
        return [spans[0].text] if spans else []
    if match.rule.predicate == "born on":  # no year is told
        day = statement.text[slice(*spans[0].place)]
        return match.language.objects_of(day) if any(map(str.isdigit, day)) else []
    if is_plan and (match.is_marked or "object" not in match.parts.groupdict()):
        first, last = statement.clause_of(match)
        after = match.language.stops.search(plain(statement.text[match.parts.end() : last]))
        last = match.parts.end() + after.start() if after else last
        if statement.says_only_dates(first, last, match):
            return []
        return [_without_lead(statement.text[first:last].strip(STATEMENT_EDGES + ".!。！)"), match)]
    if not match.parts.groupdict().get("object"):
        return []
    start = match.parts.start("object")
    before = [span.place[0] - start for span in spans if start < span.place[0]]
    phrase = statement.part(match, "object")
    single, is_place = is_single_valued(predicate), predicate in ENDS_AT_PLACES
    return match.language.objects_of(
        phrase if single and not is_place else phrase[: min(before, default=None)],
        several=not single and predicate not in _WHOLE,
        place=is_place,
    )


def _without_lead(thing: str, match: RuleMatch) -> str:
    """A plan without what leads to it: "so my exam is on 3 May", "I'm flying to Rome"."""
    lead = match.language.leads.match(plain(thing))
    return thing[lead.end() :] if lead and lead.end() < len(thing) else thing


def claims_told(
    told: Iterable[Claim], figures: Iterable[Claim], speaker: str, said_at: datetime
) -> list[Claim]:
    """What a sentence tells: its claims, and those figures that these do not tell, too.

    What is to come follows what is so by now.
    """
    claims = _without_doubles(_each_once(_of_named([*told], speaker), said_at))
    claims.sort(key=lambda it: it.valid_from is not None and it.valid_from > said_at)
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
    """The claims, with each plan once: what is an appointment is no event as well.

    Who has left Nora leaves nobody else.
    """
    plans = list[Claim]()
    if any(it.ends and it.predicate in COUPLES and not it.is_any for it in claims):
        claims = [it for it in claims if not (it.is_any and it.predicate in COUPLES)]
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
