"""Recall while the whole process stands still: what nobody had is not counted."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

from memorist import Memory
from memorist.providers.embedder import Embedder
from memorist.recall import channels
from tests.support.models import WordEmbedder


def stand_still() -> None:
    """As while Python collects garbage: nobody runs, and time goes by."""
    ctypes.PyDLL(None).usleep(700_000)


def no_synonyms(*arguments: Any) -> list[Any]:
    """What the words channel asks for before it asks the store."""
    stand_still()
    return []


class StandingStill(WordEmbedder):
    """Stands still with all others before each question."""

    def embed_query(self, text: str) -> Any:
        stand_still()
        return super().embed_query(text)


@pytest.mark.parametrize("embedder", [None, StandingStill()], ids=["in the store", "in a model"])
def test_a_standstill_of_the_process_takes_no_memory_away(
    tmp_path: Path, embedder: Embedder | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory(tmp_path / "memory.db", embedder=embedder) as memory:
        memory.remember(["I moved to Berlin", "good night"], user="ada")
        memory.jobs.catch_up(300)
        memory.recall("who moved to berlin?", user="ada", deadline_ms=None)
        if embedder is None:
            monkeypatch.setattr(channels, "synonyms_of_all", no_synonyms)
        found = memory.recall("who moved to berlin?", user="ada", deadline_ms=300)
    assert found.hits[0].text == "I moved to Berlin"
    assert found.hits[0].why.ranks["words"] == 1
    assert found.late == ()
