"""Markdown's blocks, line by line, by CommonMark's rules: which lines are headers. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import takewhile

MAX_DEPTH = 100  # of lists and quotations in one another; what is deeper is read as plain text

_SPACES = re.compile(r" *")
_ATX = re.compile(r"(#{1,6})(?= |$)")
_FENCE = re.compile(r"`{3,}(?=[^`]*$)|~{3,}")
_UNDERLINE = re.compile(r"(=+|-+) *$")
_BULLET = re.compile(r"(?:[*+-]|([0-9]{1,9})[.)])(?= |$)")
# A link's target in a line of its own is no part of the header below it.
_TARGET = re.compile(
    r" *\[(?=[^\]]*[^\]\s])(?:[^\[\]\\]|\\.)++\]: *(?:<[^<>]*>|[^\s<]\S*)"
    r"""(?: +(?:"[^"]*"|'[^']*'|\([^()]*\)))? *$"""
)
_RAW = "(?:script|pre|style|textarea)"
_NAMES = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|"
    "dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|"
    "hr|html|iframe|legend|li|link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|"
    "search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul"
)
# How HTML begins, and with which line it ends.
_HTML = [
    (re.compile(begin, re.IGNORECASE | re.ASCII), re.compile(f".*?{end}", re.IGNORECASE | re.ASCII))
    for begin, end in (
        (rf"<{_RAW}(?:\s|>|$)", rf"</{_RAW}>"),
        (r"<!--", r"-->"),
        (r"<\?", r"\?>"),
        (r"<![a-z]", r">"),
        (r"<!\[CDATA\[", r"\]\]>"),
    )
]
_BLANK = re.compile(r" *$")
_HTML_BLOCK = re.compile(rf"</?(?:{_NAMES})(?:\s|/?>|$)", re.IGNORECASE | re.ASCII)
_VALUE = r"""(?:[^"'=<>`\s]++|'[^']*+'|"[^"]*+")"""
_ANY_TAG = re.compile(
    rf"<(?:[a-z][a-z0-9-]*+(?:\s++[a-z_:][a-z0-9:._-]*+(?:\s*+=\s*+{_VALUE})?)*+\s*+/?"
    r"|/[a-z][a-z0-9-]*+\s*+)>\s*$",
    re.IGNORECASE | re.ASCII,
)

Header = tuple[int, int]
"""The level of a header, and how many lines it has."""


@dataclass(slots=True)
class Blocks:
    """What is open where a text has been read to: lists and quotations, and one block in them."""

    around: list[int] = field(default_factory=list)  # the width of a list's item; 0: a quotation
    hollow: bool = False  # the innermost item has nothing in it yet
    said: list[str] | None = None  # the lines of the paragraph
    fence: str = ""  # that opened the code
    indented: bool = False  # code
    html_end: re.Pattern[str] | None = None

    def take(self, line: str) -> Header | None:
        """Read on by a line, its tabs expanded; return the header that it is, or that it ends.

        Headers in lists and quotations are not headers of the text.
        """
        depth, at = self._go_on(line)
        self.hollow = False
        if depth == len(self.around) and self._swallows(line, at):
            return None
        while inner := self._container(line, at, depth):
            self._close(depth)
            self.around.append(inner[0])
            depth, at = depth + 1, inner[1]
            self.hollow = inner[0] > 0 and _start(line, at) == len(line)
        return self._block(line, at, depth)

    def _go_on(self, line: str) -> tuple[int, int]:
        """How many lists and quotations the line is in, and where it begins in the last of them."""
        at = 0
        for depth, width in enumerate(self.around):
            start = _start(line, at)
            if width:
                if start == len(line):
                    goes_on = not (self.hollow and depth == len(self.around) - 1)
                else:
                    goes_on = start - at >= width
                then = min(at + width, len(line))
            else:
                goes_on = start - at < 4 and line.startswith(">", start)
                then = start + 1 + line.startswith(" ", start + 1)
            if not goes_on:
                return depth, at
            at = then
        return len(self.around), at

    def _swallows(self, line: str, at: int) -> bool:
        """Whether the line belongs to the code or HTML that is open."""
        start = _start(line, at)
        if self.fence:
            rest = line[start:].rstrip(" ")
            if start - at < 4 and rest.startswith(self.fence) and not rest.strip(self.fence[0]):
                self.fence = ""
            return True
        if self.html_end:
            if self.html_end.match(line, at):
                self.html_end = None
            return True
        self.indented &= start - at >= 4 or start == len(line)
        return self.indented

    def _container(self, line: str, at: int, depth: int) -> tuple[int, int] | None:
        """The width (0: a quotation) of what begins here, and where its content begins."""
        start = _start(line, at)
        if start == len(line) or start - at >= 4 or depth == MAX_DEPTH:
            return None
        if line[start] == ">":
            return 0, start + 1 + line.startswith(" ", start + 1)
        bullet = _BULLET.match(line, start)
        if not bullet or _is_rule(line, start):
            return None
        content = _start(line, bullet.end())
        empty = content == len(line)
        if self._in_paragraph(depth) and (empty or int(bullet[1] or 1) != 1):
            return None
        if empty or content - bullet.end() > 4:  # empty, or it begins with indented code
            content = bullet.end() + 1
        return content - at, min(content, len(line))

    def _block(self, line: str, at: int, depth: int) -> Header | None:
        """Open the block that begins here, or go on with the paragraph."""
        start = _start(line, at)
        if start == len(line):
            self._close(depth)
        elif start - at >= 4 and self.said is None:
            self._close(depth)
            self.indented = True
        elif start - at >= 4 or not (found := self._special(line, start, depth)):
            if self.said is None:
                self._close(depth)
                self.said = []
            self.said.append(line[start:])  # also where its quotation is not marked any more
        elif found[0] and not self.around:
            return found
        return None

    def _special(self, line: str, start: int, depth: int) -> Header | None:
        """Take a line that is no plain text; a level of 0 says that it is no header either."""
        if atx := _ATX.match(line, start):
            self._close(depth)
            return len(atx[1]), 1
        if fence := _FENCE.match(line, start):
            self._close(depth)
            self.fence = fence[0]
            return 0, 0
        if html_end := _html_end(line, start, self.said is not None):
            self._close(depth)
            self.html_end = None if html_end.match(line, start) else html_end
            return 0, 0
        if self._in_paragraph(depth) and (underline := _UNDERLINE.match(line, start)):
            said = self.said or []
            del said[: sum(1 for _ in takewhile(_TARGET.match, said))]
            if said:
                lines = len(said) + 1
                self._close(depth)
                return (1 if underline[1][0] == "=" else 2), lines
        if _is_rule(line, start):
            self._close(depth)
            return 0, 0
        return None

    def _in_paragraph(self, depth: int) -> bool:
        """Whether the line would go on with the paragraph, and not only lazily."""
        return self.said is not None and depth == len(self.around)

    def _close(self, depth: int) -> None:
        """End the open block, and the lists and quotations that the line is not in."""
        del self.around[depth:]
        self.said, self.fence, self.indented, self.html_end = None, "", False, None


def _start(line: str, at: int) -> int:
    """Where the first character after spaces is; the line's length, if there is none."""
    found = _SPACES.match(line, at)
    return found.end() if found else at


def _is_rule(line: str, start: int) -> bool:
    """Whether from here on there are only three stars, dashes or underscores, or more of one."""
    mark = line[start]
    only = mark in "*-_" and len(line.rstrip(f"{mark} ")) <= start
    return only and line.count(mark, start) >= 3


def _html_end(line: str, start: int, in_paragraph: bool) -> re.Pattern[str] | None:
    """What ends the HTML that begins here, if it does."""
    if line[start] != "<":
        return None
    for begin, end in _HTML:
        if begin.match(line, start):
            return end
    # A tag alone on its line cannot interrupt a paragraph.
    if _HTML_BLOCK.match(line, start) or (not in_paragraph and _ANY_TAG.match(line, start)):
        return _BLANK
    return None
