"""Pagination: long lists in pages, with a cursor that says where the next page begins."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from json.encoder import encode_basestring
from operator import attrgetter
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, Field

from memorist.operations import make_cursor, read_cursor
from memorist.server.http.schemas import CursorQuery

T = TypeVar("T")
MAX_BATCH = 64  # items that are read at once
MAX_PAGE_BYTES = 8 * 1024 * 1024  # exceeded only by a single item that is larger


class Page(BaseModel, Generic[T]):
    """A page of a list; `next` is the cursor of the following page, null at the end."""

    items: list[T]
    next: str | None = Field(default=None, description="Pass it as `cursor`.")


def keyset_page(
    read: Callable[..., Sequence[T]],
    query: CursorQuery,
    *,
    by: Callable[[Any], int | str] | None = None,
    kind: type[int | str] = int,
    moment: str = "created_at",
    big: bool = True,
) -> Page[T]:
    """A page that the database cuts: `read` gives `limit` items `after` a place.

    Items are sorted `by` a number or another `kind` of key, or else by a moment and their id. Those
    that may be `big` are read in batches, each of which ends at `max_bytes` too.
    """
    key = by or attrgetter(moment, "id")

    def items(after: Any) -> Iterator[T]:
        if not big:
            yield from read(limit=query.limit + 1, after=after)
            return
        left = query.limit + 1
        while left > 0:
            batch = read(limit=min(left, MAX_BATCH), after=after, max_bytes=MAX_PAGE_BYTES)
            if not batch:
                return
            yield from batch
            left, after = left - len(batch), key(batch[-1])

    place = read_cursor(query.cursor, *((datetime, str) if by is None else (kind,)))
    taken, more = take_page(items(place[0] if by and place else place), query.limit)
    last: Any = key(taken[-1]) if more else ()
    return Page(items=taken, next=make_cursor([last] if by else last) if more else None)


def take_page(items: Iterable[T], limit: int) -> tuple[list[T], bool]:
    """As many items as a page holds, at least one if there is one, and whether more follow."""
    taken: list[T] = []
    size = 0
    for item in items:
        size += text_bytes(item)
        if len(taken) == limit or (taken and size > MAX_PAGE_BYTES):
            return taken, True
        taken.append(item)
    return taken, False


def text_bytes(value: Any) -> int:
    """About how many bytes a value takes in a response: those of its texts."""
    if isinstance(value, str):
        return len(encode_basestring(value).encode("utf-8", "surrogatepass"))
    if isinstance(value, Mapping):
        return sum(text_bytes(name) + text_bytes(item) for name, item in value.items())
    if isinstance(value, list | tuple):
        return sum(map(text_bytes, value))
    fields = getattr(value, "__dataclass_fields__", ())
    return sum(text_bytes(getattr(value, name)) for name in fields)
