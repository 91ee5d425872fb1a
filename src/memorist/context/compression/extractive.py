"""Extractive summaries: the statements that say most, in their own words, in eight parts."""

import heapq
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from math import log
from typing import NamedTuple

from memorist.context.compression.parts import SummaryLine, Topic, parse, plain, render, topic_of
from memorist.context.tokens import TokenCounter
from memorist.language.patterns import Pattern
from memorist.language.signals import Cue, cue_words, cues_of, signals_of
from memorist.language.text import clauses, cut, stop_words
from memorist.records.log import LogEntry
from memorist.records.message import ORDINARY, readable
from memorist.records.values import UNSPACED, fold

# The weight of a statement.
ROLES = {"user": 1.0, "assistant": 0.5, "system": 0.3, "tool": 0.3}
FAILED = 0.8  # the least weight of any role that reports an error
OLDEST = 0.8  # the weight of the oldest statement, where the newest has 1
CUES = {Cue.ERROR: 0.5, Cue.TASK: 0.3, Cue.REQUEST: 0.2}
CUES |= dict.fromkeys((Cue.FIX, Cue.DECISION, Cue.WISH), 0.4)
OWN = 3.0  # for what users tell of themselves
FIGURE = 0.5
QUOTE = 0.5
NAME = 0.4
MOST_NAMES = 3
QUESTION = 0.4
SHORT_WORDS = 5
STEM_CHARS = 6
_ASKS = ("?", "？", "؟")
_FIGURE = re.compile(r"\d")
_QUOTE = re.compile(r"[\"“«„「].{3,60}[\"”»“」]")


class Phrase(NamedTuple):
    """A statement, with its stemmed terms, its cues, its capitalised words and its length."""

    text: str
    terms: frozenset[str]
    cues: frozenset[Cue]
    names: tuple[str, ...]
    words: int


def read(text: str) -> Phrase:
    """A statement with all that is weighed in it; its terms are stems and pairs of ideographs."""
    words = fold(text).split()
    names = tuple([word for word in text.split()[1:] if word[0].isupper() and len(word) > 1])
    stems, pairs = words, set[str]()
    if not text.isascii() and UNSPACED.search(text):
        stems = [word for word in words if not UNSPACED.match(word)]
        pairs = {a + b for a, b in pairwise(words) if UNSPACED.match(a) and UNSPACED.match(b)}
    terms = frozenset([word[:STEM_CHARS] for word in stems]) | pairs
    return Phrase(text, terms, cues_of(text, words), names, len(words))


def weigh(phrase: Phrase, role: str = "user", age: float = 0.0) -> float:
    """How much a statement is worth keeping; `age` is 0 for the newest message, 1 for the oldest.

    Definite things weigh more: what users did, figures, names, quoted titles. A tool's words weigh
    little, unless they report an error.
    """
    by_role = ROLES.get(role, min(ROLES.values()))
    if Cue.ERROR in phrase.cues:
        by_role = max(by_role, FAILED)
    definite = (
        (OWN * max(0.0, signals_of(phrase.text).self_reference) if role == "user" else 0.0)
        + NAME * min(MOST_NAMES, len(phrase.names))
        + (FIGURE if _FIGURE.search(phrase.text) else 0.0)
        + (QUOTE if _QUOTE.search(phrase.text) else 0.0)
    )
    value = 1.0 + definite + sum([CUES.get(cue, 0.0) for cue in phrase.cues])
    question = QUESTION if phrase.text.rstrip("\"'”’»)] ")[-1:] in _ASKS else 1.0
    length = min(1.0, phrase.words / SHORT_WORDS)
    return value * question * length * by_role * (1 - (1 - OLDEST) * age)


# What a summary might say.
REQUEST_WORDS = 4  # a first message of fewer is a greeting
LONGEST_NAME = 40
LONGEST_ARTEFACT = 120
SHORT_CHARS = 14
MOST_CHARS = 20_000
TOOL_WEIGHT = 0.4
FILE_WEIGHT = 1.0
TERMS = "Names"
USER = "User"
NEVER_CURRENT = (Topic.ERRORS, Topic.DECISIONS, Topic.TASKS)  # also if the work is current
OFTEN = 3  # statements that make a name in them a key term
TELLING = 3  # letters
MOST_DONE = 200  # the last reports of finished work that tasks are compared with
ALIKE = 0.6  # the share of a task's terms that such a report must have
_ARTEFACT = Pattern(
    r"(?:^|[^\w/.-])(?P<span>https?://[^\s<>\"'`)\]]+[^\s<>\"'`)\].,;:!?]"
    r"|(?:~|\.{1,2})?/?(?:[\w.-]+/)+[\w.-]*\w"
    r"|[\w-]+\.(?:py|js|ts|tsx|jsx|md|txt|json|ya?ml|toml|html|css|sql|sh|rs|go|java"
    r"|c|cpp|h|csv|xlsx?|docx?|pdf|png|jpe?g|svg|ipynb|cfg|ini|lock|xml)\b)"
)
_MAY_NAME_ONE = re.compile(r"\w[./]\w|://")
_MARKS = ".,;:!?()[]{}<>\"'`*“”‘’«»„…"
_NO_ARTEFACT = re.compile(r"[\w.]+/[\w.]+(?<!\.[a-z]{2})(?<!\.[a-z]{3})(?<!\.[a-z]{4})")


class SummaryCandidate(NamedTuple):
    """A line a summary might have, its weight and its message's place; pinned ones come first."""

    line: SummaryLine
    phrase: Phrase
    weight: float
    place: int
    pinned: bool = False


def _known(lines: Sequence[SummaryLine], *, now: bool = False) -> Iterator[SummaryCandidate]:
    """The statements of a summary, one by one, so that it can be thinned.

    The first line of the request is pinned. Unless the summary is of `now`, its current work is
    past, and what the user said there becomes one message among others.
    """
    first = next((line for line in lines if line.part is Topic.REQUEST), None)
    for place, line in enumerate(lines, start=-len(lines)):
        kept = line
        if not now and line.part is Topic.CURRENT and line.who:
            kept = line._replace(part=Topic.USER, who="" if line.who == USER else line.who)
        elif not now and (line.part is Topic.CURRENT or _is_terms(line)):
            continue
        texts = clauses(kept.text)
        if kept.part is Topic.ARTEFACTS:
            names = kept.text.split(", ")
            texts = iter([kept.text] if any(" " in name for name in names) else names)
        for phrase in map(read, filter(None, map(plain, texts))):
            pinned = line is first or kept.part is Topic.CURRENT
            role = "assistant" if kept.part is Topic.CONCEPTS else "user"
            made, weight = kept._replace(text=phrase.text), weigh(phrase, role, age=1.0)
            yield SummaryCandidate(made, phrase, weight, place, pinned)


def _fresh(entries: Sequence[LogEntry], has_request: bool) -> Iterator[SummaryCandidate]:
    """The statements of the messages; the first request and the current work are pinned."""
    asked = [place for place, entry in enumerate(entries) if entry.message.role == "user"]
    texts = ((place, entries[place].message.text[:500]) for place in asked)
    wordy = (place for place, text in texts if len(read(text).terms) >= REQUEST_WORDS)
    request = None if has_request else next(wordy, asked[0] if asked else None)
    current = {len(entries) - 1, *asked[-1:]} - {request}
    for place, entry in enumerate(entries):
        age = 1 - place / max(1, len(entries) - 1)
        pinned = Topic.REQUEST if place == request else Topic.CURRENT if place in current else None
        yield from _of_message(entry, place, age, pinned)


def _of_message(
    entry: LogEntry, place: int, age: float, pinned: Topic | None
) -> Iterator[SummaryCandidate]:
    message, role = entry.message, entry.message.role
    day = f"{message.created_at:%Y-%m-%d}"
    name = ""
    if role == "user" and message.name:
        name = plain(message.name.replace(":", " "))[:LONGEST_NAME].rstrip()
    calls = message.tool_calls or message.agent_calls
    text = readable(message.content) if calls else message.text
    if len(text) > MOST_CHARS:  # both ends
        text = f"{text[: MOST_CHARS // 2]}\n{text[-MOST_CHARS // 2 :]}"
    for piece in clauses(text):
        if len(piece) < SHORT_CHARS and piece.isascii() and pinned is None:
            continue  # "Thanks, Bob!"
        phrase = read(plain(piece))
        says = Cue.ERROR in phrase.cues if role == "tool" else phrase.words > 1
        if not (says or pinned is not None) or not phrase.text or topic_of(phrase.text):
            continue
        part = _part_of(phrase, role)
        if pinned is Topic.REQUEST or (pinned is Topic.CURRENT and part not in NEVER_CURRENT):
            part = pinned
        who = name or (USER if part is Topic.CURRENT and role == "user" else "")
        line = SummaryLine(part, phrase.text, day, who)
        weight = weigh(phrase, role, age) * (ORDINARY + message.importance)
        yield SummaryCandidate(line, phrase, weight, place, part is pinned)
    for name, weight in _artefacts(entry):
        phrase = Phrase(name, frozenset([name.casefold()]), frozenset(), (), 1)
        yield SummaryCandidate(SummaryLine(Topic.ARTEFACTS, name), phrase, weight, place)


def _part_of(phrase: Phrase, role: str) -> Topic:
    """The part of a summary that a statement belongs to, by its cues."""
    cues = phrase.cues
    if Cue.ERROR in cues or (Cue.FIX in cues and role != "user"):
        return Topic.ERRORS
    if Cue.DECISION in cues:
        return Topic.DECISIONS
    if Cue.TASK in cues and Cue.DONE not in cues:
        return Topic.TASKS
    if role != "user":
        return Topic.CONCEPTS
    return Topic.REQUEST if Cue.REQUEST in cues else Topic.USER


def _artefacts(entry: LogEntry) -> Iterator[tuple[str, float]]:
    """The tools, files and addresses that a message names, and their weights."""
    for call in entry.message.tool_calls:
        if name := plain(call.name)[:LONGEST_NAME]:
            yield name, TOOL_WEIGHT
    text = entry.message.text[:MOST_CHARS]
    if _MAY_NAME_ONE.search(text):
        for name in _ARTEFACT.findall(text):
            if not _NO_ARTEFACT.fullmatch(name):
                yield cut(name.replace(",", "%2C"), LONGEST_ARTEFACT), FILE_WEIGHT


def _is_done(task: SummaryCandidate, done: Sequence[SummaryCandidate]) -> bool:
    """Whether a later statement reports that a task is done."""
    terms = task.phrase.terms - cue_words()
    about = {term for term in terms if len(term) >= TELLING or not term.isascii()}
    least = max(1, ALIKE * len(about))
    later = (one.phrase.terms for one in done if one.place > task.place)
    return any(len(about & terms) >= least for terms in later)


def _key_terms(
    candidates: Sequence[SummaryCandidate], before: Sequence[SummaryLine], most: int
) -> SummaryLine | None:
    """A line of the names that come up often; those of the previous summary stay ahead."""
    kept = [term for line in before if _is_terms(line) for term in line.text.split(", ")]
    speakers = {part for one in candidates for part in one.line.who.split()}
    tally = Counter(
        name
        for one in candidates
        if one.place >= 0
        for name in {word.strip(_MARKS) for word in one.phrase.names}
        if len(name) > 2 and "'" not in name and "’" not in name
    )
    often = sorted((-count, term) for term, count in tally.items() if count >= OFTEN)
    new = [term for _, term in often if term not in speakers]
    terms = list(dict.fromkeys([*kept[: most * 2 // 3], *new, *kept]))[:most]
    return SummaryLine(Topic.CONCEPTS, ", ".join(terms), who=TERMS) if len(terms) > 1 else None


def _is_terms(line: SummaryLine) -> bool:
    return line.part is Topic.CONCEPTS and line.who == TERMS


# Which of the candidates are taken.
SHARES = {Topic.REQUEST: 0.2, Topic.CURRENT: 0.2}  # of the tokens, for pinned statements
LEAST_SHARE = 60  # tokens
TOKENS_PER_TERM = 80  # of the summary, for each key term in it
MOST_TERMS = 12
# Extra worth of the parts that must survive many compressions.
STANDING = dict.fromkeys((Topic.REQUEST, Topic.ARTEFACTS, Topic.ERRORS), 2.0)
STANDING |= dict.fromkeys((Topic.DECISIONS, Topic.TASKS, Topic.CURRENT), 4.0)
FIRST_OF_MESSAGE = 2.0  # extra worth: every user message comes before a second part of any
LETTERS = 4  # words of fewer say little
LITTLE = 0.3
BULLET = 2  # tokens of a line besides its words
WORDLESS = SummaryLine(Topic.CURRENT, "Nothing was said in words.")
MARGIN = 2  # times as much is ranked as fits
ROUNDS = 5
FULL = 0.98
AIMED = 0.995


def extract(
    entries: Sequence[LogEntry], counter: TokenCounter, max_tokens: int, previous: str = ""
) -> str:
    """A summary of at most `max_tokens`, which extends the previous one."""
    before = parse(previous)
    candidates = [*_known(before), *_fresh(entries, any(x.part is Topic.REQUEST for x in before))]
    terms = _key_terms(candidates, before, min(MOST_TERMS, max_tokens // TOKENS_PER_TERM))
    if terms:
        candidates.append(SummaryCandidate(terms, read(""), 1.0, 0, pinned=True))
    if not candidates:
        return counter.truncate(render([WORDLESS]), max_tokens)
    done = [one for one in candidates if Cue.DONE in one.phrase.cues][-MOST_DONE:]
    still = [it for it in candidates if it.line.part is not Topic.TASKS or not _is_done(it, done)]
    return _fit(still, counter, max_tokens)


def thinned(lines: Sequence[SummaryLine], counter: TokenCounter, max_tokens: int) -> str:
    """The lines as Markdown; if they take too many tokens, those of the greatest weight."""
    whole = render(lines)
    if counter.text(whole) <= max_tokens:
        return whole
    return _fit([*_known(lines, now=True)], counter, max_tokens)


def _fit(candidates: Sequence[SummaryCandidate], counter: TokenCounter, max_tokens: int) -> str:
    """The best candidates that fit into `max_tokens`, counted exactly, as Markdown."""
    candidates = _within_shares(candidates, counter, max_tokens)
    costs = [n + BULLET for n in counter.texts([one.line.text for one in candidates])]
    order = _ranked(candidates, costs, enough=MARGIN * max_tokens)
    room, best = float(max_tokens), ""
    for _ in range(ROUNDS):  # headings and dates cost tokens too: render, count, adjust
        taken, spent = [], 0
        for at in order:
            if spent + costs[at] <= room:
                taken.append(at)
                spent += costs[at]
        text = _text([candidates[at] for at in sorted(taken)])
        tokens = counter.text(text)
        if tokens <= max_tokens and len(text) > len(best):
            best = text
        if FULL * max_tokens <= tokens <= max_tokens or room >= sum(costs) >= tokens:
            break
        room *= AIMED * max_tokens / max(1, tokens)
    count = len(order)
    while not best and count:  # a very small limit: fewer and fewer, in the end the first one cut
        text = _text([candidates[at] for at in order[:count]])
        if counter.text(text) <= max_tokens:
            return text
        count //= 2
    return best or counter.truncate(_text([candidates[at] for at in order[:1]]), max_tokens)


def _within_shares(
    candidates: Sequence[SummaryCandidate], counter: TokenCounter, max_tokens: int
) -> list[SummaryCandidate]:
    """The candidates, with only as many pinned as the share of their part has room for."""
    least = min(LEAST_SHARE, max_tokens // len(SHARES))
    whole = {part: max(least, int(share * max_tokens)) for part, share in SHARES.items()}
    left = dict(whole)
    made = []
    for one in sorted(candidates, key=_newest_work_first):
        if one.pinned and (part := one.line.part) in left:
            cost = counter.text(one.line.text) + BULLET
            if cost > left[part] == whole[part] and part is Topic.REQUEST:  # its beginning stays
                start = counter.truncate(one.line.text, max(1, whole[part] - BULLET)).rstrip()
                one = one._replace(line=one.line._replace(text=f"{start}…"))
            elif cost > left[part]:
                one = one._replace(pinned=False)
            left[part] -= cost
        made.append(one)
    return made


def _newest_work_first(one: SummaryCandidate) -> tuple[bool, int]:
    current = one.line.part is Topic.CURRENT
    return current, -one.place if current else one.place


def _ranked(candidates: Sequence[SummaryCandidate], costs: Sequence[int], enough: int) -> list[int]:
    """The candidates, best first, until they cost `enough` tokens.

    Pinned ones come first, then those that add most new terms for their tokens.
    """
    worth = _worth(candidates)
    covered: set[str] = set()
    briefed: set[int] = set()
    texts: set[str] = set()
    order: list[int] = []

    def gain(at: int) -> float:
        one = candidates[at]
        if one.phrase.text in texts:
            return 0.0  # word for word
        value = sum([worth[term] for term in one.phrase.terms - covered])
        if value > 0:
            value += STANDING.get(one.line.part, 0.0)
        if one.line.part is Topic.USER and one.place not in briefed:
            value += FIRST_OF_MESSAGE
        return value * one.weight / costs[at]

    def take(at: int) -> None:
        order.append(at)
        covered.update(candidates[at].phrase.terms)
        briefed.add(candidates[at].place)
        texts.add(candidates[at].phrase.text)

    for at in [at for at, one in enumerate(candidates) if one.pinned]:
        take(at)
    heap = [(-gain(at), at) for at, one in enumerate(candidates) if not one.pinned]
    heapq.heapify(heap)
    # Taking one makes the others worth less, never more: only the best is computed again.
    while heap and enough > 0:
        at = heapq.heappop(heap)[1]
        now = -gain(at)
        if heap and now > heap[0][0]:
            heapq.heappush(heap, (now, at))
        elif now < 0:
            take(at)
            enough -= costs[at]
    return order


def _worth(candidates: Sequence[SummaryCandidate]) -> dict[str, float]:
    """What it is worth to mention each term: little for stop words and frequent terms."""
    tally = Counter(term for one in candidates for term in one.phrase.terms)
    total = len(candidates) + 1
    stop_terms = _stop_terms()
    return {
        term: (LITTLE if term in stop_terms else log(total / count))
        * (1.0 if len(term) >= LETTERS else LITTLE)
        for term, count in tally.items()
    }


@cache
def _stop_terms() -> frozenset[str]:
    words = stop_words("ranking", "grammar", "reporting", "weak")
    return frozenset(word[:STEM_CHARS] for word in fold(" ".join(words)).split())


def _text(taken: Sequence[SummaryCandidate]) -> str:
    """The summary as Markdown, by parts, days and speakers: a line for each message, as a rule."""
    speakers: dict[str, int] = {}
    for one in taken:
        speakers.setdefault(one.line.who, len(speakers))

    def order(one: SummaryCandidate) -> tuple[str, int, int]:
        speaker = 0 if one.line.part is Topic.CURRENT else speakers[one.line.who]
        return one.line.day, speaker, one.place

    lines: dict[object, SummaryLine] = {}
    for one in sorted(taken, key=order):
        line = one.line
        key = line.part is Topic.ARTEFACTS or (line.part, line.day, line.who, one.place)
        lines[key] = lines[key].plus(line.text) if key in lines else line
    return render(lines.values())
