"""The reader: MiniLM's layers, trained to mark what a message says of its speaker.

Run with `python -m memorist_training.reader`. The word vectors stay those of the embedder; the
layers learn, and are written to `../reader.npz` as small changes of the embedder's.

Several teachers learn first, each without some of the messages. The reader learns from the labels
and, of each message, from what the teacher says who has not seen it: a label that no other message
explains counts less, and the reader does not become surer than it can be. Of messages without
labels it learns what the teachers say on average.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, log_softmax, logsigmoid, one_hot

from memorist_training.batches import Batch, Batches, loaded
from memorist_training.claims import (
    CATEGORIES,
    KINDS,
    NO_BUCKET,
    TOLD,
    VALUES,
    Exchange,
    Told,
    split,
)
from memorist_training.model import HEADS, LAYERS, WIDTH
from memorist_training.prepare import PACKAGE, prepare_reader, read_prepared_claims

READER = PACKAGE / "reader.npz"
SHAPES = 10
PARTS = ("heads", "mix", "up", "down")
STEPS = 31  # to either side of 0 of a change
SIZES = (1 + 2 * len(VALUES), 1 + 2 * len(TOLD), 1, len(KINDS) + 1, len(CATEGORIES))
WEIGHTS = (1.0, 1.0, 0.2, 0.05, 0.1)  # in the loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The numbers of a training.

    `exchanged` of the messages get objects of others; `hidden` of their pieces are masked. What is
    kept is the mean of the weights over the last steps, each counting `slow` of the one after it.
    Of what the reader learns from a label, `trust` is what the teacher says instead.
    """

    seed: int = 1
    teachers: int = 5
    teacher_epochs: int = 46
    epochs: int = 80
    batch: int = 192
    rate: float = 5.5e-4
    head_rate: float = 2e-3
    dropout: float = 0.1
    exchanged: float = 0.5
    hidden: float = 0.1
    slow: float = 0.998
    trust: float = 0.6


class Output(NamedTuple):
    """What each reader says of each word's tags, and of each message's category: logarithms.

    Those of `ends` are of a claim that ends, and of one that does not.
    """

    values: Tensor
    told: Tensor
    ends: Tensor
    kinds: Tensor
    categories: Tensor


class Readers(nn.Module):
    """Some readers that learn side by side, from the same batches."""

    def __init__(self, base: Mapping[str, np.ndarray], *, count: int, dropout: float) -> None:
        super().__init__()
        self.count = count
        self.own = nn.ParameterDict()
        for name, array in base.items():
            values = torch.from_numpy(array.astype(np.float32))
            if not name[0].isdigit():
                self.register_buffer(name, values)
            else:
                self.own[key_of(name)] = nn.Parameter(values.expand(count, *values.shape).clone())
        self.shapes = nn.Parameter(torch.zeros(count, SHAPES, WIDTH))
        self.unknown = nn.Parameter(torch.randn(count, NO_BUCKET, WIDTH) * 0.02)
        wide = 1 / math.sqrt(WIDTH)
        self.head = nn.Parameter((torch.rand(count, WIDTH, sum(SIZES)) * 2 - 1) * wide)
        self.head_bias = nn.Parameter(torch.zeros(count, sum(SIZES)))
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: Batch) -> Output:
        """What the readers say of some messages."""
        hidden = self._encode(batch)
        words = self._scores(hidden[:, batch.owners, batch.places])
        there = batch.there[None, ..., None]
        means = (hidden * there).sum(dim=2) / there.sum(dim=2)
        values, told, ends, kinds, _ = words.split(SIZES, dim=2)
        *_, categories = self._scores(means).split(SIZES, dim=2)
        return Output(
            log_softmax(values, dim=2),
            log_softmax(told, dim=2),
            torch.cat([logsigmoid(-ends), logsigmoid(ends)], dim=2),
            log_softmax(kinds, dim=2),
            log_softmax(categories, dim=2),
        )

    def _scores(self, hidden: Tensor) -> Tensor:
        return self.dropout(hidden).float() @ self.head + self.head_bias[:, None]

    def _encode(self, batch: Batch) -> Tensor:
        count, (size, length) = self.count, batch.pieces.shape
        hidden = self.get_buffer("words")[batch.pieces] + self.get_buffer("positions")[:length]
        beside = _chosen(batch.shapes, self.shapes) + _chosen(batch.buckets, self.unknown)
        gain, shift = self.get_buffer("norm_gain"), self.get_buffer("norm_bias")
        hidden = hidden.view(1, size * length, WIDTH) + beside
        hidden = layer_norm(hidden, (WIDTH,), gain, shift, 1e-12)
        there = batch.there[:, None, None, :].repeat(count, 1, 1, 1)
        for layer in range(LAYERS):
            query, key, value = (
                part.reshape(count * size, length, HEADS, WIDTH // HEADS).transpose(1, 2)
                for part in self._dense(hidden, f"{layer}.heads").split(WIDTH, dim=2)
            )
            mixed = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=there)
            mixed = mixed.transpose(1, 2).reshape(count, size * length, WIDTH)
            mixed = hidden + self.dropout(self._dense(mixed, f"{layer}.mix"))
            hidden = self._norm(mixed, f"{layer}.mix")
            inner = gelu(self._dense(hidden, f"{layer}.up"))
            deep = hidden + self.dropout(self._dense(inner, f"{layer}.down"))
            hidden = self._norm(deep, f"{layer}.down")
        return hidden.view(count, size, length, WIDTH)

    def _dense(self, before: Tensor, name: str) -> Tensor:
        return before @ self.own[key_of(name)] + self.own[key_of(f"{name}_bias")][:, None]

    def _norm(self, values: Tensor, name: str) -> Tensor:
        gain, shift = self.own[key_of(f"{name}_gain")], self.own[key_of(f"{name}_shift")]
        return layer_norm(values, (WIDTH,), eps=1e-12) * gain[:, None] + shift[:, None]


def _chosen(numbers: Tensor, rows: Tensor) -> Tensor:
    """The rows of each reader with these numbers; zeros for a number too high.

    A product, as many numbers are equal: the gradients of equal indices are added one by one.
    """
    chosen = numbers.view(-1, 1) == torch.arange(rows.shape[1], device=rows.device)
    return chosen.to(rows.dtype) @ rows


def key_of(name: str) -> str:
    """The name of a tensor as torch allows it."""
    return name.replace(".", "_")


def fit(
    messages: Sequence[Told],
    base: Mapping[str, np.ndarray],
    recipe: Recipe,
    teachers: Readers | None = None,
) -> Readers:
    """A reader that learns from teachers or, where there are none, the teachers."""
    torch.manual_seed(recipe.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    count = 1 if teachers else recipe.teachers
    model = Readers(base, count=count, dropout=recipe.dropout).to(device)
    batches = Batches(
        messages,
        exchange=Exchange(messages, recipe.exchanged),
        seed=recipe.seed + bool(teachers),
        epochs=recipe.epochs if teachers else recipe.teacher_epochs,
        size=recipe.batch,
        hidden=recipe.hidden,
        folds=recipe.teachers,
    )
    others = [it for name, it in model.named_parameters() if not name.startswith("own.")]
    groups = [
        {"params": list(model.own.parameters()), "lr": recipe.rate},
        {"params": others, "lr": recipe.head_rate},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01, fused=device == "cuda")
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, [recipe.rate, recipe.head_rate], total_steps=len(batches) + 1, pct_start=0.1
    )
    learning = list(model.parameters())
    slow = [it.detach().clone() for it in learning]
    for step, batch in enumerate(loaded(batches, device), start=1):
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss = reading_loss(model(batch), batch, targets(batch, teachers, recipe))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(learning, math.sqrt(count))
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            share = 1 - min(recipe.slow, step / (step + 10))
            torch._foreach_lerp_(slow, learning, share)
        if step % 500 == 0:
            print(f"{step} of {len(batches)}: {loss.item():.4f}", file=sys.stderr)
    with torch.no_grad():
        for mine, mean in zip(learning, slow, strict=True):
            mine.copy_(mean)
    return model.eval()


def targets(batch: Batch, teachers: Readers | None, recipe: Recipe) -> tuple[Output, Output]:
    """What each reader should say, as chances, and how much that counts; nothing where unknown."""
    folds, owners = batch.folds, batch.owners
    labelled = folds >= 0
    chances, counts = list[Tensor](), list[Tensor]()
    given = (batch.values, batch.told, batch.ends, batch.kinds, batch.categories)
    kinds = (*SIZES[:2], 2, *SIZES[3:])
    for number, (tags, size) in enumerate(zip(given, kinds, strict=True)):
        own = labelled if number == len(SIZES) - 1 else labelled[owners]
        chances.append(one_hot(tags.clamp(min=0), size).float()[None])
        counts.append(((tags >= 0) & own).float()[None])
    if teachers is None:
        seen = torch.arange(recipe.teachers, device=folds.device)[:, None] != folds[None]
        counts = [it * seen[:, owners] for it in counts[:-1]] + [counts[-1] * seen]
        return Output(*chances), Output(*counts)
    with torch.no_grad():
        said = teachers(batch)
    for number, logs in enumerate(said):
        fold = folds if number == len(SIZES) - 1 else folds[owners]
        places = torch.arange(len(fold), device=fold.device)
        unseen = logs.exp()[fold.clamp(min=0), places]
        mixed = recipe.trust * unseen + (1 - recipe.trust) * chances[number][0]
        agreed = logs.exp().mean(dim=0)
        chances[number] = torch.where((fold >= 0)[:, None], mixed, agreed)[None]
        if number not in (2, 3):  # whether it ends, and its kind, depend on where a claim is
            counts[number] = torch.ones_like(counts[number])
    return Output(*chances), Output(*counts)


def reading_loss(said: Output, batch: Batch, wanted: tuple[Output, Output]) -> Tensor:
    """How far the readers are from saying what they should."""
    total = torch.zeros((), device=batch.folds.device)
    for logs, chances, counts, weight in zip(said, *wanted, WEIGHTS, strict=True):
        missed = -(chances * logs).sum(dim=2) * counts
        total = total + weight * (missed.sum(dim=1) / counts.sum(dim=1).clamp(min=1)).sum()
    return total


def changes(model: Readers, base: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the build of memorist-minilm needs: matrices as changes of the embedder's."""
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
    words = sum(SIZES[:-1])
    written |= {name: own[name].astype(np.float16) for name in ("shapes", "unknown")}
    written["head"] = own["head"][:, :words].astype(np.float16)
    written["head_bias"] = own["head_bias"][:words]
    written["category"] = own["head"][:, words:].astype(np.float16)
    written["category_bias"] = own["head_bias"][words:]
    return written


def _step(change: np.ndarray) -> np.ndarray:
    """The step of each column with which rounding its changes to few steps loses least."""
    best = np.abs(change).max(axis=0) / STEPS + 1e-12
    least = np.full(change.shape[1], np.inf)
    for share in np.linspace(0.2, 1.0, 17):
        step = share * (np.abs(change).max(axis=0) / STEPS + 1e-12)
        rounded = np.clip(np.rint(change / step), -STEPS, STEPS) * step
        lost = np.square(change - rounded).sum(axis=0)
        best, least = np.where(lost < least, step, best), np.minimum(lost, least)
    return best


class Found(NamedTuple):
    """A stretch that a reader marks: how sure it is, and whether it is right; and exactly so."""

    chance: float
    right: bool
    exact: bool


def measure(model: Readers, messages: Sequence[Told]) -> dict[str, float]:
    """Of the claims, how many are found; of those found, how many are right; at some chances.

    A claim is found where predicate and end are right and one stretch holds the other. Where there
    are several readers, their mean is measured.
    """
    found, labelled = list[Found](), 0
    device = model.head.device.type
    for batch in loaded(Batches(messages), device):
        with torch.no_grad(), torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            said = model(batch)
        chances = [it.exp().mean(dim=0).cpu().numpy() for it in said]
        ends = batch.ends.tolist()
        for scores, tags in ((chances[0], batch.values), (chances[1], batch.told)):
            wanted = stretches(one_hot(tags, scores.shape[1]).cpu().numpy(), batch.owners)
            open_ones = {(first, last, tag) for first, last, tag, _ in wanted}
            labelled += len(open_ones)
            for first, last, tag, chance in stretches(scores, batch.owners):
                near = [
                    it
                    for it in open_ones
                    if it[2] == tag
                    and (it[0] <= first < last <= it[1] or first <= it[0] < it[1] <= last)
                ]
                over = bool(chances[2][first:last, 1].mean() > 0.5)
                right = bool(near) and (ends[near[0][0]] == 1) == over
                found.append(Found(chance, right, bool(near) and near[0][:2] == (first, last)))
                open_ones -= set(near[:1])
    return _figures(found, labelled)


def _figures(found: list[Found], labelled: int) -> dict[str, float]:
    figures = {"labelled": labelled, "exact": sum(it.exact for it in found) / max(labelled, 1)}
    ordered = sorted(found, reverse=True)
    right = np.cumsum([it.right for it in ordered])
    share = right / np.arange(1, len(ordered) + 1)
    for least in (0.0, 0.7, 0.8, 0.85, 0.9):
        places = np.flatnonzero(share >= least)
        if len(places):
            place = int(places[-1])
            figures[f"found, right {least}"] = round(float(right[place]) / max(labelled, 1), 3)
            figures[f"chance, right {least}"] = round(ordered[place].chance, 3)
    figures["right"] = round(float(share[-1]), 3) if found else 0.0
    return figures


def stretches(chances: np.ndarray, owners: Tensor) -> Iterator[tuple[int, int, int, float]]:
    """The likeliest stretches of tags: first word, the one after the last, tag and mean chance."""
    tags = chances.argmax(axis=1)
    messages = owners.tolist()
    for first in np.flatnonzero(tags % 2).tolist():
        last = first + 1
        while (
            last < len(tags) and tags[last] == tags[first] + 1 and messages[last] == messages[first]
        ):
            last += 1
        mean = np.exp(np.log(chances[np.arange(first, last), tags[first:last]] + 1e-9).mean())
        yield first, last, int(tags[first]), float(mean)


def main() -> None:
    """Prepare, train, measure, and write the reader."""
    options = parser().parse_args()
    if not options.prepared.exists():
        prepare_reader(options.prepared)
    if options.prepare_only:
        return
    messages, base = read_prepared_claims(options.prepared)
    kept, held_out = split(messages)
    given = dict(one.split("=") for one in options.recipe)
    kinds = {it.name: type(it.default) for it in fields(Recipe)}
    recipe = replace(Recipe(), **{name: kinds[name](value) for name, value in given.items()})
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_float32_matmul_precision("high")
    print(json.dumps({"recipe": asdict(recipe), "messages": len(messages)}), file=sys.stderr)
    teachers = fit([it for it in kept if it.labelled], base, recipe)
    print(json.dumps({"teachers": measure(teachers, held_out)}), file=sys.stderr)
    model = fit(kept, base, recipe, teachers)
    figures: dict[str, object] = {"all": measure(model, held_out)}
    for language in sorted({it.language for it in held_out}):
        figures[language] = measure(model, [it for it in held_out if it.language == language])
    print(json.dumps(figures), file=sys.stderr)
    np.savez_compressed(options.out, **changes(model, base))
    labels = {
        "values": list(VALUES.values()),
        "told": list(TOLD.values()),
        "kinds": [*KINDS, "thing"],
    }
    options.out.with_suffix(".json").write_text(json.dumps(labels, indent=1), encoding="utf-8")


def parser() -> argparse.ArgumentParser:
    """What can be said on the command line."""
    made = argparse.ArgumentParser(prog="memorist_training.reader", description=__doc__)
    made.add_argument("--recipe", nargs="*", default=[], metavar="NAME=VALUE")
    made.add_argument("--prepared", type=Path, default=Path("prepared-reader.npz"))
    made.add_argument("--prepare-only", action="store_true")
    made.add_argument("--out", type=Path, default=READER)
    return made


if __name__ == "__main__":
    main()
