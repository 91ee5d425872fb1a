"""Messages as tensors, a batch at a time, made beside the training by other processes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from memorist_training.claims import CATEGORIES, NO_BUCKET, Exchange, Told, tags_of
from memorist_training.model import START, STOP, WINDOW

MASK = 103  # [MASK]
EVEN = 8  # lengths are multiples of it, as the fast kernels want them
ALIKE = 16  # batches whose messages are sorted by length, so that little is padding


class Batch(NamedTuple):
    """Some messages in pieces; where their words begin, and what the reader should say of those."""

    pieces: Tensor
    shapes: Tensor
    buckets: Tensor
    there: Tensor
    owners: Tensor  # of each word: its message
    places: Tensor  # and its first piece
    values: Tensor
    told: Tensor
    ends: Tensor
    kinds: Tensor
    categories: Tensor
    folds: Tensor  # of each message: the teacher that does not see it; -1 if it has no labels


class Batches(Dataset[Batch]):
    """The batches of a training, each the same whoever makes it."""

    def __init__(
        self,
        messages: Sequence[Told],
        *,
        exchange: Exchange | None = None,
        seed: int = 0,
        epochs: int = 1,
        size: int = 128,
        hidden: float = 0.0,
        folds: int = 1,
    ) -> None:
        self._messages, self._exchange, self._seed = messages, exchange, seed
        self._hidden, self._folds = hidden, folds
        chance = random.Random(seed)
        self._parts = [
            part for _ in range(epochs) for part in _parts(messages, size, chance if seed else None)
        ]

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, number: int) -> Batch:
        chance = random.Random(self._seed * 1_000_003 + number)
        numbers = self._parts[number]
        told = [self._messages[it] for it in numbers]
        if self._exchange:
            told = [self._exchange(it, chance) for it in told]
        folds = [it % self._folds if self._messages[it].labelled else -1 for it in numbers]
        return _batch(told, folds, self._hidden, chance)


def _parts(messages: Sequence[Told], size: int, chance: random.Random | None) -> list[list[int]]:
    """The numbers of the messages of each batch."""
    order = list(range(len(messages)))
    if chance is None:
        return [order[start : start + size] for start in range(0, len(order), size)]
    chance.shuffle(order)
    parts = []
    for start in range(0, len(order), size * ALIKE):
        alike = sorted(order[start : start + size * ALIKE], key=lambda it: _length(messages[it]))
        parts += [alike[first : first + size] for first in range(0, len(alike), size)]
    chance.shuffle(parts)
    return parts


def _length(message: Told) -> int:
    return sum(len(word.pieces) for word in message.words)


def _batch(told: list[Told], folds: list[int], hidden: float, chance: random.Random) -> Batch:
    columns: list[list[list[int]]] = [[], [], []]  # of pieces, shapes and buckets
    owners, places, tags = list[int](), list[int](), [list[int]() for _ in range(4)]
    for number, message in enumerate(told):
        row, firsts = _row(message)
        for column, given in zip(columns, row, strict=True):
            column.append(given)
        owners += [number] * len(firsts)
        places += firsts
        for all_tags, own in zip(tags, tags_of(message), strict=True):
            all_tags += own[: len(firsts)]
    lengths = [len(pieces) for pieces in columns[0]]
    longest = -(-max(lengths) // EVEN) * EVEN
    padded = [
        torch.tensor([given + [end] * (longest - len(given)) for given in column])
        for column, end in zip(columns, (0, 0, NO_BUCKET), strict=True)
    ]
    if hidden:
        source = torch.Generator().manual_seed(chance.getrandbits(32))
        masked = (torch.rand(padded[0].shape, generator=source) < hidden) & (padded[0] > MASK)
        padded[0] = padded[0].masked_fill(masked, MASK)
    there = torch.arange(longest)[None] < torch.tensor(lengths)[:, None]
    categories = [CATEGORIES.index(message.category) for message in told]
    columns_of_words = (torch.tensor(it) for it in (owners, places, *tags))
    return Batch(*padded, there, *columns_of_words, torch.tensor(categories), torch.tensor(folds))


def _row(message: Told) -> tuple[tuple[list[int], list[int], list[int]], list[int]]:
    """A message in pieces, between the marks at its ends, and where its words begin."""
    pieces, shapes, buckets, firsts = [START], [0], [NO_BUCKET], list[int]()
    for word in message.words:
        if len(pieces) + len(word.pieces) > WINDOW + 1:
            break
        firsts.append(len(pieces))
        pieces.extend(word.pieces)
        shapes.extend([word.shape] * len(word.pieces))
        buckets.extend([word.bucket] * len(word.pieces))
    return ([*pieces, STOP], [*shapes, 0], [*buckets, NO_BUCKET]), firsts


def loaded(batches: Batches, device: str) -> Iterator[Batch]:
    """The batches, in their order, on the device."""
    workers = 12 if device == "cuda" else 0
    for batch in DataLoader(batches, batch_size=None, num_workers=workers):
        yield Batch(*(tensor.to(device, non_blocking=True) for tensor in batch))
