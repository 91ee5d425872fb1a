"""Fusion: what several channels found becomes one ranking. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

from memorist.providers.reranker import Reranker
from memorist.records.ids import to_micros
from memorist.records.query import Found, Passage

DAY = 86_400_000_000  # microseconds
BEST_OF_SESSION = 3
DEPTH = 90  # how many each channel finds, if there are so many
FULL = itemgetter(2)
CHANNELS = ("words", "meaning", "links", "recency")  # the last knows least which span it is
Column = dict[int, float]
Rows = Sequence[tuple[int, Passage]]
SOON = 7 * DAY  # after something happened, within which it is told of


Period = tuple[datetime, datetime]


class QuestionFocus(NamedTuple):
    """What a question asks about: speakers by name, the role whose words answer it, a time."""

    names: frozenset[str] = frozenset()
    role: str = "user"
    when: Period | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What each signal is worth; the best find of a channel counts 1 before it is weighed.

    All but the channels are boosts: none of them keeps anything out. `synonyms` is what a word that
    means the same is worth beside the one asked for. `make bench-recall` shows what recall loses
    when one of them is taken away. A reranker, where there is one, has the last word, if it says
    it in time.
    """

    words: float = 0.55
    synonyms: float = 0.8
    meaning: float = 0.45
    links: float = 0.02
    neighbours: float = 0.4
    short_chars: int = 300
    session: float = 0.2
    speaker: float = 0.3
    role: float = 0.3
    opening: float = 0.15
    when: float = 0.3
    own: float = 0.35
    asks: float = -0.05
    outdated: float = -0.2
    importance: float = 0.1
    recency: float = 0.01
    half_life_days: float = 30.0
    spread: float = 0.01
    reranker: Reranker | None = None


DEFAULT_RANKING = Ranking()


@dataclass(slots=True)
class RankedRecord:
    """A record that some channel found, with what adds up to its score."""

    passage: Passage
    score: float = 0.0
    scores: dict[str, float] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    parts: dict[str, float] = field(default_factory=dict)


class Board:
    """All candidates at once: a row for each record, a column for each thing that counts.

    Hundreds are ranked and few are wanted: only those become candidates with their reasons.
    """

    def __init__(self) -> None:
        self.rows: dict[int | str, int] = {}  # by record
        self.passages: list[Passage] = []
        self.scores: list[float] = []
        self.found: dict[str, dict[int, tuple[int, float]]] = {}  # rank and score, by channel
        self.columns: list[tuple[str, Column]] = []

    def row(self, passage: Passage) -> int:
        """The row of a passage's record, a new one if need be."""
        row = self.rows.get(passage.record)
        if row is None:
            row = self.rows[passage.record] = len(self.passages)
            self.passages.append(passage)
            self.scores.append(0.0)
        return row

    def add(self, name: str, column: Column) -> None:
        """Let something count towards the scores of the rows that have it."""
        self.columns.append((name, column))
        for row, part in column.items():
            self.scores[row] += part

    def order(self) -> list[int]:
        """The rows, best first; of equals the newer."""
        ids = [passage.id for passage in self.passages]
        newest = sorted(range(len(ids)), key=ids.__getitem__, reverse=True)
        return sorted(newest, key=self.scores.__getitem__, reverse=True)

    def candidate(self, row: int) -> RankedRecord:
        """What a row says."""
        made = RankedRecord(self.passages[row], self.scores[row])
        for channel, found in self.found.items():
            if row in found:
                made.ranks[channel], made.scores[channel] = found[row]
        for name, column in self.columns:
            if row in column:
                made.parts[name] = made.parts.get(name, 0.0) + column[row]
        return made


def fuse(
    found: Mapping[str, Sequence[Found]],
    passages: Mapping[int, Passage],
    ranking: Ranking,
    *,
    asked: QuestionFocus,
    now: datetime,
    limit: int | None = None,
) -> list[RankedRecord]:
    """The records that were found, best first; all of them, or so many."""
    board = Board()
    spoken = _spoken_for(passages)
    for channel in filter(found.__contains__, CHANNELS):
        known = [find for find in found[channel] if find.passage in spoken]
        if channel == "words" and spoken is not passages:
            known = _own_words(known, spoken)
        _gather(board, channel, known, spoken, getattr(ranking, channel))
    _lend(board, ranking)
    for name, column in _boosts(board, ranking, asked, now):
        board.add(name, column)
    order = board.order()
    _spread(board, order, ranking.spread)
    order.sort(key=board.scores.__getitem__, reverse=True)
    return [board.candidate(row) for row in order[:limit]]


def _spoken_for(passages: Mapping[int, Passage]) -> Mapping[int, Passage]:
    """The passages, with what was derived from one message standing for that message.

    It says nothing that the message does not, and finding both would take two places.
    """
    if all(it.source is None for it in passages.values()):
        return passages
    said = {it.record: it for it in passages.values() if it.kind == "message"}
    return {id_: said.get(it.source or it.record, it) for id_, it in passages.items()}


def _own_words(finds: Sequence[Found], spoken: Mapping[int, Passage]) -> list[Found]:
    """The finds without those of derived records whose message was found by its own words.

    A shorter text with the same words scores higher, and would outdo all others.
    """
    own = {spoken[it.passage].record for it in finds if it.passage > 0}
    return [it for it in finds if it.passage > 0 or spoken[it.passage].record not in own]


def _gather(
    board: Board,
    channel: str,
    finds: Sequence[Found],
    passages: Mapping[int, Passage],
    weight: float,
) -> None:
    """Add what a channel found, best first. Of a record's passages the best one counts."""
    scores = [find.score for find in finds]
    # Of many, the nearest in meaning may all be far: there the last one marks what is nothing.
    low = min(scores) if channel == "meaning" and len(scores) >= DEPTH else 0.0
    # Where only synonyms of the words were found, the best of it is not all that could be.
    high = max(max(scores, default=low), max(map(FULL, finds), default=low))
    placed: dict[int, tuple[int, float]] = {}
    column: Column = {}
    for find, share in zip(finds, shares(scores, low, high), strict=True):
        passage = passages[find.passage]
        row = board.row(passage)
        if row in placed:
            continue
        if channel == "meaning":  # of a long message, this tells best which span it is
            board.passages[row] = passage
        placed[row] = len(placed) + 1, find.score
        column[row] = weight * share
    board.found[channel] = placed
    board.add(channel, column)


def shares(scores: Sequence[float], low: float, high: float) -> list[float]:
    """Scores as shares of the way from `low`, which is 0, to `high`, which is 1."""
    if high <= low:
        return [1.0] * len(scores)
    return [(score - low) / (high - low) for score in scores]


def _lend(board: Board, ranking: Ranking) -> None:
    """Short messages say little alone: one that fits helps a short one beside it, and the
    best of a session help all the short ones in it.
    """
    scores, held, most = board.scores, board.passages, ranking.short_chars
    short = [1.0 if it.stop <= most else most / it.stop for it in held]
    sessions = defaultdict(list)
    for it, score in zip(held, scores, strict=True):
        if it.session is not None:
            sessions[it.session].append(score)
    best = {
        session: sum(sorted(among)[-BEST_OF_SESSION:]) / BEST_OF_SESSION
        for session, among in sessions.items()
    }
    lent: defaultdict[int, float] = defaultdict(float)
    for row, it in enumerate(held):
        if it.previous is not None and (before := board.rows.get(it.previous)) is not None:
            lent[row] += scores[before] * short[before]
            lent[before] += scores[row] * short[row]
    beside = {row: ranking.neighbours * part * short[row] for row, part in lent.items()}
    around = {
        row: ranking.session * best[it.session] * short[row]
        for row, it in enumerate(held)
        if it.session in best
    }
    board.add("neighbours", beside)
    board.add("session", around)


def _boosts(
    board: Board, ranking: Ranking, asked: QuestionFocus, now: datetime
) -> Iterator[tuple[str, Column]]:
    """What each signal adds, and to whom."""
    held = board.passages
    rows = list(enumerate(held))
    # Who spoke is no reason by itself: what is only new is not more to the point for it.
    fitting = set().union(*(board.found.get(channel, ()) for channel in CHANNELS[:3]))
    theirs = [(row, it) for row, it in rows if it.role == asked.role and row in fitting]
    yield "role", {row: ranking.role for row, _ in theirs}
    # What opens a session says what it is about.
    yield "opening", {row: ranking.opening for row, it in theirs if it.previous is None}
    yield "speaker", {row: ranking.speaker for row, it in rows if it.speaker in asked.names}
    yield "when", {row: ranking.when * part for row, part in _timely(rows, asked)}
    yield "own", {row: ranking.own * it.own for row, it in rows if it.own}
    yield "outdated", {row: ranking.outdated for row, it in rows if it.outdated}
    yield "asks", {row: ranking.asks for row, it in rows if it.asks}
    yield (
        "importance",
        {row: ranking.importance * it.importance for row, it in rows if it.importance is not None},
    )
    weight, half_life = ranking.recency, ranking.half_life_days
    today = to_micros(now) / DAY
    ages = [max(today - it.said_at / DAY, 0.0) for it in held]
    yield "recency", {row: weight * 0.5 ** (days / half_life) for row, days in enumerate(ages)}


def _timely(rows: Rows, asked: QuestionFocus) -> Iterator[tuple[int, float]]:
    """Who spoke at the time asked about, and, half as much, soon after it."""
    if asked.when is None:
        return
    first, last = map(to_micros, asked.when)
    for row, it in rows:
        if first <= it.said_at < last:
            yield row, 1.0
        elif last <= it.said_at < last + SOON:
            yield row, 0.5


def _spread(board: Board, order: Sequence[int], step: float) -> None:
    """Each further one of a session a step lower, so that others are heard too."""
    seen: dict[object, int] = {}
    column: Column = {}
    for row in order if step else ():
        session = board.passages[row].session
        if (before := seen.get(session, 0)) and session is not None:
            column[row] = -step * before
        seen[session] = before + 1
    board.add("spread", column)
