"""Extractive summaries: the statements that say most, in their own words, in eight parts."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from functools import cache
from math import log

from memorist.context.compression.candidates import (
    STEM_CHARS,
    SummaryCandidate,
    fresh,
    key_terms,
    known,
    read,
    still_open,
)
from memorist.context.compression.parts import SummaryLine, Topic, joined, parse, render
from memorist.context.tokens import TokenCounter
from memorist.language.text import stop_words
from memorist.records.message import LogEntry
from memorist.records.values import fold

SHARES = {Topic.REQUEST: 0.2, Topic.CURRENT: 0.2}  # of the tokens, for pinned statements
LEAST_SHARE = 60  # tokens
TOKENS_PER_TERM = 80  # of the summary, for each key term in it
MOST_TERMS = 12
# Extra worth of the parts that must survive many compressions.
STANDING = {
    Topic.REQUEST: 2.0,
    Topic.ARTEFACTS: 2.0,
    Topic.ERRORS: 2.0,
    Topic.DECISIONS: 4.0,
    Topic.TASKS: 4.0,
    Topic.CURRENT: 4.0,
}
FIRST_OF_MESSAGE = 2.0  # extra worth: every user message comes before a second part of any
LETTERS = 4  # words of fewer say little
LITTLE = 0.3
BULLET = 2  # tokens of a line besides its words
WORDLESS = SummaryLine(Topic.CURRENT, "Nothing was said in words.")
MARGIN = 2  # times as much is ranked as fits
ROUNDS = 5
FULL = 0.98
AIMED = 0.995


def extract(
    entries: Sequence[LogEntry], counter: TokenCounter, max_tokens: int, previous: str = ""
) -> str:
    """A summary of at most `max_tokens`, which extends the previous one."""
    before = parse(previous)
    candidates = [*known(before), *fresh(entries, any(x.part is Topic.REQUEST for x in before))]
    terms = key_terms(candidates, before, min(MOST_TERMS, max_tokens // TOKENS_PER_TERM))
    if terms:
        candidates.append(SummaryCandidate(terms, read(""), 1.0, 0, pinned=True))
    if not candidates:
        return counter.truncate(render([WORDLESS]), max_tokens)
    return fit(still_open(candidates), counter, max_tokens)


def thinned(lines: Sequence[SummaryLine], counter: TokenCounter, max_tokens: int) -> str:
    """The lines as Markdown; if they take too many tokens, those of the greatest weight."""
    whole = render(lines)
    if counter.text(whole) <= max_tokens:
        return whole
    return fit([*known(lines, now=True)], counter, max_tokens)


def fit(candidates: Sequence[SummaryCandidate], counter: TokenCounter, max_tokens: int) -> str:
    """The best candidates that fit into `max_tokens`, counted exactly, as Markdown."""
    candidates = _within_shares(candidates, counter, max_tokens)
    costs = [n + BULLET for n in counter.texts([one.line.text for one in candidates])]
    order = _ranked(candidates, costs, enough=MARGIN * max_tokens)
    room, best = float(max_tokens), ""
    for _ in range(ROUNDS):  # headings and dates cost tokens too: render, count, adjust
        text = _text([candidates[at] for at in _taken(order, costs, room)])
        tokens = counter.text(text)
        if tokens <= max_tokens and len(text) > len(best):
            best = text
        if FULL * max_tokens <= tokens <= max_tokens or room >= sum(costs) >= tokens:
            break
        room *= AIMED * max_tokens / max(1, tokens)
    return best or _least([candidates[at] for at in order], counter, max_tokens)


def _least(best: Sequence[SummaryCandidate], counter: TokenCounter, max_tokens: int) -> str:
    """For very small limits: fewer and fewer lines, in the end the first one cut."""
    count = len(best)
    while count:
        text = _text(best[:count])
        if counter.text(text) <= max_tokens:
            return text
        count //= 2
    return counter.truncate(_text(best[:1]), max_tokens)


def _taken(order: Sequence[int], costs: Sequence[int], room: float) -> list[int]:
    """The best candidates that fit, in the order in which they were said."""
    taken, spent = [], 0
    for at in order:
        if spent + costs[at] <= room:
            taken.append(at)
            spent += costs[at]
    return sorted(taken)


def _within_shares(
    candidates: Sequence[SummaryCandidate], counter: TokenCounter, max_tokens: int
) -> list[SummaryCandidate]:
    """The candidates, with only as many pinned as the share of their part has room for."""
    least = min(LEAST_SHARE, max_tokens // len(SHARES))
    whole = {part: max(least, int(share * max_tokens)) for part, share in SHARES.items()}
    left = dict(whole)
    made = []
    for one in sorted(candidates, key=_newest_work_first):
        if one.pinned and (part := one.line.part) in left:
            cost = counter.text(one.line.text) + BULLET
            if cost > left[part] == whole[part] and part is Topic.REQUEST:
                one = _shortened(one, counter, whole[part])  # its beginning stays in any case
            elif cost > left[part]:
                one = one._replace(pinned=False)
            left[part] -= cost
        made.append(one)
    return made


def _newest_work_first(one: SummaryCandidate) -> tuple[bool, int]:
    current = one.line.part is Topic.CURRENT
    return current, -one.place if current else one.place


def _shortened(one: SummaryCandidate, counter: TokenCounter, tokens: int) -> SummaryCandidate:
    text = counter.truncate(one.line.text, max(1, tokens - BULLET)).rstrip()
    return one._replace(line=one.line._replace(text=f"{text}…"))


def _ranked(candidates: Sequence[SummaryCandidate], costs: Sequence[int], enough: int) -> list[int]:
    """The candidates, best first, until they cost `enough` tokens.

    Pinned ones come first, then those that add most new terms for their tokens.
    """
    worth = _worth(candidates)
    covered: set[str] = set()
    briefed: set[int] = set()
    texts: set[str] = set()
    order: list[int] = []

    def gain(at: int) -> float:
        one = candidates[at]
        if one.phrase.text in texts:
            return 0.0  # word for word
        value = sum([worth[term] for term in one.phrase.terms - covered])
        if value > 0:
            value += STANDING.get(one.line.part, 0.0)
        if one.line.part is Topic.USER and one.place not in briefed:
            value += FIRST_OF_MESSAGE
        return value * one.weight / costs[at]

    def take(at: int) -> None:
        order.append(at)
        covered.update(candidates[at].phrase.terms)
        briefed.add(candidates[at].place)
        texts.add(candidates[at].phrase.text)

    for at in [at for at, one in enumerate(candidates) if one.pinned]:
        take(at)
    heap = [(-gain(at), at) for at, one in enumerate(candidates) if not one.pinned]
    heapq.heapify(heap)
    # Taking one makes the others worth less, never more: only the best is computed again.
    while heap and enough > 0:
        at = heapq.heappop(heap)[1]
        now = -gain(at)
        if heap and now > heap[0][0]:
            heapq.heappush(heap, (now, at))
        elif now < 0:
            take(at)
            enough -= costs[at]
    return order


def _text(taken: Sequence[SummaryCandidate]) -> str:
    """The summary as Markdown: each part by days, and each day by speakers.

    Statements of one message become one line, and so do all artefacts.
    """
    speakers: dict[str, int] = {}
    for one in taken:
        speakers.setdefault(one.line.who, len(speakers))

    def order(one: SummaryCandidate) -> tuple[str, int, int]:
        speaker = 0 if one.line.part is Topic.CURRENT else speakers[one.line.who]
        return one.line.day, speaker, one.place

    lines: dict[object, SummaryLine] = {}
    for one in sorted(taken, key=order):
        line, listed = one.line, one.line.part is Topic.ARTEFACTS
        key = listed or (line.part, line.day, line.who, one.place)
        if before := lines.get(key):
            text = f"{before.text}, {line.text}" if listed else joined(before.text, line.text)
            line = before._replace(text=text)
        lines[key] = line
    return render(lines.values())


@cache
def _stop_terms() -> frozenset[str]:
    words = stop_words("ranking", "grammar", "reporting", "weak")
    return frozenset(word[:STEM_CHARS] for word in fold(" ".join(words)).split())


def _worth(candidates: Sequence[SummaryCandidate]) -> dict[str, float]:
    """What it is worth to mention each term: little for stop words and frequent terms."""
    tally = Counter(term for one in candidates for term in one.phrase.terms)
    total = len(candidates) + 1
    stop_terms = _stop_terms()
    return {
        term: (LITTLE if term in stop_terms else log(total / count))
        * (1.0 if len(term) >= LETTERS else LITTLE)
        for term, count in tally.items()
    }
