"""A SQLite transaction as the shared logic sees it."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import apsw

from memorist import errors
from memorist.language.text import LONGEST_START, beginnings, stems, term_stem
from memorist.records.json_values import dump_json
from memorist.records.message import AgentCallMsg, Message, ToolCallMsg, extras
from memorist.records.query import Passage, Term, many
from memorist.records.scope import Scope
from memorist.records.values import PASSAGES_PER_MESSAGE, from_micros
from memorist.store.engine import Db, Piece, VectorQuery, ViewWords, always, load_queries
from memorist.store.rows import Row

if TYPE_CHECKING:
    from memorist.store.bm25 import Ids
    from memorist.store.vectors import Hits, Vector, VectorIndexCache

T = TypeVar("T")
APPLICATION_ID = 0x6D656D6F  # "memo": tells our files from those of other programs
MAX_POSTINGS = 16_000  # read for one question
MAX_WAITING = 32  # messages whose words are not in the text index yet: a search looks at each
COUNT_SECONDS = 30.0  # for which a count is reused
WORTH_KEEPING = 1_000
MAX_COUNTS = 1_000
NOT_A_DATABASE = "the file is damaged or is not a SQLite database; name another, or a backup of it"
MARK = "·"  # no letter of a word, and FTS5 takes it for one

QUERIES = load_queries("sqlite", r"IN (SELECT value FROM json_each(:\1))")


@cache
def _picker(query: str) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """Picks a statement's values in the order it names them: binding by position is faster."""
    names = list(dict.fromkeys(re.findall(r":(\w+)", QUERIES[query])))
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: (values[names[0]],) if names else ()


class Translated:
    """Turns apsw's errors into ours. A class, which is faster than a generator on every call."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, apsw.Error | OSError):
            raise translate(error) from error


TRANSLATED = Translated()


def translate(error: apsw.Error | OSError) -> errors.StoreError:
    """Our error for one of SQLite or the file system, without its text, which may quote values."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return errors.StoreBusyError(
                "the database stayed locked by another process; "
                "try again, or raise patience_seconds"
            )
        case apsw.FullError():
            return errors.StoreFullError("the disk is full; nothing acknowledged was lost")
        case apsw.NotADBError() | apsw.CorruptError():
            return errors.StoreDamagedError(NOT_A_DATABASE)
        case apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError():
            return errors.StoreUnavailableError(
                "the database cannot be opened for writing; allow that for the file and its folder "
                "(on a read-only mount it can be read if there is no -wal file beside it)"
            )
        case apsw.ConnectionClosedError():
            return errors.StoreUnavailableError("the store is closed")
        case OSError():
            return errors.StoreUnavailableError(
                f"the database's folder cannot be written: {error.strerror}"
            )
    return errors.StoreError(f"SQLite refused: {type(error).__name__}")


class SqliteDb(Db):
    """Named queries on one connection."""

    texts: dict[str, list[Piece] | None]
    kept: dict[tuple[str, str], list[Row]] | None = None  # what a transaction of reads asked for
    words_may_wait = True  # those of the first messages of a transaction; what follows costs little

    def __init__(self, connection: apsw.Connection, cache: Callable[[], VectorIndexCache]) -> None:
        self.connection = connection
        self._indexes = cache
        self._counts: dict[str, tuple[float, int]] = {}

    def rows(self, query: str, **values: Any) -> list[Row]:
        return self._run(query, values).fetchall()

    def page(self, query: str, max_bytes: int | None, **values: Any) -> list[Row]:
        if max_bytes is None:
            return self.rows(query, **values)
        rows, size = list[Row](), 0
        cursor = self._run(query, values)
        for row in cursor:
            rows.append(row)
            for value in row:
                if value is not None and type(value) is not int:
                    size += sys.getsizeof(value)
            if size >= max_bytes:
                break
        cursor.close()
        return rows

    def _once(self, query: str, **value: str) -> list[Row]:
        """The rows of a query; of one that is asked again in a transaction of reads, the same."""
        kept = {} if self.kept is None else self.kept
        [key] = value.values()
        if (query, key) not in kept:
            kept[query, key] = self.rows(query, **value)
        return kept[query, key]

    def run(self, query: str, **values: Any) -> int:
        self._run(query, values)
        return self.connection.changes()

    def many(self, query: str, values: Iterable[dict[str, Any]]) -> int:
        before, pick = self.connection.total_changes(), _picker(query)
        named = {"owner": self.owner, "now": self.now}
        self.connection.executemany(QUERIES[query], (pick(named | it) for it in values))
        return self.connection.total_changes() - before

    def _run(self, query: str, values: dict[str, Any]) -> apsw.Cursor:
        for name, value in values.items():
            if type(value) is list:
                values[name] = json.dumps(value)
        values.setdefault("owner", self.owner)
        values.setdefault("now", self.now)
        return self.connection.execute(QUERIES[query], _picker(query)(values))

    def later(self, query: str, **values: Any) -> Callable[[], list[Row]]:
        rows = self.rows(query, **values)
        return lambda: rows

    def next_seqs(self, count: int) -> Sequence[int]:
        first: int = self.rows("next_seq")[0][0]
        return range(first, first + count)

    def next_view_passages(self, count: int) -> Sequence[int]:
        first: int = self.rows("next_view_passage")[0][0]
        return range(first, first - count, -1)

    def add_passages(self, rows: Sequence[dict[str, Any]]) -> None:
        self.many("add_passage", rows)
        first, last = (rows[place]["id"] // PASSAGES_PER_MESSAGE for place in (0, -1))
        if last // MAX_WAITING > (first - 1) // MAX_WAITING:  # once in so many messages
            self.run("index_waiting")
            self.run("none_waiting")
        is_new = first > 0 and rows[0]["id"] % PASSAGES_PER_MESSAGE == 0
        waits = self.words_may_wait and is_new and len(rows) <= MAX_WAITING
        self.words_may_wait = False
        self.many("keep_words_waiting" if waits else "index_passage", rows)

    def unpack(self, row: Row) -> Message:
        _, _, message_id, role, created_at, content, more, *_ = row
        return _message(message_id, role, created_at, content, json.loads(more) if more else None)

    def postings(self, terms: Sequence[Term], *, every: bool = False) -> dict[Term, Ids]:
        words = {spelled(self.owner, term_stem(term)): term for term in terms}
        if every or self.count_records() * len(words) <= MAX_POSTINGS:
            postings = self._read("postings", words)
        else:
            postings = self._postings_of_rarest(words)
        return {words[word]: ids for word, ids in postings.items()}

    def rare_postings(self, stems: Sequence[str], most: int) -> dict[str, Ids]:
        words = {spelled(self.owner, stem): stem for stem in stems}
        postings = self._read("documents_with", words, most + 1)
        return {words[word]: ids for word, ids in postings.items() if len(ids) <= most}

    def memories_with(self, scope: Scope, stems: Sequence[str], most: int) -> Iterable[list[int]]:
        words = [spelled(scope.owner, stem) for stem in stems]
        rows = self.rows("memories_with", **scope.columns(), words=words, most=most)
        return [json.loads(f"[{joined}]") for (joined,) in rows if joined]

    def _read(self, query: str, words: Collection[str], most: int = -1) -> dict[str, Ids]:
        """The passages of each word, rising: those that are indexed, and those that wait."""
        import numpy as np

        rows = self.rows(query, words=list(words), most=most) if words else []
        found = dict(zip(words, [_numbers(joined) for (joined,) in rows], strict=True))
        waiting = defaultdict[str, list[int]](list)
        for id_, joined in self._once("words_waiting", owner=self.owner) if words else ():
            said = joined.split()
            for word in said if query == "postings" else set(said):
                if word in found:
                    waiting[word].append(id_)
        for word, ids in waiting.items():
            found[word] = np.sort(np.concatenate([found[word], ids]))
        return found

    def _postings_of_rarest(self, words: Collection[str]) -> dict[str, Ids]:
        """The postings of rare words; the words left out occur nearly everywhere.

        Short lists are read without counting them first: both take about as long. Of long ones
        it matters little how often a word occurs in a passage, so only the passages are read.
        """
        unknown = [word for word in words if self._known_count(word) is None]
        read = self._read("postings", unknown, WORTH_KEEPING + 1)
        few = {word: ids for word, ids in read.items() if len(ids) <= WORTH_KEEPING}
        counted = [
            (len(few[word]) if word in few else self._counted("count_postings", term=word), word)
            for word in words
        ]
        chosen: list[str] = []
        total = 0
        for count, word in sorted(counted):
            total += count
            if chosen and total > MAX_POSTINGS:
                break
            chosen.append(word)
        many = self._read("documents_with", [word for word in chosen if word not in few])
        return {word: few[word] if word in few else many[word] for word in chosen}

    def matches(self, wanted: ViewWords, most: int, past: int) -> Sequence[int]:
        kind, words, last, newest_first = wanted
        owner, begun, whole = self.owner, f"{MARK}{kind[0]}", f"{MARK}{kind[0]}0"
        ends = [f'"{spelled(owner, word)}{whole}"' for word in last[1:]]
        if last and len(last[0]) > LONGEST_START:  # few begin so
            ends.append(f'"{spelled(owner, last[0])}"*')
        elif last:
            ends.append(f'"{spelled(owner, last[0])}{begun}"')
        all_of = [f'"{spelled(owner, word)}{whole}"' for word in words]
        asked = " AND ".join([*all_of, *([f"({' OR '.join(ends)})"] if ends else [])])
        query = "newest_view_matches" if newest_first else "view_matches"
        return self.column(query, words=asked, past=past, most=most)

    def count_records(self) -> int:
        return self._counted("count_records", owner=self.owner)

    def _counted(self, query: str, **value: str) -> int:
        """A count, remembered for a while if it is large."""
        [key] = value.values()
        if (known := self._known_count(key)) is not None:
            return known
        rows = self._once(query, **value)
        count = int(rows[0][0]) if rows else 0
        if count > WORTH_KEEPING:
            if len(self._counts) >= MAX_COUNTS:
                self._counts.clear()
            self._counts[key] = time.monotonic(), count
        return count

    def _known_count(self, key: str) -> int | None:
        at, count = self._counts.get(key, (-COUNT_SECONDS, 0))
        return count if time.monotonic() < at + COUNT_SECONDS else None

    def lengths(self, records: list[int]) -> list[int]:
        [(joined,)] = self.rows("record_lengths", records=records)
        lengths: list[int] = json.loads(joined)
        return lengths

    def ids(self, query: str, **values: Any) -> Ids:
        return _numbers(self.rows(query, **values)[0][0])

    def passages(self, **values: Any) -> list[Passage]:
        [(joined,)] = self.rows("passages_by_id", **values)
        return many(Passage, json.loads(joined))

    def nearest(
        self, query: VectorQuery, limit: int, allowed: Ids | None, fits: Callable[[], bool] = always
    ) -> Hits:
        from memorist.store import vectors

        if not fits():
            return []
        embedder, vector = query
        place = self.owner, embedder, len(vector)
        index = self._indexes().find(place)
        if index is None:
            [(count,)] = self.rows("count_vectors", embedder=embedder)
            index = self._indexes().add(place, coded=count > vectors.EXACT_UP_TO)
        since = "codes_since" if index.coded else "vectors_since"
        if not index.last or self.rows(since, embedder=embedder, last=index.last):
            with index.lock:
                while rows := self.rows(since, embedder=embedder, last=index.last):
                    index.add(rows)

        def existing(hits: Hits) -> Hits:
            passages = [passage for passage, _ in hits]
            if not index.coded:
                missing = self.ids("missing_vectors", embedder=embedder, passages=passages)
                gone = set(missing.tolist())
                return [hit for hit in hits if hit[0] not in gone] if gone else hits
            ids, whole = self._vectors(embedder, passages)
            return vectors.cosines(ids, whole, vector, len(hits))

        return index.search_existing(vector, limit, allowed, existing)

    def vectors(self, embedder: str, passages: list[int]) -> dict[int, Vector]:
        ids, rows = self._vectors(embedder, passages)
        return dict(zip(ids, rows, strict=True))

    def _vectors(self, embedder: str, passages: list[int]) -> tuple[list[int], Vector]:
        from memorist.store.vectors import unpack_vectors

        [(joined, packed)] = self.rows("vectors_of", embedder=embedder, passages=passages)
        found: list[int] = json.loads(f"[{joined or ''}]")
        return found, unpack_vectors(packed or b"", len(found))

    def put_vectors(self, embedder: str, vectors: Mapping[int, Sequence[float]]) -> None:
        from memorist.store.vectors import code_of, pack_vector

        def row(passage: int) -> dict[str, Any]:
            it = pack_vector(vectors[passage])
            return {"embedder": embedder, "passage": passage, "embedding": it, "code": code_of(it)}

        self.many("put_vector", map(row, sorted(vectors)))

    def note_forget(self) -> str:
        self.run("note_forget")
        return (
            "its bytes leave the files in the background, within a minute unless the store is "
            "large; memory.scrub() removes them now"
        )


def in_transaction(db: SqliteDb, work: Callable[[SqliteDb], T], begin: str = "") -> T:
    """Run work and commit what it changed, or nothing if it raises; `begin` if that is not done."""
    if begin:
        db.connection.execute(begin)
    try:
        result = work(db)
        db.connection.execute("COMMIT")
    except BaseException:
        if db.connection.in_transaction:
            db.connection.execute("ROLLBACK")
        raise
    return result


def migrate(db: SqliteDb, migrations: Sequence[tuple[int, str]]) -> None:
    """Bring the schema up to date, in one transaction."""
    pragma = db.connection.pragma
    db.connection.create_scalar_function("view_words", cast(Any, all_marked))

    def version() -> int:
        return int(str(pragma("user_version")))

    def apply(_: SqliteDb) -> None:
        for number, script in migrations:
            if version() < number:  # nobody else did meanwhile
                db.connection.execute(script)
                pragma("user_version", number)
                pragma("application_id", APPLICATION_ID)

    if version() < migrations[-1][0]:
        in_transaction(db, apply, "BEGIN IMMEDIATE")


def fill(connection: apsw.Connection, migrations: tuple[tuple[int, str], ...]) -> None:
    """Make the tables of a new database in memory: a copy, which takes a fortieth of migrating."""
    with closing(apsw.Connection(":memory:")) as tables:
        tables.deserialize("main", _tables(migrations))
        with connection.backup("main", tables, "main") as copy:
            copy.step()


@cache
def _tables(migrations: tuple[tuple[int, str], ...]) -> bytes:
    with closing(apsw.Connection(":memory:")) as connection:
        migrate(SqliteDb(connection, cast(Any, None)), migrations)
        return connection.serialize("main")


class PendingWrite(Generic[T]):
    """A write that waits for its turn, and what came of it once it is `done`."""

    def __init__(self, owner: str, work: Callable[[SqliteDb], T]) -> None:
        self._owner, self._work = owner, work
        self._result: T | None = None
        self._error: Exception | None = None
        self.leads = False  # whether its own thread writes it
        self.done = False
        self.ready: threading.Event | None = None  # set when it is done, or the next one to write

    def run(self, db: SqliteDb, *, apart: bool) -> None:
        """Run it in a transaction; with `apart`, what it changed goes if it fails, nothing else."""
        self._result = self._error = None
        db.owner, db.words_may_wait = self._owner, True
        if not apart:
            self._result = self._work(db)
            return
        db.connection.execute("SAVEPOINT one")
        try:
            self._result = self._work(db)
        except Exception as error:
            if not db.connection.in_transaction:  # SQLite gave it up: the disk is full, say
                raise
            db.connection.execute("ROLLBACK TO one")
            self._error = error
        db.connection.execute("RELEASE one")

    def outcome(self) -> T:
        """What the work returned, or raised."""
        if self._error is not None:
            raise self._error
        return cast(T, self._result)


def pack(message: Message) -> dict[str, Any]:
    """The columns of a message's content: text as it is, all else as JSON."""
    text = message.content if isinstance(message.content, str) else None
    more = extras(message)
    return {"content": text, "extras": dump_json(more) if more else None}


def _message(id_: str, role: str, at: int, text: Any, more: dict[str, Any] | None) -> Message:
    """A message from its columns. It was checked when it was stored and is not checked again."""
    message = object.__new__(Message)
    fields = message.__dict__  # those left out have their defaults, which the class holds
    fields["role"] = role
    fields["content"] = text
    fields["message_id"] = id_
    fields["created_at"] = from_micros(at)
    if more:
        fields.update(more)
        fields["tool_calls"] = tuple(ToolCallMsg(*call) for call in more.get("tool_calls", ()))
        fields["agent_calls"] = tuple(AgentCallMsg(*call) for call in more.get("agent_calls", ()))
        fields["images"] = tuple(more.get("images", ()))
    return message


def all_spelled(owner: str, words: Sequence[str]) -> str:
    """Words, each as `spelled` returns it; faster where they are ASCII."""
    joined = f" {owner[:12]}".join(["", *words])[1:]
    return joined if joined.isascii() else " ".join([spelled(owner, word) for word in words])


def all_marked(owner: str, text: str) -> str:
    """The same, and the words and their beginnings marked, by which `matches` finds them.

    What follows the mark says of which kind the record is, and in a word that it is a whole one.
    """
    said = stems(text)
    words = dict.fromkeys(said)
    marked = [f"{spelled(owner, start)}{MARK}" for start in beginnings(words)]
    marked += [f"{spelled(owner, word)}{MARK}0" for word in words]
    return " ".join([all_spelled(owner, said), *marked])


def spelled(owner: str, word: str) -> str:
    """A word prefixed with a part of its owner, in characters that FTS5 leaves alone."""
    return f"{owner[:12]}{word}" if word.isascii() else f"{owner[:12]}0x{word.encode().hex()}"


def _numbers(joined: str | None) -> Ids:
    """The numbers of a list that SQLite joined by commas, which is faster than a row for each."""
    import numpy as np

    return np.fromstring(joined, np.int64, sep=",") if joined else np.empty(0, np.int64)
