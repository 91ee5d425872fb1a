"""HTML to Markdown: headers, lists, code and table rows; scripts and navigation are dropped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from memorist.errors import InvalidError

_NO_WORDS = frozenset({"script", "style", "template"})
_DROPPED = _NO_WORDS | {"nav", "noscript", "svg"}
_BLOCKS = frozenset(
    "address article aside blockquote body center dd details dialog div dl dt fieldset figcaption "
    "figure footer form header hr main ol option p section select summary table tbody thead "
    "tfoot ul".split()
)
LONGEST_MARK = 1_000  # characters of empty cells in a row
_HEADER = re.compile(r"h([1-6])\Z")
_SPACE = re.compile(r"\s+")
_ENDS = (("<!--", "-->"), ("<![", "]>"), ("<", ">"))


def html_to_text(html: str) -> tuple[str, str]:
    """The title and the text of a page."""
    for begin, end in _ENDS:  # at a tag that never ends, the parser would search to the end
        last = html.rfind(end) + 1
        html = html[:last] + html[last:].replace(begin, " ")
    for dropped in (_DROPPED, _NO_WORDS):
        page = _Page(dropped)
        try:
            page.feed(html)
            page.close()
        except AssertionError as error:  # how the parser reports a broken declaration
            raise InvalidError("this HTML cannot be read: a declaration in it is broken") from error
        title, text = _SPACE.sub(" ", "".join(page.title)).strip(), "".join(page.out).strip()
        if text:
            break  # otherwise a menu was never closed: keep its text
    return title, text


class _Page(HTMLParser):
    """Collects the title and the text of a page."""

    def __init__(self, dropped: frozenset[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.out: list[str] = []
        self._dropped = dropped
        self._inside: list[str] = []  # open elements whose text is dropped
        self._gap = 0  # line breaks before the next word
        self._mark = ""  # Markdown right before the next word
        self._space = False
        self._in_title = self._in_row = False
        self._cells = 0
        self._pre = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in self._dropped:
            if tag not in self._inside:  # one end tag closes it, however often it was opened
                self._inside.append(tag)
        elif self._inside:
            return
        elif tag == "title":
            self._in_title = True
        elif header := _HEADER.match(tag):
            self._break(2)
            self._mark = "#" * int(header[1]) + " "
        elif tag in ("li", "br"):
            self._break(1)
            self._mark = "- " if tag == "li" else self._mark
        elif tag == "pre":
            self._pre += 1
            if self._pre == 1:
                self.out.append("\n\n```\n" if self.out else "```\n")
        elif tag == "tr":
            self._break(1)
            self._in_row, self._cells = True, 0
        elif tag in ("td", "th"):
            if self._cells and len(self._mark) < LONGEST_MARK:
                self._mark += " | "
            self._cells += 1
        elif tag in _BLOCKS:
            self._break_block()

    def handle_endtag(self, tag: str) -> None:
        if tag in self._dropped:
            if tag in self._inside:
                del self._inside[self._inside.index(tag) :]
        elif self._inside:
            return
        elif tag == "title":
            self._in_title = False
        elif tag == "pre":
            if self._pre == 1:
                self.out.append("```" if self.out[-1].endswith("\n") else "\n```")
                self._break(2)
            self._pre = max(self._pre - 1, 0)
        elif tag == "tr":
            self._in_row, self._mark = False, ""
            self._break(1)
        elif _HEADER.match(tag):
            self._mark = ""
            self._break(2)
        elif tag in _BLOCKS:
            self._in_row = self._in_row and tag != "table"
            self._break_block()

    def handle_data(self, data: str) -> None:
        if self._inside:
            return
        if self._in_title or self._pre:
            (self.title if self._in_title else self.out).append(data)
            return
        text = _SPACE.sub(" ", data)
        words = text.strip()
        if not words:
            self._space = self._space or bool(text)
            return
        between = " " if self._space or text[0] == " " else ""
        if self._gap or self._mark or not self.out:
            between = ("\n" * self._gap if self.out else "") + self._mark
        self.out.append(between + words)
        self._gap, self._mark, self._space = 0, "", text[-1] == " "

    def _break(self, lines: int) -> None:
        self._gap, self._space = max(self._gap, lines), False

    def _break_block(self) -> None:
        if self._in_row:  # a row stays one line
            self._space = True
        else:
            self._break(2)
