"""Names and meaning share a thread with a model that may hang, and with others who ask."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memorist.providers.daemon_pool import DaemonPool, Task
from memorist.recall import search
from memorist.recall.search import AT_ONCE, Searcher
from memorist.records.message import Message
from memorist.records.query import Passage, Query
from memorist.records.scope import Scope
from memorist.records.values import now
from memorist.store.sqlite.store import SqliteStore
from tests.support.models import HungEmbedder, WordEmbedder

if TYPE_CHECKING:
    from memorist.providers.embedder import Vectors

SCOPE = Scope(user="ada", session="s")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "memory.db", durability="normal") as opened:
        opened.append(SCOPE, [Message("user", "I moved to Berlin", name="Caroline")])
        yield opened


def test_an_embedder_that_stays_hung_leaves_nothing_waiting(store: SqliteStore) -> None:
    embedder, models = HungEmbedder(), DaemonPool(2)
    searcher = Searcher(store=store, embedder=embedder, model_pool=models)
    try:
        for _ in range(12):
            asked = Query(scope=SCOPE, question="Berlin?", now=now(), limit=5, deadline_ms=40)
            assert "meaning" in searcher.search(asked).late
        assert models._sequences.qsize() <= 4
    finally:
        embedder.let_go.set()
        searcher.close()


def test_meaning_that_is_given_up_while_the_question_is_embedded_is_late(
    store: SqliteStore,
) -> None:
    embedder, models = HungEmbedder(), DaemonPool(2)

    class Ranking(DaemonPool):
        """Begins to rank without meaning only when the model's thread has given up."""

        starts = 0

        def start(self, *tasks: Task[Any], at_once: bool = False) -> bool:
            self.starts += 1
            if self.starts == 2:  # the first searches, the second ranks
                embedder.let_go.set()
                while models.is_busy():
                    time.sleep(0.001)
            return super().start(*tasks, at_once=at_once)

    searcher = Searcher(store=store, embedder=embedder, store_pool=Ranking(2), model_pool=models)
    asked = Query(scope=SCOPE, question="Berlin?", now=now(), limit=5, deadline_ms=300)
    heard = searcher.search(asked)
    searcher.close()
    assert [hit.text for hit in heard.hits] == ["I moved to Berlin"]
    assert heard.late == ("meaning",)


def test_names_that_the_other_thread_looks_for_are_waited_for(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[str] = []

    class Noting(WordEmbedder):
        def embed_query(self, text: str) -> Vectors:
            asked_for.append(text)
            return super().embed_query(text)

    busy, speakers = threading.Event(), store.speakers
    models = DaemonPool(1)
    models.start(Task(busy.wait))

    def slowly(scope: Scope) -> list[str]:
        busy.set()  # now the thread of models is free, and finds the names taken
        time.sleep(0.2)
        return speakers(scope)

    monkeypatch.setattr(store, "speakers", slowly)
    searcher = Searcher(store=store, embedder=Noting(), model_pool=models)
    question = "Where did Caroline move?"
    searcher.search(Query(scope=SCOPE, question=question, now=now(), limit=5, deadline_ms=None))
    searcher.close()
    assert asked_for == ["Where did I move?"]


@pytest.mark.parametrize(
    ("question", "embedded"),
    [
        ("where did she move?", ["where did she move?"]),
        ("Where did Caroline move?", ["Where did I move?"]),
        ("where did caroline move?", ["where did caroline move?", "where did I move?"]),
    ],
)
def test_a_question_without_names_is_embedded_while_names_are_looked_for(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, question: str, embedded: list[str]
) -> None:
    asked_for, in_time = list[str](), list[bool]()
    begun, speakers = threading.Event(), store.speakers
    if "Caroline" in question:
        begun.set()

    class Noting(WordEmbedder):
        def embed_query(self, text: str) -> Vectors:
            asked_for.append(text)
            begun.set()
            return super().embed_query(text)

    def late(scope: Scope) -> list[str]:
        in_time.append(begun.wait(60))
        return speakers(scope)

    monkeypatch.setattr(store, "speakers", late)
    monkeypatch.setattr(store, "saves_trips", True)
    searcher = Searcher(store=store, embedder=Noting())
    asked = Query(scope=SCOPE, question=question, now=now(), limit=5, deadline_ms=None)
    searcher.search(asked)
    searcher.close()
    assert in_time == [True]
    assert asked_for == embedded


def test_what_meaning_found_counts_though_looking_it_up_takes_long(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder, passages = WordEmbedder(), store.passages
    store.prepare(SCOPE.whole_user(), embedder.name)
    found = store.unembedded(SCOPE, embedder.name, limit=9)
    vectors = {id_: embedder.embed([text])[0].tolist() for id_, text in found.items()}
    store.put_vectors(SCOPE, embedder.name, vectors)

    def slowly(scope: Scope, ids: Sequence[int]) -> list[Passage]:
        time.sleep(0.3)
        return passages(scope, ids)

    monkeypatch.setattr(store, "passages", slowly)
    searcher = Searcher(store=store, embedder=embedder)
    asked = Query(scope=SCOPE, question="Berlin?", now=now(), limit=5, deadline_ms=700)
    heard = searcher.search(asked)
    searcher.close()
    assert "meaning" not in heard.late
    assert heard.failed == {}


class Counting(WordEmbedder):
    """Notes how many questions it embeds at once; `load` says that it is on this machine."""

    def __init__(self) -> None:
        super().__init__()
        self.at_once = self.most = 0
        self._lock = threading.Lock()

    def load(self) -> None:
        """Nothing is read from a file."""

    def embed_query(self, text: str) -> Vectors:
        with self._lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        time.sleep(0.02)
        with self._lock:
            self.at_once -= 1
        return super().embed_query(text)


def test_many_searches_at_once_take_turns_and_all_hear_meaning(store: SqliteStore) -> None:
    searcher = Searcher(store=store, embedder=(embedder := Counting()))
    asked = Query(scope=SCOPE, question="Berlin?", now=now(), limit=5, deadline_ms=5_000)
    with ThreadPoolExecutor(8) as callers:
        heard = list(callers.map(searcher.search, [asked] * 16))
    searcher.close()
    assert embedder.most <= AT_ONCE
    assert [it.late for it in heard] == [()] * 16


def test_a_turn_that_nobody_gives_back_is_not_waited_for_longer_than_some_deadlines(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "PATIENCE", 0.05)  # so that the deadline itself is a long one
    searcher = Searcher(store=store, embedder=Counting(), turns=threading.Semaphore(0))
    asked = Query(scope=SCOPE, question="Berlin?", now=now(), limit=5, deadline_ms=10_000)
    heard = searcher.search(asked)
    searcher.close()
    assert [hit.text for hit in heard.hits] == ["I moved to Berlin"]
    assert heard.timings_ms["total"] >= 500
    assert searcher.turns._value == 0
