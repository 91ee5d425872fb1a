"""What the tests of all adapters share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memorist import Memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """An empty memory without vectors, in a file."""
    with Memory(tmp_path / "memory.db", embedder=None) as opened:
        yield opened
