"""A plot of shares over window sizes: plain SVG, a panel for each question set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import log2

Series = Mapping[str, Sequence[float]]
"""A share for each window size, by method."""

WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 20, 44, 44
LEGEND = 165  # an entry of it
INK, GREY, RULE = "#1d252c", "#55606b", "#dfe3e8"
HALO = ' stroke="#ffffff" stroke-width="4" paint-order="stroke"'  # over a rule
STYLES = (("#4a7bd0", ""), ("#d69a2d", "7 4"), ("#c0504d", "2 4"))
# The colours are told apart without seeing red, and each line has dashes and a mark of its own.
MARKS = (
    '<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>',
    '<rect x="{x0:.1f}" y="{y0:.1f}" width="8" height="8" fill="{colour}"/>',
    '<path d="M{x:.1f} {y0:.1f}l4.5 8h-9z" fill="{colour}"/>',
)


@dataclass(frozen=True, slots=True)
class Panel:
    """One question set: its lines, and the share that is aimed at, at which size."""

    title: str
    series: Series
    aim: tuple[int, float] | None = None


def plot(panels: Sequence[Panel], sizes: Sequence[int]) -> str:
    """The whole picture; it has its own white ground, so that it can be read on any page."""
    wide, high = max(WIDTH * len(panels), LEFT + len(STYLES) * LEGEND), HEIGHT + 34
    said = "; ".join(f"{panel.title}: {_spoken(panel.series, sizes)}" for panel in panels)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
        'font-family="system-ui, sans-serif" font-size="13" role="img" '
        f'aria-label="Share of questions whose whole evidence is in the window. {escape(said)}">',
        f'  <rect width="{wide}" height="{high}" rx="8" fill="#ffffff"/>',
    ]
    for place, panel in enumerate(panels):
        lines.append(f'  <g transform="translate({place * WIDTH} 0)">')
        lines += [f"    {line}" for line in _panel(panel, sizes)]
        lines.append("  </g>")
    lines += [f"  {line}" for line in _legend(list(panels[0].series))]
    return "\n".join([*lines, "</svg>", ""])


def _spoken(series: Series, sizes: Sequence[int]) -> str:
    """The lines as words, for those who do not see them."""
    last = len(sizes) - 1
    return ", ".join(
        f"{name} from {shares[0]:.0%} at {size_name(sizes[0])} to {shares[last]:.0%} at "
        f"{size_name(sizes[last])} tokens"
        for name, shares in series.items()
    )


def size_name(size: int) -> str:
    """2000 is 2k."""
    return f"{size // 1_000}k" if size % 1_000 == 0 else f"{size:,}"


def _panel(panel: Panel, sizes: Sequence[int]) -> Iterator[str]:
    yield _text(LEFT, 26, panel.title, "start", INK, ' font-weight="600"')
    yield _text(WIDTH - RIGHT, 26, "share of questions", "end", GREY)
    yield from _axes(sizes)
    if panel.aim is not None:
        x, y = _x(panel.aim[0], sizes), _y(panel.aim[1])
        yield f'<path d="M{x - 13:.1f} {y:.1f}h26" stroke="{INK}" stroke-width="2"/>'
        yield _text(x, y + 17, f"aim {panel.aim[1]:.2f}", "middle", INK, HALO)
    drawn = list(zip(panel.series.values(), STYLES, MARKS, strict=False))
    for shares, style, mark in reversed(drawn):  # the first is ours, and lies on top
        points = [(_x(size, sizes), _y(it)) for size, it in zip(sizes, shares, strict=True)]
        yield from _line(points, *style, mark)


def _axes(sizes: Sequence[int]) -> Iterator[str]:
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _y(share)
        yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{RULE}"/>'
        yield _text(LEFT - 8, y + 4, f"{share:.2f}", "end", GREY)
    for size in sizes:
        yield _text(_x(size, sizes), HEIGHT - BOTTOM + 20, size_name(size), "middle", GREY)
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "tokens of the window", "middle", GREY)


def _line(
    points: Sequence[tuple[float, float]], colour: str, dash: str, mark: str
) -> Iterator[str]:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2.5"{dashes}/>'
    for x, y in points:
        yield mark.format(x=x, y=y, x0=x - 4, y0=y - 4, colour=colour)


def _legend(names: Sequence[str]) -> Iterator[str]:
    for place, (name, style, mark) in enumerate(zip(names, STYLES, MARKS, strict=False)):
        x, y = LEFT + place * LEGEND, HEIGHT + 14
        yield from _line([(x, y), (x + 30, y)], *style, "")
        yield mark.format(x=x + 15, y=y, x0=x + 11, y0=y - 4, colour=style[0])
        yield _text(x + 38, y + 4, name, "start", INK)


def _text(x: float, y: float, text: str, anchor: str, colour: str, more: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {place}{more}>{escape(text)}</text>"


def _x(size: int, sizes: Sequence[int]) -> float:
    """Twice the tokens are as far everywhere."""
    span = log2(max(sizes) / min(sizes)) or 1.0
    return LEFT + 14 + (WIDTH - LEFT - RIGHT - 28) * log2(size / min(sizes)) / span


def _y(share: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)
