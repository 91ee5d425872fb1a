"""The model in 32 bits, as published: the measure of what is made from it."""

from __future__ import annotations

import numpy as np

LAYERS, HEADS = 6, 12
EPSILON = np.float32(1e-12)

Arrays = dict[str, np.ndarray]


class ExactMiniLM:
    """Word piece numbers [batch, length], nothing padded, to mean vectors [batch, 384].

    `reach` keeps the largest value that each input of each matrix has seen.
    """

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self.reach: Arrays = {}

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        arrays = self._arrays
        hidden = arrays["words"][ids] + arrays["positions"][: ids.shape[1]]
        hidden = _norm(hidden, arrays["norm_gain"], arrays["norm_bias"])
        for layer in range(LAYERS):
            mixed = _attend(self._dense(hidden, f"{layer}.heads"))
            hidden = self._add_and_norm(hidden, mixed, f"{layer}.mix")
            inner = _gelu(self._dense(hidden, f"{layer}.up"))
            hidden = self._add_and_norm(hidden, inner, f"{layer}.down")
        return hidden.mean(axis=1)

    def _add_and_norm(self, before: np.ndarray, inner: np.ndarray, name: str) -> np.ndarray:
        total = before + self._dense(inner, name)
        return _norm(total, self._arrays[f"{name}_gain"], self._arrays[f"{name}_shift"])

    def _dense(self, before: np.ndarray, name: str) -> np.ndarray:
        flat = before.reshape(-1, before.shape[-1])  # one product, not one for each text
        self.reach[name] = np.maximum(self.reach.get(name, 0), np.abs(flat).max(axis=0))
        product = flat @ self._arrays[name] + self._arrays[f"{name}_bias"]
        return product.reshape(*before.shape[:2], -1)


def _attend(heads: np.ndarray) -> np.ndarray:
    batch, length, width = heads.shape
    parts = heads.reshape(batch, length, 3, HEADS, width // 3 // HEADS)
    query, key, value = parts.transpose(2, 0, 3, 1, 4)
    scores = query @ key.swapaxes(2, 3) / np.float32(np.sqrt(query.shape[-1]))
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = scores / scores.sum(axis=-1, keepdims=True) @ value
    return mixed.transpose(0, 2, 1, 3).reshape(batch, length, width // 3)


def _norm(values: np.ndarray, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
    centred = values - values.mean(axis=-1, keepdims=True)
    spread = np.square(centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(spread + EPSILON) * gain + bias


def _gelu(values: np.ndarray) -> np.ndarray:
    """With the error function to 2e-7 (Abramowitz and Stegun 7.1.26)."""
    size = np.abs(values) * np.float32(np.sqrt(0.5))
    step = 1 / (1 + np.float32(0.3275911) * size)
    total = np.float32(1.061405429) * step
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        total = (total + np.float32(factor)) * step
    erf = np.copysign(1 - total * np.exp(-size * size), values)
    return values * np.float32(0.5) * (1 + erf)
