"""The files of recollect-minilm, found and read."""

from __future__ import annotations

from pathlib import Path

from recollect.errors import ProviderError
from recollect.providers.wordpiece import WordPiece


def data_folder() -> Path:
    """Where the weights lie; the cure if they are not installed."""
    try:
        import recollect_minilm
    except ImportError:
        cure = "pip install recollect-minilm"
        raise ProviderError(f"the weights of all-MiniLM-L6-v2 are missing: {cure}") from None
    folder = recollect_minilm.data_folder()
    if not (folder / "weights.bin").is_file():
        cure = "pip install --force-reinstall recollect-minilm"
        raise ProviderError(f"recollect-minilm is installed without its weights: {cure}")
    return folder


def read_pieces(folder: Path) -> WordPiece:
    """The tokenizer over the model's own vocabulary."""
    with (folder / "vocab.txt").open(encoding="utf-8") as lines:
        return WordPiece(lines)
