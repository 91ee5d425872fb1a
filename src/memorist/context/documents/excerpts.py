"""Excerpts: the parts of retrieved articles that fit into a number of tokens."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memorist.context.documents.markdown import chunks
from memorist.context.quote import WIDEST, Quote, label, quoted
from memorist.context.tokens import TokenCounter
from memorist.forks import lazy_property
from memorist.records.documents import Article, Chunk
from memorist.records.query import Hit, Why

OMITTED = "\n\n[…]\n\n"  # between two spans of one
CHARS_PER_TOKEN = 12  # more than prose has: a longer text is too long without counting it
MOST = 200  # characters of each part of a citation
NEIGHBOURS = 200  # chunks around the found ones that may be added


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """An article, or the spans of it that fit, with its source; `tokens` counts its quotation."""

    id: str
    title: str
    uri: str
    text: str
    whole: bool
    spans: tuple[tuple[int, int], ...]
    headings: tuple[str, ...]
    tokens: int
    score: float
    why: Why

    @property
    def citation(self) -> str:
        """The source for a reader: `Handbook › Returns › Refunds (docs/returns.md)`."""
        return self._cited(str)

    @property
    def quote(self) -> Quote:
        """The text as a quotation, which marks it as data."""
        return Quote(self.id, "", self.text, name=self._cited(_harmless))

    def _cited(self, worded: Callable[[str], str]) -> str:
        path = self.headings[1:] if self.headings[:1] == (self.title,) else self.headings
        place = " › ".join(map(worded, [self.title, *path]))
        return f"{place} ({worded(self.uri)})" if self.uri else place


def fit(
    hits: Mapping[str, Sequence[Hit]], articles: Sequence[Article], left: int, counter: TokenCounter
) -> list[Retrieved]:
    """The articles, best first, whole where they fit, else their best spans; `left` tokens in all.

    One that does not fit whole gets a share by its score, and in the end what the others left.
    """
    sources = [_Source(article, hits[article.id], counter) for article in articles]
    weights = [max(source.best.score, 0.01) for source in sources]
    excerpts: dict[int, Retrieved] = {}
    room = left
    for place, source in enumerate(sources):
        share = int(room * weights[place] / sum(weights[place:]))
        if taken := source.take(share, room):
            excerpts[place] = taken
            room -= taken.tokens
    for place, taken in excerpts.items():
        if not taken.whole:
            room += taken.tokens
            excerpts[place] = sources[place].take(room, room) or taken
            room -= excerpts[place].tokens
    chosen = list(excerpts.values())
    while chosen and counter.text("".join(map(_shown, chosen))) > left:
        chosen.pop()  # joined texts may take a token more than their sum
    return chosen


class _Source:
    """A retrieved article, and the order in which its chunks are taken."""

    def __init__(self, article: Article, hits: Sequence[Hit], counter: TokenCounter) -> None:
        self.best = hits[0]
        self._article, self._hits, self._counter = article, hits, counter

    def take(self, share: int, room: int) -> Retrieved | None:
        """The whole if it fits into `room`, else spans for `share` tokens, or one for `room`.

        The spans are the best chunks and those around them, in the order of the text.
        """
        text, title = self._article.text, self._article.title
        may_fit = len(text) <= room * CHARS_PER_TOKEN
        if may_fit and (whole := self._counted([Chunk(0, len(text))], room)):
            return whole
        chosen: list[int] = []
        spent = self._counter.text(f"[{WIDEST}] {title} ({self._article.uri})\n")
        for at, cost in self._costs.items():
            is_near = at in self._found or {at - 1, at + 1} & set(chosen)
            if is_near and spent + cost <= (share if chosen else room):
                chosen.append(at)
                spent += cost
        while chosen:
            spans = [self._chunks[at] for at in sorted(chosen)]
            headings = self._chunks[chosen[0]].headings
            if taken := self._counted(spans, share if len(chosen) > 1 else room, headings):
                return taken
            chosen.pop()
        return None

    @lazy_property
    def _chunks(self) -> list[Chunk]:
        return chunks(self._article.text)

    @lazy_property
    def _found(self) -> dict[int, None]:
        """The chunks that were found, best first."""
        starts = [chunk.start for chunk in self._chunks]
        return dict.fromkeys(bisect_right(starts, hit.why.start) - 1 for hit in self._hits)

    @lazy_property
    def _costs(self) -> dict[int, int]:
        """The tokens of the found chunks, best first, then of those around them."""
        order = [*self._found, *self._around()]
        spans = [self._chunks[at] for at in order]
        texts = [f"{quoted(self._article.text[span.start : span.stop])}\n" for span in spans]
        return dict(zip(order, self._counter.texts(texts), strict=True))

    def _around(self) -> Iterator[int]:
        """The chunks around the found ones, nearest first."""
        seen = set(self._found)
        for distance in range(1, len(self._chunks)):
            for at in self._found:
                for near in (at + distance, at - distance):
                    if 0 <= near < len(self._chunks) and near not in seen:
                        seen.add(near)
                        yield near
            if len(seen) >= len(self._found) + NEIGHBOURS:
                return

    def _counted(
        self, spans: Sequence[Chunk], room: int, headings: tuple[str, ...] = ()
    ) -> Retrieved | None:
        """These spans as a `Retrieved`, if its tokens fit into `room`."""
        article = self._article
        merged: list[tuple[int, int]] = []
        for start, stop, _ in spans:  # adjacent ones joined
            if merged and merged[-1][1] == start:
                start = merged.pop()[0]
            merged.append((start, stop))
        whole = merged == [(0, len(article.text))]
        made = Retrieved(
            id=article.id,
            title=article.title,
            uri=article.uri,
            whole=whole,
            spans=tuple(merged),
            text=OMITTED.join(article.text[start:stop].strip("\n") for start, stop in merged),
            headings=() if whole else headings,
            tokens=0,
            score=self.best.score,
            why=self.best.why,
        )
        tokens = self._counter.text(_shown(made))
        return replace(made, tokens=tokens) if tokens <= room else None


def _shown(taken: Retrieved) -> str:
    return taken.quote.numbered(WIDEST)


def _harmless(words: str) -> str:
    """Text of others made safe for a line of ours; an address keeps its `://`."""
    return "://".join(label(part, MOST) for part in words.split("://", 1))
