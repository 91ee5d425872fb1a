"""The reader: MiniLM's first layers, trained to mark what a message says of its speaker.

Run with `python -m memorist_training.reader`. The word vectors stay those of the embedder; the
layers learn, and are written to `../reader.npz` as small changes of the embedder's.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, layer_norm

from memorist_training.claims import (
    CATEGORIES,
    KINDS,
    NO_BUCKET,
    TOLD,
    VALUES,
    Exchange,
    Told,
    split,
    tags_of,
)
from memorist_training.model import HEADS, START, STOP, WIDTH, WINDOW
from memorist_training.prepare import PACKAGE, prepare_reader, read_prepared_claims

MASK = 103  # [MASK]
SHAPES = 10
LAYERS = 4  # of the six
PARTS = ("heads", "mix", "up", "down")
STEPS = 7  # to either side of 0 of a change


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The numbers of a training.

    `exchanged` of the messages get objects of others; `hidden` of their pieces are masked. What is
    kept is the mean of the weights over the last steps, each counting `slow` of the one after it.
    """

    seed: int = 1
    epochs: int = 12
    batch: int = 64
    rate: float = 4.5e-4
    head_rate: float = 2e-3
    dropout: float = 0.1
    exchanged: float = 0.5
    hidden: float = 0.1
    slow: float = 0.998


class Output(NamedTuple):
    """The scores of each word's tags, and of each message's category."""

    values: Tensor
    told: Tensor
    ends: Tensor
    kinds: Tensor
    categories: Tensor


class Reader(nn.Module):
    """Messages in words to the scores of their tags."""

    def __init__(self, base: Mapping[str, np.ndarray], recipe: Recipe) -> None:
        super().__init__()
        self.base = nn.ParameterDict()
        for name, array in base.items():
            values = torch.from_numpy(array.astype(np.float32))
            own = name[0].isdigit()
            self.base[name.replace(".", "_")] = nn.Parameter(values, requires_grad=own)
        self.shapes = nn.Embedding(SHAPES, WIDTH)
        self.unknown = nn.Embedding(NO_BUCKET + 1, WIDTH, padding_idx=NO_BUCKET)
        nn.init.zeros_(self.shapes.weight)
        nn.init.normal_(self.unknown.weight, std=0.02)
        nn.init.zeros_(self.unknown.weight[NO_BUCKET])
        self.sizes = (1 + 2 * len(VALUES), 1 + 2 * len(TOLD), 1, len(KINDS) + 1)
        self.head = nn.Linear(WIDTH, sum(self.sizes))
        self.category = nn.Linear(WIDTH, len(CATEGORIES))
        self.dropout = nn.Dropout(recipe.dropout)
        self._hidden = recipe.hidden

    def forward(self, messages: Sequence[Told]) -> Output:
        """The scores of all words of some messages, one after the other."""
        rows = [_row(message) for message in messages]
        longest = max(len(row.pieces) for row in rows)
        device = self.head.weight.device
        pieces, shapes, buckets = (
            torch.tensor([list(given) + [end] * (longest - len(given)) for given in column])
            for column, end in zip(
                list(zip(*rows, strict=True))[:3], (0, 0, NO_BUCKET), strict=True
            )
        )
        lengths = torch.tensor([len(row.pieces) for row in rows])
        there = torch.arange(longest)[None] < lengths[:, None]
        if self.training:
            masked = (torch.rand(pieces.shape) < self._hidden) & (pieces > MASK)
            pieces = pieces.masked_fill(masked, MASK)
        there = there.to(device)
        hidden = self._encode(pieces.to(device), there, shapes.to(device), buckets.to(device))
        owners = [number for number, row in enumerate(rows) for _ in row.firsts]
        places = [place for row in rows for place in row.firsts]
        words = hidden[torch.tensor(owners, device=device), torch.tensor(places, device=device)]
        means = (hidden * there[..., None]).sum(dim=1) / there.sum(dim=1, keepdim=True)
        values, told, ends, kinds = self.head(self.dropout(words)).split(self.sizes, dim=1)
        return Output(values, told, ends[:, 0], kinds, self.category(self.dropout(means)))

    def _encode(self, pieces: Tensor, there: Tensor, shapes: Tensor, buckets: Tensor) -> Tensor:
        base = self.base
        batch, length = pieces.shape
        hidden = base["words"][pieces] + base["positions"][:length]
        hidden = hidden + self.shapes(shapes) + self.unknown(buckets)
        hidden = self._norm(hidden, "norm_gain", "norm_bias")
        for layer in range(LAYERS):
            query, key, value = (
                part.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
                for part in self._dense(hidden, f"{layer}_heads").split(WIDTH, dim=2)
            )
            mixed = nn.functional.scaled_dot_product_attention(
                query, key, value, attn_mask=there[:, None, None, :]
            )
            mixed = mixed.transpose(1, 2).reshape(batch, length, WIDTH)
            mixed = hidden + self.dropout(self._dense(mixed, f"{layer}_mix"))
            hidden = self._norm(mixed, f"{layer}_mix_gain", f"{layer}_mix_shift")
            inner = nn.functional.gelu(self._dense(hidden, f"{layer}_up"))
            deep = hidden + self.dropout(self._dense(inner, f"{layer}_down"))
            hidden = self._norm(deep, f"{layer}_down_gain", f"{layer}_down_shift")
        return hidden

    def _dense(self, before: Tensor, name: str) -> Tensor:
        return before @ self.base[name] + self.base[f"{name}_bias"]

    def _norm(self, values: Tensor, gain: str, shift: str) -> Tensor:
        return layer_norm(values, (WIDTH,), self.base[gain], self.base[shift], 1e-12)

    def learning(self) -> list[nn.Parameter]:
        """The weights that learn."""
        return [it for it in self.parameters() if it.requires_grad]


class _Row(NamedTuple):
    """A message in pieces, between the marks at its ends, and where its words begin."""

    pieces: list[int]
    shapes: list[int]
    buckets: list[int]
    firsts: list[int]


def _row(message: Told) -> _Row:
    row = _Row([START], [0], [NO_BUCKET], [])
    for word in message.words:
        if len(row.pieces) + len(word.pieces) > WINDOW + 1:
            break
        row.firsts.append(len(row.pieces))
        row.pieces.extend(word.pieces)
        row.shapes.extend([word.shape] * len(word.pieces))
        row.buckets.extend([word.bucket] * len(word.pieces))
    for column, end in zip(row[:3], (STOP, 0, NO_BUCKET), strict=True):
        column.append(end)
    return row


def fit(messages: Sequence[Told], base: Mapping[str, np.ndarray], recipe: Recipe) -> Reader:
    """A reader trained by the recipe."""
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(recipe.seed)
    chance = random.Random(recipe.seed)
    exchange = Exchange(messages, recipe.exchanged, chance)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Reader(base, recipe).to(device)
    layers = {id(it) for it in model.base.parameters()}
    groups = [
        {"params": [it for it in model.learning() if id(it) in layers], "lr": recipe.rate},
        {"params": [it for it in model.learning() if id(it) not in layers], "lr": recipe.head_rate},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    steps = recipe.epochs * math.ceil(len(messages) / recipe.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, [recipe.rate, recipe.head_rate], total_steps=steps + 1, pct_start=0.1
    )
    slow = [it.detach().clone() for it in model.learning()]
    for step, batch in enumerate(_batches(messages, recipe, chance), start=1):
        loss = reading_loss(model, [exchange(message) for message in batch])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.learning(), 1.0)
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            share = 1 - min(recipe.slow, step / (step + 10))
            torch._foreach_lerp_(slow, model.learning(), share)
    with torch.no_grad():
        for mine, mean in zip(model.learning(), slow, strict=True):
            mine.copy_(mean)
    return model.eval()


def _batches(
    messages: Sequence[Told], recipe: Recipe, chance: random.Random
) -> Iterator[list[Told]]:
    for _ in range(recipe.epochs):
        order = list(messages)
        chance.shuffle(order)
        for start in range(0, len(order), recipe.batch):
            yield order[start : start + recipe.batch]


def reading_loss(model: Reader, batch: Sequence[Told]) -> Tensor:
    """How far the reader is from tagging each word rightly."""
    given = model(batch)
    device = given.values.device
    columns: list[list[int]] = [[], [], [], []]
    for message in batch:
        seen = len(_row(message).firsts)
        for column, tags in zip(columns, tags_of(message), strict=True):
            column += tags[:seen]
    values, told, ends, kinds = (torch.tensor(it, device=device) for it in columns)
    categories = [CATEGORIES.index(message.category) for message in batch]
    loss = cross_entropy(given.values, values) + cross_entropy(given.told, told)
    loss = loss + 0.1 * cross_entropy(given.categories, torch.tensor(categories, device=device))
    if (known := ends >= 0).any():
        loss = loss + 0.2 * binary_cross_entropy_with_logits(given.ends[known], ends[known].float())
    if (known := kinds >= 0).any():
        loss = loss + 0.05 * cross_entropy(given.kinds[known], kinds[known])
    return loss


def changes(model: Reader, base: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the build of memorist-minilm needs: matrices as changes of the embedder's."""
    written: dict[str, np.ndarray] = {}
    for name, parameter in model.base.items():
        if not parameter.requires_grad:
            continue
        array = parameter.detach().cpu().numpy()
        name = name.replace("_", ".", 1)
        if name.partition(".")[2] in PARTS:
            change = array - base[name].astype(np.float32)
            step = _step(change)
            written[name] = np.clip(np.rint(change / step), -STEPS, STEPS).astype(np.int8)
            written[f"{name}_step"] = step.astype(np.float32)
        else:
            written[name] = array.astype(np.float16)
    for name, weights in (("shapes", model.shapes.weight), ("unknown", model.unknown.weight)):
        written[name] = weights.detach().cpu().numpy().astype(np.float16)
    written["unknown"] = written["unknown"][:NO_BUCKET]
    written["head"] = model.head.weight.detach().cpu().numpy().T.astype(np.float16)
    written["head_bias"] = model.head.bias.detach().cpu().numpy()
    written["category"] = model.category.weight.detach().cpu().numpy().T.astype(np.float16)
    written["category_bias"] = model.category.bias.detach().cpu().numpy()
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


def measure(model: Reader, messages: Sequence[Told]) -> dict[str, float]:
    """Of the tagged stretches, how many are found whole, and how many that are found are right."""
    right = found = labelled = 0
    for start in range(0, len(messages), 64):
        batch = messages[start : start + 64]
        with torch.no_grad():
            given = model(batch)
        place = 0
        for message in batch:
            seen = len(_row(message).firsts)
            tags = tags_of(message)
            for scores, truth in ((given.values, tags.values), (given.told, tags.told)):
                made = _stretches(scores[place : place + seen].argmax(dim=1).tolist())
                wanted = _stretches(truth[:seen])
                right += len(made & wanted)
                found += len(made)
                labelled += len(wanted)
            place += seen
    return {"found": right / labelled, "right": right / max(found, 1), "labelled": labelled}


def _stretches(tags: Sequence[int]) -> set[tuple[int, int, int]]:
    """First word, last word and predicate of each stretch."""
    starts = [place for place, tag in enumerate(tags) if tag % 2]
    stretches = set()
    for start in starts:
        end = start + 1
        while end < len(tags) and tags[end] == tags[start] + 1:
            end += 1
        stretches.add((start, end, tags[start]))
    return stretches


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
    figures: dict[str, object] = {"recipe": asdict(recipe), "messages": len(messages)}
    model = fit(kept, base, recipe)
    figures["held out"] = measure(model, held_out)
    for language in sorted({it.language for it in held_out}):
        figures[language] = measure(model, [it for it in held_out if it.language == language])
    print(json.dumps(figures), file=sys.stderr)
    if options.all:
        model = fit(messages, base, recipe)
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
    made.add_argument("--all", action="store_true", help="write one that saw all messages")
    made.add_argument("--prepared", type=Path, default=Path("prepared-reader.npz"))
    made.add_argument("--prepare-only", action="store_true")
    made.add_argument("--out", type=Path, default=PACKAGE / "reader.npz")
    return made


if __name__ == "__main__":
    main()
