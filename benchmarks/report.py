"""Tables for the terminal and for Markdown, and the files that a run leaves behind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.asking import Answer
from benchmarks.metrics import percentiles, ranks_of
from benchmarks.scoring import Row

WIDTH = 170


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of texts; the first column is read from the left, numbers from the right."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def markdown(self) -> str:
        ruler = ("---", *("---:" for _ in self.columns[1:]))
        lines = [" | ".join(row) for row in (self.columns, ruler, *self.rows)]
        return "\n".join((f"## {self.title}", "", *(f"| {line} |" for line in lines), ""))

    def show(self, console: Console) -> None:
        table = Table(title=self.title, title_justify="left")
        for place, name in enumerate(self.columns):
            table.add_column(name, justify="right" if place else "left", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        console.print(table)


def short(value: float) -> str:
    """Three decimals, as .801 or 1.000."""
    text = f"{value:.3f}"
    return text.removeprefix("0") if value >= 0 else f"−{text[1:].removeprefix('0')}"


def quality_grid(title: str, rows: Sequence[Row]) -> Grid:
    """The means of each row, and below them how sure we are."""
    names = tuple(rows[0].means)
    lines: list[tuple[str, ...]] = []
    for row in rows:
        lines.append((row.label, str(row.count), *(short(row.means[name]) for name in names)))
        spans = (row.intervals[name] for name in names)
        lines.append(("", "95 %", *(f"{short(low)}–{short(high)}" for low, high in spans)))
    return Grid(title, ("questions", "n", *names), lines)


def latency_grid(title: str, passes: Mapping[str, Sequence[Answer]]) -> Grid:
    """How long recall took, whole and by channel, and how often a channel was late."""
    lines = []
    for label, answers in passes.items():
        for name, figures in spread(answers).items():
            cells = (f"{figures[key]:.1f}" for key in ("p50", "p95", "p99", "max"))
            late = sum(bool(one.late) for one in answers) if name == "recall" else None
            lines.append((f"{label}: {name}", *cells, "" if late is None else str(late)))
    return Grid(title, ("milliseconds", "p50", "p95", "p99", "max", "late"), lines)


def spread(answers: Sequence[Answer]) -> dict[str, dict[str, float]]:
    """The distribution of the whole time, end to end, and of each channel's."""
    times = {"recall": [one.took_ms for one in answers]}
    for one in answers:
        for channel, took_ms in one.timings_ms.items():
            times.setdefault(channel, []).append(took_ms)
    return {name: percentiles(taken) for name, taken in times.items()}


def write_questions(path: Path, whole: Sequence[Answer], timed: Sequence[Answer]) -> None:
    """One line of JSON for each question: its evidence's ranks, its best hits, its time."""
    with path.open("w", encoding="utf-8") as file:
        for one, fast in zip(whole, timed, strict=True):
            file.write(json.dumps(_line(one, fast), ensure_ascii=False) + "\n")


def _line(one: Answer, fast: Answer) -> dict[str, Any]:
    ranked = [found.id for found in one.found]
    return {
        "question": one.question.id,
        "kind": one.question.kind,
        "evidence_ranks": ranks_of(ranked, one.question.turns),
        "top": [{"id": found.id, "why": found.why} for found in one.found[:10]],
        "took_ms": round(one.took_ms, 2),
        "deadline_took_ms": round(fast.took_ms, 2),
        "deadline_timings_ms": {key: round(took, 2) for key, took in fast.timings_ms.items()},
        "deadline_late": list(fast.late),
    }


def plain_rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]


def publish(grids: Sequence[Grid], notes: Sequence[str], path: Path, figures: object) -> None:
    """Print the tables and leave them beside `path` as Markdown and JSON."""
    console = Console(width=WIDTH)
    for grid in grids:
        grid.show(console)
    for note in notes:
        console.print(note, markup=False, highlight=False)
    text = "\n".join((*(grid.markdown() for grid in grids), *(f"- {note}" for note in notes), ""))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    path.with_suffix(".json").write_text(json.dumps(figures, indent=2, ensure_ascii=False))
