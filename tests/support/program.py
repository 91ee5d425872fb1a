"""A script as `python -W error SCRIPT` runs it, in a process that is forked: see `forked`."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

from tests.support.forked import Forked

IMPORTED = re.compile(r"^(?:from|import) (\w[\w.]*)", re.MULTILINE)


def printed(script: Path, folder: Path, environment: Mapping[str, str]) -> str:
    """What a script prints in this folder, if it succeeds."""
    named = sorted(set(IMPORTED.findall(script.read_text("utf-8"))))
    ready = [__name__, *filter(find_spec, named)]
    with tempfile.TemporaryFile() as errors:
        child = Forked(
            __name__,
            script,
            ready=ready,
            folder=folder,
            environment=environment,
            stderr=errors.fileno(),
            strict=True,
        )
        shown, _ = child.communicate(timeout=300)
        errors.seek(0)
        assert child.wait() == 0, errors.read().decode()
    return shown.decode()


if __name__ == "__main__":
    sys.argv.pop(0)
    sys.path[0] = str(Path(sys.argv[0]).parent)
    run_path(sys.argv[0], run_name="__main__")
