"""Conformance of transactions: writers think before they hold the lock, and store what is new."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from memorist.errors import TooLargeError
from memorist.language import pronouns
from memorist.records.documents import Article, Chunk
from memorist.records.entry import Entry, Get, Put, Search
from memorist.records.memories import Add, Fact, MemoryItem, Restore, Supersede
from memorist.records.message import Message
from memorist.records.values import now
from memorist.store.base import Store
from tests.conformance.worlds import fresh_scope

LANGUAGE = "memorist.language"
THOUGHT = {  # functions that take time in proportion to a text
    "fold", "readable", "pack", "all_spelled", "word_keys", "digest",
    "passes", "_entry", "_prepared", "_is_one_of",
}  # fmt: skip
SHORT = 1_000  # characters that may be folded in a transaction, as the name of a fact's subject is


@contextmanager
def watched(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """The functions that think inside write transactions, with the longest text each was given."""
    thought: dict[str, int] = {}
    engine = store._engine
    write, read = engine.write, engine.read
    reading = False

    def watch(frame: Any, event: str, _: Any) -> None:
        name = frame.f_code.co_name
        if event == "call" and (
            frame.f_globals.get("__name__", "").startswith(LANGUAGE) or name in THOUGHT
        ):
            sizes = [len(value) for value in frame.f_locals.values() if isinstance(value, str)]
            longest = max(sizes, default=SHORT + 1)  # no text: a whole record
            thought[name] = max(thought.get(name, 0), longest)

    def watched_write(owner: str, work: Callable[[Any], Any], **options: Any) -> Any:
        def run(db: Any) -> Any:
            sys.setprofile(None if reading else watch)
            try:
                return work(db)
            finally:
                sys.setprofile(None)

        return write(owner, run, **options)

    def watched_read(*args: Any, **options: Any) -> Any:
        nonlocal reading  # in memory, where there is one connection, reads are writes
        reading = True
        try:
            return read(*args, **options)
        finally:
            reading = False

    with monkeypatch.context() as patch:
        patch.setattr(engine, "write", watched_write)
        patch.setattr(engine, "read", watched_read)
        yield thought


def prose(number: int, chars: int = 4_000) -> str:
    """A text of many words, its own for each number."""
    words = (f"w{number}x{place}é" for place in range(chars // 8))
    return f"text{number} " + " ".join(words)[:chars]


class LockConformance:
    """Needs a fixture `store`."""

    def test_no_writer_thinks_while_it_holds_the_lock(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scope = fresh_scope()
        said = Message("user", prose(1))
        begun = Message("assistant", prose(2), unfinished=True)
        old = MemoryItem(scope=scope, text=prose(3), source="user")
        new = MemoryItem(scope=scope, text=prose(4), source="user")
        fact = Fact(scope=scope, subject=prose(5), predicate="is", object=prose(6))
        article = Article(scope=scope.whole_user(), title="a", text=prose(7), uri=prose(8, 100))
        entry = Put(namespace=("a",), key="k", value={"text": prose(9)}, texts=(prose(9),))
        pronouns._relations.cache_clear()  # as where nobody has revised a message before
        with watched(store, monkeypatch) as thought:
            store.append(scope, [said, Message("user", {"parts": [prose(10)] * 3})])
            store.append(scope, [said, begun])  # one is stored already
            store.revise(scope, said.changed(content=prose(11)))
            store.append(scope, [said])  # as it was before
            store.append_text(scope, begun.changed(content=f"{prose(2)} {prose(12)}"))
            store.apply(scope, [Add(old), Add(fact)])
            change = Supersede(old_id=old.id, record=new, reason="newer", at=now())
            store.apply(scope, [change])
            store.forget(scope, record_id=new.id)  # what it superseded is indexed again
            store.apply(scope, [replace(change, record=replace(new, id="again"))])
            store.apply(scope, [Restore(id=old.id, reason="undone")])
            store.write_note(scope, prose(13), base_version=0)
            store.put_article(article, [Chunk(0, 2_000), Chunk(2_000, len(article.text))])
            search = Search(where={"text": {"$ne": ""}})
            store.batch(scope.whole_user(), [], [entry])
            [answer] = store.batch(scope.whole_user(), [search], [replace(entry, key="k2")])
        assert len(answer) == 1
        assert {name: size for name, size in thought.items() if size > SHORT} == {}
        words = [f"text{number}" for number in (2, 3, 4, 5, 7, 9, 10, 11, 12, 13)]
        found = [word for word in words if store.match_text(scope.whole_user(), [(word,)], limit=3)]
        assert found == words

    def test_a_growing_message_is_indexed_where_it_grows(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scope = fresh_scope()
        text, step = prose(1, 24_000), 1_200
        stemmed = 0
        words = store._engine.words

        def counted(owner: str, said: str) -> Any:
            nonlocal stemmed
            stemmed += len(said)
            return words(owner, said)

        monkeypatch.setattr(store._engine, "words", counted)
        message = Message("user", "", name="Ada", unfinished=True)
        store.append(scope, [message])
        stayed = 0
        passages: dict[int, str] = {}
        for stop in range(step, len(text) + step, step):
            message = message.changed(content=text[:stop], unfinished=stop < len(text))
            store.append_text(scope, message)
            before, passages = passages, store.unembedded(scope, "nobody", limit=1_000)
            stayed += sum(before.get(id_) == said for id_, said in passages.items())
        # Each passage is written about twice; those of the beginning a little more often, until
        # it is known how the message is worded.
        assert stemmed < 3 * len(text)
        assert stayed > len(passages) * (len(text) // step) / 3
        whole = replace(message, message_id="whole")
        store.append(scope.within(session="other"), [whole])
        again = store.unembedded(scope.within(session="other"), "nobody", limit=1_000)
        assert list(again.values()) == list(passages.values())
        for word in random.Random(5).sample(text.split(), 10):
            found = store.match_text(scope.whole_user(), [(word,)], limit=9)
            spans = store.read(scope.whole_user(), [hit.passage for hit in found])
            by_id: dict[str, list[str]] = {}
            for match in spans:
                by_id.setdefault(match.id, []).append(match.text)
            assert by_id.get(message.message_id) == by_id.get("whole"), word

    def test_an_answer_that_is_too_large_is_not_built_and_nothing_is_written(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scope = fresh_scope().whole_user()
        value = {"text": "é" * 100_000, "n": 1}
        puts = [Put(namespace=("a",), key=str(number), value=value) for number in range(20)]
        store.batch(scope, [], puts)
        read = 0
        rows = Entry.__init__

        def counted(entry: Entry, **fields: Any) -> None:
            nonlocal read
            read += 1
            rows(entry, **fields)

        monkeypatch.setattr(Entry, "__init__", counted)
        late = Put(namespace=("a",), key="late", value={})
        gets = [Get(namespace=("a",), key=str(number)) for number in range(20)]
        for asks in ([Search(limit=None)], [Search(limit=20, where={"n": 1})], gets):
            read = 0
            with pytest.raises(TooLargeError, match="fewer entries"):
                store.batch(scope, asks, [late], max_bytes=500_000)
            assert read <= 6  # three, each with its score once more
        [few] = store.batch(scope, [Search(limit=2)], max_bytes=500_000)
        assert len(few) == 2
        assert store.batch(scope, [Get(namespace=("a",), key="late")]) == [[]]
