"""The messages that the reader learns from: what each says of its speaker, as tags of its words."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from memorist_training.corpus import read_corpus, read_stories

CLAIMS = Path(__file__).parents[1] / "claims"
LABELLED = Path(__file__).parents[4] / "benchmarks/labelled"  # of which the dev halves teach
HELD_OUT = 7  # every seventh message measures
# What the writers call a predicate, and what facts call it. The first take one value at a time
# from the message; the others are told in several words, which may overlap with such values.
VALUES: Mapping[str, str] = {
    **{name: name for name in ("name", "age", "birthday", "native language", "lives in")},
    **{name: name for name in ("timezone", "works at", "studies at", "allergic to", "diet")},
    **{name: name for name in ("likes", "dislikes", "favourite", "uses", "owns", "learns")},
    **{name: name for name in ("email", "phone")},
    "job": "works as",
    "spouse": "married to",
    "manager": "has boss",
    **{name: f"has {name}" for name in ("partner", "child", "pet", "friend", "colleague")},
    **{name: f"has {name}" for name in ("brother", "sister", "mother", "father")},
}
TOLD: Mapping[str, str] = {name: name for name in ("prefers", "plans", "event", "has appointment")}
OTHER_WORDS = {"son": "child", "daughter": "child", "called": "name", "avoids": "dislikes"}
KINDS = (  # of favourites
    "colour film writer book band song team series food drink game city season sport".split()
)
CATEGORIES = (None, "error_patterns", "code_context", "solutions", "user_preferences", "knowledge")
NO_BUCKET = 2_048  # of a word that the model knows; others have one of so many
_LETTER = re.compile(r"[^\W\u3400-\u9fff]")  # of a word of several letters


class Word(NamedTuple):
    """A word of a message as the model sees it."""

    pieces: tuple[int, ...]
    shape: int
    bucket: int


class Span(NamedTuple):
    """The words that are the object of a claim."""

    predicate: str
    first: int
    last: int  # the one after
    ends: bool
    kind: str  # of a favourite


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A message and what it says of its speaker."""

    writer: str
    language: str
    text: str
    places: tuple[tuple[int, int], ...]  # of its words
    words: tuple[Word, ...]
    category: str | None
    spans: tuple[Span, ...]
    labelled: bool = True  # or nobody has said what it says


Words = Callable[[str], list[tuple[Word, int, int]]]
"""Words of a text, each with its start and end; the product's own."""


def read_claims(words_of: Words) -> list[Told]:
    """All messages, in the order of files and lines; then those that rules may be written from."""
    later = sorted(CLAIMS.glob("*/*.jsonl"))  # which leaves the same of the others held out
    files = [*sorted(CLAIMS.glob("*.jsonl")), *later, *sorted(LABELLED.glob("*dev.jsonl"))]
    rows = [
        (path.stem, json.loads(line))
        for path in files
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return [_told(writer, row, words_of) for writer, row in rows if _teaches(row)]


def unlabelled(words_of: Words) -> list[Told]:
    """What the people of the embedder's corpus and stories say, of which nobody has said what."""
    said = [(it.writer, it.text) for it in read_corpus() if it.role == "user"]
    said += [("story", text) for story in read_stories() for text in story.messages]
    rows = [(writer, {"lang": writer[:2], "text": text, "category": None}) for writer, text in said]
    return [replace(_told(writer, row, words_of), labelled=False) for writer, row in rows]


def _teaches(row: Mapping[str, Any]) -> bool:
    """Whether a user says it, and its objects are words of it."""
    said = row.get("role", "user") == "user"
    return said and all(claim["object"] in row["text"] for claim in row.get("claims", ()))


def _told(writer: str, row: Mapping[str, Any], words_of: Words) -> Told:
    text = row["text"]
    found = words_of(text)
    places = tuple((start, end) for _, start, end in found)
    taken: dict[str, int] = {}
    spans = []
    for claim in row.get("claims", ()):
        thing = claim["object"]
        start = taken[thing] = _place(text, thing, taken.get(thing, -1) + 1)
        stop = start + len(thing)
        inside = [number for number, (a, b) in enumerate(places) if a < stop and b > start]
        if inside:
            predicate, kind = OTHER_WORDS.get(claim["predicate"], claim["predicate"]), ""
            if predicate.startswith("favourite "):
                predicate, _, kind = predicate.partition(" ")
            ends = bool(claim.get("ends"))
            spans.append(Span(predicate, inside[0], inside[-1] + 1, ends, kind))
    return Told(
        writer=writer,
        language=row["lang"],
        text=text,
        places=places,
        words=tuple(word for word, _, _ in found),
        category=row["category"],
        spans=tuple(spans),
    )


def _place(text: str, thing: str, after: int) -> int:
    """Where a thing stands as whole words, or else anywhere; from some place on, if it does."""
    found = [(it.start(), it.end()) for it in re.finditer(re.escape(thing), text)]
    whole = [
        start
        for start, end in found
        if not (
            _LETTER.fullmatch(text[start - 1 : start]) or _LETTER.fullmatch(text[end : end + 1])
        )
    ]
    return next((start for start in whole if start >= after), next(iter(whole), found[0][0]))


def split(messages: Sequence[Told]) -> tuple[list[Told], list[Told]]:
    """The messages to learn from, and those that measure: some of each writer of the corpus."""
    measures = [
        number % HELD_OUT == 0 and message.labelled and not message.writer.endswith("dev")
        for number, message in enumerate(messages)
    ]
    kept = [it for it, out in zip(messages, measures, strict=True) if not out]
    return kept, [it for it, out in zip(messages, measures, strict=True) if out]


class Tags(NamedTuple):
    """What the reader should say of each word; -1 where it does not matter."""

    values: list[int]
    told: list[int]
    ends: list[int]
    kinds: list[int]


def tags_of(message: Told) -> Tags:
    """Tags: 0 outside, then for each predicate one for the first word and one for the next."""
    count = len(message.words)
    tags = Tags([0] * count, [0] * count, [-1] * count, [-1] * count)
    for span in message.spans:
        names, row = (TOLD, tags.told) if span.predicate in TOLD else (VALUES, tags.values)
        if any(row[span.first : span.last]):
            continue
        first = 1 + 2 * list(names).index(span.predicate)
        row[span.first : span.last] = [first] + [first + 1] * (span.last - span.first - 1)
        tags.ends[span.first : span.last] = [span.ends] * (span.last - span.first)
        if span.predicate == "favourite":
            other = len(KINDS)
            tags.kinds[span.first] = KINDS.index(span.kind) if span.kind in KINDS else other
    return tags


class Exchange:
    """Puts the objects of other messages into a message: more names, places and jobs to read."""

    def __init__(self, messages: Sequence[Told], share: float) -> None:
        self._share = share
        self._things: dict[tuple[str, str, str], list[tuple[Word, ...]]] = defaultdict(list)
        for message in messages:
            for span in message.spans:
                words = message.words[span.first : span.last]
                self._things[message.language, span.predicate, span.kind].append(words)

    def __call__(self, message: Told, chance: random.Random) -> Told:
        """The message, or one with other objects in the same places."""
        if chance.random() > self._share:
            return message
        for span in self._alone(message.spans):
            if chance.random() < 0.6:
                things = self._things[message.language, span.predicate, span.kind]
                message = _exchanged(message, span, chance.choice(things))
        return message

    def _alone(self, spans: Sequence[Span]) -> Iterator[Span]:
        """The values that overlap with no other, from the last to the first."""
        for span in sorted(spans, key=lambda it: it.first, reverse=True):
            others = [it for it in spans if it is not span]
            overlaps = any(it.first < span.last and it.last > span.first for it in others)
            if span.predicate in VALUES and not overlaps:
                yield span


def _exchanged(message: Told, old: Span, new: tuple[Word, ...]) -> Told:
    more = len(new) - (old.last - old.first)

    def moved(span: Span) -> Span:
        if span.first == old.first and span.last == old.last:
            return span._replace(last=span.last + more)
        if span.first < old.last:
            return span
        return span._replace(first=span.first + more, last=span.last + more)

    return replace(
        message,
        words=(*message.words[: old.first], *new, *message.words[old.last :]),
        spans=tuple(map(moved, message.spans)),
    )
