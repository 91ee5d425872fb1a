"""A PostgreSQL transaction as the shared logic sees it."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any

from psycopg.pq import TransactionStatus as _Status

from memorist.errors import MessageError
from memorist.language.text import LONGEST_START, beginnings, stems, term_stem
from memorist.records.langchain import dump_stored, from_stored
from memorist.records.message import Message
from memorist.records.query import Passage, Term
from memorist.records.scope import Scope
from memorist.records.values import PASSAGES_PER_MESSAGE, from_micros
from memorist.store.engine import (
    AnswerLostError,
    Db,
    Piece,
    VectorQuery,
    ViewWords,
    always,
    load_queries,
)
from memorist.store.postgres.connection import (
    PackedIntegers,
    Reals,
    SentStatement,
    WatchedConnection,
    numbered,
)
from memorist.store.rows import Row

if TYPE_CHECKING:
    from memorist.store.bm25 import Ids
    from memorist.store.vectors import Hits, Place, Vector, VectorIndex, VectorIndexCache

MAX_POSTINGS = 60_000  # read for one question
MAX_SYNONYMS = 8  # the nearest: each word is a search of its own, which takes .3 ms
EVERY_POSTING = 2**31 - 1
VIEW_PLACES = 2**62  # beyond which the places of derived records lie, as in `place_of`
FETCHED_ROWS = 10  # of a page at a time, each of which may be large
MAX_KEYS = 16_384  # of words of an owner, kept in memory
MAX_TIMES = 8  # occurrences of a word in a passage that count: more hardly change a rank
MEASURED = 2_000  # vectors at most, where measuring each is fast enough
FIRST_PARTS = 2  # of a word's list, of some 250 places each; then four times as many, and so on
LAST_PLACE = 2**63 - 1
RESCORED = 384  # of those found by signs
CODED_ROWS = 500  # read at a time, of some 7 kB
RESIDUE = (
    "PostgreSQL keeps deleted rows until VACUUM, and its write-ahead log and backups until they "
    "are recycled"
)
_HEAD = 20  # bytes before the first element of an array on the wire

QUERIES = {
    name: re.sub(r"(?<!:):(\w+)", r"%(\1)s", re.sub(r"INDEXED BY \w+", "", sql))
    for name, sql in load_queries("postgres", r"= ANY(:\1)").items()
}


class PostgresDb(Db):
    """Named queries on one connection.

    What nobody waits for is sent with the next statement, so that all of it takes one round trip.
    Without a `level` of isolation, each round trip is a transaction of its own.
    """

    texts: dict[str, list[Piece] | None]

    def __init__(
        self,
        owner: str,
        connection: WatchedConnection,
        pgvector: bool,
        indexes: Callable[[], VectorIndexCache],
        level: str | None,
    ) -> None:
        self.owner = owner
        self._connection = connection
        self._has_pgvector = pgvector
        self._indexes = indexes
        self._is_apart = level is None
        self._opening = [] if level is None else [SentStatement(f"BEGIN{level}", prepare=False)]
        self._waiting: list[SentStatement] = []
        self._foreseen: list[SentStatement] = []
        self._foreseen_rare: list[str] = []
        self._counted: Callable[[], list[Row]] | None = None  # the owner's records

    def open(self, query: str, **values: Any) -> None:
        """Have a transaction begin with a statement."""
        self._opening.append(self._statement(query, values, is_read=False))

    @property
    def is_sent(self) -> bool:
        """Whether the server was told to begin."""
        return not self._opening

    def commit(self) -> None:
        if self._opening and self._opening[0].sql == "BEGIN":  # all at once is one anyway
            del self._opening[0]
        elif not self._is_apart:
            self._waiting.append(SentStatement("COMMIT", prepare=False))
        self.send_waiting()

    def roll_back(self) -> None:
        self._opening, self._waiting = [], []
        if self._connection.info.transaction_status in (_Status.INTRANS, _Status.INERROR):
            self._connection.send([SentStatement("ROLLBACK", prepare=False)])

    def rows(self, query: str, **values: Any) -> list[Row]:
        return self._rows(self._asked(query, values))

    def run(self, query: str, **values: Any) -> int:
        statement = self._statement(query, values)
        self._waiting.append(statement)
        self.send_waiting()
        return statement.count

    def later(self, query: str, **values: Any) -> Callable[[], list[Row]]:
        return functools.partial(self._rows, self._asked(query, values))

    def tell(self, query: str, **values: Any) -> None:
        """Send a statement with the next one, whose rows nobody reads."""
        self._waiting.append(self._statement(query, values, is_read=False))

    def foresee(self, query: str, *, binary: bool = False, **values: Any) -> None:
        statement = self._statement(query, values, binary=binary)
        self._waiting.append(statement)
        self._foreseen.append(statement)

    def _asked(self, query: str, values: dict[str, Any], *, binary: bool = False) -> SentStatement:
        """A statement that was foreseen, or a new one, which waits to be sent."""
        new = self._statement(query, values, binary=binary)
        for it in self._foreseen:
            if it.sql is new.sql and it.values == new.values:
                self._foreseen.remove(it)
                return it
        self._waiting.append(new)
        return new

    def _statement(self, query: str, values: dict[str, Any], **how: Any) -> SentStatement:
        """A statement with the values that it names."""
        sql, values = QUERIES[query], {"owner": self.owner, "now": self.now, **values}
        return SentStatement(sql, {name: values[name] for name in numbered(sql)[1]}, **how)

    def _rows(self, statement: SentStatement) -> list[Row]:
        if statement.rows is None:
            self.send_waiting()
        if statement.rows is None:
            raise AnswerLostError
        return statement.rows

    def _binary(self, query: str, **values: Any) -> list[Row]:
        """The rows in binary form, in which bytes are half as many."""
        return self._rows(self._asked(query, values, binary=True))

    def send_waiting(self) -> None:
        if self._waiting:
            self._send()

    def _send(self) -> None:
        sent, self._waiting = [*self._opening, *self._waiting], []
        if not self._is_apart:
            self._opening = []
        self._connection.send(sent)

    def page(self, query: str, max_bytes: int | None, **values: Any) -> list[Row]:
        if max_bytes is None:
            return self.rows(query, **values)
        rows, size = list[Row](), 0
        if self._is_apart:
            self._is_apart = False
            self._opening.insert(0, SentStatement("BEGIN", prepare=False))
        if self._opening or self._waiting:
            self._send()
        # A cursor of the server, which reads a large value only when its row is fetched.
        with self._connection.cursor("page") as cursor:
            cursor.itersize = FETCHED_ROWS
            for row in cursor.execute(QUERIES[query], self._statement(query, values).values):
                if size >= max_bytes:
                    break
                rows.append(row)
                size += len(repr(row).encode())
        return rows

    def many(self, query: str, values: Iterable[dict[str, Any]]) -> int:
        sent = [self._statement(query, row) for row in values]
        self._waiting += sent
        self.send_waiting()
        return sum(it.count for it in sent)

    def act_for(self, owner: str) -> None:
        if owner != self.owner:
            self.owner = owner
            self.tell("act_for")

    def next_seqs(self, count: int) -> Sequence[int]:
        return [row[0] for row in self.rows("next_seqs", count=count)]

    def next_view_passages(self, count: int) -> Sequence[int]:
        return [row[0] for row in self.rows("next_view_passages", count=count)]

    def add_passages(self, rows: Sequence[dict[str, Any]]) -> None:
        for row in rows:
            self.later("add_passage", **row)

    def unpack(self, row: Row) -> Message:
        _, _, message_id, role, created_at, stored, *_ = row
        return from_row(stored, message_id, role, created_at)

    def postings(self, terms: Sequence[Term], *, every: bool = False) -> dict[Term, Ids]:
        words, stems = ["".join(term) for term in terms], [term_stem(term) for term in terms]
        self._counted = self._counted or self.later("count_records")
        most = EVERY_POSTING if every else MAX_POSTINGS
        lists = self._postings(words, stems, most, most)
        # The terms that are left out occur nearly everywhere.
        return {term: ids for term, ids in zip(terms, lists, strict=True) if ids is not None}

    def rare_postings(self, stems: Sequence[str], most: int) -> dict[str, Ids]:
        import numpy as np

        near, foreseen = list(stems[:MAX_SYNONYMS]), self._foreseen_rare
        self._foreseen_rare = []
        lots = filter(None, (foreseen, [stem for stem in near if stem not in foreseen]))
        lists = {
            stem: ids
            for lot in lots
            for stem, ids in zip(lot, self._all_postings(lot, most + 1), strict=True)
        }
        found = {stem: np.unique(lists[stem]) for stem in near}
        return {stem: ids for stem, ids in found.items() if len(ids) <= most}

    def foresee_rare(self, stems: Sequence[str], most: int) -> None:
        near = self._foreseen_rare = list(stems[:MAX_SYNONYMS])
        named = {"words": near, "stems": near, "most": most + 1, "in_all": EVERY_POSTING}
        self.foresee("postings", binary=True, **named)

    def memories_with(self, scope: Scope, stems: Sequence[str], most: int) -> Iterable[list[int]]:
        postings = self._all_postings(list(stems), MAX_POSTINGS)
        lists = [dict.fromkeys(each[each < 0].tolist()) for each in postings]
        ids = [id_ for each in lists for id_ in each]
        own = set(self.rows("memory_passages", **scope.columns(), ids=ids))
        return filter(None, ([id_ for id_ in each if (id_,) in own][:most] for each in lists))

    def _all_postings(self, words: list[str], most: int) -> list[Ids]:
        return [ids for ids in self._postings(words, words, most) if ids is not None]

    def _postings(
        self, words: list[str], stems: list[str], most: int, in_all: int = EVERY_POSTING
    ) -> list[Ids | None]:
        """The passages of each word, rising; None from where the rarest have enough together."""
        named = {"words": words, "stems": stems, "most": most, "in_all": in_all}
        found: dict[int, bytes | None] = dict(self._binary("postings", **named))
        sent_places = [found.get(number, b"") for number in range(1, len(words) + 1)]
        return [None if places is None else _passages(places) for places in sent_places]

    def matches(self, wanted: ViewWords, most: int, past: int) -> Sequence[int]:
        import numpy as np

        kind, words, last, newest_first = wanted

        forms = [f"^{last[0][:LONGEST_START]}", *(f"={word}" for word in last[1:])] if last else []
        asked = [*([f"={word}"] for word in words), *filter(None, [forms])]
        turned = int(kind == "fact")  # the last bit of what finds facts alone
        keys = [[_word_key(self.owner, word) ^ turned for word in each] for each in asked]
        sign = -1 if newest_first else 1  # so that the places read later are the greater ones
        past, parts, found = sign * (VIEW_PLACES - past), FIRST_PARTS, list[int]()
        while past < LAST_PLACE and len(found) < most:
            lists = self._places(keys, sign, past, parts)
            known = min(end for _, end in lists)
            both = functools.reduce(np.intersect1d, [places for places, _ in lists])
            found += both[both <= known].tolist()
            # The next is not before any list's next, as far as that list is read.
            later = [(places[(places > known) & (places <= end)], end) for places, end in lists]
            past = max(int(places[0]) - 1 if len(places) else end for places, end in later)
            parts *= 4
        return [VIEW_PLACES - sign * place for place in found[:most]]

    def _places(
        self, keys: Sequence[Sequence[int]], sign: int, past: int, parts: int
    ) -> list[tuple[Ids, int]]:
        """For any of some words each: places past one, and up to where these are all."""
        import numpy as np

        query = "view_places" if sign > 0 else "newest_view_places"
        named = {
            "keys": [*chain.from_iterable(keys)],
            "past": min(sign * past, LAST_PLACE),
            "parts": parts,
        }
        rows: dict[int, list[Ids]] = defaultdict(list)
        ends: dict[int, list[int]] = defaultdict(list)
        for key, placed, places in self._binary(query, **named):
            rows[key].append(sign * np.frombuffer(places, ">i8").astype(np.int64))
            ends[key] += [int(rows[key][-1].max())] if placed else []
        lists: list[tuple[Ids, int]] = []
        for each in keys:
            read = np.unique(np.concatenate([[past], *(row for key in each for row in rows[key])]))
            cut = [max(ends[key]) for key in each if len(ends[key]) == parts]
            lists.append((read[read > past], min([*cut, LAST_PLACE])))
        return lists

    def count_records(self) -> int:
        self._counted = self._counted or self.later("count_records")
        return int(self._counted()[0][0])

    def lengths(self, records: list[int]) -> list[int]:
        known: dict[int, int] = dict(self._binary("record_lengths", records=records))
        return [known.get(record, 0) for record in records]

    def ids(self, query: str, **values: Any) -> Ids:
        return _ids(self.rows(query, **values)[0][0])

    def passages(self, **values: Any) -> list[Passage]:
        rows = self._binary("passages_by_id", **values)
        return [
            Passage(id_, kind, _record(id_, kind, view), *rest) for id_, kind, view, *rest in rows
        ]

    def nearest(
        self, query: VectorQuery, limit: int, allowed: Ids | None, fits: Callable[[], bool] = always
    ) -> Hits:
        embedder, vector = query
        measure = functools.partial(self._measure, query)
        few = allowed.tolist() if allowed is not None and len(allowed) <= MEASURED else None
        place = self.owner, embedder, len(vector)
        index = self._indexes().find(place) if few is None else None
        is_there = index is not None and self._catch_up(index, place)  # asked together
        if not fits():
            return []
        if few is not None:
            return measure(limit, few)
        if index is None or not is_there:
            is_coded = self.later("is_coded", embedder=embedder)
            near = measure(limit) if allowed is None else []  # none where there are codes
            if not is_coded()[0][0]:
                return near if allowed is None else measure(limit, allowed.tolist())
            if index is None:
                index = self._indexes().add(place, coded=True)
                self._catch_up(index, place)

        def measured(hits: Hits) -> Hits:
            return measure(len(hits), [passage for passage, _ in hits])

        return index.search_existing(vector, limit, allowed, measured, RESCORED)

    def _catch_up(self, index: VectorIndex, place: Place) -> bool:
        """Add the codes that are new; False if its last row is not there.

        That was forgotten, or is newer than what this transaction sees: later ones come after it.
        """
        _, embedder, length = place
        size = 8 + (length + 63) // 64 * 8
        with index.lock:
            while True:
                since = {"part": index.last, "offset": index.offset}
                rows = self._binary("codes_since", embedder=embedder, **since, limit=CODED_ROWS)
                index.add_entries(rows, size)
                if len(rows) < CODED_ROWS:
                    return bool(rows)

    def _measure(self, query: VectorQuery, limit: int, passages: list[int] | None = None) -> Hits:
        """The nearest by their vectors: of these passages, or of all where there are no codes."""
        embedder, vector = query
        named: dict[str, Any] = {"embedder": embedder}
        if passages is not None:
            named["passages"] = passages
        if self._has_pgvector:
            sql = "nearest" if passages is None else "nearest_of"
            return self._binary(sql, **named, vector=Reals(vector), limit=limit)
        from memorist.store.vectors import cosines

        sent = self._binary("vectors" if passages is None else "vectors_of", **named)
        return cosines([row[0] for row in sent], _vectors(sent), vector, limit) if sent else []

    def vectors(self, embedder: str, passages: list[int]) -> dict[int, Vector]:
        sent = self._binary("vectors_of", embedder=embedder, passages=passages)
        return dict(zip([row[0] for row in sent], _vectors(sent), strict=True)) if sent else {}

    def put_vectors(self, embedder: str, vectors: Mapping[int, Sequence[float]]) -> None:
        numbers = Reals(chain.from_iterable(vectors.values()))
        named = {"embedder": embedder, "passages": list(vectors)}
        self.later("put_vectors", **named, numbers=numbers, length=len(numbers) // len(vectors))

    def note_forget(self) -> str:
        return RESIDUE


def _vectors(sent: Sequence[Row]) -> Vector:
    """The vectors of `vectors_of`, in rows."""
    import numpy as np

    numbers = np.frombuffer(b"".join([row[1] for row in sent]), ">f4").reshape(len(sent), -1)
    return numbers[:, _HEAD // 4 + 1 :: 2].astype(np.float32)  # each follows its size


def _record(passage: int, kind: str, view: str | None) -> int | str:
    if view is None:
        return passage // PASSAGES_PER_MESSAGE
    return passage if kind == "article" else view


def pack(message: Message) -> dict[str, Any]:
    """The column of a message, in LangChain's form."""
    return {"message": dump_stored(message)}


def from_row(stored: Any, message_id: str, role: str, created_at: int) -> Message:
    """The message of a row of `chat_message_history`, which another program may have written."""
    known: dict[str, Any] = {"message_id": message_id, "created_at": from_micros(created_at)}
    try:
        return from_stored(stored, role=role, **known)
    except MessageError:  # a kind of message we do not know is still kept and shown
        return Message(role, {"message": stored}, **known)


class _WordKeys(dict[str, bytes]):
    """The numbers of an owner's words in binary form, each made of owner, word and count so far.

    A word stands for its first occurrence in a text, "2 word" for the second.
    """

    def __init__(self, owner: str) -> None:
        self._owner = bytes.fromhex(owner)

    def __missing__(self, word: str) -> bytes:
        if len(self) >= MAX_KEYS:
            self.clear()
        counted = word if " " in word else f"1 {word}"
        self[word] = key = sha256(self._owner + counted.encode()).digest()[:8]
        return key


_keys_of = functools.lru_cache(maxsize=8)(_WordKeys)


def word_keys(owner: str, words: Sequence[str]) -> PackedIntegers:
    """A number for each occurrence of a word, up to `MAX_TIMES`."""
    if len(set(words)) < len(words):
        words = _counted(words)
    return PackedIntegers(map(_keys_of(owner).__getitem__, words))


def _counted(words: Sequence[str]) -> list[str]:
    times: dict[str, int] = {}
    counted: list[str] = []
    for word in words:
        times[word] = nth = times.get(word, 0) + 1
        if nth <= MAX_TIMES:
            counted.append(word if nth == 1 else f"{nth} {word}")
    return counted


def view_keys(owner: str, text: str) -> PackedIntegers:
    """The keys of a text's stems, and those by which `matches` finds words and beginnings."""
    said = stems(text)
    words = set(said)
    marked = [*(f"^{start}" for start in beginnings(words)), *(f"={word}" for word in words)]
    return word_keys(owner, [*_counted(said), *sorted(marked)])


def _word_key(owner: str, word: str) -> int:
    return int.from_bytes(_keys_of(owner)[word], "big", signed=True)


def _passages(places: bytes) -> Ids:
    """The ids of places, rising: those of derived records lie beyond all messages."""
    import numpy as np

    ids = np.frombuffer(places, ">i8").astype(np.int64)
    ids = np.where(ids > VIEW_PLACES, VIEW_PLACES - ids, ids)
    ids.sort(kind="stable")  # fast, since it is made of a few that rise
    return ids


def _ids(sent: bytes | None) -> Ids:
    """The numbers of an array in PostgreSQL's binary form: a header, then each with its size."""
    import numpy as np

    if sent is None:
        return np.empty(0, np.int64)
    listed = np.frombuffer(sent, [("size", ">i4"), ("id", ">i8")], offset=_HEAD)
    return listed["id"].astype(np.int64)
