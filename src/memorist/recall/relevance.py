"""Relevance: the calibrated probability that a hit bears on the question. Pure functions.

It is the product of two logistic curves. The first says whether this memory knows anything of the
matter, by what is absolute: the nearest cosine, and the share of the question's words that one
record holds. The second says, if it does, whether a record of that ranking score is part of it.
`python -m benchmarks.calibrate` fits both, and shows how well they are calibrated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import exp, log
from typing import NamedTuple

from memorist.recall.fusion import DEFAULT_RANKING, RankedRecord
from memorist.records.query import Found
from memorist.records.values import to_micros

LOOKED_AT = 5  # of the best records, that tell how long what was found is
JUST_SAID = 10 * 1_000_000  # microseconds, in which a message may have no vector yet
UNJUDGED = 0.01  # the score of what was just said, and not found by meaning
WORDS_ALONE = ""


class Curves(NamedTuple):
    """The coefficients of both curves, each beginning with its constant."""

    known: tuple[float, ...]  # nearest, words, size, short, best
    fits: tuple[float, ...]  # score, short, size


CURVES: Mapping[str, Curves] = {
    "memorist-minilm-1/int8": Curves(
        (-8.449, 14.049, 6.545, -0.807, -4.203, 3.227), (-3.032, 5.477, -3.979, -0.751)
    ),
    "memorist-static-1/256": Curves(
        (-6.885, 4.114, 8.542, -0.545, -3.796, 3.679), (-3.352, 5.257, -3.628, -0.698)
    ),
    WORDS_ALONE: Curves(
        (-3.955, 0.0, 10.348, -0.414, -4.196, 3.923), (-1.372, 5.969, -4.196, -0.867)
    ),
}
"""By the embedder's name: cosines of others lie elsewhere, so they are judged by words alone."""


class Signals(NamedTuple):
    """What the curves are of: that of the question, and of each record."""

    question: tuple[float, ...]
    records: list[tuple[float, ...]]


def signals(
    found: Mapping[str, Sequence[Found]], records: Sequence[RankedRecord], size: int
) -> Signals:
    """The signals of ranked records among `size` passages that were found."""
    short = [min(DEFAULT_RANKING.short_chars / max(it.passage.stop, 1), 1.0) for it in records]
    first = short[:LOOKED_AT]
    nearest = max((find.score for find in found.get("meaning", ())), default=0.0)
    words = max((find.share for find in found.get("words", ())), default=0.0)
    spread = log(max(size, 1))
    best = max((record.score for record in records), default=0.0)
    question = (nearest, words, spread, sum(first) / max(len(first), 1), best)
    # What was derived has no role, which would raise its score.
    raised = [it.score + DEFAULT_RANKING.role * (it.passage.role is None) for it in records]
    rows = zip(raised, short, strict=True)
    return Signals(question, [(score, part, spread) for score, part in rows])


def relevance(
    found: Mapping[str, Sequence[Found]],
    records: Sequence[RankedRecord],
    size: int,
    embedder: str | None,
    now: datetime,
) -> list[float]:
    """The probability of each record. What no channel was in time to judge counts as known."""
    by_meaning = bool(found.get("meaning")) and embedder in CURVES
    curves = CURVES[embedder if by_meaning and embedder else WORDS_ALONE]
    seen = signals(found, records, size)
    known = _logistic(curves.known, seen.question) if by_meaning or "words" in found else 1.0
    chances = [known * _logistic(curves.fits, record) for record in seen.records]
    if embedder is None:
        return chances
    new = [it.passage.said_at > to_micros(now) - JUST_SAID for it in records]
    unseen = (said and "meaning" not in it.scores for said, it in zip(new, records, strict=True))
    return [max(it, UNJUDGED * yes) for it, yes in zip(chances, unseen, strict=True)]


def _logistic(curve: Sequence[float], values: Sequence[float]) -> float:
    constant, *weights = curve
    exponent = constant + sum(weight * value for weight, value in zip(weights, values, strict=True))
    return 1 / (1 + exp(-max(min(exponent, 50.0), -50.0)))
