"""Health: what waits and what was given up, how long things take, and upkeep."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.sync_api import expect

from memorist import Memory
from tests.page.conftest import Open, demo_server, local_server
from tests.support.demo import DemoClock


class Moody:
    """An embedder that refuses one text until it is mended."""

    name, dimension, broken = "moody", 4, True

    def embed(self, texts: Sequence[str], kind: str = "passage") -> list[list[float]]:
        if self.broken and any("poison" in text for text in texts):
            raise ValueError("cannot read this")
        return [[1.0, float(len(text) % 7), 0.5, 0.25] for text in texts]
