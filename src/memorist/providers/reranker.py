"""The Reranker contract: a second, slower look at the best that was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Reranker(Protocol):
    """Says how well each text answers a question. It gets what time is left, and no more."""

    def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """One number for each text; higher is better."""
