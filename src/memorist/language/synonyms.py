"""Kin: words that mean about the same, as the vectors of the local model tell."""

from __future__ import annotations

from functools import cache

from memorist.errors import ProviderError
from memorist.language.minilm_files import data_folder


def kin_of(word: str) -> list[tuple[str, float]]:
    """Stems of other words and how near each is, up to 1; none of a word that is not known."""
    kin = (it.split(":") for it in _lines().get(word, "").split())
    return [(other, float(near)) for other, near in kin]


@cache
def _lines() -> dict[str, str]:
    """The kin of each word, as they are written down; nothing where they are not installed."""
    try:
        text = (data_folder() / "kin.txt").read_text(encoding="utf-8")
    except (ProviderError, OSError, UnicodeError):
        return {}
    return {word: kin for word, _, kin in (line.partition(" ") for line in text.splitlines())}
