"""Makes examples/first_memory.ipynb of docs/tutorial.md: `python tools/notebook.py`.

The page's Python becomes cells, with what the page says that they print as their outputs; the text
between them stays text. Sections without Python are left out. A test runs the notebook.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "tutorial.md"
NOTEBOOK = ROOT / "examples" / "first_memory.ipynb"
CELL = re.compile(r"```python\n(.*?)\n```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
OPENING = """# Your first agent with memory

No key, no model to download. It needs `pip install "memorist[agents]"`;
[the tutorial](../docs/tutorial.md) says where from, and how to go on."""


def notebook(page: str) -> dict[str, Any]:
    sections = [part for part in page.split("\n## ")[1:] if "```python" in part]
    cells = [_text(OPENING)]
    for section in sections:
        between = CELL.split(f"## {section}".replace("](", "](../docs/"))
        between = [part or "" for part in between]
        cells.append(_text(between[0]))
        for code, printed, text in zip(between[1::3], between[2::3], between[3::3], strict=True):
            cells.append(_code(code.replace("](../docs/", "]("), printed))
            cells.append(_text(text))
    kept = [cell for cell in cells if cell["source"]]
    for number, cell in enumerate(kept):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": kept,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _text(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(source.strip())}


def _code(source: str, printed: str) -> dict[str, Any]:
    stream = {"name": "stdout", "output_type": "stream", "text": _lines(printed)}
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [stream] if printed else [],
        "source": _lines(source),
    }


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    text = json.dumps(notebook(PAGE.read_text("utf-8")), indent=1, ensure_ascii=False)
    NOTEBOOK.write_text(text + "\n", "utf-8")
