"""What LangChain's own test suites need to be imported."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """They mark tests with markers of plugins that are switched off here."""
    for name in ("benchmark", "vcr"):
        config.addinivalue_line("markers", f"{name}: of langchain-tests; it does nothing")
