"""The page about contexts prints what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from memorist import Window

PAGE = (Path(__file__).parent.parent.parent / "docs" / "context.md").read_text("utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(
    r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", PAGE, flags=re.DOTALL
)


def promised(code: str, below: str) -> list[str]:
    """What a block prints: the text below it, or else the comments beside its prints."""
    return below.splitlines() or re.findall(r"^print\(.*  # (.+)$", code, flags=re.MULTILINE)


def test_the_page_about_contexts_says_what_happens(tmp_path: Path) -> None:
    assert len(BLOCKS) > 5
    done = subprocess.run(
        [sys.executable, "-c", "".join(code for code, _ in BLOCKS)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [line for block in BLOCKS for line in promised(*block)]


def test_the_page_lists_each_setting_with_its_default() -> None:
    table = PAGE.partition("## Settings")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", table, flags=re.MULTILINE))
    window = Window()
    shown = {name: getattr(window, name) for name in Window.__dataclass_fields__}
    assert rows.keys() == shown.keys()
    for name, default in shown.items():
        told = rows[name].strip("`").replace(",", "")
        assert told in (str(default), repr(default), f'"{default}"'), name
