"""What a summary might say: statements of the messages, weighed and sorted into its parts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from memorist.context.compression.parts import SummaryLine, Topic, is_title, plain
from memorist.language.signals import Cue, cue_words, cues_of, signals_of
from memorist.language.text import clauses, cut
from memorist.records.message import LogEntry, readable
from memorist.records.values import UNSPACED, fold

ROLES = {"user": 1.0, "assistant": 0.5, "system": 0.3, "tool": 0.3}
FAILED = 0.8  # the least weight of any role that reports an error
OLDEST = 0.8  # the weight of the oldest statement, where the newest has 1
CUES = {
    Cue.ERROR: 0.5,
    Cue.FIX: 0.4,
    Cue.DECISION: 0.4,
    Cue.TASK: 0.3,
    Cue.WISH: 0.4,
    Cue.REQUEST: 0.2,
}
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
    """A statement with all that is weighed in it."""
    words = fold(text).split()
    names = tuple([word for word in text.split()[1:] if word[0].isupper() and len(word) > 1])
    return Phrase(text, _terms(text, words), cues_of(text, words), names, len(words))


def weigh(phrase: Phrase, role: str = "user", age: float = 0.0) -> float:
    """How much a statement is worth keeping; `age` is 0 for the newest message, 1 for the oldest.

    A tool's words weigh little, unless they report an error.
    """
    by_role = ROLES.get(role, min(ROLES.values()))
    if Cue.ERROR in phrase.cues:
        by_role = max(by_role, FAILED)
    value = 1.0 + _definite(phrase, role) + sum([CUES.get(cue, 0.0) for cue in phrase.cues])
    question = QUESTION if phrase.text.rstrip("\"'”’»)] ")[-1:] in _ASKS else 1.0
    length = min(1.0, phrase.words / SHORT_WORDS)
    return value * question * length * by_role * (1 - (1 - OLDEST) * age)


def _definite(phrase: Phrase, role: str) -> float:
    """The extra weight of definite things: what users did, figures, names, quoted titles."""
    return (
        (OWN * max(0.0, signals_of(phrase.text).self_reference) if role == "user" else 0.0)
        + NAME * min(MOST_NAMES, len(phrase.names))
        + (FIGURE if _FIGURE.search(phrase.text) else 0.0)
        + (QUOTE if _QUOTE.search(phrase.text) else 0.0)
    )


def _terms(text: str, words: Sequence[str]) -> frozenset[str]:
    """The terms of a text: its words cut to a stem, and pairs of ideographs."""
    if text.isascii() or not UNSPACED.search(text):
        return frozenset([word[:STEM_CHARS] for word in words])
    terms = {word[:STEM_CHARS] for word in words if not UNSPACED.match(word)}
    pairs = {a + b for a, b in pairwise(words) if UNSPACED.match(a) and UNSPACED.match(b)}
    return frozenset(terms | pairs)


REQUEST_WORDS = 4  # a first message of fewer is a greeting
LONGEST_NAME = 40
LONGEST_ARTEFACT = 120
SHORT_CHARS = 14
MOST_CHARS = 20_000
TOOL_WEIGHT = 0.4
FILE_WEIGHT = 1.0
TERMS = "Names"
USER = "User"
STANDING = (Topic.ERRORS, Topic.DECISIONS, Topic.TASKS)  # never only "current work"
OFTEN = 3  # statements that make a name in them a key term
TELLING = 3  # letters
MOST_DONE = 200  # the last reports of finished work that tasks are compared with
ALIKE = 0.6  # the share of a task's terms that such a report must have

_ARTEFACT = re.compile(
    r"https?://[^\s<>\"'`)\]]+[^\s<>\"'`)\].,;:!?]"
    r"|(?<![\w/.-])(?:~|\.{1,2})?/?(?:[\w.-]+/)+[\w.-]*\w"
    r"|(?<![\w/.@-])[\w-]+\.(?:py|js|ts|tsx|jsx|md|txt|json|ya?ml|toml|html|css|sql|sh|rs|go|java"
    r"|c|cpp|h|csv|xlsx?|docx?|pdf|png|jpe?g|svg|ipynb|cfg|ini|lock|xml)\b"
)
_MAY_NAME_ONE = re.compile(r"\w[./]\w|://")
_MARKS = ".,;:!?()[]{}<>\"'`*“”‘’«»„…"
_NO_ARTEFACT = re.compile(r"[\w.]+/[\w.]+(?<!\.[a-z]{2})(?<!\.[a-z]{3})(?<!\.[a-z]{4})")


class SummaryCandidate(NamedTuple):
    """A line that a summary might have, its weight, and the place of its message.

    Pinned ones go before all others.
    """

    line: SummaryLine
    phrase: Phrase
    weight: float
    place: int
    pinned: bool = False


def known(lines: Sequence[SummaryLine], *, now: bool = False) -> Iterator[SummaryCandidate]:
    """The statements of a summary, one by one, so that it can be thinned.

    The first line of the request is pinned. Unless the summary is of `now`, its current work is
    past, and what the user said there becomes one message among others.
    """
    first = next((line for line in lines if line.part is Topic.REQUEST), None)
    for place, line in enumerate(lines, start=-len(lines)):
        kept = line if now else _past(line)
        if kept is None:
            continue
        for text in _names_in(kept) if kept.part is Topic.ARTEFACTS else clauses(kept.text):
            phrase = read(plain(text))
            if phrase.text:
                pinned = line is first or kept.part is Topic.CURRENT
                made = kept._replace(text=phrase.text)
                role = "assistant" if kept.part is Topic.CONCEPTS else "user"
                yield SummaryCandidate(made, phrase, weigh(phrase, role, age=1.0), place, pinned)


def _past(line: SummaryLine) -> SummaryLine | None:
    """A line of the previous summary as the next one has it; None if it does not."""
    if line.part is Topic.CURRENT and line.who:
        return line._replace(part=Topic.USER, who="" if line.who == USER else line.who)
    return None if line.part is Topic.CURRENT or _is_terms(line) else line


def fresh(entries: Sequence[LogEntry], has_request: bool) -> Iterator[SummaryCandidate]:
    """The statements of the messages; the first request and the current work are pinned."""
    asked = [place for place, entry in enumerate(entries) if entry.message.role == "user"]
    request = None if has_request else _request(entries, asked)
    current = {len(entries) - 1, *asked[-1:]} - {request}
    for place, entry in enumerate(entries):
        age = 1 - place / max(1, len(entries) - 1)
        pinned = Topic.REQUEST if place == request else Topic.CURRENT if place in current else None
        yield from _of_message(entry, place, age, pinned)


def still_open(candidates: Sequence[SummaryCandidate]) -> list[SummaryCandidate]:
    """The candidates without tasks that a later statement reports as done."""
    done = [one for one in candidates if Cue.DONE in one.phrase.cues][-MOST_DONE:]
    return [it for it in candidates if it.line.part is not Topic.TASKS or not _is_done(it, done)]


def key_terms(
    candidates: Sequence[SummaryCandidate], before: Sequence[SummaryLine], most: int
) -> SummaryLine | None:
    """A line of the names that come up often; those of the previous summary stay ahead."""
    kept = [term for line in before if _is_terms(line) for term in line.text.split(", ")]
    speakers = {part for one in candidates for part in one.line.who.split()}
    tally = Counter(term for one in candidates if one.place >= 0 for term in _names(one.phrase))
    often = sorted((-count, term) for term, count in tally.items() if count >= OFTEN)
    new = [term for _, term in often if term not in speakers]
    terms = list(dict.fromkeys([*kept[: most * 2 // 3], *new, *kept]))[:most]
    return SummaryLine(Topic.CONCEPTS, ", ".join(terms), who=TERMS) if len(terms) > 1 else None


def _names(phrase: Phrase) -> set[str]:
    """The capitalised words of a statement, but for its first."""
    words = (word.strip(_MARKS) for word in phrase.names)
    return {word for word in words if len(word) > 2 and "'" not in word and "’" not in word}


def _is_terms(line: SummaryLine) -> bool:
    return line.part is Topic.CONCEPTS and line.who == TERMS


def _names_in(line: SummaryLine) -> list[str]:
    """The artefacts of a line: several if it is a list of names."""
    names = line.text.split(", ")
    return [line.text] if any(" " in name for name in names) else names


def _request(entries: Sequence[LogEntry], asked: Sequence[int]) -> int | None:
    """The place of the user's first message that is more than a greeting."""
    for place in asked:
        if len(read(entries[place].message.text[:500]).terms) >= REQUEST_WORDS:
            return place
    return asked[0] if asked else None


def _of_message(
    entry: LogEntry, place: int, age: float, pinned: Topic | None
) -> Iterator[SummaryCandidate]:
    message = entry.message
    day = f"{message.created_at:%Y-%m-%d}"
    name = _name(message.name) if message.role == "user" and message.name else ""
    for piece in clauses(_words_of(entry)):
        if len(piece) < SHORT_CHARS and piece.isascii() and pinned is None:
            continue  # "Thanks, Bob!"
        phrase = read(plain(piece))
        if not _stands_alone(phrase, message.role, pinned is not None):
            continue
        part = _part_of(phrase, message.role)
        if pinned is Topic.REQUEST or (pinned is Topic.CURRENT and part not in STANDING):
            part = pinned
        who = name or (USER if part is Topic.CURRENT and message.role == "user" else "")
        weight = weigh(phrase, message.role, age)
        yield SummaryCandidate(
            SummaryLine(part, phrase.text, day, who), phrase, weight, place, part is pinned
        )
    for name, weight in _artefacts(entry):
        phrase = Phrase(name, frozenset([name.casefold()]), frozenset(), (), 1)
        yield SummaryCandidate(SummaryLine(Topic.ARTEFACTS, name), phrase, weight, place)


def _stands_alone(phrase: Phrase, role: str, pinned: bool) -> bool:
    """Whether a statement says something alone; of tools' results, errors and the last one do."""
    if not phrase.text or is_title(phrase.text):
        return False
    return pinned or (Cue.ERROR in phrase.cues if role == "tool" else phrase.words > 1)


def _words_of(entry: LogEntry) -> str:
    """The text of a message without its tool calls; of a very long one, both ends."""
    message = entry.message
    calls = message.tool_calls or message.agent_calls
    text = readable(message.content) if calls else message.text
    if len(text) <= MOST_CHARS:
        return text
    return f"{text[: MOST_CHARS // 2]}\n{text[-MOST_CHARS // 2 :]}"


def _name(name: str) -> str:
    return plain(name.replace(":", " "))[:LONGEST_NAME].rstrip()


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
    about = {
        term
        for term in task.phrase.terms - cue_words()
        if len(term) >= TELLING or not term.isascii()
    }
    least = max(1, ALIKE * len(about))
    later = (one.phrase.terms for one in done if one.place > task.place)
    return any(len(about & terms) >= least for terms in later)
