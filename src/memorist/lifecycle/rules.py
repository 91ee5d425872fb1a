"""Extraction by rules, without a model: a sentence that a rule matches becomes a candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import NamedTuple

from memorist.language.dates import DateSpan, find_dates
from memorist.language.lexicon import Language, Rule, category_of, languages_of, plain, tags_of
from memorist.language.patterns import Pattern, PatternMatch
from memorist.language.text import (
    LANGUAGES,
    data,
    hide_quotes,
    is_single_valued,
    sentences,
    without_pasted,
)
from memorist.language.unsafe import find_secrets, injections
from memorist.records.memories import Candidate, Claim, Kind
from memorist.records.message import Message, is_trusted
from memorist.records.values import normalize

MAX_MESSAGE_CHARS = 6_000
# The groups of rules; the first that matches a sentence decides the kind of its memory.
KINDS: Mapping[str, Kind] = {
    "solution": "procedure",
    "identity": "fact",
    "relation": "fact",
    "correction": "fact",
    "preference": "concept",
    "decision": "concept",
    "project": "concept",
    "event": "episode",
    "plan": "episode",
    "error": "episode",
}
_CATEGORIES = {
    "solution": "solutions",
    "preference": "user_preferences",
    "project": "code_context",
    "error": "error_patterns",
}
_FROM_ASSISTANTS = frozenset(("solution", "decision", "error"))
_ASKED = Pattern(r"[?？]\W*$")
_ENDS_AT_PLACES = frozenset(
    ("name", "called", "lives in", "works at", "works as", "studies at", "learns", "married to")
)
_WHOLE = frozenset(("prefers", "is"))  # "tea over coffee" is one thing
_OPPOSITES = {"likes": "dislikes", "dislikes": "likes"}
_RELATED = {
    **dict.fromkeys(("wife", "husband", "spouse"), "married to"),
    **dict.fromkeys(("son", "daughter", "child"), "has child"),
    **dict.fromkeys(("dog", "cat", "pet"), "has pet"),
}
# Whether a date without its year means the last one (-1) or the next one (1).
_LEANS: Mapping[str, int] = {"plan": 1, "event": -1, "identity": -1, "relation": -1, "decision": -1}


class RuleMatch(NamedTuple):
    """A rule that matches a sentence, and where."""

    rule: Rule
    parts: PatternMatch
    language: Language


class Statement(NamedTuple):
    """A sentence that states something, its speaker and its time."""

    text: str
    speaker: str
    said_at: datetime
    ahead: bool = False  # it is about the future

    def dates(self, group: str) -> list[DateSpan]:
        """The dates it names; its group of rules says whether they are past or future."""
        lean = 1 if self.ahead and group != "event" else _LEANS.get(group, 0)
        return find_dates(self.text, self.said_at, lean)

    def part(self, match: RuleMatch, name: str) -> str:
        """A part of a match, as it was written."""
        return self.text[match.parts.start(name) : match.parts.end(name)]


def extract(
    message: Message, source: str = "user", check_time: Callable[[], None] = lambda: None
) -> list[Candidate]:
    """The statements of a message that may become memories, without secrets and injections.

    `check_time` is called before each sentence and may raise.
    """
    text = message.content
    if message.role not in ("user", "assistant") or not isinstance(text, str):
        return []
    if len(text) > MAX_MESSAGE_CHARS or find_secrets(text):
        return []
    kept = _worth_keeping(normalize("NFC", text), message.role == "user", check_time)
    made = (_candidate(sentence, matches, message, source) for sentence, matches in kept)
    trusted = is_trusted(source)
    safe = (one for one in made if one and not injections(one.text, trusted=trusted))
    return list({one.text: one for one in safe}.values())


def _worth_keeping(
    text: str, of_user: bool, check_time: Callable[[], None]
) -> Iterator[tuple[str, list[RuleMatch]]]:
    """Each sentence that a rule matches, until the message begins to tell a story."""
    written = without_pasted(text)
    languages = languages_of(written)
    if any(one.cues["material"].search(plain(text)) for one in languages):
        return
    abbreviations = frozenset().union(*(one.abbreviations for one in languages))
    for sentence in sentences(written, abbreviations):
        check_time()
        own = languages_of(sentence)  # where it is too short to say, the message's
        if len(own) > 1:
            own = [language for language in own if language in languages] or own
        for language in own:
            if language.cues["frames"].search(plain(sentence)):
                return
            head, matches = _matches(sentence, language, of_user)
            if matches:
                yield head, matches
                break


def _matches(sentence: str, language: Language, of_user: bool) -> tuple[str, list[RuleMatch]]:
    """The part of a sentence that states something, and the rules that match it."""
    seen = hide_quotes(plain(sentence), language.cues["own"])
    if language.cues["others"].search(seen):
        return "", []
    standing = _search(seen, language, lambda rule: rule.standing) if of_user else []
    if standing and not _ASKED.search(seen):
        return sentence, standing
    head = _statement(seen, language)
    unsure = ("hedges", "passing") if of_user else ("hedges", "passing", "generic")
    if not head or any(language.cues[cue].search(head) for cue in unsure):
        return "", []
    if not of_user and not language.cues["involved"].search(head):
        return "", []  # general knowledge, not what happened here
    groups = KINDS.keys() if of_user else _FROM_ASSISTANTS
    matches = _search(head, language, lambda rule: rule.group in groups and not rule.standing)
    return sentence[: len(head)].rstrip(" ,;:—–-，"), matches


def _search(text: str, language: Language, wanted: Callable[[Rule], bool]) -> list[RuleMatch]:
    searched = ((language.rules[number], parts) for number, parts in language.rule_set.search(text))
    return [RuleMatch(rule, parts, language) for rule, parts in searched if wanted(rule)]


def _statement(text: str, language: Language) -> str:
    """The text up to where it begins to ask: "I'm vegan, what can I eat?" states "I'm vegan"."""
    asks = language.cues["asks"]
    cuts = [(0, 0), *(pause.span() for pause in language.cues["pauses"].finditer(text))]
    cuts = [(end, start) for end, start in cuts if start < len(text)]
    asking = (end for end, start in cuts if asks.match(text[start:]))
    return text[: next(asking, cuts[-1][0] if _ASKED.search(text) else len(text))].rstrip()


def _candidate(
    sentence: str, matches: list[RuleMatch], message: Message, source: str
) -> Candidate | None:
    """The candidate of a sentence; None if none of its matches says something."""
    cues = matches[0].language.cues
    ahead = bool(cues["future"].search(plain(sentence)))
    statement = Statement(sentence, message.name or message.role, message.created_at, ahead)
    meaningful = [match for match in matches if _says_something(match, statement)]
    if not meaningful:
        return None
    group = min((match.rule.group for match in meaningful), key=list(KINDS).index)
    spans = statement.dates(group)
    over = _end_of_day(spans, statement.said_at) if group == "plan" else None
    category = category_of(sentence) or _CATEGORIES.get(group, "knowledge")
    claims = dict.fromkeys(claim for match in meaningful for claim in claims_of(match, statement))
    recurs = any(claim.predicate == "birthday" for claim in claims)
    return Candidate(
        text=sentence if recurs else _dated(sentence, spans),
        sources=(message.message_id,),
        said_at=message.created_at,
        kind="working" if over else KINDS[group],
        category=category,
        tags=tags_of(sentence),
        source=source,
        claims=tuple(claims),
        corrects=bool(cues["corrections"].search(plain(sentence))),
        instead=instead_of(sentence),
        expires_at=over,
    )


def _says_something(match: RuleMatch, statement: Statement) -> bool:
    """Whether a match names its object, and its date if it needs one."""
    rule, now = match.rule, statement.said_at
    spans = statement.dates(rule.group)
    if rule.group == "decision" and any(span.start <= now < span.end for span in spans):
        return False  # a decision for today is of no use tomorrow
    if rule.dated and rule.group == "event":
        return any(span.end <= now for span in spans)
    if rule.dated:
        return any(span.start > now or (rule.today and span.end > now) for span in spans)
    return rule.predicate is None or bool(claims_of(match, statement))


def _end_of_day(spans: list[DateSpan], moment: datetime) -> datetime | None:
    """When a plan for the same day expires; None for any other plan."""
    if len(spans) != 1 or spans[0].start.date() != moment.date():
        return None
    return spans[0].end if (spans[0].end - spans[0].start).days == 1 else None


def _dated(text: str, spans: list[DateSpan]) -> str:
    """The sentence, followed by the dates that its relative ones such as "yesterday" mean."""
    dates = dict.fromkeys(span.text for span in spans if span.relative)
    return f"{text} [{'; '.join(dates)}]" if dates else text


def instead_of(text: str) -> tuple[str, str] | None:
    """What is right and what is wrong, in a sentence such as "it's Hamburg, not Berlin"."""
    patterns, leads = _corrections()
    match = next(filter(None, (pattern.search(text) for pattern in patterns)), None)
    right = leads.sub("", match["right"]).strip() if match else ""
    return (right, match["wrong"].strip()) if match and right else None


@cache
def _corrections() -> tuple[list[Pattern], Pattern]:
    """Patterns of "Hamburg, not Berlin", and of what leads to it, such as "it's"."""
    written = [data(code, "rules")["instead"] for code in LANGUAGES]
    words = [language for language in written if "not" in language]
    patterns = [language["pattern"] for language in written if "pattern" in language]
    negations, leads = ("|".join(each[key] for each in words) for key in ("not", "lead"))
    spaced = rf"(?P<right>[\w' -]{{1,60}}?),? (?:{negations}) (?P<wrong>[\w' -]{{1,40}}?)[.!]*$"
    compiled = [Pattern(pattern, ignore_case=True) for pattern in (spaced, *patterns)]
    return compiled, Pattern(rf"^(?:.*\W)?(?:{leads})\s+", ignore_case=True)


def claims_of(match: RuleMatch, statement: Statement) -> list[Claim]:
    """The claims of a match, and those that they end: "I hate coffee" ends "likes coffee".

    `valid_from` is when a claim began to hold or, if it ends one, when that ended. Predicates are
    English in any language.
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
    match: RuleMatch, statement: Statement, predicate: str, spans: list[DateSpan]
) -> list[str]:
    """The objects of a match: the rule's own, a date, or words cut out of the sentence."""
    if match.rule.object:
        return [match.rule.object]
    if predicate == "born on":
        return [spans[0].text] if spans else []
    if not match.parts.groupdict().get("object"):
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
