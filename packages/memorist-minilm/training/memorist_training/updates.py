"""A linear head on two vectors: how likely a later message updates what an earlier one says."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from memorist_training.corpus import Story
from memorist_training.fit import Pieces
from memorist_training.model import AdaptedMiniLM

NEAREST = 6  # earlier messages that each message is compared with
STEPS = 400
RATE = 0.4
DECAY = 0.05


def features(earlier: Tensor, later: Tensor) -> Tensor:
    """What the head sees of pairs of vectors, in rows; `MiniLM` in Memorist makes the same."""
    product = earlier * later
    cosine = product.sum(dim=1, keepdim=True)
    return torch.cat([product, (earlier - later).abs(), later, earlier, cosine], dim=1)


def pairs(model: AdaptedMiniLM, stories: Sequence[Story], pieces: Pieces) -> tuple[Tensor, Tensor]:
    """The features of each message with the nearest before it, and whether it updates them."""
    rows, labels = [], []
    for story in stories:
        with torch.no_grad():
            vectors = model([pieces[text] for text in story.messages])
        alike = vectors @ vectors.T
        for newer in range(1, len(vectors)):
            near = alike[newer, :newer].topk(min(NEAREST, newer)).indices
            rows.append(features(vectors[near], vectors[newer].expand(len(near), -1)))
            labels += [(older, newer) in story.updates for older in near.tolist()]
    return torch.cat(rows), torch.tensor(labels, device=rows[0].device).float()


def fit_updates(model: AdaptedMiniLM, stories: Sequence[Story], pieces: Pieces) -> Tensor:
    """The weights of a logistic regression, the constant last."""
    rows, labels = pairs(model, stories, pieces)
    middle, spread = rows.mean(dim=0), rows.std(dim=0) + 1e-6
    rows = (rows - middle) / spread
    weights = torch.zeros(rows.shape[1], device=rows.device, requires_grad=True)
    constant = torch.full((1,), -3.0, device=rows.device, requires_grad=True)
    optimizer = torch.optim.SGD([weights, constant], lr=RATE, momentum=0.9)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = binary_cross_entropy_with_logits(rows @ weights + constant, labels)
        (loss + DECAY / 2 * weights.square().sum()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    scaled = weights.detach() / spread
    return torch.cat([scaled, constant.detach() - (scaled * middle).sum()]).cpu()


def measure_updates(
    model: AdaptedMiniLM, head: Tensor, stories: Sequence[Story], pieces: Pieces
) -> dict[str, float]:
    """Of the pairs that are called updates from some chance on: how many are, and of how many."""
    rows, labels = pairs(model, stories, pieces)
    chances = torch.sigmoid(rows.cpu() @ head[:-1] + head[-1])
    truth = labels.cpu() > 0
    found: dict[str, float] = {"pairs": float(len(truth)), "updates": float(truth.sum())}
    for least in (0.2, 0.3, 0.4, 0.5):
        chosen = chances >= least
        found[f"precision at {least}"] = float(truth[chosen].float().mean())
        found[f"recall at {least}"] = float(chosen[truth].float().mean())
    return found
