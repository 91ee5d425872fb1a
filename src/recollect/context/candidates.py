"""Candidates: what a summary might say of some messages, sorted into its parts."""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from recollect.context.cues import Cue
from recollect.context.parts import Line, Part, plain
from recollect.context.pieces import cut, pieces
from recollect.context.weigh import Statement, read, weigh
from recollect.records.log import LogEntry

REQUEST_WORDS = 4  # a first message of fewer is a greeting
LONGEST_NAME = 40
LONGEST_ARTEFACT = 120
MOST_TOOL_PIECES = 30  # of one message; what a tool returns may be without end
OFTEN = 3  # statements with a name that make it a key term
ALIKE = 0.6  # the share of a task's terms that tells it is the one that was done

_ARTEFACT = re.compile(
    r"https?://[^\s<>\"'`)\]]+[^\s<>\"'`)\].,;:!?]"
    r"|(?<![\w/.])(?:~|\.{1,2})?/?(?:[\w.-]+/)+[\w.-]*\w"
    r"|(?<![\w/.@])[\w-]+\.(?:py|js|ts|tsx|jsx|md|txt|json|ya?ml|toml|html|css|sql|sh|rs|go|java"
    r"|c|cpp|h|csv|xlsx?|docx?|pdf|png|jpe?g|svg|ipynb|cfg|ini|lock|xml)\b"
)
_MAY_NAME_ONE = re.compile(r"\w[./]\w|://")
_MARKS = ".,;:!?()[]{}<>\"'`*“”‘’«»„…"
_NO_ARTEFACT = re.compile(r"[\w.]+/[\w.]+(?<!\.[a-z]{2})(?<!\.[a-z]{3})(?<!\.[a-z]{4})")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A line that might be taken, what it says, what it weighs, and the message it is of."""

    line: Line
    said: Statement
    weight: float
    place: int
    pinned: bool = False


def known(lines: Sequence[Line]) -> Iterator[Candidate]:
    """What the previous summary says, piece by piece, so that it can be thinned.

    What it says of the current work is past; the first line of the request stays as it is.
    """
    first = next((line for line in lines if line.part is Part.REQUEST), None)
    for place, line in enumerate(lines, start=-len(lines)):
        if line.part is Part.CURRENT or _is_terms(line):
            continue
        for text in [line.text] if line.part is Part.ARTEFACTS else pieces(line.text):
            said = read(plain(text))
            if said.text:
                made = replace(line, text=said.text)
                yield Candidate(made, said, weigh(said, age=1.0), place, line is first)


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
    done = [one for one in candidates if Cue.DONE in one.said.cues]
    return [one for one in candidates if not (_is_task(one) and any(_ends(d, one) for d in done))]


def key_terms(candidates: Sequence[Candidate], before: Sequence[Line], most: int) -> Line | None:
    """What the talk comes back to, in its own words; terms of the previous summary stay ahead."""
    kept = [term for line in before if _is_terms(line) for term in line.text.split(", ")]
    speakers = {part for one in candidates for part in one.line.who.split()}
    tally = Tally(term for one in candidates if one.place >= 0 for term in _names(one.line.text))
    often = sorted((-count, term) for term, count in tally.items() if count >= OFTEN)
    found = [term for _, term in often if term not in speakers]
    terms = list(dict.fromkeys([*kept[: most * 2 // 3], *found, *kept]))[:most]
    return Line(Part.CONCEPTS, ", ".join(terms)) if len(terms) > 1 else None


def _names(text: str) -> set[str]:
    """The words of a text that are written as names are, but not because they come first."""
    words = (word.strip(_MARKS) for word in text.split()[1:])
    return {word for word in words if len(word) > 2 and (word[0].isupper() or "_" in word[1:-1])}


def _is_terms(line: Line) -> bool:
    return line.part is Part.CONCEPTS and not line.day


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
    who = _name(message.name) if message.role == "user" and message.name else ""
    for count, piece in enumerate(pieces(_words_of(entry))):
        if count == MOST_TOOL_PIECES and message.role == "tool":
            break
        said = read(plain(piece))
        if said.text:
            part = pinned if pinned is not None else _part_of(said, message.role)
            line = Line(part, said.text, day, who)
            yield Candidate(line, said, weigh(said, message.role, age), place, pinned is not None)
    for name in _artefacts(entry):
        said = Statement(name, frozenset([name.casefold()]), frozenset(), 5)
        yield Candidate(Line(Part.ARTEFACTS, name), said, 1.0, place)


def _words_of(entry: LogEntry) -> str:
    """What a message says; calls are told as artefacts."""
    message = entry.message
    if message.tool_calls or message.agent_calls:
        return message.content if isinstance(message.content, str) else ""
    return message.text


def _name(name: str) -> str:
    return " ".join(name.replace(":", " ").split())[:LONGEST_NAME]


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


def _artefacts(entry: LogEntry) -> Iterator[str]:
    """Files, addresses and tools that a message names."""
    for call in entry.message.tool_calls:
        yield plain(call.name)[:LONGEST_NAME]
    text = entry.message.text
    if _MAY_NAME_ONE.search(text):
        for found in _ARTEFACT.findall(text):
            if not _NO_ARTEFACT.fullmatch(found):
                yield cut(found, LONGEST_ARTEFACT)


def _is_task(one: Candidate) -> bool:
    return one.line.part is Part.TASKS


def _ends(done: Candidate, task: Candidate) -> bool:
    """Whether something said later tells that a task is done."""
    about = {term for term in task.said.terms if len(term) > 3}
    return done.place > task.place and len(about & done.said.terms) >= max(1, ALIKE * len(about))
