"""A vector is being written while its passage goes: neither stays without the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from memorist import Memory
from memorist.records.memories import Expire
from memorist.records.values import now
from memorist.store import search
from memorist.store.engine import Db
from memorist.store.postgres.store import PostgresStore


@pytest.fixture
def memory(postgres_with_tables: str) -> Iterator[Memory]:
    with Memory(postgres_with_tables, embedder=None, extraction=None) as opened:
        yield opened


def test_who_removes_a_passage_takes_its_unwritten_vector_along(memory: Memory) -> None:
    store = memory.store
    assert isinstance(store, PostgresStore)
    item = memory.memories.add("Ada drinks tea.", user="ada")
    scope = memory.scope(user="ada")
    [passage] = store.unembedded(scope, "any", limit=9)
    written, done = threading.Event(), threading.Event()

    def write(db: Db) -> None:
        search.put_vectors(db, scope, "any", {passage: [1.0, 0.0]})
        written.set()
        done.wait(0.5)  # until the other one waits, or is through

    def remove() -> None:
        written.wait(60)
        store.apply(scope, [Expire(id=item, reason="it is over", at=now())])
        done.set()

    writer = threading.Thread(target=lambda: store._engine.write(scope.owner, write))
    remover = threading.Thread(target=remove)
    for thread in (writer, remover):
        thread.start()
    for thread in (writer, remover):
        thread.join()
    left = store._engine.read(
        scope.owner, lambda db: db.rows("vectors", owner=scope.owner, embedder="any")
    )
    assert left == []
