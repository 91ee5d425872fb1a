"""Small heads on the vectors: whether a statement lasts, its category, what it does to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from memorist_training.corpus import CATEGORIES, RELATIONS, Example
from memorist_training.fit import Pieces
from memorist_training.model import AdaptedMiniLM

STEPS = 600
BLOCK = 512


class Task(NamedTuple):
    """What a head learns: inputs, one row for each label."""

    inputs: Tensor
    labels: Tensor


def vectors(model: AdaptedMiniLM, texts: Sequence[str], pieces: Pieces) -> Tensor:
    """The vectors of texts, some at a time."""
    with torch.no_grad():
        blocks = [texts[start : start + BLOCK] for start in range(0, len(texts), BLOCK)]
        return torch.cat([model([pieces[text] for text in block]) for block in blocks])


def lasting(model: AdaptedMiniLM, examples: Sequence[Example], pieces: Pieces) -> Task:
    """Statements, and whether each would be worth knowing a month later."""
    inputs = vectors(model, [it.statement for it in examples], pieces)
    return Task(inputs, torch.tensor([int(it.lasting) for it in examples], device=inputs.device))


def category(model: AdaptedMiniLM, examples: Sequence[Example], pieces: Pieces) -> Task:
    """Statements that last, and the category of each."""
    own = [it for it in examples if it.lasting and it.category]
    inputs = vectors(model, [it.statement for it in own], pieces)
    labels = [CATEGORIES.index(it.category or "") for it in own]
    return Task(inputs, torch.tensor(labels, device=inputs.device))


def relation(model: AdaptedMiniLM, examples: Sequence[Example], pieces: Pieces) -> Task:
    """Pairs of statements, and what the later one does to the earlier."""
    pairs = [(it.statement, *pair) for it in examples for pair in it.pairs]
    before = vectors(model, [earlier for earlier, _, _ in pairs], pieces)
    after = vectors(model, [later for _, _, later in pairs], pieces)
    inputs = torch.cat([before * after, (before - after).abs(), after - before], dim=1)
    labels = [RELATIONS.index(name) for _, name, _ in pairs]
    return Task(inputs, torch.tensor(labels, device=inputs.device))


TASKS = {"lasting": lasting, "category": category, "relation": relation}


def fit_head(task: Task, *, hidden: int = 0, decay: float = 0.3, seed: int = 1) -> nn.Module:
    """A linear head, or one with a hidden layer."""
    torch.manual_seed(seed)
    width, classes = task.inputs.shape[1], int(task.labels.max()) + 1
    layers: list[nn.Module] = [nn.Linear(width, classes)]
    if hidden:
        layers = [nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(0.2), nn.Linear(hidden, classes)]
    head = nn.Sequential(*layers).to(task.inputs.device)
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-2, weight_decay=decay)
    for _ in range(STEPS):
        optimizer.zero_grad()
        cross_entropy(head(task.inputs * 20), task.labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return head.eval()


def accuracy(head: nn.Module, task: Task) -> dict[str, float]:
    """The share of right answers, of the commonest label, and the mean recall of the labels."""
    with torch.no_grad():
        said = head(task.inputs * 20).argmax(dim=1)
    labels = [int(it) for it in task.labels.unique()]
    recalls = [float((said == it)[task.labels == it].float().mean()) for it in labels]
    return {
        "right": float((said == task.labels).float().mean()),
        "commonest": float(task.labels.bincount().max() / len(task.labels)),
        "balanced": sum(recalls) / len(recalls),
    }
