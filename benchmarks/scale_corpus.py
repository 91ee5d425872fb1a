"""Made-up talk for `make bench-scale`: words as frequent as in real talk, vectors with topics.

Everything follows from a number: the same text, question and vector in every process and run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memorist.language.text import minilm_folder

if TYPE_CHECKING:
    from memorist.providers.embedder import Embedder, Vectors

COMMON = (
    "the i to and a you it of anna ben that is in for my just like was on have so me really but be "
    "this with time do not at we think are they know can all about good what if out how when day "
    "there would some he get one had will work she from her up want them go new your as then been "
    "see his last an or who did our could more were now much him need going any very no make us by "
    "has too which back well also way than got still their over other after because into only"
).split()
TELLING = "like really time think know good day get work want go new see last need make".split()
NAMES = ("anna", "ben")
SMALL = frozenset(COMMON) - {*TELLING, *NAMES}  # what no search looks for
WORDS = 8_000
TOPICS = 300
WORDS_OF_TOPIC = 40
TOPICAL = 0.25  # of a text's words; the rest is drawn from all words by their frequency
DIMENSIONS = 384
BLOCK = 1_000
BLOCKS = 1_000  # after a million texts they come again
LENGTHS = (8, 30)
Ids = NDArray[np.int64]


class Corpus:
    """Texts by number."""

    @cached_property
    def words(self) -> list[str]:
        """The vocabulary, most frequent first: small words, then those the model knows.

        Of words that it does not know, it would read more pieces than of a real question's.
        """
        lines = (minilm_folder() / "vocab.txt").read_text(encoding="utf-8").splitlines()
        whole = (word for word in lines if word.isascii() and word.isalpha() and len(word) > 2)
        return list(dict.fromkeys([*COMMON, *whole]))[:WORDS]

    @cached_property
    def places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    @cached_property
    def _cumulated(self) -> NDArray[np.float64]:
        weights = 1 / (np.arange(WORDS) + 2.7)
        return np.asarray(np.cumsum(weights) / weights.sum())

    @cached_property
    def topics(self) -> Ids:
        """The words of each topic: none of the small ones."""
        chance = np.random.default_rng(11)
        return chance.integers(len(COMMON), WORDS, size=(TOPICS, WORDS_OF_TOPIC))

    def texts(self, start: int, stop: int) -> Iterator[str]:
        """The texts of these numbers."""
        for number in range(start, stop):
            yield self.text(number)

    def text(self, number: int) -> str:
        return self._block(number // BLOCK % BLOCKS)[number % BLOCK]

    @cache  # noqa: B019 - a corpus lives as long as its process
    def _block(self, block: int) -> list[str]:
        chance = np.random.default_rng((13, block))
        shape = (BLOCK, LENGTHS[1])
        drawn = np.searchsorted(self._cumulated, chance.random(shape))
        topic = chance.integers(TOPICS, size=(BLOCK, 1))
        of_topic = self.topics[topic, chance.integers(WORDS_OF_TOPIC, size=shape)]
        ids = np.where(chance.random(shape) < TOPICAL, of_topic, drawn).tolist()
        lengths = chance.integers(LENGTHS[0], LENGTHS[1] + 1, size=BLOCK).tolist()
        words = self.words
        return [
            " ".join([words[place] for place in row[:length]])
            for row, length in zip(ids, lengths, strict=True)
        ]

    def facts(self, numbers: Iterable[int]) -> Iterator[tuple[int, str, str]]:
        """What is known from one text in ten, about as many as rules make: who, and a word."""
        for number in numbers:
            rare = [word for word in self.text(number).split() if word not in COMMON]
            if number % 10 == 0 and rare:
                yield number, NAMES[number // 10 % 2], rare[-1]

    def questions(self, size: int, count: int, seed: int) -> list[tuple[int, str]]:
        """Texts of the first `size`, and a question about each."""
        chance = np.random.default_rng((17, size, seed))
        asked: list[tuple[int, str]] = []
        while len(asked) < count:
            number = int(chance.integers(size))
            if question := self.question(number, chance):
                asked.append((number, question))
        return asked

    def question(self, number: int, chance: np.random.Generator) -> str | None:
        """A question of three to six words from a text, unless it has fewer.

        As real ones do, it names people and has words that much else has too: together its
        words occur about as often as a fifth of the texts.
        """
        rare = sorted({word for word in self.text(number).split() if word not in COMMON})
        if len(rare) < 3:
            return None
        picked = [*chance.permutation(rare)[: chance.integers(3, 7)]]
        picked += [*chance.permutation(TELLING)[: chance.integers(1, 5)]]
        picked += [*chance.permutation(NAMES)[: chance.integers(0, 2)]]
        return f"what was it about the {' '.join(picked)}?"


class TopicEmbedder:
    """Vectors from words: texts of a topic lie near each other, and nothing costs much."""

    name = "bench-topics-384"

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        chance = np.random.default_rng(19)
        shape = (WORDS + 1, DIMENSIONS)  # the last stands for words we did not make
        vectors = chance.normal(size=shape).astype(np.float32)
        centres = 2 * chance.normal(size=(TOPICS, DIMENSIONS)).astype(np.float32)
        np.add.at(vectors, corpus.topics.ravel(), np.repeat(centres, WORDS_OF_TOPIC, axis=0))
        rarity = np.log1p(np.arange(WORDS + 1, dtype=np.float32))
        rarity[: len(COMMON)] = rarity[WORDS] = 0.01  # a text of small words has a vector too
        self._vectors = vectors * (rarity / np.linalg.norm(vectors, axis=1))[:, None]

    def embed(self, texts: Sequence[str]) -> Vectors:
        parts = [self._embed(texts[n : n + BLOCK]) for n in range(0, len(texts), BLOCK)]
        return np.concatenate(parts) if parts else np.zeros((0, DIMENSIONS), np.float32)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        places = self._corpus.places
        rows = [[places.get(word, WORDS) for word in text.split()] or [WORDS] for text in texts]
        starts = np.cumsum([0, *(len(row) for row in rows[:-1])])
        sums = np.add.reduceat(self._vectors[np.concatenate(rows)], starts, axis=0)
        return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True), np.float32)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed([text.strip("?")])[0]
        return vector


class QueryEmbedder(TopicEmbedder):
    """The same, with questions that take as long as a real model's, or no time at all.

    A made-up vector is what the store holds neighbours of; a real one is what takes time. So
    the real model is asked too, and its vector is thrown away.
    """

    def __init__(self, corpus: Corpus, model: Embedder | None) -> None:
        super().__init__(corpus)
        self.model = model
        self.is_free = False
        self._known: dict[str, Any] = {}

    def prepare(self, questions: Sequence[str]) -> None:
        """Make the vectors before the clock starts."""
        self._known |= {text: super(QueryEmbedder, self).embed_query(text) for text in questions}

    def embed_query(self, text: str) -> Vectors:
        if self.model is not None and not self.is_free:
            self.model.embed_query(text)
        known = self._known.get(text)
        return super().embed_query(text) if known is None else known
