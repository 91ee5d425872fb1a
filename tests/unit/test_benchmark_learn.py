"""The training of the net that adds to the ranking."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from benchmarks import learn
from benchmarks.dataset import Question
from benchmarks.learn import Asked, as_net, train

QUESTION = Question(
    id="q",
    user="u",
    text="?",
    kind="of one message",
    turns=frozenset({"0"}),
    user_turns=frozenset(),
    sessions=frozenset(),
    asked_at=datetime(2026, 3, 1, tzinfo=UTC),
)


def asked(number: int, chance: np.random.Generator) -> Asked:
    """A question whose answer has one of two signals, and not both: no sum of them tells it."""
    signals = chance.integers(0, 2, (20, 2)).astype(np.float32)
    signals[:, 1] = signals[:, 0]
    answer = int(chance.integers(20))
    signals[answer, 1] = 1 - signals[answer, 0]
    question = replace(QUESTION, user=f"u{number % 10}", turns=frozenset({str(answer)}))
    worth = np.arange(20) == answer
    ids = [str(place) for place in range(20)]
    return Asked(
        "talks", question, ids, np.zeros(20, np.float32), signals, worth.astype(np.float32)
    )


def test_nets_learn_what_no_sum_of_signals_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(1)
    every = [asked(number, chance) for number in range(260)]
    monkeypatch.setattr(learn, "RATE", 0.02)
    net = as_net(train(every[:200], range(1)))
    first = [it.worth[net.add(it.signals).argmax()] for it in every[200:]]
    assert np.mean(first) > 0.9
    again = as_net(train(every[:200], range(1)))
    assert all(np.array_equal(one, two) for one, two in zip(net, again, strict=True))
