"""Messages that prove themselves, and what must hold of a store that was treated badly.

A writer's append `k` is `batch(name, k)`: one message, or three at every fifth. Each content
carries its own id and SHA-256, so that lost, doubled, reordered and garbled are told apart.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import apsw

from memorist.records.log import LogEntry
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store.base import Store
from memorist.store.sqlite.store import SqliteStore
from tests.conformance.worlds import worded

SCOPE = Scope(user="ada", agent="tutor", session="crash")
USER = SCOPE.whole_user()
OTHER = Scope(user="grace", session="crash")  # gets every second append of a writer, with ada's
WORDS = "the tram to Berlin leaves at nine and Grüße from München arrive by 晴れ noon".split()
PIECES = 1_048_576  # a message's passages have the ids from this times its own upward


def open_store(target: str, *, patience_seconds: float = 30) -> Store:
    """The store at a PostgreSQL URL or a path."""
    if target.startswith("postgresql://"):
        from memorist.store.postgres.store import PostgresStore  # slow to import

        return PostgresStore(target, patience_seconds=patience_seconds)
    return SqliteStore(target, patience_seconds=patience_seconds)


def batch(name: str, number: int) -> list[Message]:
    """The messages of a writer's append; the same at every call but for their moment."""
    size = 3 if number % 5 == 4 else 1
    return [_message(f"{name}n{number}p{part}") for part in range(size)]


def batch_ids(name: str, appends: int) -> list[str]:
    """The ids of a writer's first messages, in order."""
    sizes = [3 if number % 5 == 4 else 1 for number in range(appends)]
    return [f"{name}n{number}p{part}" for number, size in enumerate(sizes) for part in range(size)]


def check_log(entries: list[LogEntry], acked: Mapping[str, int], *, spare: int, why: str) -> None:
    """Every acknowledged append is there, once, whole, in order; at most `spare` more a writer."""
    assert [e.seq for e in entries] == sorted({e.seq for e in entries}), why
    garbled = [e.message.message_id for e in entries if not _is_intact(e.message)]
    assert not garbled, f"garbled: {garbled}; {why}"
    stored: dict[str, list[str]] = defaultdict(list)
    for entry in entries:
        stored[_writer_of(entry.message.message_id)].append(entry.message.message_id)
    assert set(stored) <= set(acked), f"nobody wrote {set(stored) - set(acked)}; {why}"
    for name, count in acked.items():
        allowed = [batch_ids(name, count + more) for more in range(spare + 1)]
        got = stored[name]
        lost = sorted(set(allowed[0]) - set(got))
        assert got in allowed, (
            f"{name}: {count} appends acknowledged, {len(lost)} messages lost {lost[:5]}, "
            f"{len(got) - len(set(got))} doubled, the last are {got[-5:]}; {why}"
        )


def check_jobs(store: Store, entries: Iterable[LogEntry], why: str) -> None:
    """Every message lies in the range of exactly one job of its session."""
    placed = {(entry.session_id, entry.seq) for entry in entries}
    covered = [
        (job.scope.session, seq)
        for job in store.jobs(USER)
        for seq in range(job.first_seq, job.last_seq + 1)
        if (job.scope.session, seq) in placed  # other sessions' places may lie between
    ]
    assert Counter(covered) == Counter(placed), why


def check_words(store: Store, ids: Iterable[str], why: str) -> None:
    """Each of these messages is found by a word that only it holds."""
    for id_ in ids:
        found = [match.id for match in worded(store, USER, [(id_,)], limit=5)]
        assert found == [id_], f"{id_} not found by its words; {why}"


def check_file(path: str | Path, why: str) -> None:
    """SQLite finds no damage, the text index matches the texts, and no message lacks its own."""
    connection = apsw.Connection(str(path))
    try:
        ask = connection.execute
        assert ask("PRAGMA integrity_check").get == "ok", why
        ask("INSERT INTO passage_words (passage_words, rank) VALUES ('integrity-check', 1)")
        messages = {row[0] for row in ask("SELECT id FROM chat_message_history")}
        indexed = {row[0] // PIECES for row in ask("SELECT id FROM passages WHERE id > 0")}
        assert indexed == messages, why
    finally:
        connection.close()


def check_store(target: str, acked: Mapping[str, int], *, spare: int, why: str) -> None:
    """All of the above, as a fresh store sees it."""
    with open_store(target) as store:
        entries = store.history(USER)
        check_log(entries, acked, spare=spare, why=why)
        check_jobs(store, entries, why)
        ids = [entry.message.message_id for entry in entries]
        check_words(store, [*ids[:: max(1, len(ids) // 20)], *ids[-3:]], why)
        if others := store.history(OTHER):
            told = {e.message.message_id for e in others}
            odd = [id_ for id_ in ids if int(id_.rpartition("n")[2].partition("p")[0]) % 2]
            assert told == set(odd), why
    if not target.startswith("postgresql://"):
        check_file(target, why)


def _message(message_id: str) -> Message:
    choose = random.Random(message_id)
    noise = " ".join(choose.choices(WORDS, k=choose.choice((3, 10, 30, 200))))
    head = f"{message_id} {noise}"
    digest = hashlib.sha256(head.encode()).hexdigest()
    return Message(role="user", content=f"{head} {digest}", message_id=message_id)


def _is_intact(message: Message) -> bool:
    head, _, digest = str(message.content).rpartition(" ")
    right = hashlib.sha256(head.encode()).hexdigest()
    return digest == right and head.startswith(f"{message.message_id} ")


def _writer_of(message_id: str) -> str:
    found = re.fullmatch(r"(\w+?)n\d+p\d+", message_id)
    assert found, f"nobody writes {message_id}"
    return found[1]
