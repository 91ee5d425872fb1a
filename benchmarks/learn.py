"""The net of `recall/learned.py`: trained, and measured on users that it was not trained on.

Run with `python -m benchmarks.learn`. Questions of the development sets, of more stories and of
writers whom the embedder has not learnt from are asked of the memory that holds their evidence.
Small memories stand beside the large ones: the evidence of a question among a few other messages.
The net sees the signals of all that was found, and learns which of it is evidence: by a softmax
over the records of a question, and by whether each is. Every set counts the same. The figures are
of the ranking alone, in five parts, each by nets that have not seen its users; the nets that are
written to `learned.npz` have seen all.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for small products more threads are slower

import numpy as np
from numpy.typing import NDArray

from benchmarks.asking import Clock, catch_up, told
from benchmarks.calibrate import small, whole
from benchmarks.dataset import Dataset, Question
from benchmarks.embedding import make_embedder
from benchmarks.metrics import ndcg_at, recall_at
from benchmarks.recall import LOADERS, ROOT
from benchmarks.report import Grid, publish
from benchmarks.stories import Stories
from memorist import Memory
from memorist.recall import fusion, learned
from memorist.recall.fusion import DEFAULT_RANKING, Board
from memorist.recall.learned import Net

Array = NDArray[Any]
Padded = tuple[Array, Array, Array, Array]
SETS: Mapping[str, Callable[[Path], Dataset]] = {
    **LOADERS,
    "more changes": Stories.more_changes,
    "held out": Stories.held_out,
    "small talks": LOADERS["locomo"],
    "small stories": Stories.more_changes,
}
FOLDS = 5
MOST = 128  # records of a question, the best so far
OLDER = 0.3  # what was overtaken, beside what holds
WIDTH = 24
SIDE_BY_SIDE = 8  # nets that are trained apart, whose mean counts
SHIFTS = ("inner_shift", "middle_shift")
EPOCHS, BATCH, RATE, DECAY, DROPPED = 12, 32, 2e-3, 0.1, 0.1
EACH = 0.2  # what the judgement of each record counts beside the softmax over them


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: of each record found its id, score, signals, and how much of an answer it is."""

    set: str
    question: Question
    ids: list[str]
    scores: Array
    signals: Array
    worth: Array


def main() -> None:
    """Collect, measure, train on all, write."""
    options = parser().parse_args()
    asked = [it for name in SETS for it in collect(name, options)]
    grid = measure(asked)
    arrays = train(asked, range(SIDE_BY_SIDE))
    file = Path(learned.__file__).with_name("learned.npz")
    halved: dict[str, Any] = {name: it.astype(np.float16) for name, it in arrays.items()}
    np.savez_compressed(file, **halved)
    publish([grid], [f"{file.name}: {file.stat().st_size:,} bytes"], options.out / "learn", {})


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.learn", description=__doc__)
    made.add_argument("--data", type=Path, default=ROOT / "../shared/data", metavar="DIR")
    made.add_argument(
        "--stores", type=Path, metavar="DIR", help="kept and reused, else thrown away"
    )
    made.add_argument("--out", type=Path, default=Path("bench-results"), metavar="DIR")
    made.add_argument("--cache", type=Path, default=Path(".bench-cache"), metavar="DIR")
    return made


def collect(name: str, options: argparse.Namespace) -> Iterator[Asked]:
    """What recall finds for every question of a set; LongMemEval's of messages alone."""
    dataset, clock = SETS[name](options.data), Clock()
    folder = options.stores or Path(tempfile.mkdtemp(prefix="memorist-bench-"))
    given: dict[str, Any] = {"extraction": None} if name == "longmemeval" else {}
    given |= {"clock": clock, "embedder": make_embedder("minilm", options.cache)}
    with Memory(str(folder / f"{name}.db"), tenant=dataset.name, **given) as memory:
        pairs = (small if name.startswith("small") else whole)(memory, dataset)
        catch_up(memory, lambda waiting: print(f"{name}: {waiting:,} wait", flush=True))
        for question, user in told(pairs, name):
            clock.at = question.asked_at
            if question.turns and (asked := _ask(memory, name, question, user)):
                yield asked
    if options.stores is None:
        shutil.rmtree(folder)


def _ask(memory: Memory, name: str, question: Question, user: str) -> Asked | None:
    """One question; recall is listened to where the net would add to what it found."""
    seen: list[tuple[Board, Array]] = []

    def listen(board: Board, held: Any, _: float, focus: Any, __: Any) -> dict[int, float]:
        timely = dict(fusion._timely(held.said_at, focus.when))
        seen.append((board, learned.signals_of(board, held, focus, timely)))
        return {}

    with patch.object(fusion, "_learned", listen):
        memory.recall(question.text, user=user, deadline_ms=None, min_score=0.0)
    if not seen:
        return None
    board, signals = seen[-1]
    entries = memory.store.find(memory.scope(user=user), [*question.turns])
    turns = {it.seq: it.message.message_id for it in entries}
    update = dict(board.columns).get("update", {})
    scores = np.array(board.scores, np.float32)
    scores[[*update]] -= np.array([*update.values()], np.float32)
    order = np.argsort(-scores, kind="stable")
    ids = [
        turns.get(it.record) or str(it.id) if isinstance(it.record, int) else str(it.id)
        for it in board.passages
    ]
    worth = np.array([_worth(id_, name, question) for id_ in ids], np.float32)
    ranked = [ids[row] for row in order]
    return Asked(name, question, ranked, scores[order], signals[order], worth[order])


def _worth(id_: str, name: str, question: Question) -> float:
    """How much of an answer a record is: of what was told and changed, the newest."""
    if id_ not in question.turns:
        return 0.0
    changes = "changes" in name or "stories" in name
    return OLDER if changes and id_ not in question.newest_turns else 1.0


def measure(asked: Sequence[Asked]) -> Grid:
    """What the net brings to users that it was not trained on."""
    first = {it.question.user: it.set for it in reversed(asked)}  # small memories are of them, too
    users = sorted(first)
    random.Random(1).shuffle(users)
    users.sort(key=first.__getitem__)  # each set is in every part
    fold = {user: place % FOLDS for place, user in enumerate(users)}
    ranked: dict[int, list[list[str]]] = {}
    for number in range(FOLDS):
        own = [place for place, it in enumerate(asked) if fold[it.question.user] == number]
        rest = [asked[place] for place in {*range(len(asked))} - {*own}]
        net = as_net(train(rest, range(SIDE_BY_SIDE)))
        for place in own:
            it = asked[place]
            added = DEFAULT_RANKING.learned * net.add(it.signals)
            order = np.argsort(-(it.scores + added), kind="stable")
            ranked[place] = [it.ids, [it.ids[row] for row in order]]
    lines = []
    for name in SETS:
        own = [place for place, it in enumerate(asked) if it.set == name and _counts(it)]
        scores = [
            [score(10, ranked[place][way], asked[place].question.turns) for place in own]
            for score in (recall_at, ndcg_at)
            for way in (0, 1)
        ]
        cells = [f"{np.mean(each):.3f}" for each in scores]
        lines.append((name, f"{len(own):,}", *cells))
    columns = ("set", "questions", "R@10 without", "with", "nDCG@10 without", "with")
    return Grid("the ranking without and with the net, users not trained on", columns, lines)


def _counts(asked: Asked) -> bool:
    return not asked.question.kind.startswith("5")  # LoCoMo's adversarial questions


def train(asked: Sequence[Asked], seeds: Sequence[int]) -> dict[str, Array]:
    """Nets trained apart and set side by side, as recall reads them."""
    every = np.concatenate([it.signals for it in asked])
    mean, deviation = every.mean(axis=0), every.std(axis=0) + 1e-3
    trained = [fit(asked, mean, deviation, seed) for seed in seeds]
    for it in trained:  # logits are so many times as large as scores
        it["inner"] /= deviation[:, None]
        it["inner_shift"] -= mean @ it["inner"]
        for end in ("outer", "skip"):
            it[end] /= it["score"] * len(trained)
    return {
        **{name: np.stack([it[name] for it in trained]) for name in ("inner", "middle")},
        **{name: np.stack([it[name][None] for it in trained]) for name in SHIFTS},
        "outer": np.stack([it["outer"][:, None] for it in trained]),
        "skip": np.sum([it["skip"] for it in trained], axis=0) / deviation,
    }


def as_net(arrays: dict[str, Array]) -> Net:
    return Net(**{name: it.astype(np.float16).astype(np.float32) for name, it in arrays.items()})


def fit(asked: Sequence[Asked], mean: Array, deviation: Array, seed: int) -> dict[str, Array]:
    """One net, by AdamW: of signals around 0, and for scores as large as logits."""
    chance = np.random.default_rng(seed)
    weights = _new(len(mean), chance)
    moments = {name: (np.zeros_like(it), np.zeros_like(it)) for name, it in weights.items()}
    known = [it for it in asked if it.worth[:MOST].any()]
    counts = {name: sum(it.set == name for it in known) for name in SETS}
    often = np.array([1 / counts[it.set] for it in known])
    steps = 0
    for epoch in range(EPOCHS):
        rate = RATE * (1 - epoch / EPOCHS)
        drawn = chance.choice(len(known), len(known), p=often / often.sum())
        for start in range(0, len(drawn), BATCH):
            batch = [known[place] for place in drawn[start : start + BATCH]]
            steps += 1
            padded = _padded(batch, mean, deviation)
            slopes = _slopes(weights, padded, chance)
            for name, slope in slopes.items():
                first, second = moments[name]
                first += 0.1 * (slope - first)
                second += 0.001 * (slope**2 - second)
                step = first / (1 - 0.9**steps) / (np.sqrt(second / (1 - 0.999**steps)) + 1e-8)
                weights[name] -= rate * (step + DECAY * weights[name])
    return weights


def _new(count: int, chance: np.random.Generator) -> dict[str, Array]:
    """A net that adds nothing yet."""

    def drawn(before: int, *shape: int) -> Array:
        return chance.uniform(-1, 1, shape).astype(np.float32) / np.float32(before**0.5)

    return {
        "inner": drawn(count, count, WIDTH),
        "inner_shift": drawn(count, WIDTH),
        "middle": drawn(WIDTH, WIDTH, WIDTH),
        "middle_shift": drawn(WIDTH, WIDTH),
        "outer": np.zeros(WIDTH, np.float32),
        "skip": np.zeros(count, np.float32),
        "score": np.array(4, np.float32),
        "threshold": np.array(6, np.float32),
    }


def _padded(batch: Sequence[Asked], mean: Array, deviation: Array) -> Padded:
    """The signals, scores and worths of a batch, and which of its places have a record."""
    shape = len(batch), MOST
    signals = np.zeros((*shape, len(mean)), np.float32)
    scores, worths, there = (np.zeros(shape, np.float32) for _ in range(3))
    for place, it in enumerate(batch):
        size = min(len(it.ids), MOST)
        signals[place, :size] = (it.signals[:size] - mean) / deviation
        scores[place, :size], worths[place, :size] = it.scores[:size], it.worth[:size]
        there[place, :size] = 1
    return signals, scores, worths, there


def _slopes(
    weights: dict[str, Array], batch: Padded, chance: np.random.Generator
) -> dict[str, Array]:
    """The gradient of the loss of a batch."""

    signals, scores, worths, there = batch

    def layer(values: Array, name: str) -> tuple[Array, Array]:
        out = values @ weights[name] + weights[f"{name}_shift"]
        passed = (out > 0) * (chance.random(out.shape) > DROPPED) / np.float32(1 - DROPPED)
        return out * passed, passed.astype(np.float32)

    flat = signals.reshape(-1, signals.shape[-1])
    first, first_passed = layer(flat, "inner")
    second, second_passed = layer(first, "middle")
    added = (second @ weights["outer"] + flat @ weights["skip"]).reshape(scores.shape)
    logits = np.where(there > 0, weights["score"] * scores + added, -1e9)
    spread = np.exp(logits - logits.max(axis=1, keepdims=True))
    spread /= spread.sum(axis=1, keepdims=True)
    judged = 1 / (1 + np.exp(-np.clip(logits - weights["threshold"], -50, 50)))
    each = EACH * (judged - (worths > 0)) * there
    slope = (spread - worths / worths.sum(axis=1, keepdims=True) + each) / len(scores)
    out = slope.reshape(-1).astype(np.float32)
    by_second = out[:, None] * weights["outer"] * second_passed
    by_first = by_second @ weights["middle"].T * first_passed
    return {
        "inner": flat.T @ by_first,
        "inner_shift": by_first.sum(axis=0),
        "middle": first.T @ by_second,
        "middle_shift": by_second.sum(axis=0),
        "outer": second.T @ out,
        "skip": flat.T @ out,
        "score": np.array((slope * scores).sum(), np.float32),
        "threshold": np.array(-each.sum() / len(scores), np.float32),
    }


if __name__ == "__main__":
    main()
