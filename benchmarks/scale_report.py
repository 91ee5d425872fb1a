"""The tables of `make bench-scale`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.report import Grid

SPEED_AIMS = {  # by size: what the figure is of, and the aim
    ("end_to_end", 10_000): "p50 ≤ 10",
    ("end_to_end", 100_000): "p95 ≤ 50 under writes",
    ("engine", 100_000): "p95 ≤ 15",
    ("end_to_end", 1_000_000): "p95 ≤ 50",
}
SPEEDS = {
    "end_to_end": "end to end",
    "engine": "engine only, vector given",
    "default_deadline": "end to end, default deadline",
}
Found = dict[str, Any]


def grids_of(found: Sequence[Found]) -> tuple[list[Grid], list[str]]:
    """Speed, channels, space, and the plain ways; and what to know when reading them."""
    grids = [speed_grid(found), channel_grid(found), space_grid(found)]
    if plain := [one for one in found if "numpy_ms" in one]:
        grids.append(plain_grid(plain))
    return grids, [*growth(found), *remarks(found)]


def name_of(one: Found) -> str:
    return f"{one['layout']}, {one['size']:,}"


def cells(figures: dict[str, float]) -> tuple[str, ...]:
    return tuple(f"{figures[key]:.1f}" for key in ("p50", "p95", "p99", "max"))


def speed_grid(found: Sequence[Found]) -> Grid:
    """The whole time of recall, in each of the ways it was asked."""
    lines: list[tuple[str, ...]] = []
    for one in found:
        for key, label in SPEEDS.items():
            aim = SPEED_AIMS.get((key, one["size"]), "") if one["layout"] == "one user" else ""
            late = str(one[f"{key}_late"]) if key == "default_deadline" else ""
            lines.append((f"{name_of(one)}: {label}", *cells(one[key]), late, aim))
        if busy := one.get("busy"):
            label = f"end to end, under {busy['writes_per_s']:.0f} writes/s"
            late = str(busy["default_deadline_late"])
            line = (f"{name_of(one)}: {label}", *cells(busy["end_to_end"]), late, "p95 ≤ 50")
            lines.append(line)
    columns = ("milliseconds", "p50", "p95", "p99", "max", "late", "aim")
    return Grid("Recall as memories grow", columns, lines)


def channel_grid(found: Sequence[Found]) -> Grid:
    """The time of each channel, as recall itself reports it."""
    lines = [
        (f"{name_of(one)}: {channel}", *cells(figures))
        for one in found
        for channel, figures in one["end_to_end_channels"].items()
    ]
    return Grid("Channels", ("milliseconds", "p50", "p95", "p99", "max"), lines)


def space_grid(found: Sequence[Found]) -> Grid:
    """Filling, the first recall, memory and disk."""
    lines: list[tuple[str, ...]] = []
    for one in found:
        lines.append(
            (
                name_of(one),
                f"{one['remember_per_s']:,.0f}",
                f"{one['vectors_per_s']:,.0f}",
                f"{one['fill_s']:,.1f}",
                f"{one['cold_ms']:,.0f}",
                f"{one['cold_bytes'] / one['size']:,.0f}" if one["layout"] == "one user" else "",
                f"{one['bytes'] / one['size']:,.0f}",
            )
        )
    columns = (
        "store",
        "remembered/s",
        "vectors/s",
        "fill s",
        "first recall ms",
        "RAM bytes/vector",
        "disk bytes/memory",
    )
    return Grid("Filling, first recall, space", columns, lines)


def plain_grid(found: Sequence[Found]) -> Grid:
    """Our engine beside one matrix product and one FTS5 query, and what its short cuts miss."""
    lines: list[tuple[str, ...]] = []
    for one in found:
        engine, matrix, words = (one[key]["p50"] for key in ("engine", "numpy_ms", "fts5_ms"))
        lines.append(
            (
                name_of(one),
                f"{engine:.2f}",
                f"{matrix:.2f}",
                f"{words:.2f}",
                f"{engine / (matrix + words):.2f}",
                f"{one['vector_recall@10']:.3f}",
            )
        )
    columns = ("p50, milliseconds", "engine", "numpy dot, top 10", "FTS5 bm25, OR",
               "engine / both", "vector recall@10")  # fmt: skip
    return Grid("Beside the plain ways", columns, lines)


def growth(found: Sequence[Found]) -> list[str]:
    """How much slower ten times as much is."""
    held = {(one["layout"], one["size"]): one for one in found}
    notes = []
    for (layout, size), one in held.items():
        bigger = held.get((layout, size * 10))
        if bigger and size >= 10_000:
            ratios = (
                f"{label} × {bigger[key]['p50'] / one[key]['p50']:.1f}"
                for key, label in SPEEDS.items()
                if key != "default_deadline"
            )
            aim = " (aim: under 6)" if size == 10_000 else ""
            notes.append(f"{layout}, p50 from {size:,} to {size * 10:,}: {', '.join(ratios)}{aim}")
    return notes


def remarks(found: Sequence[Found]) -> list[str]:
    real = all(one["real_query_embedding"] for one in found)
    return [
        "the embedding of the question is the default model's own"
        if real
        else "the default model is not installed: end to end leaves out the question's embedding",
        "RAM is what the process grew by in its first recall; late is at the default deadline",
        "numpy's product takes a thread per core, which a busy machine makes it wait for; "
        "OPENBLAS_NUM_THREADS=1 shows it without",
    ]
