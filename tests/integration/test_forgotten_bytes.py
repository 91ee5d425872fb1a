"""After a forget, no file of the SQLite store holds a byte of what was said."""

from __future__ import annotations

import os
import random
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import apsw
import httpx
import pytest

from memorist import Add, Fact, Memory, MemoryItem, Message, Scope, SqliteStore
from memorist.agents.langgraph import MemoristStore
from memorist.errors import NotFoundError, StoreError
from memorist.server.auth import Guard
from memorist.server.http.app import Limits, build_app
from memorist.store.runner import Scrubber
from memorist.store.sqlite.store import SqliteEngine
from tests.support.http_server import serving
from tests.support.waiting import until

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
        assert "in the background" in report.residue
        assert memory.scrub() == ""
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
        memory.scrub()
        left = hold(tmp_path)
        # What is left is the note, which belongs to the user and not to a session.
        memory.forget(user="gone", everything=True)
        memory.scrub()
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


def contents(folder: Path) -> dict[str, bytes]:
    """All bytes of the store's files; what readers note of their locks is not stored."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".db-shm"}


def test_a_forget_that_removes_nothing_rewrites_nothing(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder=None, extraction=None) as memory:
        memory.remember("I moved to Berlin", user="kept", session="s")
        before = contents(tmp_path)
        for named in ({"everything": True}, {"session": "none"}, {"source": "web"}):
            gone = memory.forget(user="gone", **named)
            assert (gone.counts, gone.residue) == ({}, "")
        assert memory.forget(user="kept", source="web").counts == {}
        with pytest.raises(NotFoundError):
            memory.forget(user="kept", message="none")
        store = MemoristStore(memory)
        assert store.forget(("none",)).counts == {}
        app = build_app(memory, Guard.local("default", "kept"), Limits(requests_per_s=0))
        with serving(app) as url:
            answer = httpx.post(f"{url}/api/forget", json={"source": "web"})
            assert answer.json() == {"counts": {}, "residue": ""}
        assert contents(tmp_path) == before
        assert memory.store.unscrubbed_s() is None


def test_a_message_of_a_long_log_is_forgotten_as_cheaply_as_one_of_a_short_log() -> None:
    def steps(messages: int) -> int:
        """How much SQLite does for it."""
        count = 0

        def counted() -> bool:
            nonlocal count
            count += 1
            return False

        with SqliteStore(":memory:") as store:
            scope = Scope(user="ada", session="s")
            store.append(scope, [Message("user", f"Ada: it is {it}") for it in range(messages)])
            engine = cast(SqliteEngine, store._engine)
            engine._db().connection.set_progress_handler(counted, 50)
            store.forget(scope, message_id=store.history(scope, last=9)[0].message.message_id)
        return count

    assert steps(2_000) < 5 * steps(20)


def test_many_forgets_are_scrubbed_together_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [datetime(2026, 1, 1, tzinfo=UTC)]
    scrubs = 0
    with SqliteStore(tmp_path / "memory.db", clock=lambda: clock[0]) as store:
        scrub = store.scrub

        def counted() -> str:
            nonlocal scrubs
            scrubs += 1
            return scrub()

        monkeypatch.setattr(store, "scrub", counted)
        scope = Scope(user="gone", session="s")
        messages = [Message("user", f"zqcanary{number}") for number in range(20)]
        store.append(scope, messages)
        scrubber = Scrubber(store)
        assert not scrubber.step()
        for message in messages:
            store.forget(scope, message_id=message.message_id, scrub=True)
            assert not scrubber.step()
            clock[0] += timedelta(seconds=Scrubber.gather_seconds / len(messages))
        assert scrubber.step()
        assert sum(hold(tmp_path).values()) == 0
        assert store.unscrubbed_s() is None
        store.append(scope, [Message("user", "zqcanary", message_id="m")])
        store.forget(scope, message_id="m", scrub=True)
        clock[0] += timedelta(seconds=2 * Scrubber.gather_seconds)
        assert not scrubber.step()  # it rests
        scrubber.pause(0)
        assert scrubber.step()
        assert sum(hold(tmp_path).values()) == 0
        assert scrubs == 2


def test_what_a_process_left_is_scrubbed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None, extraction=None) as memory:
        memory.remember("zqcanary", user="gone", session="s")
        memory.forget(user="gone", everything=True)
        assert sum(hold(tmp_path).values()) > 0
    monkeypatch.setattr(Scrubber, "gather_seconds", 0.0)
    with Memory(path, embedder=None, extraction=None) as memory:
        until(lambda: memory.store.unscrubbed_s() is None)
        assert sum(hold(tmp_path).values()) == 0
        memory.remember("zqcanary", user="gone", session="s")
        memory.forget(user="gone", everything=True)
        until(lambda: memory.store.unscrubbed_s() is None)
        assert sum(hold(tmp_path).values()) == 0


def test_what_another_process_left_is_scrubbed_by_one_that_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None, extraction=None) as memory:
        memory.remember("zqcanary", user="gone", session="s")
        monkeypatch.setattr(Scrubber, "gather_seconds", 0.0)
        with SqliteStore(path) as other:
            other.forget(Scope(user="gone"), scrub=True)
        memory._runtime.scrubber.longest_pause = 0.1
        memory.recall("tea", user="kept")
        until(lambda: memory.store.unscrubbed_s() is None)
        assert sum(hold(tmp_path).values()) == 0


def test_what_is_forgotten_during_a_scrub_waits_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteStore(tmp_path / "memory.db") as store:
        engine, scope = cast(SqliteEngine, store._engine), Scope(user="gone", session="s")
        store.append(scope, [Message("user", "zqcanary")])
        merge = engine._merge

        def merge_then_forget(pages: int) -> int:
            merged = merge(pages)
            store.forget(scope, scrub=True)
            return merged

        monkeypatch.setattr(engine, "_merge", merge_then_forget)
        store.scrub()
        assert store.unscrubbed_s() is not None


def test_a_scrub_that_takes_long_is_followed_by_an_hour_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with SqliteStore(":memory:") as store:
        pauses: list[float] = []
        scrubber = Scrubber(store)
        monkeypatch.setattr(scrubber, "pause", pauses.append)
        monkeypatch.setattr(store, "unscrubbed_s", lambda: Scrubber.gather_seconds)
        monkeypatch.setattr(Scrubber, "long_seconds", 0.0)
        assert scrubber.step()
        assert pauses == [3_600.0]


@pytest.mark.parametrize("end", ["close", "before_fork"])
def test_a_scrub_that_takes_long_does_not_hold_up_an_end_or_a_fork(
    tmp_path: Path, end: str
) -> None:
    path, begun = tmp_path / "memory.db", threading.Event()
    store = SqliteStore(path)
    scope = Scope(user="gone", session="s")
    store.append(scope, [Message("user", "zqcanary " * 9) for _ in range(300)])
    store.forget(scope, scrub=True)

    def slow() -> bool:
        begun.set()
        time.sleep(0.01)
        return False

    def scrub() -> None:
        with pytest.raises(StoreError):
            store.scrub()

    engine = cast(SqliteEngine, store._engine)
    while engine._merge(9) >= 2:
        pass
    engine._db().connection.set_progress_handler(slow, 10)  # so that it would take minutes
    thread = threading.Thread(target=scrub)
    thread.start()
    assert begun.wait(30)
    until(lambda: engine._scrubbing)
    getattr(engine, end)()
    if end == "before_fork":
        engine.after_fork(in_child=False)
    thread.join(30)
    assert not thread.is_alive()
    store.close()
    with SqliteStore(path) as store:
        assert store.unscrubbed_s() is not None
        check_index(path)
        assert store.scrub() == ""
        assert store.unscrubbed_s() is None
    assert sum(hold(tmp_path).values()) == 0


def check_index(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(10_000)  # others write in the background
    assert connection.pragma("integrity_check") == "ok"
    connection.execute(
        "INSERT INTO passage_words (passage_words, rank) VALUES ('integrity-check', 1)"
    )
    connection.close()
