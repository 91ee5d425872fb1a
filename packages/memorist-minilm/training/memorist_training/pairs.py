"""Pairs of messages of a story, of which the later may update what the earlier says.

Each message is paired with those before it that are nearest by the embedder's vectors, and with
what it updates, where it is known whether it does. `told` of a pair is what the nets on the two
vectors say of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from memorist_training.claims import Word
from memorist_training.corpus import Story

NEAREST = 8  # earlier messages that each message is paired with
COMPARED = 6  # of which so many are what Memorist asks about, and measure

Vectors = Callable[[list[str]], np.ndarray]
Nets = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""How likely a later vector updates each of the earlier ones."""


class Pair(NamedTuple):
    """Two messages of a story, and whether the later updates the earlier."""

    story: int
    nearer: int  # how many earlier messages are nearer to the later one
    updates: bool
    told: float
    earlier: Sequence[Word]
    later: Sequence[Word]


def pack_pairs(
    stories: Sequence[Story],
    words_of: Callable[[str], Sequence[Word]],
    vectors_of: Vectors,
    nets: Nets,
) -> dict[str, list[Any]]:
    """The messages of the stories, and rows of numbers for their pairs."""
    messages: list[list[Sequence[object]]] = []
    rows: list[tuple[int, int, bool, float, int, int]] = []
    for number, story in enumerate(stories):
        start = len(messages)
        messages += [list(map(list, words_of(text))) for text in story.messages]
        vectors = vectors_of(list(story.messages))
        for later in range(1, len(vectors)):
            order = np.argsort(-(vectors[:later] @ vectors[later]), kind="stable").tolist()
            updated = {older for older, newer in story.updates if newer == later}
            unknown = {older for older, newer in story.unknown if newer == later}
            told = nets(vectors[:later], vectors[later]).tolist()
            rows += [
                (number, place, older in updated, told[older], start + older, start + later)
                for place, older in enumerate(order)
                if (place < NEAREST or older in updated) and older not in unknown
            ]
    return {"messages": messages, "pairs": rows}


def unpack_pairs(packed: Mapping[str, list[Any]]) -> list[Pair]:
    """The pairs that `pack_pairs` packed."""
    messages = [
        [Word(tuple(pieces), *rest) for pieces, *rest in words] for words in packed["messages"]
    ]
    return [
        Pair(story, nearer, updates, told, messages[earlier], messages[later])
        for story, nearer, updates, told, earlier, later in packed["pairs"]
    ]


def figures(scores: np.ndarray, pairs: Sequence[Pair]) -> dict[str, object]:
    """How well scores, as log-odds, tell the updates among the nearest; alone and with the nets.

    A figure is the average precision; then, of the pairs called updates from some chance on, how
    many are, and of all updates how many are called so.
    """
    near = [it.nearer < COMPARED for it in pairs]
    truth = np.array([it.updates for it in pairs])[near]
    chances = np.clip([it.told for it in pairs], 1e-6, 1 - 1e-6)[near]
    nets = np.log(chances / (1 - chances))
    own = scores[near]
    both = {"own": own, "nets": nets, "mean": (own + nets) / 2}
    product = 1 / (1 + np.exp(-own)) * chances
    found: dict[str, object] = {"pairs": len(truth), "updates": int(truth.sum())}
    found |= {name: round(average_precision(it, truth), 3) for name, it in both.items()}
    found["product"] = round(average_precision(product, truth), 3)
    for name, odds in both.items():
        for least in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7):
            called = odds >= np.log(least / (1 - least))
            right = float(truth[called].mean()) if called.any() else 0.0
            found[f"{name} at {least}"] = (round(right, 3), round(float(called[truth].mean()), 3))
    return found


def average_precision(scores: np.ndarray, truth: np.ndarray) -> float:
    """The mean, over what is true, of the share of the true among what scores as high."""
    ordered = truth[np.argsort(-scores, kind="stable")]
    share = np.cumsum(ordered) / np.arange(1, len(ordered) + 1)
    return float(share[ordered].mean())
