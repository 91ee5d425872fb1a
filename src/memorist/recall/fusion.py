"""Fusion: one ranking of what several channels found. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple

from memorist.arguments import CheckedSettings
from memorist.language.likeness import NUMBER, Clause, content_stems
from memorist.language.people import names_someone, names_user
from memorist.language.questions import facts_asked_about
from memorist.providers.embedder import Reranker
from memorist.recall.channels import CHANNELS
from memorist.records.memories import Fact
from memorist.records.query import Found, Hit, Passage, Record, Update, past
from memorist.records.values import to_micros

DAY = 86_400_000_000  # microseconds
NOTHING: Mapping[str, Record] = {}
BEST_OF_SESSION = 3
DEPTH = 90  # passages that each channel finds at most
SCORE, FULL, SHARE = itemgetter(1), itemgetter(2), itemgetter(3)  # of a `Found`, but faster
MERGE_ORDER = [it.name for it in sorted(CHANNELS, key=lambda channel: channel.merged)]
FITTING = [channel.name for channel in CHANNELS if channel.fits]
MOST_WORDS = 0.6  # of those asked for: words count in full where a record holds so many,
SOME_WORDS = 3  # or, of a long question, about as many as these
FITS_TOO = 0.62  # how near to a question, beside what it updates, a message is that fits, too
ANSWERS = 0.5  # the score of what states the fact that is asked for
LOOKED_AT = 10  # hits, the best: among them the newer of two on the same matter leads
AMONG = 30  # hits: among them what states the fact that is asked for leads
OWN = ("user", None)  # roles of a user's statements, and of what was derived
APART = timedelta(hours=1)  # sooner, people mostly go on with what they said
SOON = 7 * DAY  # after something happened, people still talk of it
Column = dict[int, float]
"""What a signal adds to the score of each row that has it."""
Period = tuple[datetime, datetime]


class QuestionFocus(NamedTuple):
    """What a question asks about: named speakers, the role whose words answer it, a period.

    `words` is how many of its words are looked for.
    """

    names: frozenset[str] = frozenset()
    role: str = "user"
    when: Period | None = None
    about_past: bool = False
    words: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking(CheckedSettings):
    """The weights of the channels and of other signals.

    The best find of a channel counts 1 times its weight. The other signals are boosts: none of
    them keeps anything out. `synonyms` is what a synonym is worth beside the word asked for,
    `update` by how much a message stands above the one that it probably updates, `learned` how much
    counts what a net tells that was trained with the default embedder.
    `make bench-recall` shows what recall loses without each of them. A reranker, where there is
    one, decides the final order, if it answers in time.
    """

    words: float = 0.55
    synonyms: float = 0.8
    meaning: float = 0.65
    links: float = 0.02
    neighbours: float = 0.36
    short_chars: int = 400
    session: float = 0.4
    speaker: float = 0.3
    role: float = 0.3
    opening: float = 0.15
    when: float = 0.4
    self_reference: float = 0.35
    question: float = -0.1
    outdated: float = -0.2
    importance: float = 0.1
    recency: float = 0.01
    half_life_days: float = 30.0
    learned: float = 0.7
    update: float = 0.0001
    reranker: Reranker | None = None
    _least = -inf


DEFAULT_RANKING = Ranking()


@dataclass(slots=True)
class RankedRecord:
    """A record that some channel found, its score, and the parts that add up to it."""

    passage: Passage
    score: float = 0.0
    scores: dict[str, float] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    parts: dict[str, float] = field(default_factory=dict)


class Board:
    """The score of every record: a row for each record, a column for each signal.

    Hundreds are ranked and few are wanted: only those become a `RankedRecord` with its reasons.
    """

    def __init__(self) -> None:
        self.rows: dict[int | str, int] = {}  # by record
        self.passages: list[Passage] = []
        self.scores: list[float] = []
        self.found: dict[str, dict[int, tuple[int, float]]] = {}  # rank and score, by channel
        self.shares: Column = {}  # of the question's words
        self.columns: list[tuple[str, Column]] = []

    def add(self, name: str, column: Column) -> None:
        """Add a signal to the scores of the rows that have it."""
        if column:
            self.columns.append((name, column))
        scores = self.scores
        for row, part in column.items():
            scores[row] += part

    def order(self) -> list[int]:
        """The rows, best first; of equals the newer."""
        ids = (passage[0] for passage in self.passages)
        ranked = sorted(zip(self.scores, ids, range(len(self.scores)), strict=True), reverse=True)
        return [row for _, _, row in ranked]

    def record(self, row: int) -> RankedRecord:
        """A row as a record with its reasons."""
        record = RankedRecord(self.passages[row], self.scores[row])
        for channel, placed in self.found.items():
            if row in placed:
                record.ranks[channel], record.scores[channel] = placed[row]
        for name, column in self.columns:
            if row in column:
                record.parts[name] = record.parts.get(name, 0.0) + column[row]
        return record


def fuse(
    found: Mapping[str, Sequence[Found]],
    passages: Mapping[int, Passage],
    ranking: Ranking,
    *,
    focus: QuestionFocus,
    now: datetime,
    limit: int | None = None,
    embedder: str | None = None,
) -> list[RankedRecord]:
    """The records that were found, best first; all of them, or the first `limit`.

    Cosines are those of the `embedder` of that name.
    """
    board = Board()
    sources = _source_messages(passages)
    for channel in filter(found.__contains__, MERGE_ORDER):
        finds = [find for find in found[channel] if find[0] in sources]
        if channel == "words" and sources is not passages:
            finds = _own_words(finds, sources)
        weight = getattr(ranking, channel)
        if channel == "words":
            weight *= _worth_of_words(finds, focus)
        _gather(board, channel, finds, sources, weight)
    if not board.passages:
        return []
    # Of each field the values of all rows.
    held: Any = Passage._make(zip(*board.passages, strict=True))
    most = ranking.short_chars
    short = [1.0 if stop <= most else most / stop for stop in held.stop]
    _lend(board, held, ranking, short)
    for name, column in _boosts(board, held, ranking, short, focus, now):
        board.add(name, column)
    if ranking.learned and found.get("meaning") and "message" in held.kind:
        board.add("learned", _learned(board, held, ranking.learned, focus, embedder))
    if ranking.update and not focus.about_past:
        _lift(board, passages, ranking.update)
    return [board.record(row) for row in board.order()[:limit]]


def _source_messages(passages: Mapping[int, Passage]) -> Mapping[int, Passage]:
    """The passages, with the message in place of what was derived from it alone.

    That says nothing which the message does not, and both together would take two places.
    """
    if all(it.source is None for it in passages.values()):
        return passages
    messages = {it.record: it for it in passages.values() if it.kind == "message"}
    return {id_: messages.get(it.source or it.record, it) for id_, it in passages.items()}


def _own_words(finds: Sequence[Found], sources: Mapping[int, Passage]) -> list[Found]:
    """The finds without derived records of messages that were found by their own words too.

    A shorter text with the same words scores higher, and would outdo all others.
    """
    own = {sources[it.passage].record for it in finds if it.passage > 0}
    return [it for it in finds if it.passage > 0 or sources[it.passage].record not in own]


def _gather(
    board: Board,
    channel: str,
    finds: Sequence[Found],
    passages: Mapping[int, Passage],
    weight: float,
) -> None:
    """Add a channel's finds, best first. Of several passages of a record the best one counts."""
    scores = list(map(SCORE, finds))
    # What is less than half as near as the nearest has nothing to do with the question.
    low = max([0.0, *scores]) / 2 if channel == "meaning" else 0.0
    # Where only synonyms were found, the best find counts less than 1.
    high = max(max(scores, default=low), max(map(FULL, finds), default=low))
    placed: dict[int, tuple[int, float]] = {}
    column: Column = {}
    rows, held = board.rows, board.passages
    for find, share in zip(finds, shares(scores, low, high), strict=True):
        passage = passages[find[0]]
        row = rows.get(passage[2])  # by its record
        if row is None:
            row = rows[passage[2]] = len(held)
            held.append(passage)
        elif row in placed:
            continue
        elif channel == "meaning":  # it tells best which span of a long message fits
            held[row] = passage
        placed[row] = len(placed) + 1, find[1]
        column[row] = weight * share
        board.shares[row] = max(board.shares.get(row, 0.0), find[3])
    board.found[channel] = placed
    board.scores += [0.0] * (len(held) - len(board.scores))
    board.add(channel, column)


def _worth_of_words(finds: Sequence[Found], focus: QuestionFocus) -> float:
    """How much words count: one or two in common tell little, even where no record has more."""
    enough = min(MOST_WORDS, SOME_WORDS / max(focus.words, 1))
    return min(max(map(SHARE, finds), default=0.0) / enough, 1.0)


def shares(scores: Sequence[float], low: float, high: float) -> list[float]:
    """Scores scaled so that `low` and what is below become 0, and `high` becomes 1."""
    if high <= low:
        return [1.0] * len(scores)
    span = high - low
    return [max(score - low, 0.0) / span for score in scores]


def _lend(board: Board, held: Any, ranking: Ranking, short: Sequence[float]) -> None:
    """Lend short messages some of the scores beside them, and of the best of their session."""
    scores = board.scores
    sessions = defaultdict[Any, list[float]](list)
    for session, score in zip(held.session, scores, strict=True):
        sessions[session].append(score)
    sessions.pop(None, None)
    best = {
        session: ranking.session * (sum(sorted(among)[-BEST_OF_SESSION:]) / BEST_OF_SESSION)
        for session, among in sessions.items()
    }
    lent: defaultdict[int, float] = defaultdict(float)
    for row, before in enumerate(map(board.rows.get, held.previous)):
        if before is not None:
            lent[row] += scores[before] * short[before]
            lent[before] += scores[row] * short[row]
    beside = {row: ranking.neighbours * part * short[row] for row, part in lent.items()}
    around = {
        row: best[session] * short[row]
        for row, session in enumerate(held.session)
        if session in best
    }
    board.add("neighbours", beside)
    board.add("session", around)


def _boosts(
    board: Board,
    held: Any,
    ranking: Ranking,
    short: Sequence[float],
    focus: QuestionFocus,
    now: datetime,
) -> Iterator[tuple[str, Column]]:
    """What each signal adds to which rows."""
    # Being said by the right role helps only what fits the question, not what is merely new.
    fitting = set[int]().union(*(board.found.get(channel, ()) for channel in FITTING))
    theirs = [row for row in fitting if held.role[row] == focus.role]
    # What users say is short and about them; what is long they mostly paste.
    part = short if focus.role == "user" else [1.0] * len(short)
    yield "role", {row: ranking.role * part[row] for row in theirs}
    # The first message of a session often says what the session is about.
    first = (row for row in theirs if held.previous[row] is None)
    yield "opening", {row: ranking.opening * part[row] for row in first}
    named = (row for row, name in enumerate(held.speaker) if name in focus.names)
    yield "speaker", dict.fromkeys(named, ranking.speaker)
    yield "when", {row: ranking.when * part for row, part in _timely(held.said_at, focus.when)}
    weight, told = ranking.self_reference, enumerate(held.self_reference)
    yield "self_reference", {row: weight * part * short[row] for row, part in told if part}
    yield "outdated", dict.fromkeys(_where(held.outdated), ranking.outdated)
    yield "question", dict.fromkeys(_where(held.is_question), ranking.question)
    weight, told = ranking.importance, enumerate(held.importance)
    yield "importance", {row: weight * part for row, part in told if part is not None}
    weight, half_life = ranking.recency, ranking.half_life_days
    today = to_micros(now) / DAY
    ages = [max(today - said_at / DAY, 0.0) for said_at in held.said_at]
    yield "recency", {row: weight * 0.5 ** (days / half_life) for row, days in enumerate(ages)}


def _learned(
    board: Board, held: Any, weight: float, focus: QuestionFocus, embedder: str | None
) -> Column:
    """What a net adds to every row, where there is one for the embedder.

    It has learnt from messages, and nothing of articles.
    """
    from memorist.recall import learned  # here, as it needs numpy: `import memorist` stays light

    if (net := learned.net_of(embedder)) is None:
        return {}
    signals = learned.signals_of(board, held, focus, dict(_timely(held.said_at, focus.when)))
    return dict(enumerate((weight * net.add(signals)).tolist()))


def _where(marks: Sequence[int]) -> Iterator[int]:
    return (row for row, mark in enumerate(marks) if mark)


def _timely(moments: Sequence[int], period: Period | None) -> Iterator[tuple[int, float]]:
    """Rows of the time asked about, and, at half the boost, of the days after it."""
    if period is None:
        return
    first, last = map(to_micros, period)
    for row, said_at in enumerate(moments):
        if first <= said_at < last:
            yield row, 1.0
        elif last <= said_at < last + SOON:
            yield row, 0.5


def _lift(board: Board, passages: Mapping[int, Passage], step: float) -> None:
    """Raise what probably updates a record to just above it, where it fits the question, too.

    That is told by meaning or, where the record was not found by it, by words. The oldest comes
    first, so that the newest of several stands above all of them. The one it overtakes stays as it
    is: that one updates another is likely, and no more. What is known to be over is not raised
    above what holds.
    """
    column: Column = {}
    scores, rows = board.scores, board.rows
    by_meaning, by_words = (board.found.get(it, {}) for it in ("meaning", "words"))
    linked = [it for it in passages.values() if it.overtaken_by in passages]
    for it in sorted(linked, key=lambda it: (it.said_at, it.id)):
        by = passages[it.overtaken_by]
        older, newer = rows.get(it.record), rows.get(by.record)
        if older is None or newer is None or (by.outdated and not it.outdated):
            continue
        found = by_meaning if older in by_meaning else by_words
        (_, before), (_, now) = (found.get(row, (0, 0.0)) for row in (older, newer))
        if now < FITS_TOO * before:
            continue
        least = scores[older] + column.get(older, 0.0) + step
        if scores[newer] + column.get(newer, 0.0) < least:
            column[newer] = least - scores[newer]
    board.add("update", column)


def newer_first(
    question: str,
    hits: Sequence[Hit],
    updates: Sequence[Update],
    overtaken: Mapping[str, Record] = NOTHING,
    *,
    about_past: bool = False,
) -> list[Hit]:
    """The hits, with what a user said of a matter later above what they said of it before.

    That two messages are on the same matter is known from the facts they state (`updates`), likely
    where one was linked to what it has `overtaken`, or told by their words. A question about the
    past turns this round. What is asked about and is over stays marked so. Hits beyond the first
    ten stay where they are.
    """
    asked = content_stems(question) if updates or len(hits) > 1 else set[str]()
    sent: dict[datetime | None, str] = {it.created_at: it.id for it in hits if it.role in OWN}
    of = facts_asked_about(question) if updates else ()
    successors = _successors(asked, of, updates, sent) if updates else {}
    clauses: dict[str, Clause | None] = {}  # only of the hits that might change places

    def told(text: str) -> Clause | None:
        if text not in clauses:
            clauses[text] = Clause.about(asked, text)
        return clauses[text]

    def leads(hit: Hit, other: Hit) -> bool:
        newer, older = (other, hit) if about_past else (hit, other)
        if newer.id in successors.get(older.id, ()):
            return True
        if older.id in overtaken and newer.id == overtaken[older.id].id:
            return True
        if newer.created_at <= older.created_at or newer.speaker != older.speaker:
            return False
        if newer.role not in OWN or older.role not in OWN:
            return False
        is_apart = newer.created_at - older.created_at > APART
        if not is_apart and not (NUMBER.search(newer.text) and NUMBER.search(older.text)):
            return False
        if not (one := told(newer.text)) or not (two := told(older.text)):
            return False
        return (is_apart or one.gives_other_figure(two)) and one.is_on_matter_of(two)

    order: list[Hit] = []
    for hit in hits[:LOOKED_AT]:
        place = next((at for at, other in enumerate(order) if leads(hit, other)), len(order))
        if place < len(order):  # it bears on the question no less than what it overtakes
            hit = replace(hit, score=max(hit.score, order[place].score))
            hit.why.ranks["update"] = place + 1
        order.insert(place, hit)
    holding = {update.message_id for update in updates} - successors.keys()
    return [
        replace(hit, over="", partly_over=hit.over) if hit.id in holding else hit
        for hit in (*order, *hits[LOOKED_AT:])
    ]


def answer_first(
    hits: Sequence[Hit], facts: Iterable[Fact], now: datetime, *, about_past: bool = False
) -> list[Hit]:
    """The hits, with what states the fact that is asked for above what it leads.

    What holds leads what is over, what is only planned, and whatever was said before it; what was
    said since may be an answer that no fact tells. A question about the past turns this round.
    """
    wanted = "over" if about_past else "holds"
    states = sorted(((it.state_at(now), it) for it in facts), key=lambda it: it[0] == wanted)
    stated = {id_: state for state, it in states for id_ in (*it.sources, it.id, it.memory)}

    def leads(hit: Hit, other: Hit) -> bool:
        if stated.get(hit.id) != wanted or (state := stated.get(other.id)) == wanted:
            return False
        newer, older = (other, hit) if about_past else (hit, other)
        return state is not None or newer.created_at > older.created_at

    order: list[Hit] = []
    for hit in hits:
        place = next((at for at, other in enumerate(order) if leads(hit, other)), len(order))
        if stated.get(hit.id) == wanted:
            least = min(ANSWERS, order[place - 1].score) if place else ANSWERS
            passed = max((other.score for other in order[place:]), default=0.0)
            hit = replace(hit, score=max(hit.score, passed, least))
            hit.why.ranks["fact"] = place + 1
        order.insert(place, hit)
    return order


def probably_over(hits: Sequence[Hit], overtaken: Mapping[str, Record], now: datetime) -> list[Hit]:
    """The hits, with a mark on each that a later message probably updates."""
    return [
        replace(hit, over=f"probably {past(overtaken[hit.id].created_at, now)}")
        if hit.id in overtaken and not hit.over
        else hit
        for hit in hits
    ]


def shares_words(one: Record, other: Record) -> bool:
    """Whether two messages share a word that says something."""
    return not content_stems(one.text).isdisjoint(content_stems(other.text))


def _successors(
    asked: Set[str],
    of: Sequence[str],
    updates: Sequence[Update],
    sent: Mapping[datetime | None, str],
) -> dict[str, set[str]]:
    """The messages of which the part asked about is over, and those that say what holds instead.

    Where nothing does, it is the one that says that it is over, known by when it was `sent`. A
    message may say several things: the one with most words of the question is asked about, or the
    one `of` whose predicate the question is; the user's name in it says whom it is about, not what.
    """
    stated = {
        it: it.predicate + ("" if names_user(it.predicate) else f" {it.object}") for it in updates
    }
    fits = {
        it: len(content_stems(text) & asked) + (it.predicate in of) for it, text in stated.items()
    }
    holding: defaultdict[str, dict[str, int]] = defaultdict(dict)  # the best fit of each predicate
    for update in filter(lambda it: it.holds, updates):
        best = holding[update.message_id]
        best[update.predicate] = max(best.get(update.predicate, 0), fits[update])
    successors: dict[str, set[str]] = {}
    for update in updates:
        best = holding[update.message_id]
        # "My sister Lena lives in …": that she is a sister is only asked about in so many words.
        others = (
            fit
            for predicate, fit in best.items()
            if predicate != update.predicate and (fit or not names_someone(predicate))
        )
        most = max(others, default=-1)
        if not update.holds and (fits[update] > most or fits[update] == most > 0):
            ended_by = (update.ended_by or sent.get(update.until, "")) if fits[update] else ""
            successors.setdefault(update.message_id, set()).add(update.by or ended_by)
    return successors
