"""The eight parts of a summary, as Markdown that can be read back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple


class Topic(IntEnum):
    """What a line of a summary is about, in the order in which a summary tells it."""

    REQUEST = 0
    CONCEPTS = 1
    ARTEFACTS = 2
    ERRORS = 3
    DECISIONS = 4
    USER = 5
    TASKS = 6
    CURRENT = 7

    @property
    def title(self) -> str:
        return TITLES[self]


TITLES = (
    "Request and intent",
    "Key concepts",
    "Artefacts touched",
    "Errors and fixes",
    "Decisions and reasoning",
    "User messages in brief",
    "Open tasks",
    "Current work and next step",
)

LONGEST_HEADING = 80
UNDATED = (Topic.ARTEFACTS,)
_BY_TITLE = {title.casefold(): Topic(place) for place, title in enumerate(TITLES)}
_MARKUP = re.compile(r"(?:[\s#>*+•=~|-]+|\d{1,2}[.)](?:\s+|$))+")
_BULLET = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)])\s+")
_NUMBERED = re.compile(r"\s*\d")
_HEADING = re.compile(r"\s*(?:#{1,6}\s*|\*\*|__)?(?:\d[.)]\s*)?(?P<title>[^#*_:]+?)[\s#*_:]*")
_DAY = re.compile(r"###\s+(\d{4}-\d\d-\d\d)\s*")
_WHO = re.compile(r"(?P<who>[^\W\d_][\w.'’-]*(?: [^\W\d_a-z][\w.'’-]*){0,2}): (?=\S)")


class SummaryLine(NamedTuple):
    """One thing a summary says, in one line; `day` and `who` tell when and by whom it was said."""

    part: Topic
    text: str
    day: str = ""
    who: str = ""


def plain(text: str) -> str:
    """A text as one line that is no heading, list or quotation of its own, and names no speaker."""
    line = " ".join(text.split())
    if found := _MARKUP.match(line):
        line = line[found.end() :]
    line = line.rstrip("; ")
    return f"“{line}”" if _WHO.match(line) else line


def render(lines: Iterable[SummaryLine]) -> str:
    """The lines under their parts, in the order given; a day is told when it changes,
    and what a speaker says in one day is one bullet.
    """
    rows: list[str] = []
    last: SummaryLine | None = None
    day = ""
    for line in sorted(lines, key=lambda one: one.part):
        if last is None or last.part is not line.part:
            rows.append(f"## {line.part.title}")
            last = None
        if line.day and line.day != day:
            rows.append(f"### {line.day}")
            day, last = line.day, None
        if last and line.who and last.who == line.who:
            rows[-1] = joined(rows[-1], line.text)
        else:
            rows.append(f"- {line.who}: {line.text}" if line.who else f"- {line.text}")
        last = line
    return "\n".join(rows)


def joined(before: str, after: str) -> str:
    """Two statements in one line, so that they can be told apart again."""
    return f"{before} {after}" if before[-1:] in ".!?…。！？;" else f"{before}; {after}"


def parse(text: str) -> list[SummaryLine]:
    """The lines of a summary, ours or a model's; what stands under no heading is left out."""
    lines: list[SummaryLine] = []
    part: Topic | None = None
    day = ""
    for row in text.splitlines():
        if (found := heading(row)) is not None:
            part = found
        elif dated := _DAY.fullmatch(row):
            day = dated[1]
        elif part is not None:
            lines += _line(part, row, day)
    return lines


def _line(part: Topic, row: str, day: str) -> Iterator[SummaryLine]:
    said = row[bullet.end() :] if (bullet := _BULLET.match(row)) else row
    who = _WHO.match(said) if bullet else None
    if text := plain(said[who.end() :] if who else said):
        yield SummaryLine(part, text, "" if part in UNDATED else day, who["who"] if who else "")


def heading(row: str) -> Topic | None:
    """The part that a row is the heading of, be it written as a model likes."""
    if len(row) > LONGEST_HEADING or (_BULLET.match(row) and not _NUMBERED.match(row)):
        return None
    found = _HEADING.fullmatch(row)
    return _BY_TITLE.get(found["title"].strip().casefold()) if found else None


def is_title(text: str) -> bool:
    """Whether a text is the title of a part, and might be taken for its heading."""
    return text.rstrip(" :#*_").casefold() in _BY_TITLE


def parts_of(lines: Sequence[SummaryLine]) -> set[Topic]:
    """Which parts there is something in."""
    return {line.part for line in lines}
