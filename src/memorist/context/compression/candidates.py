"""Candidates: what a summary might say of some messages, sorted into its parts."""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memorist.context.compression.parts import Line, Part, is_title, plain
from memorist.context.compression.weigh import Statement, read, weigh
from memorist.language.cues import CUE_WORDS, Cue
from memorist.language.pieces import cut, pieces
from memorist.records.log import LogEntry
from memorist.records.message import readable

REQUEST_WORDS = 4  # a first message of fewer is a greeting
LONGEST_NAME = 40
LONGEST_ARTEFACT = 120
SHORT_CHARS = 14
MOST_CHARS = 20_000
TOOL_WEIGHT = 0.4
FILE_WEIGHT = 1.0
TERMS = "Names"
USER = "User"
STANDING = (Part.ERRORS, Part.DECISIONS, Part.TASKS)  # what must not pass with the moment
OFTEN = 3  # statements with a name that make it a key term
TELLING = 3  # letters
MOST_DONE = 200  # the last that are looked at
ALIKE = 0.6  # the share of a task's terms that tells it is the one that was done

_ARTEFACT = re.compile(
    r"https?://[^\s<>\"'`)\]]+[^\s<>\"'`)\].,;:!?]"
    r"|(?<![\w/.-])(?:~|\.{1,2})?/?(?:[\w.-]+/)+[\w.-]*\w"
    r"|(?<![\w/.@-])[\w-]+\.(?:py|js|ts|tsx|jsx|md|txt|json|ya?ml|toml|html|css|sql|sh|rs|go|java"
    r"|c|cpp|h|csv|xlsx?|docx?|pdf|png|jpe?g|svg|ipynb|cfg|ini|lock|xml)\b"
)
_MAY_NAME_ONE = re.compile(r"\w[./]\w|://")
_MARKS = ".,;:!?()[]{}<>\"'`*“”‘’«»„…"
_NO_ARTEFACT = re.compile(r"[\w.]+/[\w.]+(?<!\.[a-z]{2})(?<!\.[a-z]{3})(?<!\.[a-z]{4})")


class Candidate(NamedTuple):
    """A line that might be taken, what it says, what it weighs, and the message it is of."""

    line: Line
    said: Statement
    weight: float
    place: int
    pinned: bool = False


def known(lines: Sequence[Line], *, now: bool = False) -> Iterator[Candidate]:
    """What a summary says, piece by piece, so that it can be thinned.

    The first line of the request stays as it is. Unless the summary is of `now`, its current work
    is past, and what the user said there is one message among others.
    """
    first = next((line for line in lines if line.part is Part.REQUEST), None)
    for place, line in enumerate(lines, start=-len(lines)):
        kept = line if now else _past(line)
        if kept is None:
            continue
        for text in _names_in(kept) if kept.part is Part.ARTEFACTS else pieces(kept.text):
            said = read(plain(text))
            if said.text:
                pinned = line is first or kept.part is Part.CURRENT
                made = kept._replace(text=said.text)
                role = "assistant" if kept.part is Part.CONCEPTS else "user"
                yield Candidate(made, said, weigh(said, role, age=1.0), place, pinned)


def _past(line: Line) -> Line | None:
    """A line of the summary before as it stands in the next one, if it does."""
    if line.part is Part.CURRENT and line.who:
        return line._replace(part=Part.USER, who="" if line.who == USER else line.who)
    return None if line.part is Part.CURRENT or _is_terms(line) else line


def fresh(entries: Sequence[LogEntry], has_request: bool) -> Iterator[Candidate]:
    """What the messages say; the first request and what is at hand are pinned."""
    asked = [place for place, entry in enumerate(entries) if entry.message.role == "user"]
    request = None if has_request else _request(entries, asked)
    current = {len(entries) - 1, *asked[-1:]} - {request}
    for place, entry in enumerate(entries):
        age = 1 - place / max(1, len(entries) - 1)
        pinned = Part.REQUEST if place == request else Part.CURRENT if place in current else None
        yield from _of_message(entry, place, age, pinned)


def still_open(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates without the tasks of which a later one says that they are done."""
    done = [one for one in candidates if Cue.DONE in one.said.cues][-MOST_DONE:]
    return [one for one in candidates if not (_is_task(one) and _is_done(one, done))]


def key_terms(candidates: Sequence[Candidate], before: Sequence[Line], most: int) -> Line | None:
    """What the talk comes back to, in its own words; terms of the previous summary stay ahead."""
    kept = [term for line in before if _is_terms(line) for term in line.text.split(", ")]
    speakers = {part for one in candidates for part in one.line.who.split()}
    tally = Tally(term for one in candidates if one.place >= 0 for term in _names(one.said))
    often = sorted((-count, term) for term, count in tally.items() if count >= OFTEN)
    found = [term for _, term in often if term not in speakers]
    terms = list(dict.fromkeys([*kept[: most * 2 // 3], *found, *kept]))[:most]
    return Line(Part.CONCEPTS, ", ".join(terms), who=TERMS) if len(terms) > 1 else None


def _names(said: Statement) -> set[str]:
    """The words of a statement that are written as names are, but not because they come first."""
    words = (word.strip(_MARKS) for word in said.names)
    return {word for word in words if len(word) > 2 and "'" not in word and "’" not in word}


def _is_terms(line: Line) -> bool:
    return line.part is Part.CONCEPTS and line.who == TERMS


def _names_in(line: Line) -> list[str]:
    """The artefacts of a line: several if it only names them."""
    names = line.text.split(", ")
    return [line.text] if any(" " in name for name in names) else names


def _request(entries: Sequence[LogEntry], asked: Sequence[int]) -> int | None:
    """The place of the first message that asks or tells something."""
    for place in asked:
        if len(read(entries[place].message.text[:500]).terms) >= REQUEST_WORDS:
            return place
    return asked[0] if asked else None


def _of_message(
    entry: LogEntry, place: int, age: float, pinned: Part | None
) -> Iterator[Candidate]:
    message = entry.message
    day = f"{message.created_at:%Y-%m-%d}"
    name = _name(message.name) if message.role == "user" and message.name else ""
    for piece in pieces(_words_of(entry)):
        if len(piece) < SHORT_CHARS and piece.isascii() and pinned is None:
            continue  # "Thanks, Bob!"
        said = read(plain(piece))
        if not _tells(said, message.role, pinned is not None):
            continue
        part = _part_of(said, message.role)
        if pinned is Part.REQUEST or (pinned is Part.CURRENT and part not in STANDING):
            part = pinned
        who = name or (USER if part is Part.CURRENT and message.role == "user" else "")
        weight = weigh(said, message.role, age)
        yield Candidate(Line(part, said.text, day, who), said, weight, place, part is pinned)
    for name, weight in _artefacts(entry):
        said = Statement(name, frozenset([name.casefold()]), frozenset(), (), 1)
        yield Candidate(Line(Part.ARTEFACTS, name), said, weight, place)


def _tells(said: Statement, role: str, pinned: bool) -> bool:
    """Whether a statement can stand alone; of what tools return, only errors and the last can."""
    if not said.text or is_title(said.text):
        return False
    return pinned or (Cue.ERROR in said.cues if role == "tool" else said.words > 1)


def _words_of(entry: LogEntry) -> str:
    """What a message says, be it pasted without end; calls are told as artefacts."""
    message = entry.message
    calls = message.tool_calls or message.agent_calls
    text = readable(message.content) if calls else message.text
    if len(text) <= MOST_CHARS:
        return text
    return f"{text[: MOST_CHARS // 2]}\n{text[-MOST_CHARS // 2 :]}"


def _name(name: str) -> str:
    return plain(name.replace(":", " "))[:LONGEST_NAME].rstrip()


def _part_of(said: Statement, role: str) -> Part:
    """The part a statement belongs to, by what its words hint at."""
    cues = said.cues
    if Cue.ERROR in cues or (Cue.FIX in cues and role != "user"):
        return Part.ERRORS
    if Cue.DECISION in cues:
        return Part.DECISIONS
    if Cue.TASK in cues and Cue.DONE not in cues:
        return Part.TASKS
    if role != "user":
        return Part.CONCEPTS
    return Part.REQUEST if Cue.REQUEST in cues else Part.USER


def _artefacts(entry: LogEntry) -> Iterator[tuple[str, float]]:
    """Tools, files and addresses that a message names, and what they weigh."""
    for call in entry.message.tool_calls:
        if name := plain(call.name)[:LONGEST_NAME]:
            yield name, TOOL_WEIGHT
    text = entry.message.text[:MOST_CHARS]
    if _MAY_NAME_ONE.search(text):
        for found in _ARTEFACT.findall(text):
            if not _NO_ARTEFACT.fullmatch(found):
                yield cut(found.replace(",", "%2C"), LONGEST_ARTEFACT), FILE_WEIGHT


def _is_task(one: Candidate) -> bool:
    return one.line.part is Part.TASKS


def _is_done(task: Candidate, done: Sequence[Candidate]) -> bool:
    """Whether something said later tells that a task is done."""
    about = {term for term in task.said.terms if term not in CUE_WORDS and _is_telling(term)}
    least = max(1, ALIKE * len(about))
    later = (one.said.terms for one in done if one.place > task.place)
    return any(len(about & terms) >= least for terms in later)


def _is_telling(term: str) -> bool:
    return len(term) >= TELLING or not term.isascii()
