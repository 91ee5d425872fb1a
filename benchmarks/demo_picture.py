"""The recording of `memorist demo` in the docs: one SVG whose lines appear as they did."""

from __future__ import annotations

import argparse
import io
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from memorist.cli import demo

WIDTH = 80
LAST_S = 6.0  # the whole picture, before it begins again
DEFAULT = Path(__file__).parent.parent / "docs" / "images" / "demo.svg"
TITLE = "memorist demo"
FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # a picture loads nothing
LINE = re.compile(r'clip-path="url\(#demo-line-(\d+)\)"')
STYLE = """
    .demo-matrix {{ font-family: ui-monospace, "Fira Code", Menlo, Consolas, monospace; }}
    @media (prefers-reduced-motion: no-preference) {{
    {rules}
    }}
    </style>"""


def record() -> tuple[Console, list[tuple[int, float]]]:
    """Run the demo without its pauses; a console that holds it, and when each line was there."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.status = lambda *_, **__: nullcontext()  # type: ignore[method-assign, assignment]
    shown, clock = [(0, 0.0)], 1.0
    console.print(Text.assemble(("$ ", "dim"), ("memorist demo", "bold")))

    def pause(seconds: float) -> None:
        nonlocal clock
        shown.append((console.export_text(clear=False).count("\n"), clock))
        clock += seconds

    stage: Any = demo
    stage.console, stage.pause = console, pause
    demo.demo(page=False)
    pause(LAST_S)
    return console, [*shown, (-1, clock)]


def animated(svg: str, shown: list[tuple[int, float]]) -> str:
    """The picture with each line hidden until its moment; still where motion is not wanted."""
    *steps, (_, whole) = shown
    rules = [f"    .s {{ animation: {whole:.1f}s step-end infinite }}"]
    for number, (_, at) in enumerate(steps):
        share = at / whole * 100
        hidden = f"0% {{ visibility: hidden }} {share:.2f}% {{ visibility: visible }}"
        rules += [f"    .s{number} {{ animation-name: s{number} }}"] if at else []
        rules += [f"    @keyframes s{number} {{ {hidden} }}"] if at else []

    def mark(match: re.Match[str]) -> str:
        step = next(n for n, (lines, _) in enumerate(steps) if int(match[1]) < lines)
        return f'{match[0]} data-step="s s{step}"'

    svg = LINE.sub(mark, FONT_FACE.sub("", svg))
    svg = re.sub(r'class="([^"]*)"([^>]*?) data-step="([^"]*)"', r'class="\1 \3"\2', svg)
    return svg.replace("</style>", STYLE.format(rules="\n".join(rules)).strip(), 1)


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=DEFAULT)
    console, shown = record()
    svg = console.export_svg(title=TITLE, unique_id="demo")
    parser.parse_args().to.write_text(animated(svg, shown), encoding="utf-8")


if __name__ == "__main__":
    main()
