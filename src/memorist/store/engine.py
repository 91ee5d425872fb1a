"""What the shared logic needs of a database: transactions, named queries, four encodings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import resources
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from memorist.errors import SchemaError, StoreBusyError
from memorist.records.message import Message
from memorist.records.query import Passage, Term
from memorist.records.scope import Scope
from memorist.records.values import PASSAGES_PER_MESSAGE
from memorist.store.rows import SQL, Row

if TYPE_CHECKING:
    from memorist.store.bm25 import Ids
    from memorist.store.vectors import Hits, Vector, VectorIndexCache

T = TypeVar("T")
# What a list of each state is made of: what is not over, what is, and None for what is `beside`:
# memories that have expired and facts whose end is to come, of which there are few.
STATES: dict[str, dict[str, tuple[str | None, ...]]] = {
    "items": {"current": ("0",), "over": ("1", None), "all": ("0", "1")},
    "facts": {"current": ("0", None), "all": ("0", "1")},
}


def always() -> bool:
    """A condition that is met."""
    return True


class ViewWords(NamedTuple):
    """The words that memories or facts must hold, and the order in which these are wanted."""

    kind: str
    words: Sequence[str]  # stems
    last: Sequence[str]  # the forms of the last word: how it begins, then stems
    newest_first: bool


class Piece(NamedTuple):
    """A span of a text, and the words it is found by: as text, or as the database indexes them."""

    start: int
    stop: int
    words: Any


class VectorQuery(NamedTuple):
    """A vector to search for, among those by an embedder."""

    embedder: str
    vector: Sequence[float]


class Db(Protocol):
    """An open transaction, on the rows of one `owner`; all that it writes is dated `now`.

    Statements get both by name, unless told otherwise; `now` is in microseconds since 1970.
    `texts` are the passages of the texts it may index, by text; None for one that it lacks.
    `repeat` is raised, by the commit at the latest, where a message that should be new is stored.
    To foresee queries does nothing unless a database has a use for it.
    """

    owner: str = ""
    now: int = 0
    texts: dict[str, list[Piece] | None]
    repeat: Exception | None = None

    def rows(self, query: str, **values: Any) -> list[Row]: ...
    def row(self, query: str, **values: Any) -> Row | None:
        """The first row, if there is one."""
        return next(iter(self.rows(query, **values)), None)

    def column(self, query: str, **values: Any) -> list[Any]:
        """The first value of each row."""
        return [row[0] for row in self.rows(query, **values)]

    def page(self, query: str, max_bytes: int | None, **values: Any) -> list[Row]:
        """The first rows that take about so many bytes, one at least; without a limit, all."""

    def run(self, query: str, **values: Any) -> int:
        """Run a change and return how many rows it touched."""

    def later(self, query: str, **values: Any) -> Callable[[], list[Row]]:
        """Run a query no later than the next one, or the commit; what is returned has its rows."""

    def foresee(self, query: str, **values: Any) -> None:
        """Run a query that will be asked for in this transaction, if that saves a round trip."""
        return

    def many(self, query: str, values: Iterable[dict[str, Any]]) -> int: ...

    def act_for(self, owner: str) -> None:
        """Work for another owner from here on, in a write for several."""
        self.owner = owner

    def next_seqs(self, count: int) -> Sequence[int]:
        """Rising numbers of messages in the log, none of which was used before."""

    def next_view_passages(self, count: int) -> Sequence[int]:
        """Ids below zero for passages of derived records."""

    def add_passages(self, rows: Sequence[dict[str, Any]]) -> None:
        """Store passages and index them by their words, which `Engine.words` made."""

    def unpack(self, row: Row) -> Message:
        """The message in `id, source, message_id, role, created_at` and the columns of `pack`."""

    def postings(self, terms: Sequence[Term], *, every: bool = False) -> dict[Term, Ids]:
        """The passages that hold each folded term, rising, once for each occurrence.

        Where there are too many to read, the most frequent terms are left out, unless `every` is
        set; a term that occurs nowhere has an empty list.
        """

    def rare_postings(self, stems: Sequence[str], most: int) -> dict[str, Ids]:
        """The passages that hold each stem, once each; stems in more than `most` are left out.

        Give the most important stems first: a database may look for the first few only.
        """

    def foresee_rare(self, stems: Sequence[str], most: int) -> None:
        """The same as `foresee`, of `rare_postings`."""
        return

    def memories_with(self, scope: Scope, stems: Sequence[str], most: int) -> Iterable[list[int]]:
        """The passages of the newest memories with each stem that any has, at most so many."""

    def matches(self, wanted: ViewWords, most: int, past: int) -> Sequence[int]:
        """The passages of memories or facts that hold the words: those past one, in order.

        The newest have the lowest ids.
        """

    def count_records(self) -> int:
        """About how many messages, and passages of articles and entries, the owner has."""

    def lengths(self, records: list[int]) -> list[int]:
        """How long the records are, in characters; 0 where that is not known."""

    def ids(self, query: str, **values: Any) -> Ids:
        """The ids that a query gathers in one value, in which many take little room."""

    def passages(self, **values: Any) -> list[Passage]:
        """Those of `passages_by_id`. What each is ranked as, its `record`: the number of its
        message, the id of what was derived, or itself if it is of an article.
        """

    def nearest(
        self, query: VectorQuery, limit: int, allowed: Ids | None, fits: Callable[[], bool] = always
    ) -> Hits:
        """The passages whose vectors are nearest, with their cosines, best first.

        `fits` is asked before any is measured, and says whether there are vectors.
        """

    def vectors(self, embedder: str, passages: list[int]) -> dict[int, Vector]:
        """The vectors of those of the passages that have one, each of length 1 or nearly so."""

    def put_vectors(self, embedder: str, vectors: Mapping[int, Sequence[float]]) -> None:
        """Store the vectors of passages; of those that are gone, or have one, nothing."""

    def note_forget(self) -> str:
        """Note that deleted bytes wait for a scrub; say where they are and what removes them."""


class LateError(StoreBusyError):
    """A read was stopped because its time was up."""


class AnswerLostError(Exception):
    """A transaction was committed, and its answers were lost with the connection."""


class DryRunError(Exception):
    """Rolls a transaction back; `result` is what it would have returned."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result


class Engine(Protocol):
    """A database: runs work in a transaction that sees one owner's rows."""

    saves_trips: bool = False  # whether `append_messages` is there, and `Db.foresee` does something
    scrubs: bool = False  # whether there are files that a scrub can remove deleted bytes from

    def pack(self, message: Message) -> dict[str, Any]:
        """The columns in which this database keeps a message's content."""

    def words(self, owner: str, words: Sequence[str]) -> Any:
        """The stems of a text in the form in which this database indexes them."""

    def view_words(self, owner: str, text: str) -> Any:
        """The same for a memory, fact or note, which `Db.matches` finds, too."""

    def read(
        self, owner: str, work: Callable[[Db], T], *, snapshot: bool = False, bounded: bool = True
    ) -> T:
        """Run work that changes nothing; with `snapshot`, all its queries see the same state.

        Work that is not `bounded` may take as long as the database answers.
        """

    def reading(self, owner: str, left: Callable[[], float | None]) -> AbstractContextManager[None]:
        """A time in which this thread's reads for the owner may share a transaction.

        `left` says how many seconds a read that begins now may take: then LateError, if it can be
        stopped.
        """

    def write(self, owner: str, work: Callable[[Db], T], *, exclusive: bool = False) -> T:
        """Run work once, durably; with `exclusive`, nobody else writes for the owner meanwhile."""

    def all_owners(self, work: Callable[[Db], T], *, reads: bool = False) -> T:
        """Run work on the queue of all owners, which it may only read; it sees no other rows."""

    def scrub(self) -> str:
        """After a forget: remove deleted bytes from files; say what remains, if anything."""

    def merge(self) -> bool:
        """Merge a little of the text index, if it is in many parts; say whether more is left."""
        return False

    def unscrubbed_since(self) -> int | None:
        """When the first forget that waits for a scrub was, in microseconds since 1970."""
        return None

    def check(self) -> dict[str, str]: ...
    def close(self) -> None: ...


def open_indexes() -> VectorIndexCache:
    """Opened by the first search: numpy takes long to import."""
    from memorist.store.vectors import VectorIndexCache

    return VectorIndexCache()


def load_queries(dialect: str, list_sql: str) -> dict[str, str]:
    """The named SQL of a dialect: the shared file, then its own, which wins.

    `list_sql` says how the dialect writes `IN (:names*)`, with the name as `\\1`.
    """
    store = resources.files("memorist.store")
    pieces = {**SQL, "@per_message": str(PASSAGES_PER_MESSAGE)}
    for file in (store / "queries.sql", store / dialect / "queries.sql"):
        for block in re.split(r"^-- name: ", file.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            name, _, body = block.partition("\n")
            pieces[name.strip()] = body.strip()

    def complete(sql: str) -> str:
        return re.sub(r"@\w+", lambda piece: complete(pieces[piece[0]]), sql)

    queries: dict[str, str] = {}
    for name, body in pieces.items():
        if name[0] != "@":
            sql = re.sub(r"IN \(:(\w+)\*\)", list_sql, complete(body))
            queries |= _by_state(name, sql, complete, dialect) if "{over}" in sql else {name: sql}
    lists = {name: sql for name, sql in queries.items() if "{>}" in sql}
    back = {f"newest_{name}": _directed(sql, "<", ">=", " DESC") for name, sql in lists.items()}
    return back | {name: _directed(sql, ">", "<=", "") for name, sql in queries.items()}


def _by_state(name: str, sql: str, complete: Callable[[str], str], dialect: str) -> dict[str, str]:
    """A list's query for each state: the rows that are not over, that are, and those beside."""
    kind, order = name.partition("_")[0], complete("@in_place")
    beside, queries = complete(f"@{kind}_beside"), {}
    for state, parts in STATES[kind].items():
        each = [sql.replace("{over}", part) if part else beside for part in parts]
        if dialect == "postgres" and len(each) > 1:  # else it reads and sorts all of them
            each = [f"({one}\n{order})" for one in each]
        queries[f"{name}_{state}"] = "\nUNION ALL ".join(each) + f"\n{order}"
    return queries


def _directed(sql: str, beyond: str, until: str, order: str) -> str:
    return sql.replace("{>}", beyond).replace("{<=}", until).replace(" {asc}", order)


def load_migrations(folder: Traversable) -> list[tuple[int, str]]:
    """The numbered migrations of a folder, in order."""
    files = sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql"))
    return [(int(name[:4]), (folder / name).read_text("utf-8")) for name in files]


def oldest_beside(number: int, script: str) -> int:
    """The oldest schema whose programs may go on after a migration.

    They are refused unless the migration begins with `-- beside: 6`, say: what programs of schema 6
    read and write must then mean the same as before.
    """
    named = re.match(r"-- beside: (\d+)\n", script)
    return int(named[1]) if named else number


def newer_schema(version: int, known: int) -> SchemaError:
    """The refusal of a database that a newer program migrated."""
    return SchemaError(
        f"this database has schema {version}, this Memorist knows up to {known}; it was left "
        "untouched: install a newer Memorist, and restart what runs the older one"
    )
