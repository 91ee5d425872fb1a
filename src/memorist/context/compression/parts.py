"""The text of a summary: eight parts in Markdown, which can be read back."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple, Self

from memorist.language.patterns import Pattern


class Topic(StrEnum):
    """The part of a summary that a line belongs to, by its title; in the order of the parts."""

    REQUEST = "Request and intent"
    CONCEPTS = "Key concepts"
    ARTEFACTS = "Artefacts touched"
    ERRORS = "Errors and fixes"
    DECISIONS = "Decisions and reasoning"
    USER = "User messages in brief"
    TASKS = "Open tasks"
    CURRENT = "Current work and next step"


LONGEST_HEADING = 80
_ORDER = {topic: place for place, topic in enumerate(Topic)}
_BY_TITLE = {topic.casefold(): topic for topic in Topic}
_MARKUP = Pattern(r"(?:[\s#>*+•=~|-]+|\d{1,2}[.)](?:\s+|$))+")
_BULLET = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)])\s+")
_NUMBERED = re.compile(r"\s*\d")
_HEADING = re.compile(r"\s*(?:#{1,6}\s*|\*\*|__)?(?:\d[.)]\s*)?(?P<title>[^#*_:]+?)[\s#*_:]*")
_DAY = re.compile(r"###\s+(\d{4}-\d\d-\d\d)\s*")
_WHO = re.compile(r"(?P<who>[^\W\d_][\w.'’-]*(?: [^\W\d_a-z][\w.'’-]*){0,2}): (?=\S)")


class SummaryLine(NamedTuple):
    """One statement of a summary; `day` and `who` are when and by whom it was said."""

    part: Topic
    text: str
    day: str = ""
    who: str = ""

    def plus(self, text: str) -> Self:
        """The line with another statement, or another artefact."""
        is_list = self.part is Topic.ARTEFACTS
        return self._replace(text=f"{self.text}, {text}" if is_list else _joined(self.text, text))


def plain(text: str) -> str:
    """A text as one line without Markdown at its start; quoted if it seems to name a speaker."""
    line = " ".join(text.split())
    if markup := _MARKUP.match(line):
        line = line[markup.end() :]
    line = line.rstrip("; ")
    return f"“{line}”" if _WHO.match(line) else line


def render(lines: Iterable[SummaryLine]) -> str:
    """The lines as Markdown: a heading per part, a subheading per day, a bullet per speaker."""
    rows: list[str] = []
    last: SummaryLine | None = None
    day = ""
    for line in sorted(lines, key=lambda line: _ORDER[line.part]):
        if last is None or last.part is not line.part:
            rows.append(f"## {line.part}")
            last = None
        if line.day and line.day != day:
            rows.append(f"### {line.day}")
            day, last = line.day, None
        if last and line.who and last.who == line.who:
            rows[-1] = _joined(rows[-1], line.text)
        else:
            rows.append(f"- {line.who}: {line.text}" if line.who else f"- {line.text}")
        last = line
    return "\n".join(rows)


def _joined(before: str, after: str) -> str:
    """Two statements in one line, separated such that they can be split again."""
    return f"{before} {after}" if before[-1:] in ".!?…。！？;" else f"{before}; {after}"


def parse(text: str) -> list[SummaryLine]:
    """The lines of a summary, ours or a model's, without what stands under no heading."""
    lines: list[SummaryLine] = []
    part: Topic | None = None
    day = ""
    for row in text.splitlines():
        if (topic := topic_of(row)) is not None:
            part = topic
        elif dated := _DAY.fullmatch(row):
            day = dated[1]
        elif part is not None:
            statement = row[bullet.end() :] if (bullet := _BULLET.match(row)) else row
            who = _WHO.match(statement) if bullet else None
            if words := plain(statement[who.end() :] if who else statement):
                dated_at = "" if part is Topic.ARTEFACTS else day
                lines.append(SummaryLine(part, words, dated_at, who["who"] if who else ""))
    return lines


def topic_of(row: str) -> Topic | None:
    """The part that a row is the heading of, in any of the ways in which models write it."""
    if len(row) > LONGEST_HEADING or (_BULLET.match(row) and not _NUMBERED.match(row)):
        return None
    match = _HEADING.fullmatch(row)
    return _BY_TITLE.get(match["title"].strip().casefold()) if match else None
