"""Extractive summaries: the statements that tell most, in their own words, in eight parts."""

from __future__ import annotations

import heapq
from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import replace
from math import log

from recollect.context.candidates import Candidate, fresh, key_terms, known, still_open
from recollect.context.parts import Line, Part, parse, render
from recollect.context.tokens import Counter
from recollect.context.weigh import read
from recollect.records.log import LogEntry

SHARES = {Part.REQUEST: 0.2, Part.CURRENT: 0.15}  # of the room, for what is pinned
TOKENS_PER_TERM = 80  # room there must be for each key term
MOST_TERMS = 12
# What a statement is worth besides its words: parts that must outlive many compressions.
STANDING = {
    Part.REQUEST: 2.0,
    Part.ARTEFACTS: 2.0,
    Part.ERRORS: 2.0,
    Part.DECISIONS: 4.0,
    Part.TASKS: 4.0,
}
FIRST_OF_MESSAGE = 2.0  # so that every message of the user is there before any is there twice
REPEATED = 0.5  # how much oftener used words are preferred
LETTERS = 4  # words of fewer tell little
LITTLE = 0.3
BULLET = 2  # tokens besides a statement's words
ROUNDS = 5
FULL = 0.98
AIMED = 0.995


def extract(
    entries: Sequence[LogEntry], counter: Counter, max_tokens: int, previous: str = ""
) -> str:
    """A summary of at most so many tokens, which extends the previous one."""
    before = parse(previous)
    candidates = [*known(before), *fresh(entries, any(x.part is Part.REQUEST for x in before))]
    terms = key_terms(candidates, before, min(MOST_TERMS, max_tokens // TOKENS_PER_TERM))
    if terms:
        candidates.append(Candidate(terms, read(""), 1.0, 0, pinned=True))
    return fit(still_open(candidates), counter, max_tokens)


def extract_lines(lines: Sequence[Line], counter: Counter, max_tokens: int) -> str:
    """Lines that are too many, thinned by weight until they fit."""
    whole = [Candidate(line, read(line.text), 1.0, at) for at, line in enumerate(lines)]
    return fit(whole, counter, max_tokens)


def fit(candidates: Sequence[Candidate], counter: Counter, max_tokens: int) -> str:
    """The best of the candidates that fit, counted exactly."""
    costs = [n + BULLET for n in counter.texts([one.line.text for one in candidates])]
    order = _ranked(_unpinned(candidates, costs, max_tokens), costs)
    room, best = float(max_tokens), ""
    for _ in range(ROUNDS):  # headings and dates cost too, and words merge: try and measure
        taken = _taken(order, room)
        text = _told(taken)
        tokens = counter.text(text)
        if tokens <= max_tokens and len(text) > len(best):
            best = text
        if FULL * max_tokens <= tokens <= max_tokens or room >= sum(costs) >= tokens:
            break
        room *= AIMED * max_tokens / max(1, tokens)
    return best or _least(order, counter, max_tokens)


def _least(order: Sequence[tuple[Candidate, int]], counter: Counter, max_tokens: int) -> str:
    """What there is room for when there is next to none: ever fewer lines, then a cut one."""
    count = len(_taken(order, max_tokens))
    while count:
        text = _told([one for one, _ in order[:count]])
        if counter.text(text) <= max_tokens:
            return text
        count //= 2
    return counter.truncate(_told([one for one, _ in order[:1]]), max_tokens)


def _unpinned(
    candidates: Sequence[Candidate], costs: Sequence[int], max_tokens: int
) -> list[Candidate]:
    """The candidates, of which no more are pinned than their part's share has room for."""
    spent: Tally[Part] = Tally()
    made = []
    for one, cost in zip(candidates, costs, strict=True):
        if one.pinned:
            spent[one.line.part] += cost
            if spent[one.line.part] > SHARES.get(one.line.part, 1.0) * max_tokens:
                one = replace(one, pinned=False)
        made.append(one)
    return made


def _ranked(candidates: Sequence[Candidate], costs: Sequence[int]) -> list[tuple[Candidate, int]]:
    """Best first: what is pinned, then what adds most that was not yet said for what it costs."""
    worth = _worth(candidates)
    covered: set[str] = set()
    briefed: set[int] = set()
    order: list[tuple[Candidate, int]] = []

    def gain(at: int) -> float:
        one = candidates[at]
        value = sum(worth[term] for term in one.said.terms if term not in covered)
        if value:
            value += STANDING.get(one.line.part, 0.0)
        if one.line.part is Part.USER and one.place not in briefed:
            value += FIRST_OF_MESSAGE
        return value * one.weight / costs[at]

    def take(at: int) -> None:
        order.append((candidates[at], costs[at]))
        covered.update(candidates[at].said.terms)
        briefed.add(candidates[at].place)

    for at in [at for at, one in enumerate(candidates) if one.pinned]:
        take(at)
    heap = [(-gain(at), at) for at, one in enumerate(candidates) if not one.pinned]
    heapq.heapify(heap)
    while heap:  # what is said makes the rest worth less, never more: only the best is looked at
        at = heapq.heappop(heap)[1]
        now = -gain(at)
        if heap and now > heap[0][0]:
            heapq.heappush(heap, (now, at))
        elif now < 0:
            take(at)
    return order


def _taken(order: Sequence[tuple[Candidate, int]], room: float) -> list[Candidate]:
    taken, spent = [], 0
    for one, cost in order:
        if spent + cost <= room:
            taken.append(one)
            spent += cost
    return taken


def _told(taken: Sequence[Candidate]) -> str:
    """The text: each part by days, and in each day one speaker after the other."""
    came: dict[str, int] = {}
    for one in sorted(taken, key=lambda one: one.place):
        came.setdefault(one.line.who, len(came))
    order = sorted(taken, key=lambda one: (one.line.day, came[one.line.who], one.place))
    return render({(one.line.part, one.line.text): one.line for one in order}.values())


def _worth(candidates: Sequence[Candidate]) -> dict[str, float]:
    """What it is worth to mention a term: what comes again counts, what is everywhere does not."""
    tally = Tally(term for one in candidates for term in one.said.terms)
    total = len(candidates) + 1
    return {
        term: log(total / count) * count**REPEATED * (1.0 if len(term) >= LETTERS else LITTLE)
        for term, count in tally.items()
    }
