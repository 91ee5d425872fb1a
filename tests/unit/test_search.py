"""Recall under a deadline: what is late or fails is named, and the others answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memorist import InvalidError, Memory, Message, ProviderError, StoreError
from memorist.providers.daemon_pool import DaemonPool
from memorist.providers.embedder import Embedder
from memorist.recall import search
from memorist.recall.fusion import Ranking
from memorist.recall.search import Searcher
from memorist.records.query import Query, Recall
from memorist.records.scope import Scope
from memorist.records.values import now
from memorist.store.sqlite.store import SqliteStore
from tests.support.models import BrokenEmbedder, HungEmbedder, WordEmbedder

CANARY = "swordfish"
TOLD = ("I moved to Berlin", f"the password is {CANARY}", "Berlin is loud", "good night")
SLACK = 0.5  # seconds that something takes longer than a deadline
BUSY = 3.0  # seconds beyond a deadline that a busy machine may take; what hangs takes for ever


class Troubled(SqliteStore):
    """A real store, of which some methods do something else first."""

    trouble: dict[str, Callable[[], None]]

    def __getattribute__(self, name: str) -> Any:
        super().__getattribute__("__dict__").get("trouble", {}).get(name, lambda: None)()
        return super().__getattribute__(name)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Troubled]:
    with Troubled(tmp_path / "memory.db", durability="normal") as opened:
        opened.trouble = {}
        yield opened


Open = Callable[..., Memory]


@pytest.fixture
def open_memory(store: Troubled) -> Iterator[Open]:
    """Opens memories on the store, and closes them at the end."""
    opened: list[Memory] = []

    def open_one(embedder: Embedder | None = None, **more: Any) -> Memory:
        opened.append(Memory(store, embedder=embedder, **more))
        return opened[-1]

    yield open_one
    for memory in opened:
        memory.close()


@pytest.fixture
def told(open_memory: Open) -> Open:
    """Opens a memory of a few messages."""

    def open_told(embedder: Embedder | None = None, **more: Any) -> Memory:
        memory = open_memory(embedder, **more)
        for text in TOLD:
            memory.remember(text, user="ada")
        return memory

    return open_told


@pytest.fixture
def gate(open_memory: Open) -> Iterator[threading.Event]:
    """Opened before the memories are closed, so that no thread hangs for ever."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def hung(open_memory: Open) -> Iterator[HungEmbedder]:
    embedder = HungEmbedder()
    yield embedder
    embedder.let_go.set()


def raiser(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def texts(found: Recall) -> list[str]:
    return [hit.text for hit in found.hits]


def test_a_hung_embedder_costs_the_deadline_and_no_more(told: Open, hung: HungEmbedder) -> None:
    memory = told(hung)
    began = time.perf_counter()
    found = memory.recall("who moved to berlin?", user="ada", deadline_ms=200)
    took = time.perf_counter() - began
    assert took < 0.2 + BUSY
    assert found.late == ("meaning",)
    assert found.failed == {}
    assert found.hits[0].text == "I moved to Berlin"
    assert found.hits[0].why.ranks["words"] == 1
    assert found.timings_ms["meaning"] > 0
    assert found.timings_ms["words"] < found.timings_ms["total"] < 1_000 * took


def test_an_embedder_that_stays_hung_never_takes_the_words_with_it(
    store: Troubled, told: Open, hung: HungEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "GRACE_SECONDS", SLACK)
    monkeypatch.setattr(search, "FOUND_SECONDS", SLACK)
    told(hung)
    searcher = Searcher(
        store=store, embedder=hung, store_pool=DaemonPool(2), model_pool=DaemonPool(2)
    )
    query = Query(scope=Scope(user="ada"), question="berlin", now=now(), deadline_ms=300)
    for _ in range(4):
        found = searcher.search(query)
        assert found.late == ("meaning",)
        assert len(found.hits) >= 2


def test_an_embedder_that_comes_back_is_heard_again(told: Open, hung: HungEmbedder) -> None:
    memory = told(hung)
    assert memory.recall("berlin", user="ada", deadline_ms=50).late[-1:] == ("meaning",)
    hung.let_go.set()
    assert memory.jobs.catch_up(300) == 0
    found = memory.recall("berlin", user="ada", deadline_ms=None)
    assert found.late == ()
    assert min(hit.why.ranks.get("meaning", 99) for hit in found.hits) == 1


def test_more_callers_than_threads_all_get_their_answer(store: Troubled, told: Open) -> None:
    memory = told(WordEmbedder())
    memory.jobs.catch_up(300)
    searcher = Searcher(
        store=store, embedder=memory.embedder, store_pool=DaemonPool(2), model_pool=DaemonPool(2)
    )
    query = Query(scope=Scope(user="ada"), question="berlin", now=now(), deadline_ms=None)
    with ThreadPoolExecutor(12) as callers:
        answers = [callers.submit(searcher.search, query) for _ in range(48)]
        for answer in answers:
            found = answer.result(timeout=20)
            assert (len(found.hits), found.late, found.failed) == (4, (), {})


def test_without_a_deadline_recall_waits_for_all(told: Open) -> None:
    embedder = HungEmbedder(texts=False)
    memory = told(embedder)
    memory.jobs.catch_up(300)
    with ThreadPoolExecutor(1) as other:
        answer = other.submit(memory.recall, "berlin", user="ada", deadline_ms=None)
        assert embedder.asked.wait(20)
        assert not answer.done()
        embedder.let_go.set()
        found = answer.result(timeout=20)
    assert found.late == ()
    assert "meaning" in found.hits[0].why.ranks


@pytest.mark.parametrize("deadline_ms", [1e-6, 0.5, 1e18, float("inf")])
def test_a_deadline_may_be_as_short_or_long_as_one_likes(told: Open, deadline_ms: float) -> None:
    found = told().recall("berlin", user="ada", deadline_ms=deadline_ms)
    assert found.hits or found.late


def test_an_embedder_that_cannot_is_named_with_its_reason(
    told: Open, caplog: pytest.LogCaptureFixture
) -> None:
    memory = told(BrokenEmbedder(ProviderError("the model is away")))
    memory.jobs.catch_up(300)
    found = memory.recall(f"who moved to berlin with a {CANARY}?", user="ada", deadline_ms=None)
    assert found.failed == {"meaning": "the model is away"}
    assert found.late == ()
    assert "I moved to Berlin" in texts(found)
    assert "the model is away" in caplog.text
    assert CANARY not in caplog.text


def test_of_a_foreign_error_only_the_kind_is_told(
    told: Open, caplog: pytest.LogCaptureFixture
) -> None:
    memory = told(BrokenEmbedder(KeyError(f"bad input: {CANARY}")))
    memory.jobs.catch_up(300)
    found = memory.recall(f"berlin {CANARY}", user="ada", deadline_ms=None)
    assert found.failed == {"meaning": "KeyError"}
    assert len(found.hits) == 4
    [warning] = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "KeyError" in warning.getMessage()
    assert CANARY not in caplog.text


def test_vectors_of_another_length_fail_the_meaning_channel_alone(
    told: Open, open_memory: Open
) -> None:
    told(WordEmbedder("same name", 16)).jobs.catch_up(300)
    changed = open_memory(WordEmbedder("same name", 32))
    found = changed.recall("berlin", user="ada", deadline_ms=None)
    assert "16-d" in found.failed["meaning"]
    assert len(found.hits) == 4


def test_a_closed_store_gives_an_empty_marked_answer_and_a_warning(
    store: Troubled, told: Open, caplog: pytest.LogCaptureFixture
) -> None:
    memory = told(WordEmbedder())
    memory.close()
    found = memory.recall(CANARY, user="ada", deadline_ms=None)
    assert found.hits == ()
    assert found.failed.keys() >= {"words", "meaning", "links", "recency"}
    assert set(found.failed.values()) == {"the store is closed"}
    assert "recall answered with 0 hits" in caplog.text
    assert CANARY not in caplog.text


def test_names_that_hang_hold_up_no_channel_but_meaning(
    store: Troubled, told: Open, gate: threading.Event
) -> None:
    memory = told(WordEmbedder())
    memory.jobs.catch_up(300)
    store.trouble = {"speakers": gate.wait}  # type: ignore[dict-item]
    found = memory.recall(CANARY, user="ada", deadline_ms=300)
    assert set(found.late) <= {"meaning"}  # whichever thread asks for them is the one that hangs
    assert len(found.hits) == 4


def test_a_store_that_hangs_gives_an_empty_marked_answer_in_time(
    store: Troubled, told: Open, gate: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    memory = told(WordEmbedder())
    memory.jobs.catch_up(300)
    store.trouble = {"speakers": gate.wait, "newest": gate.wait}  # type: ignore[dict-item]
    began = time.perf_counter()
    found = memory.recall(CANARY, user="ada", deadline_ms=300)
    assert time.perf_counter() - began < 0.1 + BUSY
    assert found.hits == ()
    assert set(found.late) >= {"words", "links", "recency"}
    assert "late: recency, words, links" in caplog.text
    gate.set()
    store.trouble = {}
    assert len(memory.recall(CANARY, user="ada", deadline_ms=None).hits) == 4


def sleeper(seconds: float) -> Callable[[], None]:
    return lambda: time.sleep(seconds)


@pytest.mark.parametrize("method", ["passages", "read"])
def test_what_was_found_in_time_is_read_even_if_that_takes_a_little_longer(
    store: Troubled, told: Open, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "FOUND_SECONDS", 8 * SLACK)
    memory = told()
    store.trouble = {method: sleeper(3 * SLACK)}
    found = memory.recall("Berlin", user="ada", deadline_ms=3 * SLACK * 1_000 - 50)
    assert len(found.hits) == 4
    assert found.late == ()


@pytest.mark.parametrize("method", ["passages", "read"])
def test_finds_that_a_store_does_not_give_out_cost_the_deadline_and_a_moment(
    store: Troubled, told: Open, gate: threading.Event, method: str
) -> None:
    memory = told()
    store.trouble = {method: gate.wait}  # type: ignore[dict-item]
    began = time.perf_counter()
    found = memory.recall("Berlin", user="ada", deadline_ms=200)
    assert time.perf_counter() - began < 0.2 + search.FOUND_SECONDS + BUSY
    assert (found.hits, found.late[-1]) == ((), "store")


def test_one_channel_that_the_store_refuses_leaves_the_others(
    store: Troubled, told: Open, caplog: pytest.LogCaptureFixture
) -> None:
    memory = told(WordEmbedder())
    memory.jobs.catch_up(300)
    store.trouble = {"match_text": raiser(StoreError("SQLite refused: IOError"))}
    found = memory.recall("Berlin", user="ada", deadline_ms=None)
    assert found.failed == {"words": "SQLite refused: IOError"}
    assert len(found.hits) == 4
    assert found.hits[0].why.ranks.keys() == {"meaning", "links", "recency"}
    assert "SQLite refused: IOError" in caplog.text


@pytest.mark.parametrize("method", ["passages", "read"])
def test_what_was_found_but_cannot_be_read_is_confessed(
    store: Troubled, told: Open, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    memory = told()
    store.trouble = {method: raiser(StoreError("SQLite refused: IOError"))}
    found = memory.recall("Berlin", user="ada", deadline_ms=None)
    assert (found.hits, found.failed) == ((), {"store": "SQLite refused: IOError"})
    assert "recall answered with 0 hits" in caplog.text


def test_speakers_that_cannot_be_read_cost_a_boost_and_nothing_else(
    store: Troubled, told: Open
) -> None:
    memory = told(WordEmbedder())
    memory.jobs.catch_up(300)
    store.trouble = {"speakers": raiser(StoreError("no"))}
    found = memory.recall("Berlin", user="ada", deadline_ms=None)
    assert (len(found.hits), found.failed) == (4, {})


def test_an_answer_that_is_whole_logs_nothing(told: Open, caplog: pytest.LogCaptureFixture) -> None:
    memory = told(WordEmbedder())
    memory.jobs.catch_up(300)
    found = memory.recall("Berlin", user="ada", deadline_ms=None)
    assert found.hits
    assert memory.recall("nothing like it", user="nobody", deadline_ms=None).hits == ()
    assert caplog.records == []


def test_what_holds_the_word_stands_before_what_does_not(told: Open) -> None:
    found = told().recall("Berlin", user="ada", limit=2, deadline_ms=None)
    assert {*texts(found)} == {"I moved to Berlin", "Berlin is loud"}


class Reranker:
    """Orders by a rule."""

    def __init__(self, rule: Callable[[str, Sequence[str]], Any]) -> None:
        self.asked: list[str] = []
        self._rule = rule

    def score(self, question: str, texts: Sequence[str]) -> Any:
        self.asked += texts
        return self._rule(question, texts)


def test_the_rerankers_order_is_the_one_that_counts(told: Open) -> None:
    reranker = Reranker(lambda question, texts: [-len(text) for text in texts])
    memory = told(ranking=Ranking(reranker=reranker))
    found = memory.recall("Berlin", user="ada", limit=2, deadline_ms=None)
    assert texts(found) == ["good night", "Berlin is loud"]
    assert len(reranker.asked) == 4  # twice as many as wanted are looked at again
    assert found.timings_ms["rerank"] >= 0
    assert (found.late, found.failed) == ((), {})
    assert memory.recall("Berlin", user="nobody", deadline_ms=None).hits == ()


def test_a_late_reranker_is_named_and_the_first_order_stays(
    open_memory: Open, told: Open, gate: threading.Event
) -> None:
    first = texts(told().recall("Berlin", user="ada", deadline_ms=None, limit=2))
    reranker = Reranker(lambda question, texts: [gate.wait() * 1.0 for _ in texts])
    memory = open_memory(ranking=Ranking(reranker=reranker))
    began = time.perf_counter()
    found = memory.recall("Berlin", user="ada", deadline_ms=300, limit=2)
    assert time.perf_counter() - began < 0.3 + BUSY
    assert found.late == ("rerank",)
    assert texts(found) == first


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (lambda question, texts: [1.0], "wrong length"),
        (lambda question, texts: [], "wrong length"),
        (lambda question, texts: 1 / 0, "ZeroDivisionError"),
        (lambda question, texts: None, "TypeError"),
        (lambda question, texts: [CANARY] * len(texts), "ValueError"),
    ],
)
def test_a_reranker_that_fails_is_named_and_the_first_order_stays(
    open_memory: Open, told: Open, rule: Callable[[str, Sequence[str]], Any], reason: str
) -> None:
    first = texts(told().recall("Berlin", user="ada", deadline_ms=None, limit=2))
    memory = open_memory(ranking=Ranking(reranker=Reranker(rule)))
    found = memory.recall("Berlin", user="ada", deadline_ms=None, limit=2)
    assert found.failed == {"rerank": reason}
    assert texts(found) == first


def test_words_find_what_has_no_vector_yet(told: Open) -> None:
    embedder = HungEmbedder(questions=False)
    memory = told(embedder)
    found = memory.recall(CANARY, user="ada", deadline_ms=None)
    assert found.hits[0].text == f"the password is {CANARY}"
    assert "meaning" not in found.hits[0].why.ranks
    embedder.let_go.set()
    memory.jobs.catch_up(300)
    found = memory.recall(CANARY, user="ada", deadline_ms=None)
    assert found.hits[0].why.ranks["meaning"] == 1


@pytest.mark.parametrize("embedder", [None, WordEmbedder()])
def test_a_hit_in_a_long_message_names_the_message_and_the_span(
    open_memory: Open, embedder: WordEmbedder | None
) -> None:
    filler = "Nothing of note was said on that long and grey afternoon. " * 430
    message = Message("user", f"{filler}The treasure lies under the oak. {filler}")
    assert len(message.text) > 49_000
    memory = open_memory(embedder)
    memory.remember([message, Message("user", "something short")], user="ada")
    memory.jobs.catch_up(300)
    hit = memory.recall("where is the treasure, under an oak?", user="ada", deadline_ms=None).hits[
        0
    ]
    assert (hit.kind, hit.id) == ("message", message.message_id)
    assert hit.text == message.text[hit.why.start : hit.why.stop]
    assert "The treasure lies under the oak." in hit.text
    assert len(hit.text) <= 1_000


def test_every_hit_says_why(open_memory: Open) -> None:
    clock = [datetime(2026, 3, 1, tzinfo=UTC)]
    memory = open_memory(WordEmbedder(), clock=lambda: clock[0])
    talk = [
        Message("user", "I moved to Berlin", name="Ada", created_at=clock[0]),
        Message("assistant", "How is it?", created_at=clock[0]),
    ]
    memory.remember(talk, user="ada")
    memory.jobs.catch_up(300)
    clock[0] += timedelta(days=2)
    found = memory.recall("When did Ada move to Berlin?", user="ada", deadline_ms=None, min_score=0)
    for hit in found.hits:
        assert hit.why.ranks
        assert hit.why.ranks.keys() == hit.why.scores.keys() <= hit.why.parts.keys()
        assert 0 < hit.score < 1
        assert hit.why.age == timedelta(days=2)
        assert hit.session_id == memory.sessions(user="ada")[0].id
    best = found.hits[0]
    assert (best.text, best.speaker, best.role) == ("I moved to Berlin", "Ada", "user")
    assert best.why.parts["speaker"] > 0
    told_why = str(best.why)
    assert told_why.startswith("words #1, meaning #1")
    assert "speaker" in told_why
    assert told_why.endswith("; 2 days ago")
    assert found.timings_ms.keys() == {"words", "meaning", "links", "recency", "total"}


REFUSED: list[dict[str, Any]] = [
    {"deadline_ms": 0},
    {"deadline_ms": -5},
    {"deadline_ms": float("nan")},
    {"kind": "nonsense"},
    {"kind": 5},
    {"role": "nobody"},
    {"role": ("user", "nobody")},
    {"category": 7},
    {"category": "x" * 2_000},
    {"tags": ("a", None)},
    {"tags": {"a": 1}},
    {"after": "yesterday"},
    {"before": datetime(2026, 1, 1)},
    {"as_of": 5},
    {"question": None},
    {"question": b"bytes"},
    {"user": None},
    {"user": 5},
    {"agent": 5},
    {"session": ["x"]},
    {"deadline_ms": "soon"},
    {"limit": "ten"},
    {"limit": 2.5},
    {"limit": None},
]


def test_what_cannot_be_asked_is_refused_with_its_name(told: Open) -> None:
    memory = told()
    for wrong in REFUSED:
        arguments: dict[str, Any] = {"question": "berlin", "user": "ada"} | wrong
        [name] = wrong
        with pytest.raises(InvalidError, match=name):
            memory.recall(arguments.pop("question"), **arguments)
    with pytest.raises(TypeError, match="colour"):
        memory.recall("berlin", user="ada", colour="red")  # type: ignore[call-arg]


def test_a_limit_is_kept(told: Open) -> None:
    memory = told()
    for limit, count in ((1, 1), (3, 3), (4, 4), (10**9, 4)):
        assert len(memory.recall("Berlin", user="ada", limit=limit, deadline_ms=None).hits) == count
