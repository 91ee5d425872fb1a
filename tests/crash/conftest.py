"""Where the tests of crashes write: each store in turn. And no process outlives its test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.processes import end_all


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A path or a URL where there is nothing yet."""
    if request.param == "sqlite":
        return str(tmp_path / "memory.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(autouse=True)
def _no_process_is_left_behind() -> Iterator[None]:
    yield
    end_all()
