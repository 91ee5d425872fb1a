"""Messages and pairs as tensors of one shape, made beside the training by other processes.

Texts stand one after the other in rows of a fixed number of pieces, so that next to nothing is
padding, and one recorded step of the GPU serves all batches.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from memorist_training.claims import CATEGORIES, NO_BUCKET, Exchange, Told, Word, tags_of
from memorist_training.model import START, STOP, WINDOW
from memorist_training.pairs import Pair

MASK = 103  # [MASK]
LONGEST = WINDOW + 2  # pieces of a text
SPARE = 16  # a row has room for as many texts as if each had so many pieces
FULL = 0.985  # of a row is filled on average; what then finds no room waits for the next epoch
PORTION = 8  # batches that are made at once
NEGATIVES = 5  # pairs without an update for each with one
WORKERS = 12


class Batch(NamedTuple):
    """Rows of texts. First of each piece, then of each text; -1 where a tag does not matter."""

    pieces: Tensor
    shapes: Tensor
    buckets: Tensor
    values: Tensor  # of the first piece of a word, as the next three
    told: Tensor
    ends: Tensor
    kinds: Tensor
    places: Tensor  # in its text
    owners: Tensor  # the text, counted in its row
    starts: Tensor
    categories: Tensor
    labelled: Tensor
    updates: Tensor


OF_PIECES, OF_TEXTS = 9, 4


def unpacked(packed: Tensor) -> Batch:
    """The batch in a tensor of rows, as `pack` makes them."""
    pieces = packed.shape[1] * SPARE // (OF_PIECES * SPARE + OF_TEXTS)
    sizes = [pieces] * OF_PIECES + [pieces // SPARE] * OF_TEXTS
    return Batch(*packed.int().split_with_sizes(sizes, dim=1))


class Text(NamedTuple):
    """A message or a pair: seven numbers of each piece, and three of all."""

    pieces: np.ndarray
    category: int
    labelled: bool
    updates: int


def text_of(message: Told) -> Text:
    """A message, between the marks at its ends."""
    rows = _Rows(message.words, LONGEST - 2)
    tags = np.full((4, len(rows.numbers[0]) + 2), -1)
    tags[:, np.array(rows.firsts, int) + 1] = [it[: len(rows.firsts)] for it in tags_of(message)]
    columns = np.concatenate([_between([rows.numbers]), tags]).astype(np.int16)
    return Text(columns, CATEGORIES.index(message.category), message.labelled, -1)


def text_of_pair(pair: Pair) -> Text:
    """An earlier message and a later one, with a mark after each."""
    both = [_Rows(it, (LONGEST - 3) // 2).numbers for it in (pair.earlier, pair.later)]
    numbers = _between(both)
    columns = np.concatenate([numbers, np.full((4, numbers.shape[1]), -1)]).astype(np.int16)
    return Text(columns, -1, True, int(pair.updates))


class _Rows:
    """Pieces, shapes and buckets of words, and where each word begins."""

    def __init__(self, words: Sequence[Word], most: int) -> None:
        self.numbers: list[list[int]] = [[], [], []]
        self.firsts: list[int] = []
        pieces, shapes, buckets = self.numbers
        for word in words:
            if len(pieces) + len(word.pieces) > most:
                break
            self.firsts.append(len(pieces))
            pieces += word.pieces
            shapes += [word.shape] * len(word.pieces)
            buckets += [word.bucket] * len(word.pieces)


def _between(texts: Sequence[list[list[int]]]) -> np.ndarray:
    """Texts with marks before, between and after them."""
    columns = zip(*texts, strict=True)
    marks = ((START, STOP), (0, 0), (NO_BUCKET, NO_BUCKET))
    return np.array(
        [
            [first, *(number for part in parts for number in (*part, last))]
            for parts, (first, last) in zip(columns, marks, strict=True)
        ]
    )


def pack(texts: Sequence[Text], rows: int, pieces: int) -> tuple[np.ndarray, list[Text]]:
    """Rows filled with texts, each in the emptiest; and the texts for which there was no room."""
    most = pieces // SPARE
    packed = np.zeros((rows, OF_PIECES * pieces + OF_TEXTS * most), np.int16)
    of_pieces = packed[:, : OF_PIECES * pieces].reshape(rows, OF_PIECES, pieces)
    of_texts = packed[:, OF_PIECES * pieces :].reshape(rows, OF_TEXTS, most)
    of_pieces[:, 2] = NO_BUCKET
    of_pieces[:, 3:7] = -1
    of_texts[:] = np.array([pieces, -1, 0, -1])[:, None]
    filled, counts, left = [0] * rows, [0] * rows, list[Text]()
    places = np.arange(LONGEST)

    def put(row: int, length: int) -> tuple[slice, int]:
        place, number = slice(filled[row], filled[row] + length), counts[row]
        of_pieces[row, 7, place] = places[:length]
        of_pieces[row, 8, place] = number
        of_texts[row, 0, number] = place.start
        filled[row], counts[row] = place.stop, number + 1
        return place, number

    room = most - pieces // LONGEST - 1
    for text in texts:
        length, row = text.pieces.shape[1], filled.index(min(filled))
        if filled[row] + length > pieces or counts[row] >= room:
            left.append(text)
            continue
        place, number = put(row, length)
        of_pieces[row, :7, place] = text.pieces
        of_texts[row, 1:, number] = text[1:]
    for row in range(rows):
        while filled[row] < pieces:
            put(row, min(LONGEST, pieces - filled[row]))
    return packed, left


class Batches(Dataset[Tensor]):
    """The batches of a training, some at a time, each the same whoever makes it.

    A batch has a row for each teacher. What a teacher reads while it learns are the messages and
    pairs of all folds but its own; while it teaches, those of its own, and each unlabelled message
    is read by another teacher in each epoch. The folds of pairs are those of their stories.
    """

    def __init__(
        self,
        messages: Sequence[Told],
        pairs: Sequence[Pair],
        *,
        exchange: Exchange,
        seed: int,
        epochs: int,
        pieces: int,
        folds: int,
        updates: float,
        teaching: bool,
    ) -> None:
        self._messages, self._exchange, self._seed = messages, exchange, seed
        self._pieces, self._folds, self._teaching = pieces, folds, teaching
        self._texts = [*map(text_of, messages), *map(text_of_pair, pairs)]
        self._lengths = np.array([it.pieces.shape[1] for it in self._texts])
        unlabelled = [not it.labelled for it in messages] + [False] * len(pairs)
        self._unlabelled = np.array(unlabelled)
        numbers = [*range(len(messages)), *(it.story for it in pairs)]
        self._fold = np.array(numbers) % folds
        kinds = np.array([-1] * len(messages) + [it.updates for it in pairs])
        self._with, self._without = np.flatnonzero(kinds == 1), np.flatnonzero(kinds == 0)
        self._drawn = round(updates * len(self._with))
        rows = folds if teaching else folds / (folds - 1)  # that share what an epoch has
        batches = float(self._lengths[self._numbers(0)].sum()) / (rows * pieces * FULL)
        self._portions = max(1, round(batches / PORTION))
        self._portion = math.ceil(batches / self._portions)
        self._epochs = epochs

    def __len__(self) -> int:
        return self._epochs * self._portions

    @property
    def steps(self) -> int:
        """How many batches there are in all."""
        return len(self) * self._portion

    def __getitem__(self, number: int) -> Tensor:
        """Some batches, as a tensor of batches, rows and numbers."""
        epoch, portion = divmod(number, self._portions)
        chance = random.Random(self._seed * 1_000_003 + number)
        rows = []
        for numbers in self._read(epoch):
            ends = self._lengths[numbers].cumsum()
            shares = np.array([portion, portion + 1]) / self._portions
            first, last = np.searchsorted(ends, shares * ends[-1])
            texts = [self._text(it, chance) for it in numbers[first:last].tolist()]
            rows.append(pack(texts, self._portion, self._pieces)[0])
        return torch.from_numpy(np.stack(rows, axis=1))

    def _text(self, number: int, chance: random.Random) -> Text:
        if number >= len(self._messages):
            return self._texts[number]
        message = self._messages[number]
        exchanged = self._exchange(message, chance)
        changed = exchanged is not message
        return text_of(exchanged) if changed else self._texts[number]

    def _numbers(self, epoch: int) -> np.ndarray:
        """The texts of an epoch: all messages, and some of the pairs."""
        chance = np.random.default_rng((self._seed, epoch))
        drawn = [np.arange(len(self._messages))]
        if self._drawn:
            without = min(NEGATIVES * self._drawn, len(self._without))
            drawn.append(chance.choice(self._with, self._drawn, replace=False))
            drawn.append(chance.choice(self._without, without, replace=False))
        numbers: np.ndarray = np.concatenate(drawn)
        return numbers

    def _read(self, epoch: int) -> Iterator[np.ndarray]:
        """The texts that each teacher reads in an epoch, in a new order."""
        numbers = self._numbers(epoch)
        folds = self._fold[numbers] + np.where(self._unlabelled[numbers], epoch, 0)
        chance = np.random.default_rng((self._seed, epoch, 1))
        for fold in range(self._folds):
            own = folds % self._folds == fold
            yield chance.permutation(numbers[own if self._teaching else ~own])


def loaded(batches: Batches, device: str) -> Iterator[Tensor]:
    """The batches one by one, in their order, on the device."""
    workers = WORKERS if device == "cuda" else 0
    pinned = device == "cuda"
    for portion in DataLoader(batches, batch_size=None, num_workers=workers, pin_memory=pinned):
        yield from portion.to(device, non_blocking=True)


def in_rows(texts: Sequence[Text], pieces: int) -> Iterator[tuple[Tensor, list[Text]]]:
    """All texts in as few rows as it takes, one by one, each with its texts in their order."""
    left = list(texts)
    while left:
        packed, rest = pack(left, 1, pieces)
        waiting = set(map(id, rest))
        yield torch.from_numpy(packed), [it for it in left if id(it) not in waiting]
        left = rest
