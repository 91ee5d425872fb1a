"""A PostgreSQL store filled by COPY: the rows that `remember` and a worker leave, without them.

What they compute of each message is computed here of half a million together. The users of a lot
talk by turns, so that each one's rows lie among those of the others, as they do on a server.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from typing import Any, NamedTuple, Self
from uuid import UUID

import numpy as np
import psycopg
from numpy.typing import NDArray

from benchmarks.scale_corpus import BLOCK, BLOCKS, DIMENSIONS, Corpus, TopicEmbedder
from benchmarks.scale_probe import TENANT
from memorist import Message, Scope
from memorist.language.signals import signals_of
from memorist.language.text import stems
from memorist.records.scope import session_hash, tenant_hash
from memorist.records.values import PASSAGES_PER_MESSAGE, to_micros
from memorist.store.indexing import DAY, date_words
from memorist.store.postgres.db import MAX_TIMES, MEASURED, pack, word_keys

LOT = 500_000  # messages that are computed together, of several users where one has fewer
SESSION = 200
IN_ROW = 250  # places in a row of postings, as where a migration makes them
START, SPAN = datetime(2025, 1, 1, tzinfo=UTC), timedelta(days=365)
POSTGRES_EPOCH = to_micros(datetime(2000, 1, 1, tzinfo=UTC))
BIGINT = 20  # PostgreSQL's number of the type
TABLES = {  # columns, and their types; what is bytes is in PostgreSQL's own form
    "chat_message_history": (
        "id, owner, session_id, message_id, role, source, created_at, message",
        "int8 bytea bytea text text text int8 bytea",
    ),
    "passages": (
        "owner, id, kind, agent_name, session_id, start_at, stop_at, created_at, role,"
        " self_reference, is_question, importance",
        "bytea int8 text text bytea int4 int4 int8 text float8 int4 float8",
    ),
    "vectors": ("owner, embedder, passage, embedding", "bytea text int8 bytea"),
    "passage_words": ("owner, id, words, placed", "bytea int8 bytea bool"),
    "postings": ("owner, word, part, places", "bytea int8 int8 bytea"),
}
NEW_USERS = (
    "INSERT INTO owners SELECT o, %(hash)s, %(tenant)s, u, %(now)s"
    " FROM unnest(%(owners)s::uuid[], %(users)s::text[]) AS t (o, u)",
    "INSERT INTO embedders SELECT unnest(%(owners)s::uuid[]), %(embedder)s, %(length)s",
    "INSERT INTO placed_messages SELECT unnest(%(owners)s::uuid[]), %(each)s",
)
NEW_SESSIONS = """
    INSERT INTO sessions (owner, key, session_hash, session_id, agent_name, created_at)
    SELECT o, claim_session_uuid(o, s, false), h, s, '', %(now)s
    FROM unnest(%(owners)s::uuid[]) WITH ORDINALITY AS t (o, n),
      unnest(%(named)s::text[], %(hashes)s::text[]) WITH ORDINALITY AS s (s, h, m)
    ORDER BY n, m RETURNING key
"""
Numbers = NDArray[np.int64]
Rows = Iterator[tuple[Any, ...]]


def scope_of(each: int, user: int) -> Scope:
    """A user who has so many messages."""
    return Scope(tenant=TENANT, user=f"{each} {user}")


def message_of(corpus: Corpus, each: int, user: int, nth: int) -> Message:
    """What a user says: all of it within a year."""
    number, said_at = user * each + nth, START + SPAN * nth / each
    return Message("user", corpus.text(number), message_id=id_of(number), created_at=said_at)


def id_of(number: int) -> str:
    return str(UUID(int=(7 << 76) + number))


class Block(NamedTuple):
    """A thousand texts, with what an append and a worker find in them."""

    texts: list[str]
    signals: list[tuple[float, int]]
    stems: list[list[int]]  # their numbers
    vectors: bytes


class Talk:
    """The texts by blocks."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus, self.embedder = corpus, TopicEmbedder(corpus)
        self.block = cache(self._block)

    @cached_property
    def _dates(self) -> list[list[str]]:
        first = to_micros(START) // DAY
        return [stems(date_words(first + day)) for day in range(SPAN.days + 1)]

    @cached_property
    def stems(self) -> dict[str, int]:
        """All stems there are, with their numbers."""
        said = [stems(word)[0] for word in self._corpus.words]
        found = dict.fromkeys([*said, *(stem for date in self._dates for stem in date)])
        return {stem: number for number, stem in enumerate(found)}

    @cached_property
    def dates(self) -> list[list[int]]:
        """The stems of each day's date, by which its messages are found."""
        return [[self.stems[stem] for stem in date] for date in self._dates]

    def _block(self, number: int) -> Block:
        texts = list(self._corpus.texts(number * BLOCK, (number + 1) * BLOCK))
        signals = [(it.self_reference, int(it.is_question)) for it in map(signals_of, texts)]
        numbers = [[self.stems[stem] for stem in stems(text)] for text in texts]
        return Block(texts, signals, numbers, self.embedder.embed(texts).astype(">f4").tobytes())


@dataclass
class Lot:
    """Users with so many messages each, and the rows of all of them.

    A message is `at` a place when those of a user stand one after the other; `turns` are these
    places in the order in which the messages come.
    """

    talk: Talk
    each: int
    users: range
    sessions: list[list[bytes]]  # the keys of each user's
    before: int  # messages in the table

    def __post_init__(self) -> None:
        self.scopes = [scope_of(self.each, user) for user in self.users]
        self._owners = [bytes.fromhex(scope.owner) for scope in self.scopes]
        self._numbers = range(self.users.start * self.each, self.users.stop * self.each)
        self._blocks = [self.talk.block(it // BLOCK % BLOCKS) for it in self._numbers[::BLOCK]]
        self._times = [to_micros(START + SPAN * nth / self.each) for nth in range(self.each)]
        turns = np.arange(len(self)).reshape(len(self.users), self.each).T.ravel()
        self._seqs = np.empty_like(turns)
        self._seqs[turns] = self.before + 1 + np.arange(len(turns))
        self._places = (self._seqs * PASSAGES_PER_MESSAGE).tolist()
        columns = turns, *np.divmod(turns, self.each), *np.divmod(turns, BLOCK)
        self._turns = list(zip(*(column.tolist() for column in columns), strict=True))

    def __len__(self) -> int:
        return len(self._numbers)

    def chat_message_history(self) -> Rows:
        form = pack(Message("user", "its text", message_id="its id"))["message"]
        head, rest = form.split("its text")
        middle, tail = rest.split("its id")
        for at, user, nth, block, place in self._turns:
            seq, session = self._places[at] // PASSAGES_PER_MESSAGE, self._session(user, nth)
            id_, text = id_of(self._numbers[at]), self._blocks[block].texts[place]
            stored = f"\x01{head}{text}{middle}{id_}{tail}".encode()
            moment = self._times[nth] - POSTGRES_EPOCH
            yield seq, self._owners[user], session, id_, "user", "user", moment, stored

    def passages(self) -> Rows:
        for at, user, nth, block, place in self._turns:
            session, length = self._session(user, nth), len(self._blocks[block].texts[place])
            signals = self._blocks[block].signals[place]
            head = self._owners[user], self._places[at], "message", "", session
            yield *head, 0, length, self._times[nth], "user", *signals, 0.5

    def _session(self, user: int, nth: int) -> bytes:
        return self.sessions[user][nth // SESSION]

    def vectors(self) -> Rows:
        size, name = 4 * DIMENSIONS, self.talk.embedder.name
        head = struct.pack(">hh", DIMENSIONS, 0)
        for at, user, _, block, place in self._turns:
            vector = self._blocks[block].vectors[place * size : (place + 1) * size]
            yield self._owners[user], name, self._places[at], head + vector

    def passage_words(self) -> Rows:
        said = self._said
        cells = np.zeros(len(said.word), [("size", ">i4"), ("key", ">i8")])
        cells["size"], cells["key"] = 8, said.keys[said.word]
        sent, ends = cells.tobytes(), np.searchsorted(said.at, np.arange(len(self) + 1)).tolist()
        for at, user, *_ in self._turns:
            start, stop = ends[at : at + 2]
            head = struct.pack(">5i", 1, 0, BIGINT, stop - start, 1)
            yield self._owners[user], self._places[at], head + sent[start * 12 : stop * 12], True

    def postings(self) -> Rows:
        said = self._said
        by_word = np.argsort(said.word, kind="stable")
        places, word = np.array(self._places)[said.at[by_word]], said.word[by_word]
        starts = np.flatnonzero(times_before(word) % IN_ROW == 0)
        stops, sent = [*starts[1:].tolist(), len(word)], places.astype(">i8").tobytes()
        columns = said.users[word[starts]], said.keys[word[starts]], places[starts], starts
        rows = zip(*(column.tolist() for column in columns), stops, strict=True)
        for user, key, part, start, stop in rows:
            yield self._owners[user], key, part, sent[start * 8 : stop * 8]

    @cached_property
    def _said(self) -> SaidWords:
        """Every word of every message, the nth time that it is said there."""
        first, count = to_micros(START) // DAY, len(self.talk.stems)
        dates = [self.talk.dates[moment // DAY - first] for moment in self._times]
        listed = [
            [*dates[at % self.each], *self._blocks[at // BLOCK].stems[at % BLOCK]]
            for at in range(len(self))
        ]
        lengths = np.array([len(it) for it in listed])
        stem = np.fromiter((it for each in listed for it in each), np.int64, lengths.sum())
        at = np.repeat(np.arange(len(listed)), lengths)
        nth = times_before(at * count + stem)
        kept = nth < MAX_TIMES
        words = (at // self.each * count + stem) * MAX_TIMES + nth
        words, word = np.unique(words[kept], return_inverse=True)
        users, stem = np.divmod(words // MAX_TIMES, count)
        keys, names = np.empty(len(words), np.int64), list(self.talk.stems)
        for user, scope in enumerate(self.scopes):
            theirs = slice(*np.searchsorted(users, [user, user + 1]))
            said = [names[it] for it in stem[theirs].tolist()]
            keys[theirs] = [*word_keys(scope.owner, said)]
        return SaidWords(at[kept], word, users, keys)


class SaidWords(NamedTuple):
    """Of each word that is said its message and its number; of each number whose, and its key."""

    at: Numbers
    word: Numbers
    users: Numbers
    keys: Numbers


def times_before(values: Numbers) -> Numbers:
    """How many equal ones each value follows."""
    order, places = np.argsort(values, kind="stable"), np.arange(len(values))
    ranked = values[order]
    begins = np.append(True, ranked[1:] != ranked[:-1])
    times = np.empty_like(places)
    times[order] = places - np.maximum.accumulate(np.where(begins, places, 0))
    return times


class Loader:
    """Fills the tables of one database."""

    def __init__(self, url: str, talk: Talk) -> None:
        self._db = psycopg.connect(url, autocommit=True)
        self._db.execute("SET session_replication_role = replica")  # triggers do what is done here
        self._talk = talk
        [(self._held,)] = self._db.execute("SELECT count(*) FROM chat_message_history")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def add(self, each: int, users: range) -> None:
        """Add users with so many messages each, a whole number of blocks."""
        at_once = max(LOT // each, 1)
        for first in range(users.start, users.stop, at_once):
            self._add_lot(each, range(first, min(first + at_once, users.stop)))
        self._db.execute("ANALYZE")

    def _add_lot(self, each: int, users: range) -> None:
        sessions = self._add_users([scope_of(each, user) for user in users], each)
        lot = Lot(self._talk, each, users, sessions, self._held)
        for table, (columns, types) in TABLES.items():
            copied = f"COPY {table} ({columns}) FROM STDIN (FORMAT binary)"
            with self._db.cursor().copy(copied) as copy:
                copy.set_types(types.split())
                for row in getattr(lot, table)():
                    copy.write_row(row)
        self._held += len(lot)
        self._db.execute(f"SELECT setval('message_seq', {self._held})")
        if each >= MEASURED:
            name = self._talk.embedder.name
            for scope in lot.scopes:
                self._db.execute("SELECT code_vectors(%s, %s, NULL)", (scope.owner, name))
        self._db.execute(f"VACUUM {', '.join(TABLES)}")  # as a server does by itself

    def _add_users(self, scopes: list[Scope], each: int) -> list[list[bytes]]:
        """Make users and their sessions known, and return the sessions' keys."""
        named = [f"s{number}" for number in range(-(-each // SESSION))]
        values = {
            "owners": [scope.owner for scope in scopes],
            "users": [scope.user for scope in scopes],
            "tenant": TENANT,
            "hash": tenant_hash(TENANT),
            "now": to_micros(START),
            "named": named,
            "hashes": [session_hash(name) for name in named],
            "embedder": self._talk.embedder.name,
            "length": DIMENSIONS,
            "each": each,
        }
        for statement in NEW_USERS:
            self._db.execute(statement, values)
        keys = [key.bytes for (key,) in self._db.execute(NEW_SESSIONS, values)]
        return [keys[at : at + len(named)] for at in range(0, len(keys), len(named))]
