"""Waiting in tests: for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 300.0  # with a machine that does much else


def until(condition: Callable[[], object], timeout_s: float = PATIENCE_S) -> None:
    """Return as soon as the condition holds; fail if it does not within the time."""
    end, pause_s = time.monotonic() + timeout_s, 0.005
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(pause_s)
        pause_s = min(1.5 * pause_s, 0.1)  # asking may cost as much as what is waited for
