"""MiniLM's forward pass in numpy: the same weights and the same roundings, without onnxruntime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memorist.providers.embedder import Vectors

    Floats = NDArray[np.float32]

HEADS, LAYERS = 12, 6
EPSILON = np.float32(1e-12)
ONE = np.float32(1)


class NumpyMiniLM:
    """Word piece numbers [batch, length], nothing padded, to unit vectors [batch, 384]."""

    prefix = ""  # what the names of its layers begin with

    def __init__(self, folder: Path) -> None:
        self._arrays = read_tensors(folder)
        self._zero = np.float32(128 if self._arrays["words"].dtype == np.uint8 else 0)
        for layer in range(LAYERS):
            for part in ("heads", "mix", "up", "down"):
                name = f"{self.prefix}{layer}.{part}"
                self._arrays[name] = self._arrays[name].astype(np.float32) - self._zero

    def __call__(self, ids: NDArray[np.int32]) -> Vectors:
        mean = self.hidden(ids).mean(axis=1)
        vectors: Vectors = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return vectors

    def hidden(self, ids: NDArray[np.int32], beside: Floats | float = 0.0) -> Floats:
        """What the last layer makes of each piece; `beside` is added to its word's vector."""
        arrays = self._arrays
        words = (arrays["words"][ids] - self._zero) * arrays["words_scale"][ids][..., None]
        hidden = words + arrays["positions"][: ids.shape[1]] + beside
        hidden = _norm(hidden, arrays["norm_gain"], arrays["norm_bias"])
        for number in range(LAYERS):
            layer = f"{self.prefix}{number}"
            mixed = _attend(self._dense(hidden, f"{layer}.heads"))
            hidden = self._add_and_norm(hidden, mixed, f"{layer}.mix")
            inner = _gelu(self._dense(hidden, f"{layer}.up"))
            hidden = self._add_and_norm(hidden, inner, f"{layer}.down")
        return hidden

    def _add_and_norm(self, before: Floats, inner: Floats, name: str) -> Floats:
        total = before + self._dense(inner, name)
        return _norm(total, self._arrays[f"{name}_gain"], self._arrays[f"{name}_shift"])

    def _dense(self, before: Floats, name: str) -> Floats:
        before = before * self._arrays[f"{name}_ease"]
        size = np.abs(before).max(axis=-1, keepdims=True) if name.endswith("down") else ONE
        values, scale = _quantize(before / size)
        product = values @ self._arrays[name] * (scale * self._arrays[f"{name}_scale"])
        result: Floats = product * size + self._arrays[f"{name}_bias"]
        return result


class NumpyReader(NumpyMiniLM):
    """Word piece numbers, and what is added to them, to scores of each piece and of the whole."""

    prefix = "reader."

    def scores(self, ids: NDArray[np.int32], beside: Floats) -> tuple[Floats, Floats]:
        """The scores of tags [batch, length, tags], and of categories [batch, categories]."""
        arrays, hidden = self._arrays, self.hidden(ids, beside)
        tags = hidden @ arrays["reader.head"] + arrays["reader.head_bias"]
        means = hidden.mean(axis=1)
        return tags, means @ arrays["reader.category"] + arrays["reader.category_bias"]


def read_tensors(folder: Path) -> dict[str, NDArray[Any]]:
    """The tensors of memorist-minilm, by name."""
    data = np.memmap(folder / "weights.bin", np.uint8, "r")
    index = json.loads((folder / "weights.json").read_text("utf-8"))
    tensors: dict[str, NDArray[Any]] = {}
    for name, (dtype, shape, offset) in index.items():
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        tensors[name] = data[offset : offset + size].view(dtype).reshape(shape)
    return tensors


def _quantize(values: Floats) -> tuple[Floats, np.float32]:
    """What DynamicQuantizeMatMul makes of its input: 8 bits over the whole batch, zero kept."""
    low, high = min(values.min(), 0), max(values.max(), 0)
    scale = np.float32((high - low) / 255) or np.float32(1)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    rounded = np.clip(np.rint(values / scale) + zero, 0, 255) - zero
    return rounded, scale


def _attend(heads: Floats) -> Floats:
    batch, length, width = heads.shape
    parts = heads.reshape(batch, length, 3, HEADS, width // 3 // HEADS)
    query, key, value = parts.transpose(2, 0, 3, 1, 4)
    scores = query @ key.swapaxes(2, 3) / np.float32(np.sqrt(query.shape[-1]))
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = scores / scores.sum(axis=-1, keepdims=True) @ value
    joined: Floats = mixed.transpose(0, 2, 1, 3).reshape(batch, length, width // 3)
    return joined


def _norm(values: Floats, gain: Floats, bias: Floats) -> Floats:
    centred = values - values.mean(axis=-1, keepdims=True)
    spread = np.square(centred).mean(axis=-1, keepdims=True)
    normed: Floats = centred / np.sqrt(spread + EPSILON) * gain + bias
    return normed


def _gelu(values: Floats) -> Floats:
    return values * np.float32(0.5) * (1 + erf(values * np.float32(np.sqrt(0.5))))


def erf(values: Floats) -> Floats:
    """The error function to 2e-7 (Abramowitz and Stegun 7.1.26); numpy has none."""
    size = np.abs(values)
    step = 1 / (1 + np.float32(0.3275911) * size)
    total = np.float32(1.061405429) * step
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        total = (total + np.float32(factor)) * step
    result: Floats = np.copysign(1 - total * np.exp(-size * size), values)
    return result
