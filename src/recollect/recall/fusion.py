"""Fusion: what several channels found becomes one ranking. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from recollect.records.query import Found, Passage

DAY = 86_400
BEST_OF_SESSION = 3
DEPTH = 100  # how many each channel finds, if there are so many
CHANNELS = ("words", "meaning", "links", "recency")  # the last knows least which span it is


class Asked(NamedTuple):
    """Whom a question asks about: the speakers it names, and the role whose words answer it."""

    names: frozenset[str] = frozenset()
    role: str = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What each signal is worth; the best find of a channel counts 1 before it is weighed.

    All but the channels are boosts: none of them keeps anything out. `make bench-recall`
    shows what recall loses when one of them is taken away.
    """

    words: float = 0.55
    meaning: float = 0.45
    links: float = 0.2
    neighbours: float = 0.3
    short_chars: int = 300
    session: float = 0.2
    speaker: float = 0.3
    role: float = 0.3
    own: float = 0.15
    asks: float = -0.05
    importance: float = 0.1
    recency: float = 0.01
    half_life_days: float = 30.0
    spread: float = 0.01


DEFAULT_RANKING = Ranking()


@dataclass(slots=True)
class Candidate:
    """A record that some channel found, with what adds up to its score."""

    passage: Passage
    score: float = 0.0
    scores: dict[str, float] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    parts: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, part: float) -> None:
        """Let something count towards the score."""
        self.parts[name] = self.parts.get(name, 0.0) + part
        self.score += part


def fuse(
    found: Mapping[str, Sequence[Found]],
    passages: Mapping[int, Passage],
    ranking: Ranking,
    *,
    asked: Asked,
    now: datetime,
) -> list[Candidate]:
    """Every record that was found, best first."""
    candidates: dict[int | str, Candidate] = {}
    for channel in filter(found.__contains__, CHANNELS):
        known = [find for find in found[channel] if find.passage in passages]
        _gather(candidates, channel, known, passages, getattr(ranking, channel))
    _lend(candidates, ranking)
    for candidate in candidates.values():
        _boost(candidate, ranking, asked, now)
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
    scores = [find.score for find in finds]
    # Of many, the nearest in meaning may all be far: there the last one marks what is nothing.
    low = min(scores) if channel == "meaning" and len(scores) >= DEPTH else 0.0
    for find, share in zip(finds, shares(scores, low), strict=True):
        passage = passages[find.passage]
        held = candidates.get(passage.record)
        if held is None:
            held = candidates[passage.record] = Candidate(passage)
        elif channel in held.scores:
            continue
        rank += 1
        if channel == "meaning":  # of a long message, this tells best which span it is
            held.passage = passage
        held.scores[channel] = find.score
        held.ranks[channel] = rank
        held.add(channel, weight * share)


def shares(scores: Sequence[float], low: float) -> list[float]:
    """Scores as shares of the way from `low`, which is 0, to the best, which is 1."""
    high = max(scores, default=low)
    if high <= low:
        return [1.0] * len(scores)
    return [(score - low) / (high - low) for score in scores]


def _lend(candidates: dict[int | str, Candidate], ranking: Ranking) -> None:
    """Short messages say little alone: one that fits helps a short one beside it, and the
    best of a session help all the short ones in it.
    """
    short = {
        record: min(1.0, ranking.short_chars / max(candidate.passage.stop, 1))
        for record, candidate in candidates.items()
    }
    sessions = defaultdict(list)
    for candidate in candidates.values():
        if candidate.passage.session is not None:
            sessions[candidate.passage.session].append(candidate.score)
    best = {
        session: sum(sorted(scores)[-BEST_OF_SESSION:]) / BEST_OF_SESSION
        for session, scores in sessions.items()
    }
    lent: defaultdict[int | str, float] = defaultdict(float)
    for record, candidate in candidates.items():
        before = candidate.passage.previous
        if before is not None and before in candidates:
            lent[record] += candidates[before].score * short[before]
            lent[before] += candidate.score * short[record]
    for record, held in candidates.items():
        if record in lent:
            held.add("neighbours", ranking.neighbours * lent[record] * short[record])
        if held.passage.session in best:
            held.add("session", ranking.session * best[held.passage.session] * short[record])


def _boost(candidate: Candidate, ranking: Ranking, asked: Asked, now: datetime) -> None:
    passage = candidate.passage
    if passage.role == asked.role:
        candidate.add("role", ranking.role)
    if passage.speaker in asked.names:
        candidate.add("speaker", ranking.speaker)
    if passage.own:
        candidate.add("own", ranking.own * passage.own)
    if passage.asks:
        candidate.add("asks", ranking.asks)
    if passage.importance is not None:
        candidate.add("importance", ranking.importance * passage.importance)
    days = max((now - passage.created_at).total_seconds(), 0) / DAY
    candidate.add("recency", ranking.recency * 0.5 ** (days / ranking.half_life_days))


def _spread(candidates: Collection[Candidate], step: float) -> list[Candidate]:
    """Best first, each further one of a session a step lower, so that others are heard too."""
    ordered = sorted(candidates, key=_order)
    seen: dict[object, int] = {}
    for candidate in ordered if step else ():
        session = candidate.passage.session
        if (before := seen.get(session, 0)) and session is not None:
            candidate.add("spread", -step * before)
        seen[session] = before + 1
    return sorted(ordered, key=_order)


def _order(candidate: Candidate) -> tuple[float, int]:
    return -candidate.score, -candidate.passage.id
