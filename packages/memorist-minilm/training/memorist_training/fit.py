"""Training: a question's vector nearer to what answers it than to what only resembles that."""

from __future__ import annotations

import json
import os
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from memorist_training.corpus import Example, Story
from memorist_training.model import AdaptedMiniLM
from memorist_training.prepare import anchors

Pieces = Mapping[str, Sequence[int]]
"""The word pieces of every text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The numbers of a training.

    A batch has `people` people with `messages` examples each, one question of each: what the
    same person said elsewhere is what a question is most easily mistaken about. `statement` is
    how much the part that matters counts beside the whole message, `reworded` how often a later
    statement of the same matter stands in for it, and `drift` what it costs that a technical
    text moves. With each batch come `told` stories and talks, whose loss counts `stories`; in them
    a message that is overtaken answers a question `older` times as well.
    """

    seed: int = 1
    rank: int = 16
    strength: float = 2.0
    epochs: int = 2
    rate: float = 1.5e-3
    people: int = 32
    messages: int = 8
    sharpness: float = 30.0
    statement: float = 0.5
    reworded: float = 0.0
    drift: float = 1.0
    drifting: int = 16
    stories: float = 0.5
    told: int = 10
    older: float = 0.6


def read_prepared(file: Path) -> tuple[Pieces, dict[str, np.ndarray]]:
    """The word pieces and the base weights that `prepare` wrote."""
    with np.load(file) as arrays:
        texts = json.loads(arrays["texts"].tobytes())
        parts = np.split(arrays["pieces"], arrays["ends"][:-1])
        base = {name[5:]: arrays[name] for name in arrays.files if name.startswith("base/")}
    return {text: part.tolist() for text, part in zip(texts, parts, strict=True)}, base


def fit(
    examples: Sequence[Example],
    stories: Sequence[Story],
    pieces: Pieces,
    base: Mapping[str, np.ndarray],
    recipe: Recipe,
) -> AdaptedMiniLM:
    """A model with an adapter trained by the recipe; the same one for the same seed and machine."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # or sums vary from run to run
    torch.use_deterministic_algorithms(True)
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(recipe.seed)
    chance = random.Random(recipe.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AdaptedMiniLM(base, rank=recipe.rank, strength=recipe.strength).to(device)
    fixed = anchors()
    with torch.no_grad():
        targets = model([pieces[text] for text in fixed])
    epochs = [list(_batches(examples, recipe, chance)) for _ in range(recipe.epochs)]
    steps = sum(map(len, epochs))
    optimizer = torch.optim.AdamW(model.adapter.parameters(), lr=recipe.rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, recipe.rate, total_steps=steps + 1, pct_start=0.1
    )
    told = _told(stories, recipe, chance)
    for batches in epochs:
        for batch in batches:
            some = chance.sample(range(len(fixed)), recipe.drifting)
            texts = texts_of_batch(batch, recipe, chance)
            vectors = model([pieces[text] for text in [*texts, *(fixed[it] for it in some)]])
            moved = 1 - (vectors[len(texts) :] * targets[some]).sum(dim=1)
            loss = answer_loss(vectors[: len(texts)], batch, recipe) + recipe.drift * moved.mean()
            loss = loss + recipe.stories * story_loss(model, next(told), pieces, recipe)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.adapter.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return model.eval()


Batch = list[tuple[str, Example]]
"""Questions, each with the example that answers it."""


def _batches(examples: Sequence[Example], recipe: Recipe, chance: random.Random) -> Iterator[Batch]:
    """Every question of every example once, a few people at a time."""
    asked: dict[str, Batch] = defaultdict(list)
    for example in examples:
        asked[example.person] += [(question, example) for question in example.questions]
    groups: list[Batch] = []
    for person in sorted(asked):
        chance.shuffle(asked[person])
        size = recipe.messages
        parts = range(0, len(asked[person]), size)
        groups += [asked[person][start : start + size] for start in parts]
    chance.shuffle(groups)
    for start in range(0, len(groups), recipe.people):
        yield [pair for group in groups[start : start + recipe.people] for pair in group]


def texts_of_batch(batch: Batch, recipe: Recipe, chance: random.Random) -> list[str]:
    """The questions, messages and statements of a batch, then all that is wrong."""
    examples = [example for _, example in batch]
    wrong = [text for example in examples for text in example.negatives]
    wrong += [text for it in examples for relation, text in it.pairs if relation == "unrelated"]
    statements = [_statement(it, recipe, chance) for it in examples]
    return [*(asked for asked, _ in batch), *(it.text for it in examples), *statements, *wrong]


def answer_loss(vectors: Tensor, batch: Batch, recipe: Recipe) -> Tensor:
    """How far each question is from picking its message, and its statement, out of all others."""
    count, device = len(batch), vectors.device
    asked, said, stated = vectors[: 3 * count].split(count)
    wrong = asked @ vectors[3 * count :].T
    # What answers the same question, or is the same message, is not wrong.
    also = torch.tensor(
        [[question in example.questions for _, example in batch] for question, _ in batch]
    ).to(device)
    also.fill_diagonal_(False)
    target = torch.arange(count, device=device)
    total = torch.zeros((), device=device)
    for answers, weight in ((said, 1.0), (stated, recipe.statement)):
        right = (asked @ answers.T).masked_fill(also, -1.0)
        scores = torch.cat([right, wrong], dim=1) * recipe.sharpness
        total = total + weight * cross_entropy(scores, target)
    return total / (1 + recipe.statement)


def _told(stories: Sequence[Story], recipe: Recipe, chance: random.Random) -> Iterator[list[Story]]:
    """A few stories at a time, each once before any comes again."""
    deck: list[Story] = []
    while True:
        if len(deck) < recipe.told:
            deck = list(stories)
            chance.shuffle(deck)
        yield [deck.pop() for _ in range(recipe.told)]


def story_loss(
    model: AdaptedMiniLM, stories: Sequence[Story], pieces: Pieces, recipe: Recipe
) -> Tensor:
    """How far each question is from picking what answers it out of all that the people said."""
    messages = [text for story in stories for text in story.messages]
    asked = [question for story in stories for question in story.questions]
    vectors = model([pieces[text] for text in [*messages, *(it.text for it in asked)]])
    scores = vectors[len(messages) :] @ vectors[: len(messages)].T * recipe.sharpness
    right = torch.zeros(len(asked), len(messages))
    row = first = 0
    for story in stories:
        for question in story.questions:
            right[row, [first + place for place in question.older]] = recipe.older
            right[row, [first + place for place in question.answers]] = 1.0
            row += 1
        first += len(story.messages)
    right = right.to(scores.device)
    wrong = scores.masked_fill(right > 0, -1e4).logsumexp(dim=1, keepdim=True)
    missed = torch.logaddexp(wrong, scores) - scores
    return (missed * right).sum() / right.sum()


def _statement(example: Example, recipe: Recipe, chance: random.Random) -> str:
    """The part that matters, or now and then a later statement that answers as well."""
    others = [text for relation, text in example.pairs if relation != "unrelated"]
    if others and chance.random() < recipe.reworded:
        return chance.choice(others)
    return example.statement
