"""Fetches the published weights and puts them, converted, into the wheel."""

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
    """A build hook of Hatchling's: converts the weights while the wheel is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)
        from convert import convert  # needs the packages of this build
        from published import fetch_published

        self._folder = tempfile.TemporaryDirectory()
        data = Path(self._folder.name, "data")
        data.mkdir()
        convert(fetch_published(Path(self._folder.name, "published")), data)
        for file in data.iterdir():
            build_data["force_include"][str(file)] = f"memorist_minilm/data/{file.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._folder.cleanup()
