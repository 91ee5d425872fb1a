"""The reader's network: MiniLM's layers in PyTorch, all of which learn, and what it says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import (
    dropout,
    gelu,
    layer_norm,
    log_softmax,
    logsigmoid,
    scaled_dot_product_attention,
)

from memorist_training.batches import LONGEST, Batch
from memorist_training.claims import CATEGORIES, KINDS, NO_BUCKET, TOLD, VALUES
from memorist_training.model import HEADS, LAYERS, WIDTH

SHAPES = 10
SIZES = (1 + 2 * len(VALUES), 1 + 2 * len(TOLD), 1, len(KINDS) + 1, len(CATEGORIES), 1)
OF_WORDS = sum(SIZES[:4])  # scores; the others are of texts
PARTS = ("heads", "mix", "up", "down")
OF_LAYER = (*PARTS, *(f"{part}_bias" for part in PARTS))
NORMS = ("mix_gain", "mix_shift", "down_gain", "down_shift")

_Function = TypeVar("_Function", bound=Callable[..., object])


class Output(NamedTuple):
    """What readers say of each piece's tags, and of each text: logarithms of chances.

    Those of `ends` are of a claim that does not end, and of one that does; `updates` likewise.
    """

    values: Tensor
    told: Tensor
    ends: Tensor
    kinds: Tensor
    categories: Tensor
    updates: Tensor


def fused(function: _Function) -> _Function:
    """The function; on a GPU with its small steps made into few."""
    if not torch.cuda.is_available():
        return function
    return torch.compile(function, dynamic=False)  # type: ignore[return-value]


class Readers(nn.Module):
    """Some readers that learn side by side. Each reads as many of a batch's rows as the others."""

    def __init__(self, base: Mapping[str, np.ndarray], *, count: int, dropout: float) -> None:
        super().__init__()
        self.count, self.dropout = count, dropout
        self.own = nn.ParameterDict()
        for name, array in base.items():
            values = torch.from_numpy(array.astype(np.float32))
            if not name[0].isdigit():
                self.register_buffer(name, values)
            else:
                self.own[key_of(name)] = nn.Parameter(values.expand(count, *values.shape).clone())
        self.shapes = nn.Parameter(torch.zeros(count, SHAPES, WIDTH))
        self.unknown = nn.Parameter(torch.randn(count, NO_BUCKET, WIDTH) * 0.02)
        wide = 1 / math.sqrt(WIDTH)
        self.head = nn.Parameter((torch.rand(count, WIDTH, sum(SIZES)) * 2 - 1) * wide)
        self.head_bias = nn.Parameter(torch.zeros(count, sum(SIZES)))

    def forward(self, batch: Batch) -> Output:
        """What the readers say of some texts."""
        hidden = self._encode(batch)
        texts = torch.arange(batch.starts.shape[1], device=hidden.device)
        belongs = (batch.owners[:, None] == texts[None, :, None]).float()
        shares = belongs / belongs.sum(dim=2, keepdim=True).clamp(min=1)
        means = shares.to(hidden.dtype) @ hidden.view(*batch.pieces.shape, WIDTH)
        share = self.dropout if self.training else 0.0
        weights = self.head, self.head_bias
        return said(hidden, means.view(self.count, -1, WIDTH), *weights, batch, share)

    def _encode(self, batch: Batch) -> Tensor:
        words, positions = self.get_buffer("words"), self.get_buffer("positions")
        hidden = (words[batch.pieces] + positions[batch.places]).reshape(self.count, -1, WIDTH)
        kind = torch.bfloat16 if hidden.is_cuda else torch.float32
        hidden = hidden + _chosen(batch.shapes, self.shapes, kind)
        hidden = hidden + _chosen(batch.buckets, self.unknown, kind)
        gain, shift = self.get_buffer("norm_gain"), self.get_buffer("norm_bias")
        hidden = layer_norm(hidden, (WIDTH,), gain, shift, 1e-12).to(kind)
        alike = _ends(batch) if hidden.is_cuda else _same(batch)
        share = self.dropout if self.training else 0.0
        for number in range(LAYERS):
            weights = [self.own[f"{number}_{name}"] for name in (*OF_LAYER, *NORMS)]
            hidden = layer(hidden, weights, alike, share)
        return hidden


@fused
def layer(hidden: Tensor, weights: Sequence[Tensor], alike: Tensor, share: float) -> Tensor:
    """What a layer makes of pieces, each of which looks at those of its text."""
    heads, mix, up, down, *rest = (it.to(hidden.dtype) for it in weights)
    biases, norms = [it[:, None] for it in rest[:4]], [it[:, None] for it in rest[4:]]
    mixed = _attended(hidden @ heads + biases[0], alike)
    mixed = hidden + dropout(mixed @ mix + biases[1], share)
    hidden = layer_norm(mixed, (WIDTH,), eps=1e-12) * norms[0] + norms[1]
    deep = gelu(hidden @ up + biases[2]) @ down + biases[3]
    deep = hidden + dropout(deep, share)
    return layer_norm(deep, (WIDTH,), eps=1e-12) * norms[2] + norms[3]


def _attended(heads: Tensor, alike: Tensor) -> Tensor:
    """The values of a text's pieces, mixed by how well queries and keys agree."""
    query, key, value = heads.view(-1, 3, HEADS, WIDTH // HEADS).unbind(dim=1)
    if heads.is_cuda:
        from torch.nn.attention.varlen import varlen_attn  # PyTorch's own kernels for such rows

        mixed = varlen_attn(query, key, value, alike, alike, LONGEST, LONGEST)
        assert isinstance(mixed, Tensor)
        return mixed.reshape(*heads.shape[:2], WIDTH)
    query, key, value = (
        it.view(len(alike), -1, HEADS, WIDTH // HEADS).transpose(1, 2) for it in (query, key, value)
    )
    mixed = scaled_dot_product_attention(query, key, value, attn_mask=alike[:, None])
    return mixed.transpose(1, 2).reshape(*heads.shape[:2], WIDTH)


def _ends(batch: Batch) -> Tensor:
    """Where each text begins and ends, counted over all rows."""
    rows, pieces = batch.pieces.shape
    first = torch.arange(rows, device=batch.pieces.device)[:, None] * pieces
    ends = (batch.starts + first).view(-1)
    return torch.nn.functional.pad(ends, (0, 1), value=rows * pieces).int()


def _same(batch: Batch) -> Tensor:
    """Which pieces of a row belong to the same text."""
    return batch.owners[:, :, None] == batch.owners[:, None]


@fused
def said(
    hidden: Tensor, means: Tensor, head: Tensor, bias: Tensor, batch: Batch, share: float
) -> Output:
    """What the readers say, in rows as the batch has them, of its pieces and its texts."""
    of_words, of_texts = head[..., :OF_WORDS], head[..., OF_WORDS:]
    scores = dropout(hidden, share).float() @ of_words + bias[:, None, :OF_WORDS]
    others = dropout(means, share).float() @ of_texts + bias[:, None, OF_WORDS:]
    scores = scores.view(*batch.pieces.shape, -1)
    others = others.view(*batch.starts.shape, -1)
    values, told, ends, kinds = scores.split_with_sizes(SIZES[:4], dim=2)
    categories, updates = others.split_with_sizes(SIZES[4:], dim=2)
    return Output(
        log_softmax(values, dim=2),
        log_softmax(told, dim=2),
        torch.cat([logsigmoid(-ends), logsigmoid(ends)], dim=2),
        log_softmax(kinds, dim=2),
        log_softmax(categories, dim=2),
        torch.cat([logsigmoid(-updates), logsigmoid(updates)], dim=2),
    )


def _chosen(numbers: Tensor, rows: Tensor, kind: torch.dtype) -> Tensor:
    """The rows of each reader with these numbers; zeros for a number too high.

    A product, as many numbers are equal: the gradients of equal indices are added one by one.
    """
    every = torch.arange(rows.shape[1], device=rows.device)
    return (numbers.reshape(len(rows), -1, 1) == every).to(kind) @ rows.to(kind)


def key_of(name: str) -> str:
    """The name of a tensor as torch allows it."""
    return name.replace(".", "_")
