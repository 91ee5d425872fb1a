"""For tests: models that answer by a script, a server that speaks as providers do, and what
every store must do: `StoreConformance`, which alone wants pytest and Hypothesis.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memorist.testing.conformance import StoreConformance

__all__ = ["StoreConformance"]
PARTS = ("log", "session", "view", "queue", "life", "recall", "article", "entry", "key", "summary")

if sys.modules.get("pytest"):  # then their assertions explain themselves
    import pytest

    pytest.register_assert_rewrite(*(f"{__name__}.{part}_conformance" for part in PARTS))


def __getattr__(name: str) -> Any:
    if name != "StoreConformance":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from memorist.testing.conformance import StoreConformance

    return StoreConformance
