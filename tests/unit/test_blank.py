"""What says nothing is kept in the log, and never found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memorist import Memory, Message, Recall
from memorist.language.text import passages
from memorist.records.memories import Add, MemoryItem
from memorist.records.scope import Scope
from memorist.store import indexing
from tests.support.models import WordEmbedder

BLANK = (
    Message("user", ""),
    Message("assistant", None),
    Message("user", " \t\n\u00a0 ", name="Ada"),
    Message("assistant", [{"type": "reasoning", "summary": []}]),
)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return ":memory:"
    found: str = request.getfixturevalue("postgres_with_tables")
    return found


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def memory(url: str, embedder: WordEmbedder) -> Iterator[Memory]:
    with Memory(url, embedder=embedder) as opened:
        yield opened


def ask(memory: Memory, question: str = "what did Ada say of Berlin?", limit: int = 10) -> Recall:
    assert memory.jobs.catch_up(300) == 0
    found = memory.recall(question, user="ada", limit=limit, deadline_ms=None)
    assert (found.late, found.failed) == ((), {})
    return found


def texts(found: Recall) -> list[str]:
    return [hit.text for hit in found.hits]


def test_a_blank_message_is_in_the_log_and_never_a_hit(
    memory: Memory, embedder: WordEmbedder
) -> None:
    told = [Message("user", "I moved to Berlin"), *BLANK]
    memory.remember(told, user="ada", session="talk")
    year = str(BLANK[0].created_at.year)
    for question in ("what did Ada say of Berlin?", "", year):
        assert texts(ask(memory, question)) == ["I moved to Berlin"]
    assert memory.history(user="ada", session="talk") == told
    assert all(text.strip() for text in embedder.seen)


def test_where_all_is_blank_nothing_is_found(memory: Memory, embedder: WordEmbedder) -> None:
    memory.remember(list(BLANK), user="ada")
    assert texts(ask(memory)) == []
    assert embedder.seen == []


def test_the_newest_that_say_something_are_recent_however_many_blank_ones_follow(
    memory: Memory,
) -> None:
    memory.remember("good night", user="ada")
    memory.remember([Message("user", " ") for _ in range(20)], user="ada")
    [hit] = ask(memory).hits
    assert (hit.text, hit.why.ranks["recency"]) == ("good night", 1)


def test_what_was_blank_is_found_by_what_it_says_later_and_not_by_what_it_said(
    memory: Memory, embedder: WordEmbedder
) -> None:
    message = Message("user", "I moved to Munich")
    memory.remember(message, user="ada", session="talk")
    assert texts(ask(memory, "Munich")) == ["I moved to Munich"]
    talk = Scope(user="ada", session="talk")
    memory.store.revise(talk, message.changed(content="  "))
    assert texts(ask(memory, "Munich")) == []
    memory.store.revise(talk, message.changed(content="Bread is dear"))
    [hit] = ask(memory, "I moved to Munich").hits
    [fresh] = embedder.embed(["Bread is dear"])
    assert hit.text == "Bread is dear"
    near = float(embedder.embed(["I moved to Munich"])[0] @ fresh)
    assert hit.why.scores.get("meaning", 0.0) == pytest.approx(max(near, 0.0), abs=0.01)


def test_a_message_that_begins_empty_is_found_once_it_has_words(memory: Memory) -> None:
    with memory.session(user="ada").stream("assistant", flush_s=0) as stream:
        assert texts(ask(memory, "Berlin")) == []
        stream.write("Berlin is ")
        assert texts(ask(memory, "Berlin")) == ["Berlin is "]
        stream.write("loud")
    assert texts(ask(memory, "Berlin")) == ["Berlin is loud"]


def test_the_blank_parts_of_a_long_message_are_no_hits(
    memory: Memory, embedder: WordEmbedder
) -> None:
    text = "apples first" + " " * 3_000 + "pears last"
    memory.remember(text, user="ada")
    assert "pears last" in texts(ask(memory, "pears"))[0]
    assert all(seen.strip() for seen in embedder.seen)


def test_blank_memories_and_notes_are_no_hits(memory: Memory) -> None:
    memory.remember("I moved to Berlin", user="ada", session="talk")
    user = Scope(user="ada")
    memory.store.write_note(user, "  \n ", base_version=0)
    memory.store.apply(user, [Add(MemoryItem(scope=user, text=" \t "))])
    assert texts(ask(memory)) == ["I moved to Berlin"]


def test_blank_messages_of_a_store_filled_before_are_no_hits_and_take_no_place(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "spans_of", passages)
    monkeypatch.setattr(indexing, "EMPTY", None)
    memory.remember(["I moved to Berlin", "good night"], user="ada")
    memory.remember([Message("user", " " * (it % 3)) for it in range(12)], user="ada")
    for question in ("what is it about Berlin?", str(BLANK[0].created_at.year), ""):
        assert {*texts(ask(memory, question, limit=2))} == {"I moved to Berlin", "good night"}
