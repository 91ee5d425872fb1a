"""What a score is worth: the curves of `recall/relevance.py`, fitted and checked.

Run with `python -m benchmarks.calibrate`. Questions of the development sets are asked of the memory
that holds their evidence, and of another user's, where nothing bears on them: as they stand, and,
where people are named, with the names of that memory's people. Small memories stand beside the
large ones: the evidence of a question among a few other messages. Every set counts the same, and
so do questions with and without an answer. The figures are of curves fitted without the users that
they are measured on (five parts); the coefficients at the end are of all.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.asking import Clock, catch_up, fill, told
from benchmarks.dataset import Dataset, Question
from benchmarks.embedding import EMBEDDERS, make_embedder
from benchmarks.recall import LOADERS, ROOT
from benchmarks.report import Grid, publish
from memorist import Memory
from memorist.recall import search
from memorist.recall.relevance import RelevanceSignals, relevance_signals
from memorist.records.query import MIN_SCORE

Array = NDArray[np.float64]
DEPTH = 50
FOLDS = 5
# Not talks: their writers taught the embedder, which finds more in them than in those of users.
SETS = (*(name for name in LOADERS if name != "talks"), "small")
SMALL = 400  # questions that are asked of small memories
AROUND = (0, 2, 5, 15, 40)  # other messages in a small memory
TALK_ODDS = 1.3  # logarithm; added in talk between people, so that one floor loses as little there
FLOORS = (MIN_SCORE / 2, MIN_SCORE, MIN_SCORE * 2, MIN_SCORE * 5)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question asked of a memory: its signals, and which records are its evidence."""

    group: str
    answerable: bool
    seen: RelevanceSignals
    evidence: tuple[bool, ...]


def main() -> None:
    """Collect, fit, print."""
    options = parser().parse_args()
    names = [options.only] if options.only else SETS
    for kind in [options.embedder] if options.embedder else EMBEDDERS:
        sets = {name: list(collect(name, kind, options)) for name in names}
        show(sets, kind, options.out)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.calibrate", description=__doc__)
    made.add_argument("--data", type=Path, default=ROOT / "../shared/data", metavar="DIR")
    made.add_argument("--only", choices=SETS)
    made.add_argument(
        "--stores", type=Path, metavar="DIR", help="kept and reused, else thrown away"
    )
    made.add_argument("--out", type=Path, default=Path("bench-results"), metavar="DIR")
    made.add_argument("--cache", type=Path, default=Path(".bench-cache"), metavar="DIR")
    made.add_argument("--embedder", choices=EMBEDDERS, help="only this one")
    return made


def collect(name: str, kind: str, options: argparse.Namespace) -> Iterator[Asked]:
    """The signals of every question of a set, asked of its own and of other memories."""
    dataset = LOADERS["locomo" if name == "small" else name](options.data)
    folder = options.stores or Path(tempfile.mkdtemp(prefix="memorist-bench-"))
    clock, embedder = Clock(), make_embedder(kind, options.cache)
    with Memory(
        str(folder / f"{name}.db"), tenant=dataset.name, clock=clock, embedder=embedder
    ) as memory:
        asked = small(memory, dataset) if name == "small" else whole(memory, dataset)
        catch_up(memory, lambda waiting: print(f"{name}, {kind}: {waiting:,} wait", flush=True))
        yield from ask(memory, clock, dataset, asked)
    if options.stores is None:
        shutil.rmtree(folder)


def whole(memory: Memory, dataset: Dataset) -> list[tuple[Question, str]]:
    """The questions of a set, each with the user whose memory holds its evidence."""
    fill(memory, dataset, dataset.questions)
    return [(question, question.user) for question in dataset.questions]


def small(memory: Memory, dataset: Dataset) -> list[tuple[Question, str]]:
    """The same with small memories: the evidence and a few other messages."""
    chance = random.Random(1)
    asked = []
    wanted = [it for it in dataset.questions if it.turns]
    for number, question in enumerate(chance.sample(wanted, min(SMALL, len(wanted)))):
        talk = list(dataset.history(question.user))
        others = [it.message_id for _, messages in talk for it in messages]
        kept = question.turns | set(chance.sample(others, min(chance.choice(AROUND), len(others))))
        for session, messages in talk:
            few = [it for it in messages if it.message_id in kept]
            if few:
                memory.remember(few, user=f"small-{number}", session=session)
        asked.append((question, f"small-{number}"))
    return asked


def ask(
    memory: Memory, clock: Clock, dataset: Dataset, asked: Sequence[tuple[Question, str]]
) -> Iterator[Asked]:
    """Each question, asked of its own memory and of two others."""
    chance = random.Random(1)
    owners = {user: question.user for question, user in asked}
    people = {owner: _people(dataset, owner) for owner in set(owners.values())}
    for question, user in told(asked, "asking"):
        yield _ask(memory, clock, question, user, answerable=True)
        others = [other for other, owner in owners.items() if owner != question.user]
        yield _ask(memory, clock, question, chance.choice(others), answerable=False)
        other = chance.choice(others)
        renamed = question.text
        for old, new in zip(people[question.user], people[owners[other]], strict=False):
            renamed = re.sub(rf"\b{re.escape(old)}\b", new, renamed)
        yield _ask(memory, clock, replace(question, text=renamed), other, answerable=False)


def _people(dataset: Dataset, user: str) -> list[str]:
    return sorted({it.name for _, messages in dataset.history(user) for it in messages if it.name})


def _ask(memory: Memory, clock: Clock, question: Question, user: str, *, answerable: bool) -> Asked:
    """One question at its time; recall is listened to where it judges what it found."""
    clock.at = question.asked_at
    seen: list[RelevanceSignals] = []

    def listen(found: Any, records: Any, size: int, *_: Any) -> list[float]:
        seen.append(relevance_signals(found, records, size))
        return [1.0] * len(records)

    in_order: dict[str, Any] = {
        "relevance": listen,
        "newer_first": lambda _, hits, *__, **___: list(hits),
        "answer_first": lambda hits, *_, **__: hits,
    }
    with patch.multiple(search, **in_order):
        recall = memory.recall(
            question.text, user=user, limit=DEPTH, deadline_ms=None, min_score=0.0
        )
    last = seen[-1] if seen else RelevanceSignals((0.0,) * 5, [])
    evidence = tuple(answerable and hit.id in question.turns for hit in recall.hits)
    assert len(evidence) == len(last.records)
    return Asked(question.user, answerable, last, evidence)


def show(sets: dict[str, list[Asked]], kind: str, folder: Path) -> None:
    """Print how well the curves are calibrated, what floors do, and the coefficients."""
    judged = cross_validated(sets)
    grids = [reliability(judged, sets, kind), floors(judged, sets, kind)]
    known, fits = fitted([it for asked in sets.values() for it in asked], _weights(sets))
    notes = [
        f"{kind}: known {tuple(known.round(3).tolist())}, fits {tuple(fits.round(3).tolist())}"
    ]
    publish(grids, notes, folder / f"calibrate-{kind}", {"notes": notes})


def cross_validated(sets: dict[str, list[Asked]]) -> dict[str, list[Array]]:
    """The probabilities of every record, by curves that were fitted without its user."""
    weights = dict(zip(sets, np.split(_weights(sets), _ends(sets)), strict=True))
    groups = sorted({it.group for asked in sets.values() for it in asked})
    random.Random(1).shuffle(groups)
    fold = {group: number % FOLDS for number, group in enumerate(groups)}
    judged = {name: [np.empty(0)] * len(asked) for name, asked in sets.items()}
    for number in range(FOLDS):
        rest = [
            (it, weight)
            for name, asked in sets.items()
            for it, weight in zip(asked, weights[name], strict=True)
            if fold[it.group] != number
        ]
        curves = fitted([it for it, _ in rest], np.array([weight for _, weight in rest]))
        for name, asked in sets.items():
            for place, it in enumerate(asked):
                if fold[it.group] == number:
                    judged[name][place] = judge(curves, it)
    return judged


def _ends(sets: dict[str, list[Asked]]) -> list[int]:
    return [int(end) for end in np.cumsum([len(asked) for asked in sets.values()])[:-1]]


def _weights(sets: dict[str, list[Asked]]) -> Array:
    """Of every question: the same for each set, and for those with and without an answer."""
    return np.concatenate([_weights_of(asked) for asked in sets.values()])


def _weights_of(asked: Sequence[Asked]) -> Array:
    count = {yes: sum(it.answerable is yes for it in asked) for yes in (True, False)}
    return np.array([0.5 / count[it.answerable] for it in asked])


def fitted(asked: Sequence[Asked], weights: Array) -> tuple[Array, Array]:
    """The coefficients of both curves."""
    known = logistic_fit(
        np.array([it.seen.question for it in asked]),
        np.array([it.answerable for it in asked], float),
        weights,
    )
    own = [(it, weight) for it, weight in zip(asked, weights, strict=True) if it.seen.records]
    own = [(it, weight) for it, weight in own if it.answerable]
    fits = logistic_fit(
        np.array([record for it, _ in own for record in it.seen.records]),
        np.array([yes for it, _ in own for yes in it.evidence], float),
        np.array([weight / len(it.evidence) for it, weight in own for _ in it.evidence]),
    )
    fits[-1] += TALK_ODDS
    return known, fits


def logistic_fit(values: Array, truth: Array, weights: Array, ridge: float = 1e-5) -> Array:
    """Logistic regression by Newton's method: the constant and a coefficient for each column."""
    weights = weights / weights.sum()
    mean = weights @ values
    deviation = np.sqrt(weights @ (values - mean) ** 2) + 1e-9
    columns = np.column_stack([np.ones(len(values)), (values - mean) / deviation])
    penalty = ridge * np.eye(columns.shape[1])
    curve = np.zeros(columns.shape[1])
    for _ in range(40):
        chance = 1 / (1 + np.exp(-columns @ curve))
        slope = columns.T @ (weights * (chance - truth)) + penalty @ curve
        bend = (columns * (weights * chance * (1 - chance))[:, None]).T @ columns + penalty
        curve = curve - np.linalg.solve(bend, slope)
    scaled = curve[1:] / deviation
    return np.concatenate([[curve[0] - scaled @ mean], scaled])


def judge(curves: tuple[Array, Array], asked: Asked) -> Array:
    """The probabilities of the records of one question."""
    known, fits = curves
    chance = 1 / (1 + np.exp(-(known[0] + known[1:] @ np.array(asked.seen.question))))
    if not asked.seen.records:
        return np.empty(0)
    rows = chance / (1 + np.exp(-(fits[0] + np.array(asked.seen.records) @ fits[1:])))
    # What ranks higher bears on the question no less: so does recall raise its score.
    return np.maximum.accumulate(rows[::-1])[::-1]


def reliability(judged: dict[str, list[Array]], sets: dict[str, list[Asked]], kind: str) -> Grid:
    """The mean probability beside the share of evidence, in tenths of all evidence and others."""
    lines = []
    for name, asked in sets.items():
        weights = np.repeat(_weights_of(asked), [len(it.evidence) for it in asked])
        chance = np.concatenate(judged[name])
        truth = np.concatenate([np.array(it.evidence, float) for it in asked])
        bounds = (0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.01)
        cells, error = [], 0.0
        for low, high in pairwise(bounds):
            among = (chance >= low) & (chance < high)
            if not among.any():
                cells.append("–")
                continue
            told_, true = (np.average(it[among], weights=weights[among]) for it in (chance, truth))
            error += weights[among].sum() / weights.sum() * abs(told_ - true)
            cells.append(f"{told_:.3f} / {true:.3f}")
        brier = np.average((chance - truth) ** 2, weights=weights)
        lines.append((name, *cells, f"{brier:.4f}", f"{error:.4f}"))
    columns = ("set", "< .003", "< .01", "< .03", "< .1", "< .3", "≤ 1", "Brier", "ECE")
    return Grid(f"{kind}: probability told / share that is evidence", columns, lines)


def floors(judged: dict[str, list[Array]], sets: dict[str, list[Asked]], kind: str) -> Grid:
    """What a floor loses of the evidence among the first ten and fifty, and what it keeps out."""
    lines = []
    for name, asked in sets.items():
        both = list(zip(asked, judged[name], strict=True))
        for floor in FLOORS:
            lost = [
                np.mean([p < floor for it, ps in both for p, yes in _first(it, ps, most) if yes])
                for most in (10, DEPTH)
            ]
            kept = np.mean([(ps >= floor).sum() for it, ps in both if it.answerable])
            own = np.mean([not (ps >= floor).any() for it, ps in both if it.answerable])
            others = [(place, ps) for place, (it, ps) in enumerate(both) if not it.answerable]
            plain = np.mean([not (ps >= floor).any() for place, ps in others if place % 3 == 1])
            named = np.mean([not (ps >= floor).any() for place, ps in others if place % 3 == 2])
            cells = (*lost, own, plain, named)
            lines.append((name, f"{floor:.4f}", *(f"{it:.3f}" for it in cells), f"{kept:.1f}"))
    columns = (
        "set",
        "floor",
        "evidence lost of 10",
        f"of {DEPTH}",
        "empty: own",
        "another user's",
        "with their names",
        "hits kept",
    )
    return Grid(f"{kind}: what a floor does", columns, lines)


def _first(asked: Asked, chances: Array, most: int) -> list[tuple[float, bool]]:
    return list(zip(chances.tolist(), asked.evidence, strict=True))[:most]


if __name__ == "__main__":
    main()
