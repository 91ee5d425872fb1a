"""The metrics of retrieval, pure: ranked ids against the ids that should be there.

Definitions are those of the table headings: R@k is the share of the evidence in the top k,
any@k and all@k whether some or all of it is, MRR the reciprocal rank of its first, and nDCG is
binary. A ranking names nothing twice, and evidence is never empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from math import log2

import numpy as np

DRAWS = 2_000
SEED = 20_240_229

Discount = Callable[[int], float]


def recall_at(k: int, ranked: Sequence[str], evidence: Set[str]) -> float:
    """The share of the evidence among the first k."""
    return len(evidence & set(ranked[:k])) / len(evidence)


def any_at(k: int, ranked: Sequence[str], evidence: Set[str]) -> float:
    """1 if some of the evidence is among the first k."""
    return float(not evidence.isdisjoint(ranked[:k]))


def all_at(k: int, ranked: Sequence[str], evidence: Set[str]) -> float:
    """1 if all of the evidence is among the first k."""
    return float(evidence <= set(ranked[:k]))


def reciprocal_rank(ranked: Sequence[str], evidence: Set[str]) -> float:
    """One over the rank of the first piece of evidence; 0 where there is none."""
    return next((1 / rank for rank, id_ in enumerate(ranked, start=1) if id_ in evidence), 0.0)


def standard(rank: int) -> float:
    """The usual discount of nDCG."""
    return log2(rank + 1)


def official(rank: int) -> float:
    """LongMemEval's own discount, which leaves ranks 1 and 2 both whole."""
    return max(1.0, log2(rank))


def ndcg_at(
    k: int, ranked: Sequence[str], evidence: Set[str], discount: Discount = standard
) -> float:
    """Gain of the evidence among the first k, discounted by rank, beside the best possible."""
    gained = sum(1 / discount(rank) for rank, id_ in enumerate(ranked[:k], 1) if id_ in evidence)
    return gained / sum(1 / discount(rank) for rank in range(1, min(len(evidence), k) + 1))


def ranks_of(ranked: Sequence[str], evidence: Iterable[str]) -> dict[str, int | None]:
    """Where each piece of evidence came, from 1; None where it did not come."""
    places = {id_: rank for rank, id_ in enumerate(ranked, start=1)}
    return {id_: places.get(id_) for id_ in sorted(evidence)}


def interval(values: Sequence[float], draws: int = DRAWS) -> tuple[float, float]:
    """The 95 % confidence interval of the mean, by bootstrap; the same for the same values."""
    given = np.asarray(values, dtype=float)
    chance = np.random.default_rng(SEED)
    picks = chance.integers(len(given), size=(draws, len(given)))
    low, high = np.quantile(given[picks].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """The middle, the tail and the worst of a distribution."""
    names = {"p50": 50, "p95": 95, "p99": 99, "max": 100}
    return {name: float(np.percentile(values, share)) for name, share in names.items()}
