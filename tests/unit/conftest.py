"""What LangChain's own test suites need to be imported."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """They mark one test with a marker of a plugin that is switched off here."""
    config.addinivalue_line("markers", "benchmark: of langchain-tests; nothing is timed")
