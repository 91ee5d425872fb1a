"""Records as rows: a column for each field, so that a new field needs no list of its own here."""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from memorist.errors import InvalidError
from memorist.records.documents import ArticleInfo, Summary
from memorist.records.json_values import dump_json
from memorist.records.memories import Fact, MemoryItem
from memorist.records.scope import ApiKey
from memorist.records.values import check_moment, check_text, from_micros, to_micros

R = TypeVar("R")
Row = tuple[Any, ...]


class Columns(Generic[R]):
    """The columns that hold the fields of a record; fields left out are stored in another way."""

    def __init__(
        self, kind: type[R], *, omit: tuple[str, ...] = (), renamed: Mapping[str, str] | None = None
    ) -> None:
        hints, renamed = get_type_hints(kind), renamed or {}
        self._kind = kind
        self._fields = [it.name for it in fields(kind) if it.name not in omit]  # type: ignore[arg-type]
        self.names = [renamed.get(name, name) for name in self._fields]
        self._decoders = [_decoder(hints[name]) for name in self._fields]

    def row(self, record: R) -> dict[str, Any]:
        """The values to store for a record, by column."""
        values = (_encoded(getattr(record, name)) for name in self._fields)
        return dict(zip(self.names, values, strict=True))

    def record(self, row: Row | list[Any], **others: Any) -> R:
        """The record of a row of these columns; `others` are the fields that were left out."""
        for name, decode, value in zip(self._fields, self._decoders, row, strict=True):
            others[name] = value if decode is None or value is None else decode(value)
        return self._kind(**others)


def _decoder(hint: Any) -> Callable[[Any], Any] | None:
    kinds = (hint, *get_args(hint))
    if datetime in kinds:
        return from_micros
    if bool in kinds:
        return bool
    return (lambda text: tuple(json.loads(text))) if get_origin(hint) is tuple else None


def _encoded(value: Any) -> Any:
    if isinstance(value, datetime):
        return to_micros(value)
    if isinstance(value, tuple):
        return dump_json(list(value))
    return int(value) if isinstance(value, bool) else value


ITEM = Columns(MemoryItem, omit=("scope", "sources"))
FACT = Columns(Fact, omit=("scope", "sources"))
SUMMARY = Columns(Summary, omit=("scope",))
ARTICLE = Columns(ArticleInfo)
API_KEY = Columns(ApiKey, renamed={"user": "user_id"})

_NAMED: dict[str, Columns[Any]] = {
    "memory_item": ITEM,
    "fact": FACT,
    "summary": SUMMARY,
    "article": ARTICLE,
    "api_key": API_KEY,
}
SQL = {
    f"@{record}{suffix}": ", ".join(f"{mark}{name}" for name in columns.names)
    for record, columns in _NAMED.items()
    for suffix, mark in (("", ""), ("_values", ":"))
}
"""Pieces of the named queries: `@fact` is the columns of facts, `@fact_values` their values."""


ALL = 2**31 - 1  # rows: more than any list has
END = 2**62  # after any seq or moment that can be stored


def check_count(count: int | None, name: str, default: int = ALL) -> int:
    """A number of rows, or the place of one in a list; `default` where none is given."""
    if count is None:
        return default
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise InvalidError(f"{name} must be a whole number, and not negative")
    return min(count, END)


def dated_page(
    limit: int | None,
    after: tuple[datetime, str] | None,
    *,
    newest_first: bool = False,
    since: datetime | None = None,
    until: datetime | None = None,
) -> dict[str, Any]:
    """The values that cut a page of a list that is ordered by a moment and an id."""
    first = -END if since is None else to_micros(check_moment(since, "since", InvalidError))
    last = END if until is None else to_micros(check_moment(until, "until", InvalidError))
    place, bound = ((last + 1, ""), first) if newest_first else ((first, ""), last)
    match after:
        case None:
            pass
        case (datetime() as moment, str(id_)):
            at = to_micros(check_moment(moment, "the moment in after", InvalidError))
            known = at, check_text(id_, "the id in after", InvalidError)
            place = (min if newest_first else max)(place, known)
        case _:
            raise InvalidError("after must be the moment and the id of the last item before")
    rows = check_count(limit, "limit")
    return {"limit": rows, "after_at": place[0], "after_id": place[1], "bound": bound}
