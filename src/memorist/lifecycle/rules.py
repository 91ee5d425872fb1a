"""Extraction without a chat model: what a rule or the reader finds in a sentence is a candidate."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from memorist.language.dates import DateSpan, dated
from memorist.language.lexicon import (
    Language,
    Rule,
    codes_of,
    instead_of,
    language,
    plain,
    tags_of,
    without_rules,
)
from memorist.language.likeness import names_in
from memorist.language.patterns import Pattern
from memorist.language.people import names_someone, names_user
from memorist.language.pronouns import NOBODY, named, without_names
from memorist.language.text import HIDDEN, hide_quotes, is_single_valued, sentences, without_pasted
from memorist.language.unsafe import find_secrets, injections, visible
from memorist.lifecycle.claims import ENDS_AT_PLACES, claims_of, claims_told
from memorist.lifecycle.clauses import Clauses
from memorist.lifecycle.marks import ALWAYS, CERTAIN, NOTHING, read_as, sure_marks, without_rivals
from memorist.lifecycle.statement import OWN, STATEMENT_EDGES, RuleMatch, Statement, distance
from memorist.providers.reader import LEAST, LEAST_IN_LIST, UNREAD, MarkedMessage
from memorist.records.log import is_trusted
from memorist.records.memories import PLANS, Candidate, Claim, Kind, plain_text
from memorist.records.message import Message
from memorist.records.values import fold, normalize

log = logging.getLogger("memorist")
_said: set[str] = set()  # codes of languages
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
    "general": "fact",  # of messages that tell general facts
    "event": "episode",
    "plan": "episode",
    "error": "episode",
    "figure": "fact",  # a number, time or day of something: a fact, no memory of its own
    "done": "episode",  # only ends a plan: it is no memory of its own
}
_CATEGORIES = {
    "solution": "solutions",
    "preference": "user_preferences",
    "project": "code_context",
    "error": "error_patterns",
}
_FROM_ASSISTANTS = frozenset(("solution", "decision", "error"))
_PICTURES = Pattern(r"[\x{2600}-\x{27bf}\x{fe0f}\x{1f000}-\x{1faff}]+")
_NO_MEMORIES = frozenset(("figure", "done"))
_LEARNT = OWN | {"relation", "plan", "event"}  # which the reader knows, too
_CALLED = ENDS_AT_PLACES | {"comes from"}  # whose objects are names
_FEWEST = 4  # words of a memory that can be understood alone
_BEGINNING = 20  # characters by which a sentence is found again


def extract(
    message: Message,
    source: str = "user",
    check_time: Callable[[], None] = lambda: None,
    before: Sequence[str] = (),
    read: Callable[[str], MarkedMessage] | None = None,
    known: Mapping[str, str] = NOBODY,
) -> list[Candidate]:
    """The statements of a message that may become memories, without secrets and injections.

    `check_time` is called before each sentence and may raise. `before` is what the user said last:
    it tells whom "she" means, as do the names that are `known`, each with its predicate. `read`
    marks what a user says of themselves to an assistant, beside the rules; talk between people
    with names is another matter.
    """
    text = message.content
    if message.role not in ("user", "assistant") or not isinstance(text, str):
        return []
    if len(text) > MAX_MESSAGE_CHARS:
        return []
    groups = frozenset(KINDS) if message.role == "user" else _FROM_ASSISTANTS
    if not message.tells_general_facts:
        groups -= {"general"}
    read = read if message.role == "user" and not message.name else None
    kept = _worth_keeping(normalize("NFC", visible(text)), groups, check_time, before, read, known)
    trusted = is_trusted(source)
    safe = (sentence for sentence in kept if not injections(sentence.text, trusted=trusted))
    made = (_candidate(sentence, message, source) for sentence in safe)
    found = {one.text or one.claims: one for one in made if one}
    return [] if found and find_secrets(text) else list(found.values())


def _worth_keeping(
    text: str,
    groups: frozenset[str],
    check_time: Callable[[], None],
    before: Sequence[str],
    read: Callable[[str], MarkedMessage] | None,
    known: Mapping[str, str],
) -> Iterator[Sentence]:
    """Each sentence that says something, until the message begins to tell a story."""
    written = _PICTURES.sub("\n", without_pasted(text))
    if code := without_rules(written):
        _say_once(code)
        return
    unnamed = without_names(written, known)  # Ben and Anna are no words
    codes = codes_of(unnamed)
    if codes[1:]:  # where it is too short to say, what was said before is in the same language
        codes = codes_of("\n".join((*before, unnamed)))
    languages = [language(code) for code in codes]
    is_material = any(one.cues["material"].search(plain(text)) for one in languages)
    reading = read(_without_orders(written, languages)) if read else UNREAD
    is_worth = reading.worth >= NOTHING
    likely = without_rivals(reading.marks) if is_worth else []
    tried = groups if is_worth else groups & ALWAYS
    abbreviations = frozenset[str]().union(*(one.abbreviations for one in languages))
    said = list(before)
    parts = list(_joined(sentences(written, abbreviations), languages))
    for sentence, (start, end) in zip(parts, _regions(written, parts), strict=True):
        check_time()
        marks = [
            (mark.start - start, written[mark.start : mark.end], mark)
            for mark in likely
            if start <= mark.start < end
        ]
        # Where it is too short to say, the message's.
        own = codes_of(without_names(sentence, known))
        if len(own) > 1:
            own = [code for code in own if code in codes] or codes
        for rules in map(language, own):
            is_material = is_material or bool(rules.cues["frames"].search(plain(sentence)))
            if is_material:  # of which the reader alone can tell what is the speaker's
                marks = [it for it in marks if it[2].chance >= CERTAIN]
                groups = tried = frozenset()
            if said and _answers_for_other(sentence, said[-1], rules):
                break
            whole = named(sentence, said, rules, known)
            as_read = whole == sentence  # "she" is not the speaker, nor what the reader knows
            allowed, known_to_reader = (tried, reading) if as_read else (groups, UNREAD)
            sure = [RuleMatch(*mark, rules) for mark in sure_marks(whole, marks, rules)]
            marked = [it for it in sure if not _is_of_known(it, whole, known)]
            if found := _read(whole, rules, allowed, marked, known_to_reader):
                moved = said and rules.cues["moved"].search(plain(said[-1]))
                yield found._replace(moved=bool(moved))
                break
        said.append(sentence)


def _without_orders(text: str, languages: list[Language]) -> str:
    """The text with blanks for "Remember that", so that all else keeps its place."""
    seen = plain(text)
    for one in languages:
        for order in one.cues["remembers"].finditer(seen):
            start, end = order.span()
            text = text[:start] + " " * (end - start) + text[end:]
    return text


def _is_of_known(mark: RuleMatch, sentence: str, known: Mapping[str, str]) -> bool:
    """Whether a sentence without a word for the speaker says of somebody known what a mark reads.

    A name that is known is not another one because of such a sentence, either: "It'll be Rome".
    """
    predicate = str(mark.rule.predicate)
    if mark.rule.ends or mark.language.cues["own"].search(plain(sentence)):
        return False
    if names_user(predicate):
        begins = mark.parts.start() == 0 or mark.language.cues["names"].search(plain(sentence))
        return not begins and any(map(names_user, known.values()))
    first = plain_text(sentence).split()[:1]
    return mark.rule.group in OWN and any(not names_user(known.get(it, "name")) for it in first)


def _answers_for_other(sentence: str, before: str, rules: Language) -> bool:
    """Whether a sentence says what the one before asks about others: "Joris's surname? It's …"."""
    if not rules.cues["refers"].search(plain(sentence)):
        return False
    own, asking = rules.cues["own"], rules.cues["asks"].match(plain(before))
    asked = (before[asking.end() :] or before) if asking else ""
    about_other = asked and (names_in(before) or not rules.spaced)
    return bool(about_other) and not any(own.search(plain(it)) for it in (asked, sentence))


def _regions(text: str, parts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """From where each sentence of a text begins to where the next one does."""
    starts, place = list[int](), 0
    for part in parts:
        place = max(text.find(part[:_BEGINNING], place), place)
        starts.append(place)
        place += 1
    return pairwise([*starts, len(text)])


def _joined(parts: Iterator[str], languages: list[Language]) -> Iterator[str]:
    """The sentences; one that only names what the one before speaks of is joined to it.

    So is one that tells when the speaker moves, or starts in a post that they got: "Found a flat
    in Bristol! Moving on 25 July".
    """
    held = ""
    for part in parts:
        if held and any(_goes_on(plain(held), plain(part), one.cues) for one in languages):
            held = f"{held} {part}"
        else:
            yield from filter(None, (held,))
            held = part
    yield from filter(None, (held,))


def _goes_on(before: str, told: str, cues: Mapping[str, Pattern]) -> bool:
    is_post = cues["posts"].search(before) and cues["starting"].match(told)
    return bool(is_post or cues["names"].search(told) or cues["moving"].match(told))


def _say_once(code: str) -> None:
    if code not in _said:
        _said.add(code)
        log.warning(
            "no rules for the language %r: what is said in it is found, but makes no memories", code
        )


def _read(
    sentence: str,
    language: Language,
    groups: frozenset[str],
    marked: list[RuleMatch],
    reading: MarkedMessage,
) -> Sentence | None:
    """A sentence with the rules of some groups that match what it states; None without any."""
    of_user = groups != _FROM_ASSISTANTS
    seen = hide_quotes(plain(sentence), language.cues["own"])
    rules = [language.rules[number] for number in language.rule_set.numbers(seen)]
    if not marked and not any(rule.group in groups for rule in rules):
        return None
    clauses = Clauses(seen, language.cues["pauses"])
    clauses.hide(language.cues["reported"])
    marked = [it for it in marked if not _is_hedged(it, seen, clauses.text)]
    clauses.blank(language.cues["others"], rest=True)
    standing = [rule for rule in rules if of_user and rule.standing]
    matches = _search(clauses.text, language, standing)
    clauses.blank_questions(language.cues["asks"])
    before = clauses.text
    clauses.blank(language.cues["hedges"], rest=not of_user, begun=True)
    marked = [it for it in marked if not _is_hedged(it, before, clauses.text)]
    clauses.blank(language.cues["passing"])
    if not of_user:  # general knowledge is not what happened here
        clauses.blank(language.cues["generic"], rest=True)
        groups = groups if language.cues["involved"].search(clauses.text) else frozenset()
    stating = [rule for rule in rules if rule.group in groups and not rule.standing]
    matches += _search(clauses.text, language, stating)
    matches += marked
    for joint in list(_joints(clauses, language, matches)):
        clauses.split(*joint)
    return Sentence(sentence, clauses, matches, reading) if matches else None


def _is_hedged(mark: RuleMatch, before: str, after: str) -> bool:
    """Whether a clause that a hedge has hidden is where a mark lies: "I almost bought a van".

    Whoever is named there has that name all the same, and what is over is over.
    """
    if mark.rule.ends or mark.is_certain or names_someone(str(mark.rule.predicate)):
        return False
    return after[mark.parts.start()] == HIDDEN != before[mark.parts.start()]


def _joints(
    clauses: Clauses, language: Language, matches: list[RuleMatch]
) -> Iterator[tuple[int, int]]:
    """Where an "and" joins a plan to what a clause has stated: "… and the wedding is on 3 May"."""
    read = [it for it in matches if not it.rule.alone]
    begins = {it.parts.start() for it in read if it.is_plan}
    for join in language.joins.finditer(clauses.text) if begins and read[1:] else ():
        begun = begins.intersection(range(join.start(), join.end() + 1))
        first, _ = clauses.around(join.end(), join.end() + 1)
        own = [it for it in read if first <= it.parts.start() + 1]
        if begun and first < join.start() and any(it.has_stated(join.start()) for it in own):
            yield join.start(), min(begun)


class Sentence(NamedTuple):
    """A sentence as it was written, its clauses, what matches them, and what the reader says."""

    text: str
    clauses: Clauses
    matches: list[RuleMatch]
    reading: MarkedMessage
    moved: bool = False  # what was said before is that the speaker has moved


def _search(text: str, language: Language, rules: list[Rule]) -> list[RuleMatch]:
    found = ((rule, parts) for rule in rules for parts in rule.pattern.finditer(text))
    return [RuleMatch(rule, parts, language) for rule, parts in found]


def _candidate(sentence: Sentence, message: Message, source: str) -> Candidate | None:
    """The candidate of a sentence; None if none of its matches says something."""
    statement = _statement_of(sentence, message)
    matches = _meaningful(sentence, statement)
    if not matches:
        return None
    group = min((match.rule.group for match in matches), key=list(KINDS).index)
    spans = statement.all_dates(group, matches)
    over = _end_of_day(spans, statement.said_at) if group == "plan" else None
    first, last = statement.told(matches)
    text = "" if group in _NO_MEMORIES else _told(sentence, first, last)
    tags, claims = tags_of(text), _claims(matches, statement, sentence.reading)
    if text and not any(claim.predicate == "birthday" for claim in claims):  # which recurs
        named = [span for span in spans if not statement.is_of_plan(first, last, span)]
        text = dated(text, named)
    corrects = sentence.matches[0].language.cues["corrections"]
    return Candidate(
        text=text,
        sources=(message.message_id,),
        said_at=message.created_at,
        kind="working" if over else KINDS[group],
        category=_CATEGORIES.get(group, "knowledge"),
        tags=tags,
        source=source,
        claims=tuple(claims),
        corrects=any(match.rule.group == "correction" for match in matches)
        or bool(corrects.search(plain(sentence.text))),
        instead=instead_of(sentence.text),
        expires_at=over,
    )


def _statement_of(sentence: Sentence, message: Message) -> Statement:
    """A sentence as a statement of who wrote the message, at its time."""
    future = sentence.matches[0].language.cues["future"]
    return Statement(
        sentence.text,
        sentence.clauses,
        speaker=" ".join((message.name or message.role).split()),
        said_at=message.created_at,
        ahead=bool(future.search(sentence.clauses.text)),
        plans=[
            match.parts.span()
            for match in sentence.matches
            if match.is_plan and match.rule.group == "plan"
        ],
        moved=sentence.moved,
    )


def _meaningful(sentence: Sentence, statement: Statement) -> list[RuleMatch]:
    """The matches of a sentence that say something of the speaker, and that others do not deny."""
    of_others = [it for it in sentence.matches if statement.is_about_other(it)]
    matches = [
        match
        for match in sentence.matches
        if not any(match is it or _is_of_same(it, match) for it in of_others)
        and _says_something(match, statement)
        and (not match.rule.predicate or _believed(match, statement, sentence.reading))
    ]
    matches = statement.without_past_plans(statement.without_called_off(matches))
    return _agreed(statement.without_idle(matches), statement)


def _is_of_same(other: RuleMatch, match: RuleMatch) -> bool:
    """Whether a match reads what is said of others in fewer words: "Sven got a job at Gazelle"."""
    if match.is_marked:
        return _reads(other, match) and not match.is_certain
    named = [it.parts for it in (match, other) if it.parts.groupdict().get("object")]
    same = len(named) == 2 and named[0].span("object") == named[1].span("object")
    return same and match.rule.group in OWN and match.rule.predicate == other.rule.predicate


def _claims(matches: list[RuleMatch], statement: Statement, reading: MarkedMessage) -> list[Claim]:
    """What the matches claim; of a thing that ends, only plans are claimed beside."""
    told, figures = list[Claim](), list[Claim]()
    for match in matches:
        of = figures if match.rule.group == "figure" else told
        of += _believed(match, statement, reading)
    language = matches[0].language
    told = [
        replace(it, object=language.called(it.object)) if it.predicate in _CALLED else it
        for it in told
        if it.ends or it.predicate not in PLANS or not _is_of_them(it.object, language)
    ]
    claims = claims_told(told, figures, statement.speaker, statement.said_at)
    ended = {(each, claim.object) for claim in claims if claim.ends for each in claim.concerns}
    return [
        claim
        for claim in claims
        if claim.ends or claim.predicate in PLANS or (claim.predicate, claim.object) not in ended
    ]


def _is_of_them(plan: str, language: Language) -> bool:
    """Whether others do what is planned: "they go to Rome in March"."""
    words = plain(plan).split() if language.spaced else list(plan)
    return bool(words and language.cues["subjects"].search(words[0].lower()))


def _agreed(matches: list[RuleMatch], statement: Statement) -> list[RuleMatch]:
    """The matches; where a rule and the reader differ on one thing, the reader's.

    Where they agree, or differ only on whether it is over, the rule's: it knows more of how a
    thing is called, if not always of its end. Of what may be several things both may be right.
    """
    wanted = [it for it in matches if not _is_unwanted(it, matches)]
    by_rules = [match for match in wanted if not match.is_marked]
    told = [(match, claims_of(match, statement)) for match in by_rules]
    done = [match.parts.span() for match in by_rules if match.rule.group == "done"]
    dropped = list[RuleMatch]()
    for mark in (it for it in wanted if it.is_marked):
        predicate, thing = str(mark.rule.predicate), plain(str(mark.rule.object)).lower()
        to_come = any(_is_to_come(it, statement) for it in claims_of(mark, statement))
        alike = PLANS if predicate in PLANS else (predicate,)
        rivals = [
            (match, plain(claim.object).lower(), claim.ends)
            for match, claims in told
            for claim in claims
            if claim.predicate in alike and (mark.rule.ends or not claim.off)
        ]
        same = [
            (it, ends)
            for it, other, ends in rivals
            if thing in other or other in thing or (other != "*" and _names(it, mark))
        ]
        over = [it for it, ends in same if not ends and _knows_no_end(it, mark, done)]
        worse = [it for it, _ in same if _says_less(it, mark, statement)]
        worse += [it for it, _ in same if _cuts_wrongly(it, mark, statement)]
        if over and mark.rule.ends:  # "I used to have a cat", "I finished my contract at Siemens"
            dropped += over
        elif worse:
            dropped += worse
        elif same or any(_contains(match, mark) for match in by_rules):
            dropped.append(mark)
        elif is_single_valued(predicate):
            dropped += [
                match
                for match, claims in told
                for it in claims
                if it.predicate == predicate
                and it.ends == mark.rule.ends
                and to_come == _is_to_come(it, statement)
            ]
    return [match for match in wanted if not any(match is it for it in dropped)]


def _is_to_come(claim: Claim, statement: Statement) -> bool:
    return claim.valid_from is not None and claim.valid_from > statement.said_at


def _is_unwanted(match: RuleMatch, matches: Sequence[RuleMatch]) -> bool:
    """Whether a rule says of the same words that somebody does without.

    "I'm off sugar until June" is no plan, and no diet because the reader says so; "no more bullet
    points" prefers none.
    """
    (start, end), read = match.parts.span(), match.rule.predicate
    by_rules = [it for it in matches if not it.is_marked]
    no_more = (*PLANS, "diet", "allergic to") if match.is_marked else PLANS
    if read in no_more and not match.rule.ends:
        left = (it.parts.span() for it in by_rules if it.rule.predicate == "avoids")
        return any(start < last and first < end for first, last in left)
    if not match.is_marked or read != "prefers":
        return False
    dislikes = (it for it in by_rules if it.rule.predicate == "dislikes" and it.rule.standing)
    unwanted = (it.parts.span("object") for it in dislikes)
    return any(start < first < end for first, _ in unwanted)


def _says_less(match: RuleMatch, mark: RuleMatch, statement: Statement) -> bool:
    """Whether a rule takes a whole clause for a plan of which the reader marks what is planned."""
    same = mark.rule.predicate == match.rule.predicate and match.is_plan and match.language.spaced
    if not same or mark.rule.ends or match.parts.groupdict().get("object"):
        return False
    (start, end), (_, last) = mark.parts.span(), match.parts.span()
    return statement.clause_of(match)[0] < start and end >= last - 1


def _cuts_wrongly(match: RuleMatch, mark: RuleMatch, statement: Statement) -> bool:
    """Whether a rule cuts a thing short, or a name too late: "Rust le soir"; the reader is sure."""
    sure = mark.is_surer_than_rules and _reads(match, mark) and mark.rule.predicate not in PLANS
    if not sure or mark.rule.ends != match.rule.ends:
        return False
    told = {claim.object for claim in claims_of(match, statement)}
    thing = str(mark.rule.object)
    if len(told) > 1 or thing in told or match.rule.object:
        return False
    late = mark.rule.predicate in ENDS_AT_PLACES and all(one.startswith(thing) for one in told)
    return late or all(thing.startswith(one) for one in told)


def _knows_no_end(match: RuleMatch, mark: RuleMatch, done: Sequence[tuple[int, int]]) -> bool:
    """Whether a rule names somebody, or a part of what is done, or the reader is sure of an end."""
    start, end = match.parts.span()
    within = any(first < start and end <= last for first, last in done)
    return within or match.rule.group == "relation" or mark.is_surer_than_rules


def _contains(match: RuleMatch, mark: RuleMatch) -> bool:
    """Whether a rule reads a marked stretch as a part of its object: "tea to coffee".

    A task that is done ends what it is named after no more than it states it: "Postgres upgrade".
    """
    if mark.rule.predicate == match.rule.predicate:
        return False
    if match.rule.object and match.parts[0].strip() == mark.rule.object:
        return True  # "laktoseintolerant" is a diet by its name, and no job
    if not match.parts.groupdict().get("object"):
        return False
    if match.rule.group == "done" and match.rule.predicate not in PLANS:
        return False  # "back to coffee" may tell a liking, too
    first, last = match.parts.span("object")
    start, end = mark.parts.span()
    if (first, last, mark.rule.predicate) == (start, end, "likes"):
        return False  # what is liked better than something is liked
    if match.rule.predicate in PLANS:
        rest = match.parts["object"][end - first :].split()
        named = first == start and not match.language.common.issuperset(rest)
        return named and match.rule.group == "done" and mark.rule.ends
    return first <= start and end <= last


def _reads(match: RuleMatch, mark: RuleMatch) -> bool:
    """Whether a rule reads a marked stretch as the reader does."""
    same = mark.is_marked and mark.rule.predicate == match.rule.predicate
    return same and distance(match.parts.span(), mark.parts.span()) == 0


def _names(match: RuleMatch, mark: RuleMatch) -> bool:
    """Whether a rule knows a name for what the reader marks: "keine Milch" is "laktosefrei"."""
    return bool(match.rule.object) and _reads(match, mark)


def _believed(match: RuleMatch, statement: Statement, reading: MarkedMessage) -> list[Claim]:
    """The claims of a match, without what the reader takes for something else than a rule does.

    Of a list it is surer of the first things than of the last: beside one that it believes, others
    need little.
    """
    claims = claims_of(match, statement)
    if match.is_marked or match.rule.group not in _LEARNT or not reading.chances:
        return claims
    if statement.is_of_spouse(match):  # and so the speaker's, which the reader does not know
        return claims
    own = [it for it in claims if it.subject == statement.speaker and it.ends == match.rule.ends]

    def doubted(least: float) -> set[str]:
        return {
            it.object
            for it in own
            if all(reading.doubts(it.object, kind, least) for kind in read_as(it.predicate))
        }

    dropped = doubted(LEAST)
    if len(dropped) < len({it.object for it in own}):
        dropped = doubted(LEAST_IN_LIST)
    return [it for it in claims if it.object not in dropped]


def _says_something(match: RuleMatch, statement: Statement) -> bool:
    """Whether a match names its object, and its date if it needs one."""
    rule, now = match.rule, statement.said_at
    spans = statement.dates(rule.group)
    if rule.group == "decision" and any(span.start <= now < span.end for span in spans):
        return False  # a decision for today is of no use tomorrow
    if rule.dated and rule.group == "event":
        timely = any(span.end <= now for span in spans)
    elif rule.dated:
        timely = any(span.start > now or (rule.today and span.end > now) for span in spans)
    else:
        timely = True
    return timely and (rule.predicate is None or bool(claims_of(match, statement)))


def _end_of_day(spans: list[DateSpan], moment: datetime) -> datetime | None:
    """When a plan for the same day expires; None for any other plan."""
    if len(spans) != 1 or spans[0].start.date() != moment.date():
        return None
    return spans[0].end if (spans[0].end - spans[0].start).days == 1 else None


def _told(sentence: Sentence, first: int, last: int) -> str:
    """The words of the clauses that say something, or the sentence where they are too few."""
    text = sentence.text[first:last].strip(STATEMENT_EDGES)
    whole = HIDDEN not in sentence.clauses.text and len(fold(text).split()) < _FEWEST
    text = sentence.text.strip(STATEMENT_EDGES) if whole else text
    opener = sentence.matches[0].language.cues["openers"].match(plain(text))
    return text[opener.end() :] if opener else text
