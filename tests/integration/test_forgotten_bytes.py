"""After a forget, no file of the SQLite store holds a byte of what was said."""

from __future__ import annotations

import os
import random
from pathlib import Path

import apsw
import pytest

from memorist import Add, Fact, Memory, MemoryItem, Message, Scope, SqliteStore

CANARY = b"zqcanary"


def hold(folder: Path) -> dict[str, int]:
    """How often the canary stands in each file of the store."""
    return {path.name: path.read_bytes().lower().count(CANARY) for path in folder.iterdir()}


def fill(memory: Memory, chance: random.Random, sessions: int) -> None:
    """Canaries of user `gone` among the words of user `kept`, in every kind of record."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(chance.choices(letters, k=chance.randint(3, 9))) for _ in range(3_000)]
    for session in range(sessions):
        for user in ("kept", "gone"):
            messages = []
            for number in range(40):
                words = chance.choices(vocabulary, k=chance.choice((5, 25, 900)))
                if user == "gone":
                    words.insert(chance.randrange(len(words)), f"ZQcanary{session}x{number}")
                messages.append(Message("user", " ".join(words)))
            memory.remember(messages, user=user, session=str(session))
    scope = memory.scope(user="gone", session="0")
    word = "zqcanary in a view"
    memory.store.apply(
        scope,
        [
            Add(MemoryItem(scope=scope, text=word, tags=("zqcanarytag",))),
            Add(Fact(scope=scope, subject=word, predicate="is", object="zqcanaryobject")),
        ],
    )
    memory.store.write_note(scope, f"# {word}", base_version=0)
    memory.store.write_note(scope, f"# {word} again", base_version=1)
    first = memory.history(user="gone", session="0")[0]
    memory.store.revise(scope, first.changed(content="zqcanaryrevised", name="zqcanaryname"))


@pytest.mark.parametrize("seed", range(5 if os.environ.get("MEMORIST_PROVE") else 2))
def test_no_byte_of_a_forgotten_user_is_left_in_any_file(tmp_path: Path, seed: int) -> None:
    with Memory(SqliteStore(tmp_path / "memory.db")) as memory:
        fill(memory, random.Random(seed), sessions=5)
        memory.recall("zqcanary", user="gone")  # a reader's connection is open too
        assert sum(hold(tmp_path).values()) > 200
        report = memory.forget(user="gone", everything=True)
        assert report.counts["messages"] == 200
        assert report.residue == ""
        assert sum(hold(tmp_path).values()) == 0, hold(tmp_path)
        assert len(memory.history(user="kept")) == 200
        check_index(tmp_path / "memory.db")


def test_no_byte_of_a_forgotten_message_or_session_is_left(tmp_path: Path) -> None:
    with Memory(SqliteStore(tmp_path / "memory.db")) as memory:
        fill(memory, random.Random(9), sessions=2)
        for message in memory.history(user="gone", session="0"):
            memory.forget(user="gone", message=message.message_id, scrub=False)
        memory.forget(user="gone", session="0", scrub=False)
        memory.forget(user="gone", session="1")
        left = hold(tmp_path)
        # What is left is the note, which belongs to the user and not to a session.
        memory.forget(user="gone", everything=True)
        assert 0 < sum(left.values()) <= 8, left
        assert sum(hold(tmp_path).values()) == 0
        check_index(tmp_path / "memory.db")


def test_a_long_read_elsewhere_is_confessed(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SqliteStore(path, patience_seconds=0.2) as store:
        scope = Scope(user="gone", session="s")
        store.append(scope, [Message("user", "zqcanary")])
        with apsw.Connection(str(path)) as other:
            reading = other.execute("SELECT content FROM chat_message_history")
            assert next(reading) == ("zqcanary",)
            store.forget(scope)
            assert "long read" in store.scrub()
            assert hold(tmp_path)["memory.db-wal"] > 0
            reading.close()
        assert store.scrub() == ""
        assert sum(hold(tmp_path).values()) == 0


def check_index(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(10_000)  # others write in the background
    assert connection.pragma("integrity_check") == "ok"
    connection.execute(
        "INSERT INTO passage_words (passage_words, rank) VALUES ('integrity-check', 1)"
    )
    connection.close()
