"""Tables of other programs, read and never written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from memorist.errors import RecordError, StoreUnavailableError, needs_extra

MAX_VALUE_BYTES = 64 * 1024 * 1024
POSTGRES = ("postgresql://", "postgres://")
PAGE = 1_000  # rows
_COLUMNS = """select table_name, column_name from information_schema.columns
where table_schema = any (current_schemas(false)) order by table_name, ordinal_position"""


class Tables:
    """The tables of a SQLite file or of a PostgreSQL database, by name."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._postgres = url.startswith(POSTGRES)

    def columns(self) -> dict[str, list[str]]:
        """The names of the columns of each table."""
        found: dict[str, list[str]] = {}
        for table, column in self._select(_COLUMNS if self._postgres else _SQLITE_COLUMNS):
            found.setdefault(table, []).append(column)
        return found

    def rows(self, table: str, columns: Sequence[str], order: Sequence[str]) -> Iterator[Any]:
        """The values of some columns, row by row."""
        names = [", ".join(map(_quoted, each)) for each in (columns, order)]
        yield from self._select(f"select {names[0]} from {_quoted(table)} order by {names[1]}")  # noqa: S608 (quoted)

    def _select(self, query: str) -> Iterator[Any]:
        yield from (_from_postgres if self._postgres else _from_sqlite)(self._url, query)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_SQLITE_COLUMNS = """select t.name, c.name from sqlite_schema t join pragma_table_info(t.name) c
where t.type = 'table' order by t.name, c.cid"""


def _check_whole(path: str) -> None:
    """Raise if a file is shorter than it says: SQLite would read what is missing as zeros."""
    with Path(path).open("rb") as file:
        head = file.read(100)
        length = file.seek(0, os.SEEK_END)
    page, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
    if head[24:28] == head[92:96] and length < pages * (65_536 if page == 1 else page):
        raise RecordError("the database is cut off")


def _from_sqlite(path: str, query: str) -> Iterator[Any]:
    _check_whole(path)
    try:
        with closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            connection.limit(apsw.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
            connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
            yield from connection.execute(query)
    except apsw.Error as error:
        raise RecordError(f"the database cannot be read ({type(error).__name__})") from None


def _from_postgres(url: str, query: str) -> Iterator[Any]:
    with needs_extra("postgres"):
        import psycopg

        from memorist.store.postgres.connection import defaults
    try:
        with psycopg.connect(url, **defaults(url)) as connection:
            connection.read_only = True
            with connection.cursor("memorist_import") as cursor:
                cursor.itersize = PAGE
                yield from cursor.execute(query.encode())
    except psycopg.Error as error:
        reason = type(error).__name__
        raise StoreUnavailableError(
            f"the database to import from cannot be read ({reason})"
        ) from None
