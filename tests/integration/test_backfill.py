"""New messages before backfill: what is imported waits while somebody talks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memorist.lifecycle.settings import DEFAULT_EXTRACTION
from memorist.lifecycle.worker import Worker
from memorist.recall.indexer import Indexer
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.runtime import open_store
from memorist.store.base import Store
from memorist.store.jobs import embedding_kinds, extraction_kinds
from tests.support.models import WordEmbedder

IMPORTED = 5_000
OLD, NEW = Scope(user="bob", session="old"), Scope(user="ada", session="now")
SAID = "I moved to Lisbon in March."


class Interrupted(WordEmbedder):
    """Somebody says something while a backlog is embedded."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    def embed(self, texts: Sequence[str]) -> Any:
        if len(self.seen) < 300 <= len(self.seen) + len(texts):
            self._store.append(NEW, [Message("user", SAID)])
        return super().embed(texts)


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_a_new_message_is_found_and_remembered_before_the_backlog(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    is_file = database == "sqlite"
    url = (
        str(tmp_path / "memory.db") if is_file else request.getfixturevalue("postgres_with_tables")
    )
    with open_store(url) as store:
        imported = [Message("user", f"I live in town {number}.") for number in range(IMPORTED)]
        store.append(OLD, imported, source="import")
        embedder = Interrupted(store)
        indexer, worker = Indexer(store, embedder), Worker(store, DEFAULT_EXTRACTION)
        assert indexer.step(), "a part of the backlog, until somebody speaks"
        assert SAID not in embedder.seen
        assert indexer.step(), "what was said"
        assert embedder.seen[-1] == SAID
        [vector] = embedder.embed_query(SAID)
        assert len(store.match_vector(NEW.whole_user(), embedder.name, vector, limit=5)) == 1
        assert worker.step(), "memories of it, though others waited longer"
        assert store.items(NEW.whole_user())
        assert not store.items(OLD.whole_user()), "they wait"
        assert store.backlog(embedding_kinds(embedder.name)) > 1
        assert store.backlog(extraction_kinds(has_embedder=True)) > 1
        assert len(embedder.seen) < IMPORTED / 10
