"""Synonyms: words that mean about the same, by the vectors of the local model."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from memorist.errors import ProviderError


def synonyms_of(word: str) -> list[tuple[str, float]]:
    """Stems of similar words, each with its cosine up to 1; none for a word that is not known."""
    pairs = (pair.split(":") for pair in _lines().get(word, "").split())
    return [(stem, float(cosine)) for stem, cosine in pairs]


@cache
def _lines() -> dict[str, str]:
    """The synonyms of each word as text; none if memorist-minilm is not installed."""
    try:
        text = (minilm_folder() / "kin.txt").read_text(encoding="utf-8")
    except (ProviderError, OSError, UnicodeError):
        return {}
    return {word: pairs for word, _, pairs in (line.partition(" ") for line in text.splitlines())}


def minilm_folder() -> Path:
    """The folder with the files of memorist-minilm; `ProviderError` if it is not installed."""
    try:
        import memorist_minilm
    except ImportError:
        cure = "pip install memorist-minilm"
        raise ProviderError(f"the weights of all-MiniLM-L6-v2 are missing: {cure}") from None
    folder = memorist_minilm.data_folder()
    if not (folder / "weights.bin").is_file():
        cure = "pip install --force-reinstall memorist-minilm"
        raise ProviderError(f"memorist-minilm is installed without its weights: {cure}")
    return folder
