"""The reader: MiniLM's layers, trained to mark what a message says of its speaker.

Run with `python -m memorist_training.reader`. The word vectors stay those of the embedder; the
layers learn, and are written to `../reader.npz` as small changes of the embedder's. Of two messages
together the same layers tell whether the later one updates the earlier.

Several teachers learn first, each without some of the messages and stories. The reader learns from
the labels and from what the teacher says who has not seen a message or pair: a label that no other
explains counts less, and the reader does not become surer than it can be. Of messages without
labels it learns what the teachers say, each time another one.

With `--refine` the reader that was trained before goes on learning, and is its own teacher: it
stays what it is, but for what it learns from new pairs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from memorist_training.batches import MASK, NEGATIVES, Batch, Batches, loaded, unpacked
from memorist_training.claims import KINDS, TOLD, VALUES, Exchange, Told, split
from memorist_training.learning import Learner, Recorded
from memorist_training.network import OF_WORDS, PARTS, SIZES, Output, Readers, fused, key_of
from memorist_training.pairs import Pair
from memorist_training.prepare import (
    ADAPTER,
    PACKAGE,
    prepare_reader,
    read_factors,
    read_prepared_claims,
)
from memorist_training.reading import measure, measure_pairs

READER = PACKAGE / "reader.npz"
STEPS = 31  # to either side of 0 of a change
WEIGHTS = (1.0, 1.0, 0.2, 0.05, 0.1, 0.3)  # of what is said, in the loss
DOUBT = 0.02  # that the label of a pair is wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The numbers of a training.

    A batch has a row for each teacher, of `teacher_pieces` while they learn and of `pieces` while
    the reader does, which reads them all. `exchanged` of the messages get objects of others;
    `hidden` of their pieces are masked; `updates` of the pairs with an update come in each epoch.
    What is kept is the mean of the weights over the last steps, each counting `slow` of the one
    after it. Of what the reader learns from a label, `trust` is what the teacher says instead, and
    `trust_pairs` of what it learns from a pair.
    """

    seed: int = 1
    teachers: int = 5
    teacher_epochs: int = 110
    epochs: int = 360
    teacher_pieces: int = 6_144
    pieces: int = 2_048
    rate: float = 5.5e-4
    head_rate: float = 2e-3
    dropout: float = 0.1
    exchanged: float = 0.5
    hidden: float = 0.1
    updates: float = 0.08
    slow: float = 0.998
    trust: float = 0.6
    trust_pairs: float = 0.6


REFINE = Recipe(
    teachers=1, epochs=76, pieces=10_240, rate=1e-4, head_rate=4e-4, updates=0.2, trust_pairs=0.0
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lessons:
    """What there is to learn from."""

    messages: Sequence[Told]
    pairs: Sequence[Pair]
    base: Mapping[str, np.ndarray]


def fit(
    lessons: Lessons,
    recipe: Recipe,
    teachers: Readers | None = None,
    *,
    begun: Mapping[str, Tensor] | None = None,
    looks: int = 0,
    look: Callable[[Readers], None] | None = None,
) -> Readers:
    """A reader that learns from teachers or, where there are none, the teachers.

    It begins with the weights in `begun`, if given, or as the embedder. So many times on the way,
    it is looked at as it would be if it ended there.
    """
    torch.manual_seed(recipe.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    count = 1 if teachers else recipe.teachers
    model = Readers(lessons.base, count=count, dropout=recipe.dropout).to(device)
    if begun:
        model.load_state_dict(begun)
    batches = _batches(lessons, recipe, teaching=teachers is not None)
    others = [it for name, it in model.named_parameters() if not name.startswith("own.")]
    groups = [(list(model.own.parameters()), recipe.rate), (others, recipe.head_rate)]
    learner = Learner(groups, steps=batches.steps, most=math.sqrt(count), keep=recipe.slow)

    trusts = (*[recipe.trust] * (len(WEIGHTS) - 1), recipe.trust_pairs)

    def step(packed: Tensor) -> Tensor:
        batch = hide(unpacked(packed), recipe.hidden)
        with torch.no_grad():
            taught = teachers(batch) if teachers else None
        loss = reading_loss(model(batch), batch, taught, trusts, count)
        learner.gradient.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        learner.learn()
        return loss.detach()

    recorded, started, told = Recorded(step), time.monotonic(), max(batches.steps // 20, 1)
    stops = {batches.steps * part // (looks + 1) for part in range(1, looks + 1)}
    for number, packed in enumerate(loaded(batches, device), start=1):
        loss = recorded(packed)
        if number % told == 0:
            spent = time.monotonic() - started
            line = f"{number} of {batches.steps}: {loss.item():.4f}, {spent:.1f} s"
            print(line, file=sys.stderr, flush=True)
        if look and number in stops:
            with learner.averaged():
                look(model.eval())
            model.train()
    learner.weights.copy_(learner.slow)
    return model.eval()


def _batches(lessons: Lessons, recipe: Recipe, *, teaching: bool) -> Batches:
    messages = [it for it in lessons.messages if teaching or it.labelled]
    return Batches(
        messages,
        lessons.pairs,
        exchange=Exchange(messages, recipe.exchanged),
        seed=recipe.seed + teaching,
        epochs=recipe.epochs if teaching else recipe.teacher_epochs,
        pieces=recipe.pieces if teaching else recipe.teacher_pieces,
        folds=recipe.teachers,
        updates=recipe.updates,
        teaching=teaching,
    )


def hide(batch: Batch, share: float) -> Batch:
    """The batch with some of its pieces masked; marks are not."""
    chosen = torch.rand(batch.pieces.shape, device=batch.pieces.device) < share
    return batch._replace(pieces=batch.pieces.masked_fill(chosen & (batch.pieces > MASK), MASK))


@fused
def reading_loss(
    said: Output, batch: Batch, taught: Output | None, trusts: Sequence[float], count: int
) -> Tensor:
    """How far readers are from saying what they should: labels, and what teachers say.

    Where a message has no labels, it is what the teacher says alone.
    """
    total = torch.zeros((), device=batch.pieces.device)
    of_pieces = batch.labelled.gather(1, batch.owners.long())
    given = (batch.values, batch.told, batch.ends, batch.kinds, batch.categories, batch.updates)
    for number, (logs, tags, weight) in enumerate(zip(said, given, WEIGHTS, strict=True)):
        every = torch.arange(logs.shape[2], device=logs.device)
        chances = (tags[..., None] == every).float()
        if number == len(WEIGHTS) - 1:
            chances = chances * (1 - 2 * DOUBT) + DOUBT
        if taught is not None:
            unseen = taught[number].exp()
            labelled = (of_pieces if number < 4 else batch.labelled)[..., None] > 0
            mixed = trusts[number] * unseen + (1 - trusts[number]) * chances
            chances = torch.where(labelled, mixed, unseen)
        counts = (tags >= 0).float().reshape(count, -1)
        missed = -(chances * logs).sum(dim=2).reshape(count, -1) * counts
        total = total + weight * (missed.sum(dim=1) / counts.sum(dim=1).clamp(min=1)).sum()
    return total


def drawn_odds(pairs: Sequence[Pair]) -> float:
    """By how much the logarithm of the odds of an update is higher in what is learnt from."""
    updates = sum(it.updates for it in pairs)
    return math.log((len(pairs) - updates) / (NEGATIVES * updates)) if updates else 0.0


def changes(
    model: Readers, base: Mapping[str, np.ndarray], odds: float = 0.0
) -> dict[str, np.ndarray]:
    """What the build of memorist-minilm needs: matrices as changes of the embedder's.

    The reader learnt from pairs with updates more often than there are; `odds` tell how much.
    """
    written: dict[str, np.ndarray] = {}
    for name in base:
        if key_of(name) not in model.own:
            continue
        array = model.own[key_of(name)][0].detach().cpu().numpy()
        if name.partition(".")[2] in PARTS:
            change = array - base[name].astype(np.float32)
            step = _step(change)
            written[name] = np.clip(np.rint(change / step), -STEPS, STEPS).astype(np.int8)
            written[f"{name}_step"] = step.astype(np.float32)
        else:
            written[name] = array.astype(np.float16)
    own = {
        name: getattr(model, name)[0].detach().cpu().numpy()
        for name in ("shapes", "unknown", "head", "head_bias")
    }
    written |= {name: own[name].astype(np.float16) for name in ("shapes", "unknown")}
    columns = np.split(own["head"], [OF_WORDS, OF_WORDS + SIZES[4]], axis=1)
    biases = np.split(own["head_bias"], [OF_WORDS, OF_WORDS + SIZES[4]])
    biases[2] = biases[2] - np.float32(odds)
    for name, column, bias in zip(("head", "category", "update"), columns, biases, strict=True):
        written[name], written[f"{name}_bias"] = column.astype(np.float16), bias
    return written


def restored(written: Mapping[str, np.ndarray], base: Mapping[str, np.ndarray]) -> Readers:
    """The reader that `changes` wrote."""
    model = Readers(base, count=1, dropout=0.0)
    arrays = {name: array.astype(np.float32) for name, array in written.items()}
    with torch.no_grad():
        for name in base:
            if key_of(name) in model.own:
                array = arrays[name]
                if name.partition(".")[2] in PARTS:
                    array = base[name].astype(np.float32) + array * arrays[f"{name}_step"]
                model.own[key_of(name)][0] = torch.from_numpy(array)
        for name in ("shapes", "unknown"):
            getattr(model, name)[0] = torch.from_numpy(arrays[name])
        heads = ("head", "category", "update")
        model.head[0] = torch.from_numpy(np.concatenate([arrays[it] for it in heads], axis=1))
        biases = [arrays[f"{it}_bias"] for it in heads]
        model.head_bias[0] = torch.from_numpy(np.concatenate(biases))
    return model.eval()


def _step(change: np.ndarray) -> np.ndarray:
    """The step of each column with which rounding its changes to few steps loses least."""
    best: np.ndarray = np.abs(change).max(axis=0) / STEPS + 1e-12
    least = np.full(change.shape[1], np.inf)
    for share in np.linspace(0.2, 1.0, 17):
        step = share * (np.abs(change).max(axis=0) / STEPS + 1e-12)
        rounded = np.clip(np.rint(change / step), -STEPS, STEPS) * step
        lost = np.square(change - rounded).sum(axis=0)
        best, least = np.where(lost < least, step, best), np.minimum(lost, least)
    return best


def main() -> None:
    """Prepare, train, measure, and write the reader."""
    options = parser().parse_args()
    adapter = READER if options.refine else ADAPTER
    if not options.prepared.exists():
        prepare_reader(options.prepared, adapter)
    if options.prepare_only:
        return
    messages, pairs, measured, base = read_prepared_claims(options.prepared)
    kept, held_out = split(messages)
    given = dict(one.split("=") for one in options.recipe)
    kinds = {name: type(value) for name, value in asdict(Recipe()).items()}
    recipe = REFINE if options.refine else Recipe()
    recipe = replace(recipe, **{name: kinds[name](value) for name, value in given.items()})
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_float32_matmul_precision("high")
    _say(recipe=asdict(recipe), messages=len(messages), pairs=len(pairs))
    lessons, odds = Lessons(messages=kept, pairs=pairs, base=base), drawn_odds(pairs)
    begun, factors = None, read_factors(adapter)
    if options.refine:
        with np.load(READER) as arrays:
            teachers = restored(arrays, base)
        begun = teachers.state_dict()
        teachers = teachers.to("cuda" if torch.cuda.is_available() else "cpu")
    else:
        teachers = fit(lessons, recipe)
    _say(teachers=measure(teachers, held_out), pairs=measure_pairs(teachers, measured, odds))

    def look(model: Readers) -> None:
        _say(reader=measure(model, held_out), pairs=measure_pairs(model, measured, odds))
        written = {**changes(model, base, odds), **factors}
        np.savez_compressed(options.out, **written)  # type: ignore[arg-type]

    model = fit(lessons, recipe, teachers, begun=begun, looks=options.looks, look=look)
    look(model)
    languages = sorted({it.language for it in held_out})
    _say(
        **{one: measure(model, [it for it in held_out if it.language == one]) for one in languages}
    )
    labels = {
        "values": list(VALUES.values()),
        "told": list(TOLD.values()),
        "kinds": [*KINDS, "thing"],
    }
    options.out.with_suffix(".json").write_text(json.dumps(labels, indent=1), encoding="utf-8")


def _say(**figures: object) -> None:
    print(json.dumps(figures), file=sys.stderr, flush=True)


def parser() -> argparse.ArgumentParser:
    """What can be said on the command line."""
    made = argparse.ArgumentParser(prog="memorist_training.reader", description=__doc__)
    made.add_argument("--recipe", nargs="*", default=[], metavar="NAME=VALUE")
    made.add_argument("--prepared", type=Path, default=Path("prepared-reader.npz"))
    made.add_argument("--prepare-only", action="store_true")
    made.add_argument("--refine", action="store_true", help="go on from the trained reader")
    made.add_argument("--out", type=Path, default=READER)
    made.add_argument("--looks", type=int, default=0, help="how often it is written on the way")
    return made


if __name__ == "__main__":
    main()
