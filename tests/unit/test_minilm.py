"""MiniLM: the real weights, on onnxruntime and on numpy alone."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from memorist import ProviderError
from memorist.language.text import minilm_folder
from memorist.providers.embedder import Embedder
from memorist.providers.local_model import WINDOW, WordPiece
from memorist.providers.minilm import MiniLM
from memorist.providers.minilm_numpy import erf

TEXTS = [
    "",
    "hello",
    "Where does she live now?",
    "I moved to Berlin in March. No more Munich commutes!",
    "Caroline went to the LGBTQ support group on 7 May 2023",
    "My sister Anika visits me on 12 December.",
    "I am allergic to peanuts, and I have been a vegetarian since 2019.",
    "def f(x): return x + 1",
    "e = mc²",
    "!!!",
    "🙂🎉",
    "Я переехала в Берлин в марте",
    "Ich bin im März nach Berlin gezogen.",
    "J'ai déménagé à Berlin en mars.",
    "我在三月搬到了柏林",
    "日本語のテキストです",
    "한국어 텍스트",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "Ελληνικά γράμματα",
    "שלום עולם",
    "สวัสดีชาวโลก",
    "https://example.org/a?b=c#d",
    "ALL CAPITALS, LOUD",
    "x" * 300,
    "one two three " * 10,
    "The quick brown fox jumps over the lazy dog. " * 12,
    "What did the doctor say about her knee, and when should she run again?",
    "1,234.56 € on 2026-11-15 at 05:47",
    "tool_call: search(query='weather in Pune')",
]


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM()


@pytest.fixture(scope="module")
def on_numpy() -> MiniLM:
    """As on a machine for which onnxruntime has no wheel."""
    embedder = MiniLM()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "onnxruntime", None)
        embedder.embed_query("loads it")
    return embedder


def test_it_keeps_the_contract(minilm: MiniLM) -> None:
    embedder: Embedder = minilm

    assert embedder.name == "memorist-minilm-3/int8"
    assert embedder.embed([]).shape == (0, MiniLM.width)
    assert embedder.embed(["a", "b"]).dtype == np.float32
    assert embedder.embed_query("a").shape == (MiniLM.width,)


def test_the_embedders_of_a_process_read_their_model_and_its_vocabulary_once() -> None:
    first, second = MiniLM(), MiniLM()
    first.load()
    second.load()

    for one, other in zip(first._model, second._model, strict=True):
        assert one is other


def test_every_vector_has_unit_length(minilm: MiniLM) -> None:
    vectors = minilm.embed(TEXTS)

    assert vectors.shape == (len(TEXTS), MiniLM.width)
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-5


def test_a_question_lies_nearest_to_its_answer(minilm: MiniLM) -> None:
    answers = [
        "I moved to Berlin in March. No more Munich commutes!",
        "My dog Rex hates the cold.",
        "I am allergic to peanuts.",
        "We closed the deal with the bank on Friday.",
    ]
    questions = ["where does she live now?", "her pet", "a food to avoid", "a finance contract"]
    scores = np.stack([minilm.embed_query(question) for question in questions])
    scores = scores @ minilm.embed(answers).T

    assert scores.argmax(axis=1).tolist() == [0, 1, 2, 3]


def test_similarity_is_what_the_trained_weights_say_in_32_bits(minilm: MiniLM) -> None:
    food, bread, baby = minilm.embed(
        [
            "A man is eating food.",
            "A man is eating a piece of bread.",
            "The girl is carrying a baby.",
        ]
    )

    assert float(food @ bread) == pytest.approx(0.7795, abs=0.02)
    assert float(food @ baby) == pytest.approx(0.1103, abs=0.02)


def test_a_text_has_one_vector_whatever_stands_beside_it(minilm: MiniLM) -> None:
    together = minilm.embed(TEXTS)

    for row, text in enumerate(TEXTS):
        assert np.array_equal(together[row], minilm.embed_query(text))


def test_numpy_computes_the_same_vectors_as_onnxruntime(minilm: MiniLM, on_numpy: MiniLM) -> None:
    cosines = (minilm.embed(TEXTS) * on_numpy.embed(TEXTS)).sum(axis=1)

    assert cosines.min() > 0.999
    assert cosines.mean() > 0.9995


def test_the_end_of_a_long_text_counts(minilm: MiniLM) -> None:
    filler = "The committee discussed the agenda and the minutes of the meeting. " * 60
    end = "My parrot Polly escaped from the balcony. " * 40
    question = minilm.embed_query("a bird flew away")

    assert question @ minilm.embed_query(filler + end) > question @ minilm.embed_query(filler) + 0.1


def test_a_text_of_one_word_more_than_a_window_is_no_other_text(minilm: MiniLM) -> None:
    words = ("The parrot escaped from the balcony and nobody saw it again. " * 30).split()
    pieces = WordPiece(minilm_folder())
    counts = [len(pieces.encode(" ".join(words[:stop]))) for stop in range(len(words))]
    last = max(stop for stop, count in enumerate(counts) if count <= WINDOW)
    fits, over = minilm.embed([" ".join(words[:stop]) for stop in (last, last + 1)])

    assert float(fits @ over) > 0.95


def test_threads_load_the_model_once_and_agree() -> None:
    embedder, found = MiniLM(), []

    def work() -> None:
        found.append(embedder.embed_query("hello"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.array_equal(vector, found[0]) for vector in found)


def test_importing_and_making_it_loads_neither_numpy_nor_onnxruntime() -> None:
    code = (
        "import sys; from memorist.providers.minilm import MiniLM; MiniLM();"
        "from memorist.providers.minilm import StaticEmbedder; StaticEmbedder();"
        "assert not {'numpy', 'onnxruntime', 'memorist_minilm'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_weights_name_their_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "memorist_minilm", None)

    with pytest.raises(ProviderError, match="pip install memorist-minilm"):
        MiniLM().embed_query("hello")


def test_weights_that_are_gone_name_their_cure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("memorist_minilm.data_folder", lambda: tmp_path)

    with pytest.raises(ProviderError, match="--force-reinstall memorist-minilm"):
        MiniLM().embed_query("hello")


def test_a_damaged_graph_is_an_error_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for file in minilm_folder().iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "model.onnx").unlink()
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    monkeypatch.setattr("memorist_minilm.data_folder", lambda: tmp_path)

    with pytest.raises(ProviderError, match="onnxruntime cannot open"):
        MiniLM().embed_query("hello")


def test_erf_is_exact_to_a_millionth() -> None:
    places = np.linspace(-6, 6, 2_001, dtype=np.float32)
    exact = np.array([math.erf(place) for place in places])

    assert np.abs(erf(places) - exact).max() < 1e-6


def test_it_tells_what_updates_what(minilm: MiniLM) -> None:
    earlier = minilm.embed(
        [
            "I live in Munich, near the river. Where can I swim on a weekday?",
            "Need a plan that fits around climbing, I go Tuesday and Thursday evenings.",
            "I am allergic to peanuts. What can I bake for Lena?",
        ]
    )
    later = minilm.embed(["We're in Graz now, got the keys on Monday. Where do people swim here?"])
    a, b, weights = earlier, later[0], np.load(minilm_folder() / "updates.npz")

    chances = minilm.update_chances(earlier, b)

    assert chances.dtype == np.float32
    assert chances.argmax() == 0
    assert chances[0] > 0.5 > 0.2 > chances[1:].max()
    rows = [np.concatenate([it * b, abs(it - b), b, it, [it @ b]]) for it in a]
    inner = np.maximum(np.stack(rows) @ weights["inner"] + weights["shift"], 0)
    told = inner @ weights["outer"] + weights["constant"]
    assert chances == pytest.approx(1 / (1 + np.exp(-told)), abs=1e-4)


def test_reading_both_messages_confirms_an_update(minilm: MiniLM) -> None:
    later = "We're in Graz now, got the keys on Monday. Where do people swim here?"
    earlier = ["I live in Munich, near the river. Where can I swim?", "Which train goes to Graz?"]
    even = np.full(2, 0.3, np.float32)
    chances = minilm.confirm_updates(earlier, later, even)
    assert chances[0] > 0.4 > 0.2 > chances[1]
