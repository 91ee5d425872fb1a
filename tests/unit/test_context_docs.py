"""The page about contexts prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

from memorist import Window

PAGE = (Path(__file__).parent.parent.parent / "docs" / "context.md").read_text("utf-8")


def test_the_page_lists_each_setting_with_its_default() -> None:
    table = PAGE.partition("## Settings")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", table, flags=re.MULTILINE))
    window = Window()
    shown = {name: getattr(window, name) for name in Window.__dataclass_fields__}
    assert rows.keys() == shown.keys()
    for name, default in shown.items():
        told = rows[name].strip("`").replace(",", "")
        assert told in (str(default), repr(default), f'"{default}"'), name
