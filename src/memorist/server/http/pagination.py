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
    number: Callable[[Any], int] | None = None,
    moment: str = "created_at",
    big: bool = True,
) -> Page[T]:
    """A page that the database cuts: `read` gives `limit` items `after` a place.

    Items are sorted by their `number`, or else by a moment and their id. A batch of items that may
    be `big` ends at `max_bytes` too.
    """
    key = number or attrgetter(moment, "id")
    bound = {"max_bytes": MAX_PAGE_BYTES} if big else {}

    def items(after: Any) -> Iterator[T]:
        left = query.limit + 1
        while left > 0:
            size = min(left, MAX_BATCH)
            batch = read(limit=size, after=after, **bound)
            yield from batch
            if not batch or (len(batch) < size and not big):
                return
            left, after = left - len(batch), key(batch[-1])

    place = read_cursor(query.cursor, *((datetime, str) if number is None else (int,)))
    taken, more = take_page(items(place[0] if number and place else place), query.limit)
    last: Any = key(taken[-1]) if more else ()
    return Page(items=taken, next=make_cursor([last] if number else last) if more else None)


def named_page(read: Callable[..., Sequence[T]], query: CursorQuery, name: str = "name") -> Page[T]:
    """A page of a list that goes on after the name of an item."""
    place = read_cursor(query.cursor, str)
    items = list(read(limit=query.limit + 1, after=place and place[0]))
    taken, more = items[: query.limit], len(items) > query.limit
    return Page(items=taken, next=make_cursor([getattr(taken[-1], name)]) if more else None)


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
