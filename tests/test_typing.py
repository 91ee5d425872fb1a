"""Both type checkers find every misspelt name once the comments that silence them are gone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("checker", ["mypy", "basedpyright"])
def test_a_misspelt_method_or_keyword_is_a_type_error(checker: str, tmp_path: Path) -> None:
    lines = (ROOT / "tests" / "typing" / "misspelt.py").read_text().splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if "# type: ignore" in line}
    copy = tmp_path / "misspelt.py"
    copy.write_text("\n".join(line.split("  # type: ignore")[0] for line in lines) + "\n")
    program = str(Path(sys.executable).with_name(checker))
    done = subprocess.run([program, str(copy)], cwd=ROOT, capture_output=True, text=True)
    reported = re.findall(r"misspelt\.py:(\d+)(?::\d+)?\b.*error", done.stdout)
    assert {int(number) for number in reported} == wrong, done.stdout + done.stderr
