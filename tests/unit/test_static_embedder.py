"""StaticEmbedder: word vectors that are good enough, very fast."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest

from memorist import ProviderError
from memorist.providers.embedder import Embedder
from memorist.providers.minilm import StaticEmbedder


@pytest.fixture(scope="module")
def static() -> StaticEmbedder:
    return StaticEmbedder()


def test_it_keeps_the_contract(static: StaticEmbedder) -> None:
    embedder: Embedder = static

    assert embedder.name == "memorist-static-3/256"
    assert embedder.embed([]).shape == (0, 256)
    assert embedder.embed(["a", "b"]).dtype == np.float32
    assert embedder.embed_query("a").shape == (256,)


@pytest.mark.parametrize("text", ["", " ", "\x00", "x" * 300, "🙂", "!", "我在三月", "\ud800"])
def test_every_text_has_a_vector_of_unit_length(static: StaticEmbedder, text: str) -> None:
    assert np.linalg.norm(static.embed_query(text)) == pytest.approx(1, abs=1e-5)


def test_words_that_mean_the_same_lie_near_each_other(static: StaticEmbedder) -> None:
    answers = [
        "I moved to Berlin in March. No more Munich commutes!",
        "My dog Rex hates the cold.",
        "I am allergic to peanuts.",
        "We closed the deal with the bank on Friday.",
    ]
    questions = ["which city is her home?", "her pet puppy", "food allergy", "finance contract"]
    scores = static.embed(questions) @ static.embed(answers).T

    assert scores.argmax(axis=1).tolist() == [0, 1, 2, 3]


def test_frequent_words_say_little(static: StaticEmbedder) -> None:
    bare, full = static.embed(["Berlin", "and this is the one that is in Berlin, of it."])

    assert float(bare @ full) > 0.7


def test_all_of_a_long_text_counts(static: StaticEmbedder) -> None:
    filler = "committee agenda minutes " * 500

    assert static.embed_query(filler) @ static.embed_query(filler + "parrot " * 500) < 0.95


def test_it_makes_a_thousand_texts_in_a_second(static: StaticEmbedder) -> None:
    texts = [f"On day {day} she went to the market and bought oranges." for day in range(500)]
    static.embed(texts[:10])
    started = time.process_time()
    static.embed(texts)

    assert time.process_time() - started < 0.5


def test_threads_load_it_once_and_agree() -> None:
    embedder, found = StaticEmbedder(), []
    threads = [
        threading.Thread(target=lambda: found.append(embedder.embed_query("hello")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.array_equal(vector, found[0]) for vector in found)


def test_missing_weights_name_their_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "memorist_minilm", None)

    with pytest.raises(ProviderError, match="pip install memorist-minilm"):
        StaticEmbedder().embed(["hello"])
