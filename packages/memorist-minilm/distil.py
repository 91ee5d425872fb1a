"""One vector for each word piece, distilled from the model: texts become means of them."""

from __future__ import annotations

import os
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from exact import ExactMiniLM

DIMENSIONS = 256
BATCH = 256
FIRST_WORD = 1_996  # "the"; from here on the vocabulary is sorted by frequency
RARE_RANK = 20_000
SMOOTH = 1e-3


def distil(model: ExactMiniLM, pieces: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Vectors in 8 bits, and the scale of each, in which lies how much its piece says."""
    vectors = _principal(_alone(model, pieces))
    vectors *= _weights(pieces)[:, None]
    scale = np.abs(vectors).max(axis=1) / 127
    scale[scale == 0] = 1
    return np.rint(vectors / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def _alone(model: ExactMiniLM, pieces: list[str]) -> np.ndarray:
    """What the model makes of each piece by itself, between the marks."""
    start, stop = pieces.index("[CLS]"), pieces.index("[SEP]")
    ids = np.array([[start, piece, stop] for piece in range(len(pieces))])
    parts = np.split(ids, range(BATCH, len(ids), BATCH))
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # each part by itself, so alike everywhere
        vectors = np.concatenate([*threads.map(model, parts)])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _principal(vectors: np.ndarray) -> np.ndarray:
    """The directions in which pieces differ most, the mean of all taken away."""
    centred = vectors - vectors.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    return centred @ directions[:, ::-1][:, :DIMENSIONS]


def _weights(pieces: list[str]) -> np.ndarray:
    """Rare pieces say more: a / (a + p), where p is Zipf's guess from the rank."""
    ranks = np.array([_rank(id_, piece) for id_, piece in enumerate(pieces)])
    chances = 1 / ranks / (1 / np.arange(1, len(pieces))).sum()
    return SMOOTH / (SMOOTH + chances)


def _rank(id_: int, piece: str) -> int:
    if id_ >= FIRST_WORD:
        return id_ - FIRST_WORD + 1
    if piece.isascii() or unicodedata.category(piece[0])[0] == "P":
        return 1  # signs and single letters
    return RARE_RANK  # ideographs and letters of other scripts
