"""How the reader's weights learn: AdamW over one cycle of rates, and the mean of the last weights.

All weights stand in one tensor, and what changes from step to step in another, so that a step
can be recorded on a GPU and played again: thousands of small commands become one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from memorist_training.network import fused

DECAY = 0.01
FAST, SLOW = 0.85, 0.95  # of the gradient's mean, what is kept at the highest rate and the lowest
SQUARES = 0.999  # likewise of the mean of its squares
RISING = 0.1  # of the steps
FIRST, LAST = 1 / 25, 1 / 250_000  # of the highest rate
WARMING = 3  # steps that run before one is recorded


class Learner:
    """The weights of a model, in groups with a rate each, and what AdamW keeps of them.

    `slow` is the mean of the weights over the last steps, each counting `keep` of the next one.
    """

    def __init__(
        self,
        groups: Sequence[tuple[Sequence[nn.Parameter], float]],
        *,
        steps: int,
        most: float,
        keep: float,
    ) -> None:
        every = [it for group, _ in groups for it in group]
        self.weights = torch.cat([it.detach().reshape(-1) for it in every])
        self.gradient = torch.zeros_like(self.weights)
        self._mean, self._square = (torch.zeros_like(self.weights) for _ in range(2))
        self.slow = self.weights.clone()
        place = 0
        for it in every:
            stop = place + it.numel()
            it.data = self.weights[place:stop].view_as(it)
            it.grad = self.gradient[place:stop].view_as(it)
            place = stop
        self._sizes = [sum(it.numel() for it in group) for group, _ in groups]
        self._most = most
        plan = torch.tensor(_plan([rate for _, rate in groups], steps, keep))
        self._plan = plan.to(self.weights.device)
        self._step = torch.zeros(1, dtype=torch.long, device=self.weights.device)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """For a while, the weights are their mean."""
        weights = self.weights.clone()
        self.weights.copy_(self.slow)
        try:
            yield
        finally:
            self.weights.copy_(weights)

    def learn(self) -> None:
        """Move the weights along the gradient, which is not longer than it may be."""
        numbers = self._plan.index_select(0, self._step)[0]
        self._step += 1
        scale = (self._most / (self.gradient.norm() + 1e-6)).clamp(max=1)
        every = (self.weights, self.gradient, self._mean, self._square, self.slow)
        parts = zip(*(it.split_with_sizes(self._sizes) for it in every), strict=True)
        for rate, part in zip(numbers[4:], parts, strict=True):
            _learn(part, scale, rate, numbers[:4])


@fused
def _learn(part: Sequence[Tensor], scale: Tensor, rate: Tensor, numbers: Tensor) -> None:
    weights, gradient, mean, square, slow = part
    new, whole, whole_square, share = numbers
    gradient = gradient * scale
    mean.lerp_(gradient, new)
    square.mul_(SQUARES).add_((1 - SQUARES) * gradient * gradient)
    moved = mean / whole / ((square / whole_square).sqrt() + 1e-8)
    weights.copy_(weights * (1 - rate * DECAY) - rate * moved)
    slow.lerp_(weights, share)


def _plan(rates: Sequence[float], steps: int, keep: float) -> list[list[float]]:
    """Of each step, what a gradient counts in the mean, and what `learn` divides by and mixes."""
    rows = []
    top = max(RISING * (steps + 1) - 1, 1e-9)
    for step in range(steps):
        if step <= top:
            kept, share = _between(SLOW, FAST, step / top), _between(FIRST, 1, step / top)
        else:
            way = (step - top) / (steps - top)
            kept, share = _between(FAST, SLOW, way), _between(1, LAST, way)
        count = step + 1
        mixed = 1 - min(keep, count / (count + 10))
        numbers = [1 - kept, 1 - kept**count, 1 - SQUARES**count, mixed]
        rows.append([*numbers, *(rate * share for rate in rates)])
    return rows


def _between(first: float, last: float, way: float) -> float:
    """What lies part of the way from one number to another, along half a cosine."""
    return last + (first - last) / 2 * (1 + math.cos(math.pi * way))


class Recorded:
    """A step of training: on a GPU recorded after a few times, then played; else simply done."""

    def __init__(self, step: Callable[[Tensor], Tensor]) -> None:
        self._step, self._done = step, 0
        self._given, self._loss = torch.empty(0), torch.empty(0)
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, given: Tensor) -> Tensor:
        """The loss of a batch, before the step that learns from it."""
        if self._graph is not None:
            self._given.copy_(given, non_blocking=True)
            self._graph.replay()
            return self._loss
        if given.is_cuda and self._done == WARMING:
            self._record(given)
            return self(given)
        self._done += 1
        return self._beside(given) if given.is_cuda else self._step(given)

    def _beside(self, given: Tensor) -> Tensor:
        """A step on another stream, as recording wants it."""
        other = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        other.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(other):
            loss = self._step(given)
        torch.cuda.current_stream().wait_stream(other)
        return loss

    def _record(self, given: Tensor) -> None:
        self._given = given.clone()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._loss = self._step(self._given)
        self._graph = graph
