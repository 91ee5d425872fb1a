"""Which metrics each question set is scored by, and how questions are pooled into rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.asking import Answer, Retrieved
from benchmarks.dataset import Question
from benchmarks.longmemeval import session_of
from benchmarks.metrics import (
    all_at,
    any_at,
    interval,
    ndcg_at,
    official,
    recall_at,
    reciprocal_rank,
)

Scores = dict[str, float]


@dataclass(frozen=True, slots=True)
class Scheme:
    """A way to score a question set; None leaves the question out. `pooled` are one row's kinds."""

    name: str
    score: Callable[[Question, Sequence[Retrieved]], Scores | None]
    pooled: tuple[str, Callable[[str], bool]]


@dataclass(frozen=True, slots=True)
class Row:
    """The mean of every metric over some questions, with its 95 % interval."""

    label: str
    count: int
    means: Scores
    intervals: dict[str, tuple[float, float]]


def score_turns(question: Question, found: Sequence[Retrieved]) -> Scores:
    """Turns by recall at four depths; sessions in the order of their best turn."""
    ranked = [one.id for one in found]
    sessions = in_order(one.session for one in found)
    return {
        **{f"R@{k}": recall_at(k, ranked, question.turns) for k in (5, 10, 20, 50)},
        "MRR": reciprocal_rank(ranked, question.turns),
        "nDCG@10": ndcg_at(10, ranked, question.turns),
        **{f"sR@{k}": recall_at(k, sessions, question.sessions) for k in (5, 10)},
    }


def score_full(question: Question, found: Sequence[Retrieved]) -> Scores | None:
    """Evidence of either role."""
    if not question.turns:
        return None
    ranked = [one.id for one in found]
    sessions = in_order(session_of(one.id) for one in found)
    return {
        "any@5": any_at(5, ranked, question.turns),
        **{f"all@{k}": all_at(k, ranked, question.turns) for k in (5, 10)},
        "R@10": recall_at(10, ranked, question.turns),
        "nDCG@10": ndcg_at(10, ranked, question.turns),
        "MRR": reciprocal_rank(ranked, question.turns),
        "s-any@5": any_at(5, sessions, question.sessions),
        **{f"s-all@{k}": all_at(k, sessions, question.sessions) for k in (5, 10)},
    }


def score_official(question: Question, found: Sequence[Retrieved]) -> Scores | None:
    """User turns only, as if the others were not there, with the set's own nDCG."""
    if not question.user_turns:
        return None
    ranked = [one.id for one in found if one.role == "user"]
    sessions = in_order(session_of(id_) for id_ in ranked)
    wanted = {session_of(turn) for turn in question.user_turns}
    return {
        "any@5": any_at(5, ranked, question.user_turns),
        "all@10": all_at(10, ranked, question.user_turns),
        "nDCG@10": ndcg_at(10, ranked, question.user_turns, official),
        "s-all@5": all_at(5, sessions, wanted),
        "s-all@10": all_at(10, sessions, wanted),
    }


def score_updates(question: Question, found: Sequence[Retrieved]) -> Scores | None:
    """Whether the newest evidence stands above all older evidence, where there are both."""
    newer = question.user_turns & question.newest_turns
    if question.kind != "knowledge-update" or not newer or newer == question.user_turns:
        return None
    first = next((one.id for one in found if one.id in question.user_turns), None)
    return {"newer first": float(first in newer)}


def score_changes(question: Question, found: Sequence[Retrieved]) -> Scores:
    """Whether what holds is found, and stands above what it took the place of."""
    ranked, newest = [one.id for one in found], question.newest_turns
    first = next((id_ for id_ in ranked if id_ in question.turns), None)
    return {
        "first": any_at(1, ranked, newest),
        **{f"in {k}": any_at(k, ranked, newest) for k in (3, 10)},
        "above older": float(first in newest),
    }


SCHEMES = {
    "locomo": (
        Scheme("LoCoMo", score_turns, ("categories 1–4", lambda kind: not kind.startswith("5"))),
    ),
    "longmemeval": (
        Scheme("LongMemEval full", score_full, ("all", lambda kind: True)),
        Scheme("LongMemEval official", score_official, ("all", lambda kind: True)),
        Scheme("LongMemEval updates", score_updates, ("all", lambda kind: True)),
    ),
    "talks": (Scheme("talks", score_turns, ("all", lambda kind: True)),),
    "technical": (Scheme("technical", score_turns, ("all", lambda kind: True)),),
    "changes": (Scheme("changes", score_changes, ("all", lambda kind: True)),),
}


def in_order(ids: Iterable[str]) -> list[str]:
    """Each id once, where it first came."""
    return list(dict.fromkeys(ids))


def scored(scheme: Scheme, answers: Sequence[Answer]) -> list[tuple[str, Scores]]:
    """The kind and the scores of every question that the scheme does not leave out."""
    given = [(one.question.kind, scheme.score(one.question, one.found)) for one in answers]
    return [(kind, scores) for kind, scores in given if scores is not None]


def rows_of(scheme: Scheme, answers: Sequence[Answer]) -> list[Row]:
    """The pooled row, then a row for each kind of question."""
    given = scored(scheme, answers)
    label, belongs = scheme.pooled
    pools = [(label, [scores for kind, scores in given if belongs(kind)])]
    for each in sorted({kind for kind, _ in given}):
        pools.append((each, [scores for kind, scores in given if kind == each]))
    return [_row(label, pool) for label, pool in pools if pool]


def _row(label: str, pool: Sequence[Scores]) -> Row:
    columns = {name: [scores[name] for scores in pool] for name in pool[0]}
    return Row(
        label,
        len(pool),
        {name: fmean(values) for name, values in columns.items()},
        {name: interval(values) for name, values in columns.items()},
    )
