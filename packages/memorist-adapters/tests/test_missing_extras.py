"""Without its framework, each adapter says which extra of which package brings it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
EXTRAS = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]["optional-dependencies"]
FRAMEWORKS = {
    "adk": "google.adk",
    "autogen": "autogen_core",
    "llama-index": "llama_index.core",
    "openai-agents": "agents",
    "pydantic-ai": "pydantic_ai",
}


@pytest.mark.parametrize("extra", FRAMEWORKS)
def test_a_module_without_its_framework_names_the_package_and_the_extra(extra: str) -> None:
    code = (
        f"import sys; sys.modules[{FRAMEWORKS[extra]!r}] = None\n"
        f"import memorist_adapters.{extra.replace('-', '_')}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        f'MissingExtraError: this needs an optional part: pip install "memorist-adapters[{extra}]"'
        in (done.stderr)
    )


def test_every_module_is_tried_and_its_extra_is_offered() -> None:
    modules = {path.stem.replace("_", "-") for path in PACKAGE.glob("src/memorist_adapters/*.py")}
    assert modules - {"--init--", "remembered"} == FRAMEWORKS.keys() == EXTRAS.keys()
