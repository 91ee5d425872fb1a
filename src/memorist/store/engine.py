"""What the shared logic needs of a database: transactions, named queries, four encodings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from memorist.records.message import Message
from memorist.store.base import Term

if TYPE_CHECKING:
    from memorist.store.bm25 import Ids

T = TypeVar("T")
Row = tuple[Any, ...]


class Db(Protocol):
    """An open transaction."""

    def rows(self, query: str, **values: Any) -> list[Row]: ...
    def run(self, query: str, **values: Any) -> int:
        """Run a change and return how many rows it touched."""

    def many(self, query: str, values: Iterable[dict[str, Any]]) -> int: ...

    def next_seqs(self, count: int) -> Sequence[int]:
        """Rising places in the log that were never given out before."""

    def next_view_passages(self, count: int) -> Sequence[int]:
        """Ids below zero for passages of derived records."""

    def add_passages(self, rows: Sequence[dict[str, Any]]) -> None:
        """Store passages and index the words of their text."""

    def pack(self, message: Message) -> dict[str, Any]:
        """The columns in which this database keeps a message's content."""

    def unpack(self, row: Row) -> Message:
        """The message in `id, source, message_id, role, created_at` and the columns of `pack`."""

    def places(self, owner: str, terms: Sequence[Term], *, every: bool = False) -> dict[Term, Ids]:
        """The passages each term stands in, whose words are folded, once each time, rising.

        Where there are too many to read, the commonest terms are left out, unless `every` says no;
        a term that stands nowhere is there, with none.
        """

    def few_places(self, owner: str, stems: Sequence[str], most: int) -> dict[str, Ids]:
        """The passages that words stand in, once each, of those in no more than so many.

        The nearest words come first; where each costs time, only these may be looked for.
        """

    def count_records(self, owner: str) -> int:
        """About how many messages, and passages of articles and entries, the owner has."""

    def lengths(self, owner: str, records: list[int]) -> dict[int, int]:
        """How long the records are, in characters, of those where that is known."""

    def allowed(self, conditions: dict[str, Any]) -> Ids:
        """All passages that lie in a scope and pass its filters."""

    def nearest(
        self, owner: str, embedder: str, vector: Sequence[float], limit: int, allowed: Ids | None
    ) -> list[tuple[int, float]]:
        """The passages whose vectors are nearest, with their cosines, best first."""

    def vector(self, values: Sequence[float]) -> dict[str, Any]:
        """The columns in which this database keeps a vector."""


class Engine(Protocol):
    """A database: runs work in a transaction that sees one owner's rows."""

    def read(self, owner: str, work: Callable[[Db], T], *, steady: bool = False) -> T:
        """Run work that changes nothing; `steady` if all its queries must see one moment."""

    def write(self, owner: str, work: Callable[[Db], T], *, alone: bool = False) -> T:
        """Run work once, durably; `alone` if nobody else may write for the owner meanwhile."""

    def across_owners(self, work: Callable[[Db], T]) -> T:
        """A transaction over the queue, and over nothing else, of all owners."""

    def scrub(self) -> str:
        """After a forget: remove deleted bytes from files; say what remains, if anything."""

    def check(self) -> dict[str, str]: ...
    def close(self) -> None: ...


def one(rows: list[Row]) -> Row | None:
    """The only row, if there is one."""
    return rows[0] if rows else None


_LIST = re.compile(r"IN \(:(\w+)\*\)")
_PIECE = re.compile(r"@(\w+)")


def load_queries(dialect: str, list_sql: str) -> dict[str, str]:
    """The named SQL of a dialect: the shared file, then its own, which wins.

    `list_sql` says how the dialect writes `IN (:names*)`, with the name as `\\1`.
    """
    store = resources.files("memorist.store")
    found: dict[str, str] = {}
    for file in (store / "queries.sql", store / dialect / "queries.sql"):
        for block in re.split(r"^-- name: ", file.read_text(), flags=re.MULTILINE)[1:]:
            name, _, body = block.partition("\n")
            found[name.strip()] = body.strip()

    def complete(sql: str) -> str:
        return _LIST.sub(list_sql, _PIECE.sub(lambda piece: found[piece.group(0)], sql))

    return {name: complete(complete(sql)) for name, sql in found.items() if name[0] != "@"}


def load_migrations(folder: Traversable) -> list[tuple[int, str]]:
    """The numbered migrations of a folder, in order."""
    files = sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql"))
    return [(int(name[:4]), (folder / name).read_text()) for name in files]
