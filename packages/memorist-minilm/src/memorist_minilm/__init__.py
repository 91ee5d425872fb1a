"""The weights of all-MiniLM-L6-v2 in 8 bits, for Memorist."""

from __future__ import annotations

from pathlib import Path


def data_folder() -> Path:
    """Where the weights, the graph, the word pieces and the static vectors lie."""
    return Path(__file__).parent / "data"
