"""The Python on a page of the documentation: its blocks are one program that prints what it says.

What a block prints stands in the ```text block below it, or else in the comments beside its prints.
"""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
BESIDE = re.compile(r"^ *print\(.*\)\s+# (.+)$", re.MULTILINE)
# Put before a program: recall waits for every channel, as no page is about how busy a machine is.
UNHURRIED = """from memorist.records.query import Query
Query.deadline_ms = property(lambda self: None, lambda self, value: None)
"""


class PageProgram(NamedTuple):
    """A program and the lines that it should print."""

    code: str
    promised: list[str]


def program(text: str) -> PageProgram:
    blocks = BLOCK.findall(text)
    printed = [below.splitlines() or BESIDE.findall(code) for code, below in blocks]
    return PageProgram("\n".join(code for code, _ in blocks), [*chain(*printed)])


def section(page: str, heading: str) -> str:
    """The part of a page of docs/ below a heading of the second level."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
