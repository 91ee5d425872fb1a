"""What the benchmarks are made with: kept vectors, made-up talk, and a run from end to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.asking import Clock, ask_shuffled, fill
from benchmarks.embedding import CachedEmbedder
from benchmarks.locomo import Locomo
from benchmarks.metrics import recall_at
from benchmarks.scale_corpus import Corpus

from memorist import Memory
from tests.unit.test_benchmark_metrics import TALK

if TYPE_CHECKING:
    from memorist.providers.embedder import Vectors


class Counting:
    """An embedder that counts what it is asked."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return np.array([[len(text), 1] for text in texts], np.float32)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed([text])[0]
        return vector


def test_a_kept_vector_is_not_made_again_and_is_the_same(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    made = CachedEmbedder(first, tmp_path).embed(["a", "bb", "a"])
    assert first.asked == ["a", "bb"]
    cached = CachedEmbedder(second, tmp_path)
    assert np.array_equal(cached.embed(["bb", "ccc", "a"]), [[2, 1], [3, 1], [1, 1]])
    assert second.asked == ["ccc"]
    assert made.tolist() == [[1, 1], [2, 1], [1, 1]]
    assert (cached.made, cached.cached) == (1, 2)


def test_a_question_is_embedded_every_time(tmp_path: Path) -> None:
    inner = Counting()
    cached = CachedEmbedder(inner, tmp_path)
    for _ in range(2):
        cached.embed_query("why?")
    assert inner.asked == ["why?", "why?"]


def test_made_up_talk_is_the_same_in_every_process() -> None:
    texts = list(Corpus().texts(990, 1_010))
    assert texts == [Corpus().text(number) for number in range(990, 1_010)]
    assert all(8 <= len(text.split()) <= 30 for text in texts)
    assert len(set(Corpus().words)) == 8_000


def test_a_question_set_runs_through_the_public_door(tmp_path: Path) -> None:
    locomo, clock = Locomo([TALK]), Clock()
    with Memory(tmp_path / "m.db", tenant="locomo", clock=clock, embedder=None) as memory:
        assert fill(memory, locomo, locomo.questions) == 3
        assert fill(memory, locomo, locomo.questions) == 0
        first = locomo.questions[0]
        asked = replace(first, text="who has a red bike?")
        [answer] = ask_shuffled(memory, clock, [asked])
    assert answer.found[0].id == "D1:2"
    assert answer.found[0].session == "session_1"
    assert recall_at(1, [found.id for found in answer.found], first.turns) == 0.5
