"""Extraction by rules, without a model: rather nothing than junk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from memorist.language.dates import Span
from memorist.language.injection import injections
from memorist.language.lexicon import (
    Language,
    Rule,
    category_of,
    composed,
    languages_of,
    plain,
    tags_of,
)
from memorist.language.secrets import find_secrets
from memorist.language.sentences import hide_quotes, sentences, without_pasted
from memorist.lifecycle.candidate import Candidate
from memorist.lifecycle.claims import RuleMatch, Statement, claims_of, instead_of
from memorist.records.log import is_trusted
from memorist.records.memory_item import Kind
from memorist.records.message import Message

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
_ASKED = re.compile(r"[?？]\W*$")


def extract(message: Message, source: str = "user") -> list[Candidate]:
    """The statements of a message that may become memories, without secrets and injections."""
    text = message.content
    if message.role not in ("user", "assistant") or not isinstance(text, str):
        return []
    if len(text) > MAX_MESSAGE_CHARS or find_secrets(text):
        return []
    made = (
        _candidate(sentence, matches, message, source)
        for sentence, matches in _worth_keeping(composed(text), message.role == "user")
    )
    trusted = is_trusted(source)
    safe = (one for one in made if one and not injections(one.text, trusted=trusted))
    return list({one.text: one for one in safe}.values())


def _worth_keeping(text: str, of_user: bool) -> Iterator[tuple[str, list[RuleMatch]]]:
    """Each sentence that a rule matches, until the message begins to tell a story."""
    written = without_pasted(text)
    languages = languages_of(written)
    if any(one.cues["material"].search(plain(text)) for one in languages):
        return
    abbreviations = frozenset().union(*(one.abbreviations for one in languages))
    for sentence in sentences(written, abbreviations):
        for language in _languages_of(sentence, languages):
            if language.cues["frames"].search(plain(sentence)):
                return
            head, matches = _matches(sentence, language, of_user)
            if matches:
                yield head, matches
                break


def _languages_of(sentence: str, languages: list[Language]) -> list[Language]:
    """The sentence's own languages, or the message's where the sentence is too short to say."""
    own = languages_of(sentence)
    return own if len(own) == 1 else [one for one in own if one in languages] or own


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
    searched = ((rule, rule.pattern.search(text)) for rule in language.rules if wanted(rule))
    return [RuleMatch(rule, parts, language) for rule, parts in searched if parts]


def _statement(text: str, language: Language) -> str:
    """The text up to where it begins to ask: "I'm vegan, what can I eat?" states "I'm vegan"."""
    asks = language.cues["asks"]
    cuts = [(0, 0), *(pause.span() for pause in language.cues["pauses"].finditer(text))]
    cuts = [(end, start) for end, start in cuts if start < len(text)]
    asking = (end for end, start in cuts if asks.match(text, start))
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


def _end_of_day(spans: list[Span], moment: datetime) -> datetime | None:
    """When a plan for the same day expires; None for any other plan."""
    if len(spans) != 1 or spans[0].start.date() != moment.date():
        return None
    return spans[0].end if (spans[0].end - spans[0].start).days == 1 else None


def _dated(text: str, spans: list[Span]) -> str:
    """The sentence, followed by the dates that its relative ones such as "yesterday" mean."""
    dates = dict.fromkeys(span.text for span in spans if span.relative)
    return f"{text} [{'; '.join(dates)}]" if dates else text
