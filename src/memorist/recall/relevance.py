"""What a score is worth: the probability that a hit bears on the question. Pure functions.

It is the product of two logistic curves. The first says whether this memory knows anything of the
matter, by what is absolute: the nearest cosine, and the share of the question's words that one
record holds. The second says, if it does, whether a record of that ranking score is part of it.
`python -m benchmarks.calibrate` fits both, and shows how well they are calibrated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import accumulate, repeat
from math import exp, log
from typing import NamedTuple

from memorist.recall.fusion import DEFAULT_RANKING, SCORE, SHARE, RankedRecord
from memorist.records.query import Found
from memorist.records.values import to_micros

TELLING = 5  # of the best records: they tell how long what was found is
JUST_SAID = 10 * 1_000_000  # microseconds, in which a message may have no vector yet
UNJUDGED = 0.01  # the score of what was just said, and not found by meaning
WORDS_ALONE = ""


class Curves(NamedTuple):
    """The coefficients of both curves, each beginning with its constant."""

    known: tuple[float, ...]  # nearest, words, size, short, best
    fits: tuple[float, ...]  # score, short, size, named


CURVES: Mapping[str, Curves] = {
    "memorist-minilm-3/int8": Curves(
        (-8.198, 19.181, 3.711, -0.987, -2.003, 1.511), (-1.225, 4.678, -1.063, -1.403, -0.817)
    ),
    "memorist-static-3/256": Curves(
        (-3.503, 3.049, 6.039, -0.464, -0.747, 0.934), (-1.946, 3.914, -2.593, -0.957, 0.0)
    ),
    WORDS_ALONE: Curves(
        (-2.027, 0.0, 5.916, -0.275, -1.454, 1.944), (-0.553, 5.39, -3.345, -0.972, 0.0)
    ),
}
"""By the embedder's name: cosines of others lie elsewhere, so they are judged by words alone."""


class RelevanceSignals(NamedTuple):
    """What the curves are of: that of the question, and of each record."""

    question: tuple[float, ...]
    records: list[tuple[float, ...]]


def relevance_signals(
    found: Mapping[str, Sequence[Found]], records: Sequence[RankedRecord], size: int
) -> RelevanceSignals:
    """The signals of ranked records among `size` passages that were found."""
    short = [min(DEFAULT_RANKING.short_chars / max(it.passage.stop, 1), 1.0) for it in records]
    first = short[:TELLING]
    nearest = max(map(SCORE, found.get("meaning", ())), default=0.0)
    words = max(map(SHARE, found.get("words", ())), default=0.0)
    spread = log(max(size, 1))
    # What was derived has no role and no first person, which would raise its score. What the net
    # adds tells which record answers best, and hides how well the others do.
    more = DEFAULT_RANKING.role + DEFAULT_RANKING.self_reference
    raised = [
        it.score - it.parts.get("learned", 0.0) + more * (it.passage.role is None) for it in records
    ]
    raised = [*accumulate(reversed(raised), max)][::-1]  # what ranks higher fits no less
    best = max(raised, default=0.0)
    question = (nearest, words, spread, sum(first) / max(len(first), 1), best)
    # In talk between people, many messages are as near to a question as its answer.
    named = [float(it.passage.speaker is not None) for it in records]
    return RelevanceSignals(question, list(zip(raised, short, repeat(spread), named, strict=False)))


def is_judged(found: Mapping[str, Sequence[Found]], embedder: str | None) -> bool:
    """Whether a score is told by meaning, too, of an embedder whose cosines are known."""
    return bool(found.get("meaning")) and embedder in CURVES


def relevance(
    found: Mapping[str, Sequence[Found]],
    records: Sequence[RankedRecord],
    size: int,
    embedder: str | None,
    now: datetime,
) -> list[float]:
    """The probability of each record. What no channel was in time to judge counts as known."""
    by_meaning = is_judged(found, embedder)
    curves = CURVES[embedder if by_meaning and embedder else WORDS_ALONE]
    seen = relevance_signals(found, records, size)
    known = _logistic(curves.known, seen.question) if by_meaning or "words" in found else 1.0
    constant, by_score, by_length, by_size, by_name = curves.fits  # written out: records are many
    exponents = [
        constant + (by_score * score + by_length * part + by_size * spread + by_name * named)
        for score, part, spread, named in seen.records
    ]
    chances = [known * _chance(exponent) for exponent in exponents]
    if embedder is None:
        return chances
    new = [it.passage.said_at > to_micros(now) - JUST_SAID for it in records]
    unseen = (said and "meaning" not in it.scores for said, it in zip(new, records, strict=True))
    return [max(it, UNJUDGED * yes) for it, yes in zip(chances, unseen, strict=True)]


def _logistic(curve: Sequence[float], values: Sequence[float]) -> float:
    constant, *weights = curve
    exponent = constant + sum(weight * value for weight, value in zip(weights, values, strict=True))
    return _chance(exponent)


def _chance(exponent: float) -> float:
    return 1 / (1 + exp(-max(min(exponent, 50.0), -50.0)))
