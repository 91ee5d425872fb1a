"""The reader: a small model on this machine that marks what a message says of its speaker.

It has MiniLM's shape, is trained to read, and comes with memorist-minilm. A mark is a
stretch of the message: the object of a claim, with its predicate and how sure the reader is.
"""

from __future__ import annotations

import json
import logging
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memorist.errors import ProviderError
from memorist.language.text import minilm_folder
from memorist.providers.local_model import WINDOW, WordPiece, open_session, places, word_pieces
from memorist.records.values import batches

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Score = Callable[..., tuple[Floats, Floats]]
    """Scores of each word's tags and of the whole, for one or more sequences of words."""


log = logging.getLogger("memorist")
BUCKETS = 2_048  # into which words are sorted that the vocabulary lacks; that number is none
UPDATE = -1  # the place of the score that one message updates another, after the categories
LEAST = 0.1  # how likely a word is part of a claim, for a rule to be believed, and
LEAST_IN_LIST = 0.01  # if it stands in a list of which something is


class Mark(NamedTuple):
    """A stretch of a message that is the object of a claim about its speaker."""

    start: int
    end: int
    predicate: str
    ends: bool  # it holds no longer
    chance: float  # how sure the reader is


class MarkedMessage(NamedTuple):
    """The marks of a message, and how likely it says anything worth keeping.

    `chances` tells of each word how likely it is said of the speaker, by each predicate that the
    reader knows and by any of them (`""`).
    """

    marks: tuple[Mark, ...]
    worth: float
    chances: Mapping[str, Mapping[str, float]]

    def doubts(self, thing: str, predicate: str, least: float = LEAST) -> bool:
        """Whether none of a thing's words is likely to be said of the speaker by a predicate.

        What is planned may become so.
        """
        kind = predicate.split()[0] if predicate.startswith("favourite ") else predicate
        read = [self.chances.get(word) for word, _, _ in places(thing)]
        return bool(read) and all(
            word and max(word.get(kind, word[""]), word["plans"]) < least for word in read
        )


UNREAD = MarkedMessage((), 1.0, {})


class Word(NamedTuple):
    """A word as the reader sees it: its pieces, how it is written, its number if it is unknown."""

    pieces: Sequence[int]
    shape: int
    bucket: int
    start: int
    end: int
    text: str


def read(text: str) -> MarkedMessage:
    """What a message says of its speaker; nothing is marked where the model cannot be opened."""
    reader = _reader()
    return reader(text) if reader else UNREAD


def update_odds(earlier: Sequence[str], later: str) -> list[float] | None:
    """The logarithms of the odds that a message updates earlier ones, reading it beside each."""
    reader = _reader()
    return [reader.update_odds(it, later) for it in earlier] if reader else None


def words_of(text: str, pieces: WordPiece) -> list[Word]:
    """The words of a text as the reader sees them."""

    def bucket(word: str) -> int:
        return zlib.crc32(word.encode("utf-8", "replace")) % BUCKETS

    return [
        Word(
            cut,
            shape_of(text[start:end]),
            bucket(word) if cut[0] == pieces.unknown else BUCKETS,
            start,
            end,
            word,
        )
        for word, cut, start, end in pieces.words(text)
    ]


def shape_of(word: str) -> int:
    """How a word is written: signs, digits, letters without case, lower, upper, capitalized."""
    if not any(map(str.isalnum, word)):
        return 1
    if any(map(str.isdigit, word)):
        return 2 if word.isdigit() else 3
    if word.lower() == word.upper():
        return 4
    if word.islower():
        return 5
    if word.isupper():
        return 6 if len(word) > 1 else 7
    return 8 if word[0].isupper() and word[1:].islower() else 9


class _Labels(NamedTuple):
    """What the scores of a word stand for: predicates, in the order of their tags."""

    values: Sequence[str]
    told: Sequence[str]
    kinds: Sequence[str]  # of favourites; the last is any other


class Reader:
    """Reads a message in windows that fit into the model."""

    def __init__(self, pieces: WordPiece, labels: _Labels, score: Score) -> None:
        self._pieces, self._labels, self._score = pieces, labels, score

    def __call__(self, text: str) -> MarkedMessage:
        marks, worth, chances = list[Mark](), 0.0, dict[str, dict[str, float]]()
        for words in _windows(words_of(text, self._pieces)):
            scores, whole = self._score(words)
            worth = max(worth, 1 - math.exp(_logs(whole[None, :UPDATE])[0, 0]))
            values, told, rest = self._apart(scores)
            marks += self._marks(words, values, told, rest)
            for word, own in zip(words, self._chances(values, told), strict=True):
                if known := chances.get(word.text):
                    own = {name: max(chance, known[name]) for name, chance in own.items()}
                chances[word.text] = own
        return MarkedMessage(tuple(sorted(marks)), worth, chances)

    def update_odds(self, earlier: str, later: str) -> float:
        """The logarithm of the odds that a message updates an earlier one."""
        both = (
            next(_windows(words_of(it, self._pieces), WINDOW // 2), ()) for it in (earlier, later)
        )
        _, whole = self._score(*both)
        return float(whole[UPDATE])

    def _chances(self, values: Floats, told: Floats) -> Iterator[dict[str, float]]:
        """How likely each word is part of a claim, by each predicate and by any."""
        import numpy as np

        inside = [np.exp(logs[:, 1:]).reshape(len(logs), -1, 2).sum(2) for logs in (values, told)]
        any_ = 1 - np.exp(np.minimum(values[:, 0], told[:, 0]))
        names = (*self._labels.values, *self._labels.told, "")
        for row in np.column_stack((*inside, any_)).tolist():
            yield dict(zip(names, row, strict=True))

    def _apart(self, scores: Floats) -> tuple[Floats, Floats, Floats]:
        """The logarithms of the chances of both kinds of tags, and the other scores."""
        values = 1 + 2 * len(self._labels.values)
        told = values + 1 + 2 * len(self._labels.told)
        return _logs(scores[:, :values]), _logs(scores[:, values:told]), scores[:, told:]

    def _marks(
        self, words: Sequence[Word], values: Floats, told: Floats, rest: Floats
    ) -> Iterator[Mark]:
        labels = self._labels
        for chances, names in ((values, labels.values), (told, labels.told)):
            for first, last, tag, chance in _stretches(chances):
                name = names[tag // 2]
                if name == "favourite":
                    name = f"favourite {labels.kinds[int(rest[first, 1:].argmax())]}"
                over = float(rest[first:last, 0].mean())
                chance /= 1 + math.exp(-abs(over))  # that it ends, or that it does not
                yield Mark(words[first].start, words[last - 1].end, name, over > 0, chance)


def _logs(scores: Floats) -> Floats:
    """The logarithms of what scores mean as chances."""
    import numpy as np

    scores = scores - scores.max(axis=1, keepdims=True)
    logs: Floats = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return logs


def _windows(words: Sequence[Word], size: int = WINDOW) -> Iterator[Sequence[Word]]:
    """The words, as many at once as the model reads, or as have some number of pieces."""
    return batches(words, lambda word: len(word.pieces), most=size, most_size=size)


def _stretches(chances: Floats) -> Iterator[tuple[int, int, int, float]]:
    """The likeliest stretches: first word, the one after the last, tag and mean chance.

    A tag is odd for the first word of a stretch and one more for its others; 0 is outside.
    """
    import numpy as np

    count, tags = chances.shape
    going_on = np.arange(2, tags, 2)  # may only follow their own first word, and themselves
    best, before = chances[0].copy(), []
    best[going_on] = -np.inf
    for word in chances[1:]:
        came = np.full(tags, int(best.argmax()))
        came[going_on] = np.where(best[going_on] > best[going_on - 1], going_on, going_on - 1)
        before.append(came)
        best = best[came] + word
    path = [int(best.argmax())]
    for came in reversed(before):
        path.append(int(came[path[-1]]))
    path.reverse()
    for first in [place for place in range(count) if path[place] % 2]:
        last = first + 1
        while last < count and path[last] == path[first] + 1:
            last += 1
        mean = chances[range(first, last), path[first:last]].mean()
        yield first, last, path[first], float(np.exp(mean))


@cache
def _reader() -> Reader | None:
    """The reader of this process; None, said once, if its files are missing or cannot be used."""
    try:
        folder = minilm_folder()
        labels = _Labels(**json.loads((folder / "reader.json").read_text(encoding="utf-8")))
        pieces = word_pieces(folder)
        return Reader(pieces, labels, _scorer(folder, pieces))
    except (ProviderError, OSError, ValueError, TypeError, KeyError) as error:
        log.warning("messages are read by rules alone: %s", error)
        return None


def _scorer(folder: Path, pieces: WordPiece) -> Score:
    """What scores the words of a window: onnxruntime, or numpy where there is none."""
    import numpy as np

    from memorist.providers.minilm_numpy import NumpyReader, read_tensors

    tensors = read_tensors(folder)
    shapes, unknown = tensors["reader.shapes"], tensors["reader.unknown"]
    scale = tensors["reader.unknown_scale"]
    session = open_session(folder / "reader.onnx", threads=1)
    run = NumpyReader(folder).scores if session is None else None

    def score(*parts: Sequence[Word]) -> tuple[Floats, Floats]:
        ids, rows, firsts = [pieces.start], [shapes[0]], list[int]()
        for words in parts:
            for word in words:
                firsts.append(len(ids))
                row = shapes[word.shape]
                if word.bucket < len(unknown):
                    row = row + unknown[word.bucket] * scale[word.bucket]
                ids += word.pieces
                rows += [row] * len(word.pieces)
            ids.append(pieces.stop)
            rows.append(shapes[0])
        given = np.array([ids], np.int32), np.array([rows], np.float32)
        tags, whole = (
            run(*given) if run else session.run(None, {"ids": given[0], "beside": given[1]})
        )
        return tags[0][firsts], whole[0]

    return score
