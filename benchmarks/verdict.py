"""The few figures a change is judged by, beside the best simple method and the aim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from benchmarks.report import Grid, short
from benchmarks.scoring import Row


class Headline(NamedTuple):
    """A figure of a row, what the best simple method reaches on the whole set, and our aim."""

    scheme: str
    label: str
    metric: str
    simple: float | None
    aim: float | None

    @property
    def name(self) -> str:
        return f"{self.scheme}, {self.label}: {self.metric}"


HEADLINES = (
    Headline("LoCoMo", "categories 1–4", "R@10", 0.685, 0.85),
    Headline("LoCoMo", "5 adversarial", "R@10", None, None),
    Headline("LongMemEval full", "all", "nDCG@10", 0.687, 0.85),
    Headline("LongMemEval full", "all", "s-any@5", 0.983, 0.990),
    Headline("LongMemEval full", "all", "s-all@5", 0.917, 0.960),
    Headline("LongMemEval updates", "all", "newer first", None, 0.75),
    Headline("technical", "all", "R@10", None, None),
    Headline("technical", "all", "nDCG@10", None, None),
    Headline("talks", "all", "R@10", None, None),
    Headline("talks", "all", "nDCG@10", None, None),
    Headline("changes", "changed", "first", None, None),
    Headline("changes", "changed", "in 3", None, None),
    Headline("changes", "changed", "above older", None, None),
    Headline("changes", "unchanged", "in 3", None, None),
)

Means = dict[Headline, Row]


def means_of(rows: Iterable[tuple[str, Sequence[Row]]]) -> Means:
    """The row of every headline that was measured."""
    held = {(scheme, row.label): row for scheme, given in rows for row in given}
    wanted = ((head, held.get((head.scheme, head.label))) for head in HEADLINES)
    return {head: row for head, row in wanted if row}


def headline_grid(means: Means) -> Grid:
    """The measured figures with their intervals, the best simple method's, and the aims."""
    lines: list[tuple[str, ...]] = []
    for head, row in means.items():
        low, high = row.intervals[head.metric]
        lines.append(
            (
                head.name,
                short(row.means[head.metric]),
                f"{short(low)}–{short(high)}",
                "–" if head.simple is None else short(head.simple),
                "reported" if head.aim is None else f"≥ {short(head.aim)}",
            )
        )
    return Grid("Headlines", ("measure", "here", "95 %", "best simple method", "aim"), lines)


def ablation_grid(found: Mapping[str, Means]) -> Grid:
    """Each variant's headlines, and in brackets how far they are from the first's."""
    base = next(iter(found.values()))
    lines = []
    for label, means in found.items():
        cells = []
        for head in base:
            value, usual = means[head].means[head.metric], base[head].means[head.metric]
            moved = "" if means is base else f" ({value - usual:+.3f})"
            cells.append(short(value) + moved)
        lines.append((label, *cells))
    return Grid("What each part of the ranking is worth", ("ranking", *_heads(base)), lines)


def _heads(means: Means) -> list[str]:
    return [head.name for head in means]
