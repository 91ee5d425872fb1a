"""The weights of Memorist's embedder: all-MiniLM-L6-v2, trained for memory, in 8 bits."""

from __future__ import annotations

from pathlib import Path


def data_folder() -> Path:
    """Where the weights, the graph, the word pieces and the static vectors lie."""
    return Path(__file__).parent / "data"
