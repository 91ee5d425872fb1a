"""The `store` table of LangGraph's `SqliteStore` and `PostgresStore`: its rows become entries."""

from collections.abc import Iterator

from memorist.errors import InvalidError
from memorist.records.entry import Put, namespace_of, whole_text
from memorist.records.values import now
from memorist.transfer.content import Loose, left_out, parsed
from memorist.transfer.items import Item, Skipped
from memorist.transfer.source import Source

name = "langgraph_store"
title = "LangGraph store"
TABLE = "store"
COLUMNS = {"prefix", "key", "value", "created_at", "updated_at"}


def recognises(source: Source) -> bool:
    return source.tables is not None and set(source.tables.columns().get(TABLE, ())) >= COLUMNS


def read(source: Source) -> Iterator[Item]:
    assert source.tables is not None  # it is recognised by them
    columns = source.tables.columns()[TABLE]
    for number, row in enumerate(source.tables.rows(TABLE, columns, ["prefix", "key"]), start=1):
        place = f"table {TABLE}, row {number}"
        try:
            yield _put(place, Loose(zip(columns, row, strict=True)))
        except InvalidError as error:
            yield Skipped(place, str(error))


def _put(place: str, record: Loose) -> Item:
    value, expires_at = parsed(record["value"]), record.date("expires_at")
    if not isinstance(value, dict):
        return left_out(place, "unknown")
    ttl = None if expires_at is None else expires_at - now()
    if ttl is not None and ttl.total_seconds() <= 0:
        return left_out(place, "over")
    return Put(
        namespace=namespace_of(record.text("prefix")),
        key=record["key"],
        value=value,
        texts=[whole_text(value)],
        ttl=ttl,
        written_at=record.date("updated_at"),
    )
