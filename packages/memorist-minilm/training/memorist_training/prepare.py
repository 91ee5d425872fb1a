"""What training reads: the corpus in word pieces and the published weights, in one file.

This is the part that needs Memorist and the package index; the rest needs PyTorch alone, so
the file can be carried to a machine that has a GPU and nothing else.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from memorist_training.claims import Span, Told, Word, read_claims, unlabelled
from memorist_training.corpus import (
    CHANGES,
    HELD_OUT_TALKS,
    STORIES,
    TALKS,
    read_corpus,
    read_stories,
    texts_of,
    texts_of_story,
)
from memorist_training.pairs import Pair, pack_pairs, unpack_pairs

PACKAGE = Path(__file__).parents[2]
ADAPTER = PACKAGE / "adapter.npz"
ANCHORS = Path(__file__).parents[1] / "anchors.json"
FIRST_WORD = 999  # of the vocabulary; those before are marks and unused places


def prepare(file: Path) -> None:
    """Write the file."""
    sys.path.insert(0, str(PACKAGE))
    from published import arrange, fetch_published, read_published  # the build's own

    from memorist.language.questions import in_first_person
    from memorist.providers.local_model import WordPiece

    with tempfile.TemporaryDirectory() as place:
        weights = read_published(fetch_published(Path(place)), Path(place))
        encode = WordPiece(Path(place)).encode
    folders = (STORIES, CHANGES, TALKS, HELD_OUT_TALKS)
    stories = [story for folder in folders for story in read_stories(folder)]
    said = {text for example in read_corpus() for text in texts_of(example)}
    told = {text for story in stories for text in texts_of_story(story)}
    read = {text: text for text in (*said, *told, *anchors())}
    for story in stories:  # recall asks in the first person of whom a question names
        asked = [it.text for it in story.questions]
        read |= {text: in_first_person(text, story.speakers) for text in asked}
    texts = sorted(read)
    pieces = [np.array(encode(read[text]), np.uint16) for text in texts]
    arrays: dict[str, Any] = {
        "texts": np.frombuffer(json.dumps(texts).encode(), np.uint8),
        "pieces": np.concatenate(pieces),
        "ends": np.cumsum([len(it) for it in pieces]),
    }
    # 16 bits are enough to train beside; the adapter is added to the weights in 32.
    base = {f"base/{name}": it.astype(np.float16) for name, it in arrange(weights).items()}
    np.savez_compressed(file, **arrays, **base)


def prepare_reader(file: Path, adapter: Path) -> None:
    """Write what the reader learns from, messages and pairs, and the weights it begins with.

    Those are the published ones with the adapter. The embedder that is installed tells which
    messages are near each other.
    """
    sys.path.insert(0, str(PACKAGE))
    from published import adapt, arrange, fetch_published, read_published

    from memorist.providers.local_model import WordPiece
    from memorist.providers.minilm import MiniLM
    from memorist.providers.reader import words_of

    with tempfile.TemporaryDirectory() as folder:
        weights = read_published(fetch_published(Path(folder)), Path(folder))
        pieces = WordPiece(Path(folder))

    def words(text: str) -> list[tuple[Word, int, int]]:
        return [(Word(*word[:3]), *word[3:5]) for word in words_of(text, pieces)]

    def words_alone(text: str) -> list[Word]:
        return [word for word, _, _ in words(text)]

    messages = [*read_claims(words), *unlabelled(words)]
    embedder = MiniLM()
    nets = embedder.embed, embedder.update_chances
    pairs = pack_pairs(read_stories(STORIES), words_alone, *nets)
    measured = pack_pairs(read_stories(CHANGES), words_alone, *nets)
    base = adapt(arrange(weights), adapter)
    used = [piece for message in messages for word in message.words for piece in word.pieces]
    used += [piece for said in measured["messages"] for word in said for piece in word[0]]
    unused = np.ones(len(base["words"]), bool)
    unused[[*range(FIRST_WORD), *used]] = False
    # Words do not learn, and would take half of the file.
    base["words"] = np.where(unused[:, None], 0, base["words"])
    rows = [asdict(replace(it, text="", places=())) for it in messages]
    lists = {"messages": rows, "pairs": pairs, "measured": measured}
    arrays = {name: np.frombuffer(json.dumps(it).encode(), np.uint8) for name, it in lists.items()}
    small = {f"base/{name}": array.astype(np.float16) for name, array in base.items()}
    np.savez_compressed(file, **arrays, **small)  # type: ignore[arg-type]


class Prepared(NamedTuple):
    """What `prepare_reader` wrote: the pairs to learn from and those that measure are apart."""

    messages: list[Told]
    pairs: list[Pair]
    measured: list[Pair]
    base: dict[str, np.ndarray]


def read_prepared_claims(file: Path) -> Prepared:
    """What the reader learns from, and begins with."""
    with np.load(file) as arrays:
        rows = json.loads(arrays["messages"].tobytes())
        pairs, measured = (
            unpack_pairs(json.loads(arrays[name].tobytes())) for name in ("pairs", "measured")
        )
        base = {name[5:]: arrays[name] for name in arrays.files if name.startswith("base/")}
    for row in rows:
        row["words"] = tuple(Word(tuple(pieces), *rest) for pieces, *rest in row["words"])
        row["spans"] = tuple(Span(*span) for span in row["spans"])
    return Prepared([Told(**row) for row in rows], pairs, measured, base)


def read_factors(file: Path) -> dict[str, np.ndarray]:
    """The arrays of the adapter in a file, which may hold others too."""
    with np.load(file) as arrays:
        return {it: arrays[it] for it in arrays.files if it.endswith((".inward", ".outward"))}


def anchors() -> list[str]:
    """Long technical texts whose vectors should stay where they are."""
    return list(json.loads(ANCHORS.read_text(encoding="utf-8")))
