"""Where the tests of crashes write: each store in turn. And no process outlives its test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.processes import end_all


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A path where there is nothing yet, or the URL of a database with nothing in its tables."""
    return _place(request, tmp_path, "postgres_with_tables")


@pytest.fixture(params=["sqlite", "postgres"])
def new_target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A path or a URL where there is nothing yet."""
    return _place(request, tmp_path, "postgres_url")


def _place(request: pytest.FixtureRequest, tmp_path: Path, database: str) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "memory.db")
    url: str = request.getfixturevalue(database)
    return url


@pytest.fixture(autouse=True)
def _no_process_is_left_behind() -> Iterator[None]:
    yield
    end_all()
