"""Claims: subject, predicate and object of a sentence; predicates are English in any language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from memorist.language.dates import Span, find_dates
from memorist.language.lexicon import Language, Rule
from memorist.language.words import is_single_valued
from memorist.lifecycle.candidate import Claim

_ENDS_AT_PLACES = frozenset(
    ("name", "called", "lives in", "works at", "works as", "studies at", "learns", "married to")
)
_WHOLE = frozenset(("prefers", "is"))  # "tea over coffee" is one thing
_OPPOSITES = {"likes": "dislikes", "dislikes": "likes"}
_RELATED = {
    "wife": "married to",
    "husband": "married to",
    "spouse": "married to",
    "son": "has child",
    "daughter": "has child",
    "child": "has child",
    "dog": "has pet",
    "cat": "has pet",
    "pet": "has pet",
}
# Whether a date without its year means the last one (-1) or the next one (1).
_LEANS: Mapping[str, int] = {"plan": 1, "event": -1, "identity": -1, "relation": -1, "decision": -1}


class RuleMatch(NamedTuple):
    """A rule that matches a sentence, and where."""

    rule: Rule
    parts: re.Match[str]
    language: Language


class Statement(NamedTuple):
    """A sentence that states something, its speaker and its time."""

    text: str
    speaker: str
    said_at: datetime
    ahead: bool = False  # it is about the future

    def dates(self, group: str) -> list[Span]:
        """The dates it names; its group of rules says whether they are past or future."""
        lean = 1 if self.ahead and group != "event" else _LEANS.get(group, 0)
        return find_dates(self.text, self.said_at, lean)

    def part(self, match: RuleMatch, name: str) -> str:
        """A part of a match, as it was written."""
        return self.text[match.parts.start(name) : match.parts.end(name)]


_NOT = (
    re.compile(
        r"(?P<right>[\w' -]{1,60}?),? (?:and not|not|nicht|y no|no|а не|не) "
        r"(?P<wrong>[\w' -]{1,40}?)[.!]*$",
        re.IGNORECASE,
    ),
    re.compile(
        r"是(?P<right>[^，,。！是]{1,20})[，,]?(?:而)?不是(?P<wrong>[^，,。！]{1,20})[。！]*$"
    ),
)
_LEAD = re.compile(
    r".*\b(?:it's|it is|that's|is|was|be|meant|on|at|in|meinte|ist|heißt|war|im|am|es|era"
    r"|quise decir|это|виду|в)\s+",
    re.IGNORECASE,
)


def instead_of(text: str) -> tuple[str, str] | None:
    """What is right and what is wrong, in a sentence such as "it's Hamburg, not Berlin"."""
    for pattern in _NOT:
        if found := pattern.search(text):
            right = _LEAD.sub("", found["right"]).strip()
            return (right, found["wrong"].strip()) if right else None
    return None


def claims_of(match: RuleMatch, statement: Statement) -> list[Claim]:
    """The claims of a match, and those that they end: "I hate coffee" ends "likes coffee".

    `valid_from` is when a claim began to hold or, if it ends one, when that ended.
    """
    rule, spans = match.rule, statement.dates(match.rule.group)
    if rule.predicate is None:
        return []
    subject, predicate = _topic(match, statement)

    def claim(thing: str, predicate: str = predicate, ends: bool = rule.ends) -> Claim:
        return Claim(
            subject=subject,
            predicate=predicate,
            object=thing,
            valid_from=spans[0].start if spans and predicate != "birthday" else statement.said_at,
            single=is_single_valued(predicate),
            ends=ends,
        )

    things = _objects(match, statement, predicate, spans)
    claims = [claim(thing) for thing in things]
    if predicate in _OPPOSITES and not rule.ends:
        claims += [claim(thing, _OPPOSITES[predicate], ends=True) for thing in things]
    if things and match.parts.groupdict().get("former"):
        left = match.language.objects_of(statement.part(match, "former"), place=True)
        claims += [claim(thing, ends=True) for thing in left]
    return claims


def _topic(match: RuleMatch, statement: Statement) -> tuple[str, str]:
    """Subject and predicate of a match's claims."""
    parts, language = match.parts.groupdict(), match.language
    predicate = str(match.rule.predicate)
    if topic := parts.get("topic"):
        named = language.favourites.get(topic.lower(), topic.lower())
        predicate = predicate.replace("{topic}", named)
    relation = language.relations.get((parts.get("relation") or "").lower())
    if predicate == "related":  # "my wife is Anna" tells of the speaker, not of the wife
        return statement.speaker, _RELATED.get(str(relation), f"has {relation}")
    if relation:
        return f"{statement.speaker}'s {relation}", predicate
    return (statement.part(match, "thing") if parts.get("thing") else statement.speaker), predicate


def _objects(
    match: RuleMatch, statement: Statement, predicate: str, spans: list[Span]
) -> list[str]:
    """The objects of a match: the rule's own, a date, or words cut out of the sentence."""
    if match.rule.object:
        return [match.rule.object]
    if predicate == "born on":
        return [spans[0].text] if spans else []
    if not match.parts["object"]:
        return []
    start = match.parts.start("object")
    before = [span.place[0] - start for span in spans if start < span.place[0]]
    phrase = statement.part(match, "object")
    single, is_place = is_single_valued(predicate), predicate in _ENDS_AT_PLACES
    return match.language.objects_of(
        phrase if single and not is_place else phrase[: min(before, default=None)],
        several=not single and predicate not in _WHOLE,
        place=is_place,
    )
