"""The files of memorist-minilm, found and read."""

from __future__ import annotations

from pathlib import Path

from memorist.errors import ProviderError


def data_folder() -> Path:
    """Where the weights lie; the cure if they are not installed."""
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
