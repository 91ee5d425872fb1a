"""Markdown texts: their sections by CommonMark's rules, and the chunks they are cut into."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from memorist.errors import InvalidError, NotFoundError
from memorist.language.patterns import Pattern
from memorist.language.text import PASSAGE_CHARS, passages
from memorist.records.documents import Chunk

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_NEWLINE = re.compile(r"\r\n?")


@dataclass(frozen=True, slots=True)
class Section:
    """A header and all below it, up to the next header that is not deeper."""

    level: int
    title: str
    start: int  # of the header's line
    body: int  # the first character after the header
    stop: int


def sections(text: str) -> list[Section]:
    """The sections of a Markdown text, in order; those nested in another follow it.

    Text before the first header is in none. Headers inside code, HTML, lists and quotations do
    not count.
    """
    every: list[Section] = []
    around: list[int] = []  # the indices of the sections that the current one is in
    for header in _headers(text):
        while around and every[around[-1]].level >= header.level:
            index = around.pop()
            every[index] = replace(every[index], stop=header.start)
        around.append(len(every))
        every.append(header)
    return every


def find_section(text: str, header: str) -> Section:
    """The section called `Plans`, `## Plans` (of that level) or `Trips > Plans` (inside Trips).

    Error messages do not repeat the header, as it is user content.
    """
    if not header.strip():
        raise InvalidError("the section's header is empty; name the header of a section")
    paths = [[_named(header)]]
    if ">" in header:
        paths.append([_named(part) for part in header.split(">")])
    nested = list(_with_parents(sections(text)))
    for path in paths:
        if matches := [around[-1] for around in nested if _is_path(around, path)]:
            break
    if not matches:
        raise NotFoundError("no section has this header; read the notes to see their headers")
    if len(matches) > 1:
        raise InvalidError(
            f"{len(matches)} sections have this header; name its level, as in `## Header`, or its "
            "path, as in `Parent > Header`; if these are the same too, rename one of them"
        )
    return matches[0]


def is_closed(text: str) -> bool:
    """Whether a header can be appended to the text: no code block or HTML is open at its end."""
    return sections(f"{text}\n\n# next")[-1:] == [
        Section(1, "next", len(text) + 2, len(text) + 8, len(text) + 8)
    ]


def _named(header: str) -> tuple[int, str]:
    """The level (0 for any) and title that a name asks for."""
    name = header.strip()
    written = sections(name)
    if written and written[0].start == 0 and written[0].body == len(name):
        return written[0].level, written[0].title
    return 0, " ".join(name.split())


def _with_parents(every: list[Section]) -> Iterator[list[Section]]:
    """Each section, after the sections that it lies in."""
    around: list[Section] = []
    for section in every:
        around = [*(parent for parent in around if section.start < parent.stop), section]
        yield around


def _is_path(around: list[Section], path: list[tuple[int, str]]) -> bool:
    """Whether a section and its parents have the levels and titles of the path."""
    return len(around) >= len(path) and all(
        section.title == title and level in (0, section.level)
        for section, (level, title) in zip(around[-len(path) :], path, strict=True)
    )


def _headers(text: str) -> Iterator[Section]:
    """Every header of the text, as a section that reaches to the end of the text."""
    if not text:
        return
    starts = [*(line.start() for line in LINE.finditer(text)), len(text)]
    tokens = _parser().parse(_NEWLINE.sub("\n", text))
    for header, words in pairwise(tokens):
        if header.type == "heading_open" and header.level == 0 and header.map:
            first, after = header.map
            title = " ".join(words.content.split())
            yield Section(int(header.tag[1]), title, starts[first], starts[after], len(text))


@cache
def _parser() -> "MarkdownIt":
    """A parser of blocks only, with its rules set up: that is not safe in two threads at once."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").disable(["normalize", "inline", "text_join"])
    parser.parse("# ready")
    return parser


MAX_TITLE = 200  # of a header, which is stored with each chunk below it
FRONT_MATTER = Pattern(r"(?s)\A---[ \t]*\r?\n(?:.*?\r?\n)??(?:---|\.\.\.)[ \t]*(?:\r?\n|\z)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")

Span = tuple[int, int]


def chunks(text: str) -> list[Chunk]:
    """The text in chunks of at most `PASSAGE_CHARS`, in order, without gaps.

    A chunk does not reach from one section into the next, except that a header without text goes
    with the section below it. Paragraphs, lists and code stay whole where they fit.
    """
    cut: list[Chunk] = []
    for start, stop, headings in _joined(text, _regions(text)):
        blocks = _blocks(text, start, stop)
        spans = [(at + a, at + b) for at, end in blocks for a, b in passages(text[at:end])]
        cut += [Chunk(*span, headings) for span in _packed(spans)]
    return cut or [Chunk(0, 0)]


def _regions(text: str) -> Iterator[Chunk]:
    """The text from each header to the next, with the headers that it is below."""
    front = FRONT_MATTER.match(text)
    begins = front.end() if front else 0
    path: list[tuple[int, str]] = []
    start = 0
    for section in sections(text):
        if section.start < begins:
            continue  # the dashes that end front matter are no underline
        if section.start > start:
            yield Chunk(start, section.start, tuple(title for _, title in path))
        title = section.title[:MAX_TITLE]
        path = [*(above for above in path if above[0] < section.level), (section.level, title)]
        start = section.start
    if start < len(text):
        yield Chunk(start, len(text), tuple(title for _, title in path))


def _joined(text: str, regions: Iterator[Chunk]) -> Iterator[Chunk]:
    """The regions, with those of a header alone joined to the next one."""
    waiting: Chunk | None = None
    for region in regions:
        joined = region if waiting is None else region._replace(start=waiting.start)
        waiting = joined if _is_bare(text, region) else None
        if waiting is None:
            yield joined
    if waiting is not None:
        yield waiting


def _is_bare(text: str, region: Chunk) -> bool:
    """Whether a region is empty, or only a header."""
    rows = text[region.start : region.stop].split("\n")
    rows = [row for row in rows if row.strip() and not re.fullmatch(r"\s*(=+|-+)\s*", row)]
    return not rows or (len(rows) == 1 and bool(region.headings))


def _blocks(text: str, start: int, stop: int) -> Iterator[Span]:
    """Paragraphs, lists and fenced code, each with the empty lines after it."""
    began, fence, blank = start, "", False
    for line in LINE.finditer(text, start, stop):
        words = line[0].strip()
        if blank and words and not fence:
            yield began, line.start()
            began = line.start()
        blank = not words
        if mark := _FENCE.match(line[0]):
            if not fence:
                fence = mark[1]
            elif words.startswith(fence) and not words.strip(fence[0]):
                fence = ""
    if began < stop:
        yield began, stop


def _packed(spans: list[Span]) -> Iterator[Span]:
    """Consecutive spans joined, as long as they fit into a chunk."""
    start, stop = spans[0]
    for first, last in spans[1:]:
        if last - start > PASSAGE_CHARS:
            yield start, stop
            start = first
        stop = last
    yield start, stop
