"""Chunks: an article cut where its structure says so, into spans an embedder takes whole. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memorist.context.documents.sections import LINE, sections
from memorist.records.article import Chunk
from memorist.records.text import PASSAGE_CHARS, passages

MAX_TITLE = 200  # each chunk is found by those above it, be they whole paragraphs
FRONT_MATTER = re.compile(
    r"\A---[ \t]*\r?\n(.*?\r?\n)??(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")

Span = tuple[int, int]


def chunks(text: str) -> list[Chunk]:
    """The text in chunks of at most `PASSAGE_CHARS`, in order; joined they are the text.

    A chunk never reaches from one section into the next, unless that is all below a header that
    has no words of its own. Paragraphs, lists and code stay whole where they fit.
    """
    found: list[Chunk] = []
    for start, stop, headings in _joined(text, _regions(text)):
        spans = [piece for block in _blocks(text, start, stop) for piece in _cut(text, block)]
        found += [Chunk(*span, headings) for span in _packed(spans)]
    return found or [Chunk(0, 0)]


def _regions(text: str) -> Iterator[Chunk]:
    """The text from each header to the next, with the path of headers to it."""
    front = FRONT_MATTER.match(text)
    begins = front.end() if front else 0
    path: list[tuple[int, str]] = []
    start = 0
    for section in sections(text):
        if section.start < begins:
            continue  # a line of dashes below other words is a header elsewhere, not in there
        if section.start > start:
            yield Chunk(start, section.start, tuple(title for _, title in path))
        title = section.title[:MAX_TITLE]
        path = [*(it for it in path if it[0] < section.level), (section.level, title)]
        start = section.start
    if start < len(text):
        yield Chunk(start, len(text), tuple(title for _, title in path))


def _joined(text: str, regions: Iterator[Chunk]) -> Iterator[Chunk]:
    """The regions; headers with nothing below them go with what follows."""
    waiting: int | None = None
    last: Chunk | None = None
    for region in regions:
        start = region.start if waiting is None else waiting
        last = Chunk(start, region.stop, region.headings)
        waiting = start if _is_bare(text, region) else None
        if waiting is None:
            yield last
    if waiting is not None and last is not None:
        yield last


def _is_bare(text: str, region: Chunk) -> bool:
    """Whether a region is a header alone, or less."""
    said = text[region.start : region.stop].split("\n")
    words = [line for line in said if line.strip() and not re.fullmatch(r"\s*(=+|-+)\s*", line)]
    return not words or (len(words) == 1 and bool(region.headings))


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


def _cut(text: str, block: Span) -> Iterator[Span]:
    """A block, or where it is too long, its pieces, cut where it pauses."""
    start, stop = block
    if stop - start <= PASSAGE_CHARS:
        yield block
        return
    for first, last in passages(text[start:stop]):
        yield start + first, start + last


def _packed(spans: list[Span]) -> Iterator[Span]:
    """Neighbours together, as long as they fit."""
    start, stop = spans[0]
    for first, last in spans[1:]:
        if last - start > PASSAGE_CHARS:
            yield start, stop
            start = first
        stop = last
    yield start, stop
