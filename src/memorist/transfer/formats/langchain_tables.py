"""LangChain's tables of messages, in SQLite or PostgreSQL.

`SQLChatMessageHistory` writes `message_store`, `PostgresChatMessageHistory` a table of any name:
they are found by their columns. Only that of langchain-postgres knows when a message was written.
"""

from collections.abc import Iterator
from datetime import UTC

from memorist.records.langchain import from_stored
from memorist.records.values import MadeAt
from memorist.transfer.content import Loose, Part, parsed, turns
from memorist.transfer.items import Item
from memorist.transfer.source import Source

name = "langchain_tables"
title = "LangChain message tables"
AGENT = "langchain"
COLUMNS = {"id", "session_id", "message"}
DATE = "created_at"


def recognises(source: Source) -> bool:
    return bool(_tables(source))


def read(source: Source) -> Iterator[Item]:
    for table, columns in _tables(source).items():
        assert source.tables is not None  # it has these
        for row in source.tables.rows(table, columns, ["id"]):
            record = Loose(zip(columns, row, strict=True))
            place, session = f"table {table}, row {record['id']}", str(record["session_id"])
            yield from turns(place, _parts(record, f"{table}/{record['id']}"), session, AGENT)


def _tables(source: Source) -> dict[str, list[str]]:
    """The tables that have these columns and no others but a date."""
    found = {} if source.tables is None else source.tables.columns()
    return {table: it for table, it in found.items() if set(it) - {DATE} == COLUMNS}


def _parts(record: Loose, id_: str) -> Iterator[Part]:
    stored = parsed(record["message"])
    if isinstance(stored, dict):
        at = record.date(DATE) or MadeAt.now(UTC)
        yield from_stored(stored, message_id=id_, created_at=at)
    else:
        yield "unknown"
