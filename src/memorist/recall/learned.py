"""What a small net adds to the scores of records, which it learnt from labelled questions.

The weighted sum of `fusion` counts every signal by itself. The net sees them together: a message
that is near to the question counts more if it has its words, too, or if its session has more of
both. `python -m benchmarks.learn` trains it and shows what it brings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from memorist.recall.fusion import Board, QuestionFocus

Column = NDArray[Any]
Signals = NDArray[np.float32]
"""A row for each record, a column for each signal."""

NETS: Mapping[str, str] = {"memorist-minilm-3/int8": "learned.npz"}
"""The file of the net for an embedder: cosines of others lie elsewhere."""
AT_ONCE = 128  # rows: larger products wake threads of numpy's, which cost more than they save
LARGE = 400  # characters: a longer message is no short one
FEW = 10
MANY = 30  # found of a session
BEST_OF_SESSION = 3
MOST = 200  # found; whoever wants many hits has more looked for
NO_RANK = 200  # of what a channel did not find
TINY = 1e-6


class Net(NamedTuple):
    """Several small nets side by side, each of two layers; `skip` leads past them."""

    inner: Signals
    inner_shift: Signals
    middle: Signals
    middle_shift: Signals
    outer: Signals
    skip: Signals

    @classmethod
    def read(cls, file: Path) -> Self:
        """The net of a file."""
        with np.load(file) as arrays:
            return cls(*(arrays[name].astype(np.float32) for name in cls._fields))

    def add(self, signals: Signals) -> Signals:
        """What it adds to the score of each record."""
        parts = range(0, len(signals), AT_ONCE)
        return np.concatenate([self._add(signals[start : start + AT_ONCE]) for start in parts])

    def _add(self, signals: Signals) -> Signals:
        first = np.maximum(signals @ self.inner + self.inner_shift, 0)
        second = np.maximum(first @ self.middle + self.middle_shift, 0)
        added: Signals = (second @ self.outer).sum(axis=(0, 2)) + signals @ self.skip
        return added


@cache
def net_of(embedder: str | None) -> Net | None:
    """The net that was trained with an embedder, if there is one."""
    file = NETS.get(embedder or "")
    return Net.read(Path(__file__).with_name(file)) if file else None


def signals_of(
    board: Board, held: Any, focus: QuestionFocus, timely: Mapping[int, float]
) -> Signals:
    """What the net sees of every record; of `held` each field has the values of all of them."""
    count = len(board.scores)
    found = _Found.on(board)
    before, after = _beside(board, held.previous)
    codes = _numbered(held.session)
    values: dict[str, Any] = {
        **_of_records(board, held, focus, found),
        "when": _column(timely, count),
        **_of_those_around(held, found, codes, before, after),
        **_of_ranks(board, held, codes, before, after),
        "nearest of all": found.cosine.max(),
        "most words of all": found.share.max(),
        "words asked": min(focus.words, 20) / 10,
        "asks when": focus.when is not None,
        "asks for assistant": focus.role != "user",
        "names someone": bool(focus.names),
        "found": log(min(count, MOST)) / 5,
        "about the past": focus.about_past,
    }
    signals = np.empty((count, len(values)), np.float32)
    for place, column in enumerate(values.values()):
        signals[:, place] = column
    return signals


class _Found(NamedTuple):
    """How well each row fits by words and by meaning, of the best one and by itself."""

    words: Column
    word_rank: Column
    share: Column
    near: Column
    near_rank: Column
    cosine: Column

    @classmethod
    def on(cls, board: Board) -> Self:
        count = len(board.scores)
        word_rank, words = _placed(board.found.get("words", {}), count)
        near_rank, cosine = _placed(board.found.get("meaning", {}), count)
        words, near = (it / max(it.max(), TINY) for it in (words, cosine))
        return cls(words, word_rank, _column(board.shares, count), near, near_rank, cosine)


def _of_records(board: Board, held: Any, focus: QuestionFocus, found: _Found) -> dict[str, Column]:
    """What is known of each record by itself."""
    stop = np.maximum(held.stop, 5)
    role = np.array([it == focus.role for it in held.role])
    speaker = np.array([it is not None for it in held.speaker])
    named = np.array([it in focus.names for it in held.speaker])
    return {
        "words": found.words,
        "share": found.share,
        "cosine": found.cosine,
        "near": found.near,
        "not near": found.cosine == 0,
        "rank by words": 1 / found.word_rank,
        "rank by meaning": 1 / found.near_rank,
        "linked": _column(dict.fromkeys(board.found.get("links", ()), 1.0), len(stop)),
        "short": np.minimum(1, LARGE / stop),
        "length": np.log(stop) / 5,
        "role": role,
        "derived": np.array([it is None for it in held.role]),
        "opening": np.array([it is None for it in held.previous]) & role,
        "speaker": speaker,
        "named": named,
        "another is named": speaker & ~named if focus.names else np.zeros(len(stop)),
        "self-reference": np.array(held.self_reference),
        "question": np.array(held.is_question),
        "outdated": np.array(held.outdated) != 0,
        "importance": np.array([it or 0.0 for it in held.importance]),
    }


def _of_those_around(
    held: Any, found: _Found, codes: Column, before: Column, after: Column
) -> dict[str, Column]:
    """What is known of the messages before and after, and of the session."""
    nearest, near = _of_session(found.near, codes)
    best_words, words = _of_session(found.words, codes)
    sizes = np.bincount(codes)
    sizes[0] = 0  # those that are in no session
    return {
        "near before": _at(found.near, before),
        "near after": _at(found.near, after),
        "words before": _at(found.words, before),
        "words after": _at(found.words, after),
        "question before": _at(np.array(held.is_question, np.float32), before),
        "nearest of session": nearest,
        "near in session": near,
        "best words of session": best_words,
        "words in session": words,
        "found in session": np.minimum(sizes[codes], MANY) / MANY,
    }


def _of_ranks(
    board: Board, held: Any, codes: Column, before: Column, after: Column
) -> dict[str, Any]:
    """The rank that the scores give so far, and what lies beside the best."""
    scores, count = np.array(board.scores), len(board.scores)
    order = np.lexsort((-np.array(held.id), -scores))
    place = np.empty(count)
    place[order] = np.arange(1, count + 1)
    best, second, tenth = (order[min(it, count) - 1] for it in (1, 2, FEW))
    return {
        "score": scores / max(scores[best], TINY),
        "rank": 1 / place,
        "among ten": place <= FEW,
        "session of the best": (codes == codes[best]) & (codes > 0),
        "session of the second": (codes == codes[second]) & (codes > 0),
        "beside the best": _around(best, before, after),
        "lead of the best": scores[best] - scores[tenth],
    }


def _placed(found: Mapping[int, tuple[int, float]], count: int) -> tuple[Column, Column]:
    """The rank and the score of each row in a channel."""
    ranks, scores = np.full(count, NO_RANK), np.zeros(count)
    if found:
        rows = list(found)
        ranks[rows], scores[rows] = np.array(list(found.values())).T
    return ranks, scores


def _column(values: Mapping[int, float], count: int) -> Column:
    column = np.zeros(count)
    column[list(values)] = list(values.values())
    return column


def _beside(board: Board, previous: Iterable[int | None]) -> tuple[Column, Column]:
    """The rows of the messages before and after each; the number of rows where none was found."""
    count = len(board.scores)
    before = np.array([board.rows.get(it, count) if it else count for it in previous])
    after = np.full(count, count)
    rows = np.nonzero(before < count)[0]
    after[before[rows]] = rows
    return before, after


def _at(values: Column, rows: Column) -> Column:
    """The values of other rows, 0 beyond the end."""
    return np.append(values, 0)[rows]


def _around(row: int, before: Column, after: Column) -> Column:
    """Which messages stand beside that of a row, or one apart from it."""
    around = np.zeros(len(before) + 1)
    for rows in (before, after):
        beside = rows[row]
        around[[beside, np.append(rows, len(rows))[beside]]] = 1
    return around[:-1]


def _numbered(sessions: Sequence[Any]) -> Column:
    """A number for each session, 0 for none."""
    numbers: dict[Any, int] = {None: 0}
    return np.array([numbers.setdefault(it, len(numbers)) for it in sessions])


def _of_session(values: Column, codes: Column) -> tuple[Column, Column]:
    """The best value of each row's session, and the mean of its three best."""
    order = np.lexsort((-values, codes))
    sizes = np.bincount(codes)
    place = np.arange(len(codes)) - (np.cumsum(sizes) - sizes)[codes[order]]
    sums = [
        np.bincount(codes[order][place < most], values[order][place < most], len(sizes))
        for most in (1, BEST_OF_SESSION)
    ]
    means = sums[1] / np.clip(sizes, 1, BEST_OF_SESSION)
    alone = codes == 0
    return np.where(alone, 0, sums[0][codes]), np.where(alone, 0, means[codes])
