"""A small net on two vectors: how likely a later message updates what an earlier one says.

Run with `python -m memorist_training.updates` where the trained embedder is installed: it sees the
vectors that Memorist stores. Minutes on a CPU.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from memorist_training.corpus import CHANGES, Story, read_stories
from memorist_training.prepare import PACKAGE

UPDATES = PACKAGE / "updates.npz"
NEAREST = 6  # earlier messages that each message is compared with
NETS = 4  # trained apart and put side by side, which is their mean
INNER = 64
DROPOUT = 0.4
EPOCHS = 12
BATCH = 512
RATE = 1e-3
DECAY = 0.05
FOLDS = 4  # of the stories, to see what a chance means

Embed = Callable[[Sequence[str]], Tensor]


class Pairs(NamedTuple):
    """Messages with the nearest before them, in rows, and whether they update those."""

    rows: Tensor
    labels: Tensor


class Net(nn.Module):
    """A layer and a sum, over features that are all of one size."""

    def __init__(self, rows: Tensor) -> None:
        super().__init__()
        self.register_buffer("middle", rows.mean(dim=0))
        self.register_buffer("spread", rows.std(dim=0).clamp(min=1e-3))
        self.inner, self.outer = nn.Linear(rows.shape[1], INNER), nn.Linear(INNER, 1)
        nn.init.constant_(self.outer.bias, -3.0)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, rows: Tensor) -> Tensor:
        """The logarithm of the odds of each row."""
        even = (rows - self.get_buffer("middle")) / self.get_buffer("spread")
        scores: Tensor = self.outer(self.dropout(self.inner(self.dropout(even)).relu()))
        return scores[:, 0]


def features(earlier: Tensor, later: Tensor) -> Tensor:
    """What the net sees of pairs of vectors, in rows; `MiniLM` in Memorist makes the same."""
    product = earlier * later
    cosine = product.sum(dim=1, keepdim=True)
    return torch.cat([product, (earlier - later).abs(), later, earlier, cosine], dim=1)


def pairs(embed: Embed, stories: Sequence[Story]) -> Pairs:
    """Each message of the stories with the nearest before it."""
    rows, labels = [], []
    for story in stories:
        vectors = embed(story.messages)
        alike = vectors @ vectors.T
        for newer in range(1, len(vectors)):
            near = alike[newer, :newer].topk(min(NEAREST, newer)).indices.tolist()
            near = [older for older in near if (older, newer) not in story.unknown]
            rows.append(features(vectors[near], vectors[newer].expand(len(near), -1)))
            labels += [(older, newer) in story.updates for older in near]
    return Pairs(torch.cat(rows), torch.tensor(labels).float())


def fit(given: Pairs, seed: int) -> Net:
    """A net that has learnt the pairs."""
    torch.manual_seed(seed)
    net = Net(given.rows)
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY)
    steps = EPOCHS * -(-len(given.rows) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, RATE, total_steps=steps + 1, pct_start=0.1
    )
    for _ in range(EPOCHS):
        for some in torch.randperm(len(given.rows)).split(BATCH):
            optimizer.zero_grad()
            loss = binary_cross_entropy_with_logits(net(given.rows[some]), given.labels[some])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return net.eval()


def joined(nets: Sequence[Net]) -> dict[str, np.ndarray]:
    """The nets as one: what Memorist multiplies with."""
    inner, shift = list[Tensor](), list[Tensor]()
    for net in nets:
        weight = net.inner.weight.T / net.get_buffer("spread")[:, None]
        inner.append(weight)
        shift.append(net.inner.bias - net.get_buffer("middle") @ weight)
    outer = torch.cat([net.outer.weight[0] for net in nets]) / len(nets)
    constant = torch.stack([net.outer.bias for net in nets]).mean(dim=0)
    return {
        "inner": torch.cat(inner, dim=1).detach().numpy().astype(np.float16),
        "shift": torch.cat(shift).detach().numpy(),
        "outer": outer.detach().numpy(),
        "constant": constant.detach().numpy(),
    }


def chances(weights: dict[str, np.ndarray], rows: Tensor) -> np.ndarray:
    """What Memorist makes of the rows."""
    inner = np.maximum(rows.numpy() @ weights["inner"].astype(np.float32) + weights["shift"], 0)
    told: np.ndarray = 1 / (1 + np.exp(-(inner @ weights["outer"] + weights["constant"])))
    return told


def figures(told: np.ndarray, labels: Tensor) -> dict[str, float]:
    """Of the pairs that are called updates from some chance on: how many are, and of how many."""
    truth = labels.numpy() > 0
    found: dict[str, float] = {"pairs": float(len(truth)), "updates": float(truth.sum())}
    for least in (0.2, 0.3, 0.4, 0.5, 0.6):
        chosen = told >= least
        found[f"precision at {least}"] = round(float(truth[chosen].mean()), 3)
        found[f"recall at {least}"] = round(float(chosen[truth].mean()), 3)
    return found


def main() -> None:
    """Train, measure on stories that were not trained on, and write the net."""
    from memorist.providers.minilm import MiniLM

    made = argparse.ArgumentParser(prog="memorist_training.updates", description=__doc__)
    made.add_argument("--out", type=Path, default=UPDATES)
    options = made.parse_args()
    embedder = MiniLM()

    def embed(texts: Sequence[str]) -> Tensor:
        return torch.from_numpy(embedder.embed(list(texts)))

    stories = read_stories()
    parts = [pairs(embed, stories[fold::FOLDS]) for fold in range(FOLDS)]
    measured = pairs(embed, read_stories(CHANGES))

    def learnt(folds: Sequence[int]) -> dict[str, np.ndarray]:
        rows, labels = (torch.cat(it) for it in zip(*(parts[fold] for fold in folds), strict=True))
        return joined([fit(Pairs(rows, labels), seed) for seed in range(NETS)])

    weights = learnt(range(FOLDS))
    np.savez_compressed(options.out, **weights)  # type: ignore[arg-type]
    told = chances(weights, measured.rows)
    print(json.dumps({"changes": figures(told, measured.labels)}), flush=True)
    unseen = list[np.ndarray]()
    for fold in range(FOLDS):
        others = learnt([it for it in range(FOLDS) if it != fold])
        unseen.append(chances(others, parts[fold].rows))
    labels = torch.cat([it.labels for it in parts])
    print(json.dumps({"stories held out": figures(np.concatenate(unseen), labels)}))


if __name__ == "__main__":
    main()
