"""MiniLM in PyTorch, frozen, with a low-rank adapter beside each of its matrices.

Tensors have the names and the layout that `convert.py` gives them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

LAYERS, HEADS, WIDTH = 6, 12, 384
INNER = 4 * WIDTH
WINDOW = 254
START, STOP = 101, 102  # [CLS] and [SEP]
MOST_PIECES = {"cpu": 8_192, "cuda": 131_072}  # that run at once
MATRICES = {
    "query": (WIDTH, WIDTH),
    "key": (WIDTH, WIDTH),
    "value": (WIDTH, WIDTH),
    "mix": (WIDTH, WIDTH),
    "up": (WIDTH, INNER),
    "down": (INNER, WIDTH),
}


class AdaptedMiniLM(nn.Module):
    """Word piece numbers to unit vectors; only the adapter learns."""

    def __init__(self, base: Mapping[str, np.ndarray], *, rank: int, strength: float) -> None:
        super().__init__()
        for name, array in base.items():
            self.register_buffer(_key(name), torch.from_numpy(array.astype(np.float32)))
        self.rank, self.strength = rank, strength
        self.adapter = nn.ParameterDict()
        for name, inputs, outputs in adapted():
            start = torch.randn(inputs, rank) / math.sqrt(inputs)
            self.adapter[_key(f"{name}.inward")] = nn.Parameter(start)
            self.adapter[_key(f"{name}.outward")] = nn.Parameter(torch.zeros(rank, outputs))

    def adapter_factors(self) -> dict[str, np.ndarray]:
        """The adapter as two factors a matrix, whose product is added to the base."""
        factors = {}
        for name, _, _ in adapted():
            inward, outward = self._factors(name)
            factors[f"{name}.inward"] = inward.detach().cpu().numpy()
            factors[f"{name}.outward"] = (outward * self.strength).detach().cpu().numpy()
        return factors

    def forward(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """The vectors of texts, each the mean of its windows as `MiniLM` in Memorist makes it."""
        windows, owners = [], []
        for number, pieces in enumerate(texts):
            count = -(-len(pieces) // WINDOW) or 1
            for part in range(count):
                first, last = (len(pieces) * it // count for it in (part, part + 1))
                windows.append([START, *pieces[first:last], STOP])
                owners.append(number)
        device = self.get_buffer("words").device
        order = sorted(range(len(windows)), key=lambda it: len(windows[it]))
        total = torch.zeros(len(texts), WIDTH, device=device)
        for rows in _alike(order, windows, MOST_PIECES[device.type]):
            longest = len(windows[rows[-1]])
            padded = [windows[row] + [0] * (longest - len(windows[row])) for row in rows]
            lengths = torch.tensor([len(windows[row]) for row in rows], device=device)
            means = self._encode(torch.tensor(padded, device=device), lengths)
            unit = nn.functional.normalize(means, dim=1) * lengths[:, None]
            own = torch.tensor([owners[row] for row in rows], device=device)
            total = total + _rows_to(own, len(texts)) @ unit
        return nn.functional.normalize(total, dim=1)

    def _encode(self, ids: Tensor, lengths: Tensor) -> Tensor:
        there = torch.arange(ids.shape[1], device=ids.device)[None] < lengths[:, None]
        hidden = self._get("words")[ids] + self._get("positions")[: ids.shape[1]]
        hidden = self._norm(hidden, "norm_gain", "norm_bias")
        for layer in range(LAYERS):
            mixed = self._attend(hidden, there, layer)
            mixed = hidden + self._dense(mixed, f"{layer}.mix")
            hidden = self._norm(mixed, f"{layer}.mix_gain", f"{layer}.mix_shift")
            inner = nn.functional.gelu(self._dense(hidden, f"{layer}.up"))
            deep = hidden + self._dense(inner, f"{layer}.down")
            hidden = self._norm(deep, f"{layer}.down_gain", f"{layer}.down_shift")
        return (hidden * there[:, :, None]).sum(dim=1) / lengths[:, None]

    def _attend(self, hidden: Tensor, there: Tensor, layer: int) -> Tensor:
        batch, length, _ = hidden.shape
        heads = hidden @ self._get(f"{layer}.heads") + self._get(f"{layer}.heads_bias")
        parts = [
            part + self._low_rank(hidden, f"{layer}.{name}")
            for part, name in zip(heads.split(WIDTH, dim=2), ("query", "key", "value"), strict=True)
        ]
        query, key, value = (
            part.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2) for part in parts
        )
        scores = query @ key.transpose(2, 3) / math.sqrt(WIDTH // HEADS)
        scores = scores.masked_fill(~there[:, None, None, :], -1e9)
        return (scores.softmax(dim=3) @ value).transpose(1, 2).reshape(batch, length, WIDTH)

    def _dense(self, before: Tensor, name: str) -> Tensor:
        base = before @ self._get(name) + self._get(f"{name}_bias")
        return base + self._low_rank(before, name)

    def _low_rank(self, before: Tensor, name: str) -> Tensor:
        inward, outward = self._factors(name)
        return (before @ inward) @ outward * self.strength

    def _factors(self, name: str) -> tuple[Tensor, Tensor]:
        return self.adapter[_key(f"{name}.inward")], self.adapter[_key(f"{name}.outward")]

    def _norm(self, values: Tensor, gain: str, bias: str) -> Tensor:
        return nn.functional.layer_norm(values, (WIDTH,), self._get(gain), self._get(bias), 1e-12)

    def _get(self, name: str) -> Tensor:
        return self.get_buffer(_key(name))


def adapted() -> Iterator[tuple[str, int, int]]:
    """Each matrix with an adapter: its name, and how many inputs and outputs it has."""
    for layer in range(LAYERS):
        for name, (inputs, outputs) in MATRICES.items():
            yield f"{layer}.{name}", inputs, outputs


def _alike(
    order: Sequence[int], windows: Sequence[Sequence[int]], most: int
) -> Iterator[list[int]]:
    """Rows of about the same length, so that little is padded and a batch fits into memory."""
    rows: list[int] = []
    for row in order:
        if rows and len(windows[row]) * (len(rows) + 1) > most:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def _rows_to(owners: Tensor, count: int) -> Tensor:
    """A matrix that sums rows by their owner; unlike an index, it adds up in a fixed order."""
    return (torch.arange(count, device=owners.device)[:, None] == owners[None]).float()


def _key(name: str) -> str:
    return name.replace(".", "_")
