"""Fusion: what several channels found becomes one ranking. Pure functions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from recollect.records.query import Found, Passage

DAY = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What each signal is worth; the best find of a channel counts 1 before it is weighed.

    All but the channels are boosts: none of them keeps anything out. `make bench-recall`
    shows what recall loses when one of them is taken away.
    """

    words: float = 0.5
    meaning: float = 0.5
    links: float = 0.2
    neighbours: float = 0.3
    short_chars: int = 300
    speaker: float = 0.3
    user: float = 0.3
    importance: float = 0.1
    recency: float = 0.02
    half_life_days: float = 30.0
    spread: float = 0.02


DEFAULT_RANKING = Ranking()


@dataclass(slots=True)
class Candidate:
    """A record that some channel found, with what adds up to its score."""

    passage: Passage
    scores: dict[str, float] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def score(self) -> float:
        return sum(self.parts.values())


def fuse(
    found: Mapping[str, Sequence[Found]],
    passages: Mapping[int, Passage],
    ranking: Ranking,
    *,
    names: frozenset[str],
    now: datetime,
) -> list[Candidate]:
    """Every record that was found, best first; `names` are the speakers asked about."""
    candidates: dict[int | str, Candidate] = {}
    for channel, finds in found.items():
        known = [find for find in finds if find.passage in passages]
        _gather(candidates, channel, known, passages, getattr(ranking, channel))
    _lend(candidates, ranking)
    for candidate in candidates.values():
        _boost(candidate, ranking, names, now)
    return _spread(candidates.values(), ranking.spread)


def _gather(
    candidates: dict[int | str, Candidate],
    channel: str,
    finds: Sequence[Found],
    passages: Mapping[int, Passage],
    weight: float,
) -> None:
    """Add what a channel found, best first. Of a record's passages the best one counts."""
    rank = 0
    for find, share in zip(finds, shares([find.score for find in finds]), strict=True):
        passage = passages[find.passage]
        held = candidates.setdefault(passage.record, Candidate(passage))
        if channel in held.scores:
            continue
        rank += 1
        if channel == "meaning":  # of a long message, this tells best which span it is
            held.passage = passage
        held.scores[channel] = find.score
        held.ranks[channel] = rank
        held.parts[channel] = weight * share


def shares(scores: Sequence[float]) -> list[float]:
    """Scores between 0, for the worst, and 1, for the best."""
    if not scores:
        return []
    low, high = min(scores), max(scores)
    if low == high:
        return [1.0] * len(scores)
    return [(score - low) / (high - low) for score in scores]


def _lend(candidates: dict[int | str, Candidate], ranking: Ranking) -> None:
    """Short messages say little alone: one is helped by a short one beside it that fits."""
    own = {
        record: candidate.score * _shortness(candidate.passage, ranking.short_chars)
        for record, candidate in candidates.items()
    }
    lent: defaultdict[int | str, float] = defaultdict(float)
    for record, candidate in candidates.items():
        before = candidate.passage.previous
        if before is not None and before in candidates:
            lent[record] += own[before]
            lent[before] += own[record]
    for record, share in lent.items():
        held = candidates[record]
        gate = _shortness(held.passage, ranking.short_chars)
        held.parts["neighbours"] = ranking.neighbours * share * gate


def _shortness(passage: Passage, short_chars: int) -> float:
    return min(1.0, short_chars / max(passage.stop, 1))


def _boost(candidate: Candidate, ranking: Ranking, names: frozenset[str], now: datetime) -> None:
    passage, parts = candidate.passage, candidate.parts
    if passage.role == "user":
        parts["user"] = ranking.user
    if passage.speaker is not None and passage.speaker.casefold() in names:
        parts["speaker"] = ranking.speaker
    if passage.importance is not None:
        parts["importance"] = ranking.importance * passage.importance
    days = max((now - passage.created_at).total_seconds(), 0) / DAY
    parts["recency"] = ranking.recency * 0.5 ** (days / ranking.half_life_days)


def _spread(candidates: Collection[Candidate], step: float) -> list[Candidate]:
    """Best first, each further one of a session a step lower, so that others are heard too."""
    seen: Counter[object] = Counter()
    for candidate in sorted(candidates, key=_order):
        session = candidate.passage.session
        if step and session is not None:
            candidate.parts["spread"] = -step * seen[session]
            seen[session] += 1
    return sorted(candidates, key=_order)


def _order(candidate: Candidate) -> tuple[float, int]:
    return -candidate.score, -candidate.passage.id
