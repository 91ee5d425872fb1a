"""Figures of the reader, on messages and pairs that it has not learnt from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np
import torch

from memorist_training.batches import Batch, Text, in_rows, text_of, text_of_pair, unpacked
from memorist_training.claims import Told
from memorist_training.network import Readers
from memorist_training.pairs import Pair, figures

PIECES = {"cpu": 2_048, "cuda": 16_384}  # read at once


class Found(NamedTuple):
    """A stretch that a reader marks: how sure it is, and whether it is right; and exactly so."""

    chance: float
    right: bool
    exact: bool


class Read(NamedTuple):
    """What readers say of a row of texts, as chances: of its words, and of its texts."""

    values: np.ndarray
    told: np.ndarray
    ends: np.ndarray
    updates: np.ndarray
    tags: Batch  # of the words alone
    texts: list[Text]


def read(model: Readers, texts: Sequence[Text]) -> Iterator[Read]:
    """What the readers say on average, a row at a time."""
    device = model.head.device
    for packed, kept in in_rows(texts, PIECES[device.type]):
        row = unpacked(packed)
        batch = Batch(*(it.to(device).expand(model.count, -1) for it in row))
        with torch.no_grad(), _as_it_is(device):
            said = model(batch)
        values, told, ends, _, _, updates = (it.exp().mean(dim=0).cpu().numpy() for it in said)
        first = row.values[0] >= 0
        words = Batch(*(it[0][first] if it.shape == row.pieces.shape else it for it in row))
        at = first.numpy()
        yield Read(values[at], told[at], ends[at], updates[: len(kept)], words, kept)


def _as_it_is(device: torch.device) -> AbstractContextManager[object]:
    """Not compiled for the few shapes that measure."""
    if device.type == "cpu":
        return nullcontext()
    return torch.compiler.set_stance("force_eager")  # type: ignore[no-any-return]


def measure(model: Readers, messages: Sequence[Told]) -> dict[str, float]:
    """Of the claims, how many are found; of those found, how many are right; at some chances.

    A claim is found where predicate and end are right and one stretch holds the other. Where there
    are several readers, their mean is measured.
    """
    found, labelled = list[Found](), 0
    for row in read(model, [text_of(it) for it in messages]):
        ends, owners = row.tags.ends.tolist(), row.tags.owners.tolist()
        for scores, tags in ((row.values, row.tags.values), (row.told, row.tags.told)):
            wanted = stretches(np.eye(scores.shape[1])[tags.numpy()], owners)
            open_ones = {(first, last, tag) for first, last, tag, _ in wanted}
            labelled += len(open_ones)
            for first, last, tag, chance in stretches(scores, owners):
                near = [
                    it
                    for it in open_ones
                    if it[2] == tag
                    and (it[0] <= first < last <= it[1] or first <= it[0] < it[1] <= last)
                ]
                over = bool(row.ends[first:last, 1].mean() > 0.5)
                right = bool(near) and (ends[near[0][0]] == 1) == over
                found.append(Found(chance, right, bool(near) and near[0][:2] == (first, last)))
                open_ones -= set(near[:1])
    return _figures(found, labelled)


def measure_pairs(model: Readers, pairs: Sequence[Pair], odds: float) -> dict[str, object]:
    """How well the readers tell updates; of log-odds, `odds` come from how pairs were drawn."""
    texts = [text_of_pair(it) for it in pairs]
    scores = dict[int, float]()
    for row in read(model, texts):
        logs = np.log(np.clip(row.updates, 1e-7, 1))
        scores |= zip(map(id, row.texts), (logs[:, 1] - logs[:, 0] - odds).tolist(), strict=True)
    return figures(np.array([scores[id(it)] for it in texts]), pairs)


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


def stretches(chances: np.ndarray, owners: Sequence[int]) -> Iterator[tuple[int, int, int, float]]:
    """The likeliest stretches of tags: first word, the one after the last, tag and mean chance."""
    tags = chances.argmax(axis=1)
    for first in np.flatnonzero(tags % 2).tolist():
        last = first + 1
        while last < len(tags) and tags[last] == tags[first] + 1 and owners[last] == owners[first]:
            last += 1
        mean = np.exp(np.log(chances[np.arange(first, last), tags[first:last]] + 1e-9).mean())
        yield first, last, int(tags[first]), float(mean)
