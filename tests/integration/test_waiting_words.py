"""SQLite's words of new messages: found before they are in the text index, as they are after."""

from __future__ import annotations

import random
from pathlib import Path

import apsw
import pytest

from memorist.records.message import Message
from memorist.records.query import Synonym
from memorist.records.scope import Scope
from memorist.store.sqlite.db import MAX_WAITING
from memorist.store.sqlite.store import SqliteStore
from tests.conformance.worlds import worded

ADA = Scope(user="ada", session="s")
BEN = Scope(user="ben", session="s")
WORDS = ("pelican", "heron", "stork", "crane", "Zürich", "鹤", "鸟")


def said(count: int) -> list[Message]:
    chance = random.Random(1)
    return [
        Message("user", " ".join([f"number{n}", *chance.choices(WORDS, k=9)]), message_id=f"m{n}")
        for n in range(count)
    ]


def waiting(path: Path) -> list[str]:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(10_000)
    rows = connection.execute("SELECT words FROM words_waiting ORDER BY id").fetchall()
    connection.close()
    return [str(words) for (words,) in rows]


@pytest.mark.parametrize("count", [1, MAX_WAITING - 1, MAX_WAITING, 2 * MAX_WAITING + 5])
def test_messages_are_found_and_ranked_alike_whether_or_not_their_words_wait(
    tmp_path: Path, count: int
) -> None:
    messages = said(count)
    with SqliteStore(tmp_path / "one.db") as one, SqliteStore(tmp_path / "all.db") as together:
        for number, message in enumerate(messages):
            one.append(ADA, [message])
            found = worded(one, ADA, [(f"number{number}",)], limit=3)
            assert [match.id for match in found] == [message.message_id]
        assert 0 < len(waiting(tmp_path / "one.db")) <= MAX_WAITING
        together.append(ADA, messages)
        connection = apsw.Connection(str(tmp_path / "all.db"))  # all of its words are indexed
        connection.execute(
            "INSERT INTO passage_words (rowid, words) SELECT id, words FROM words_waiting;"
            "DELETE FROM words_waiting"
        )
        connection.close()
        for term in (("pelican",), ("heron",), ("zurich",), ("鹤", "鸟"), ("nothing",)):
            asked = [term, ("stork",)]
            synonyms = [Synonym(of=("stork",), stem="crane", worth=0.5)]
            ranked = [
                store.match_text(ADA, asked, synonyms=synonyms, limit=50)
                for store in (one, together)
            ]
            assert ranked[0] == ranked[1]
            assert ranked[0]


def test_words_that_wait_are_found_by_their_own_user_only(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "memory.db") as store:
        store.append(ADA, [Message("user", "a pelican")])
        assert worded(store, BEN, [("pelican",)], limit=5) == []
        store.append(BEN, [Message("user", "another pelican")])
        [found] = worded(store, BEN, [("pelican",)], limit=5)
        assert found.text == "another pelican"


def test_no_more_than_so_many_wait_however_messages_come(tmp_path: Path) -> None:
    messages = iter(said(600))
    chance = random.Random(2)
    with SqliteStore(tmp_path / "memory.db") as store:
        for _ in range(25):
            size = chance.choice([1, 1, 1, 3, MAX_WAITING, MAX_WAITING + 1])
            store.append(ADA, [next(messages) for _ in range(size)])
            assert len(waiting(tmp_path / "memory.db")) < 2 * MAX_WAITING
        stored = store.history(ADA)
        for entry in stored:
            word = entry.message.text.split()[0]
            assert [it.id for it in worded(store, ADA, [(word,)], limit=3)] == [
                entry.message.message_id
            ]


def test_what_is_revised_or_forgotten_waits_no_more(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "memory.db") as store:
        store.append(ADA, [Message("user", "a pelican", message_id="a")])
        store.append(ADA, [Message("user", "a heron", message_id="b")])
        store.append(ADA, [Message("user", "a stork", message_id="c")])
        store.revise(ADA, Message("user", "a crane", message_id="b"))
        assert worded(store, ADA, [("heron",)], limit=5) == []
        terms = [("pelican",), ("crane",), ("stork",)]
        found = worded(store, ADA, terms, limit=5)
        assert sorted(match.id for match in found) == ["a", "b", "c"]
        store.forget(ADA, message_id="a")
        assert worded(store, ADA, [("pelican",)], limit=5) == []
        assert not any("pelican" in words for words in waiting(tmp_path / "memory.db"))
        store.forget(Scope(user="ada"))
        assert waiting(tmp_path / "memory.db") == []
