"""Pages: long lists in pieces, with a cursor that says where the next one begins."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from json.encoder import encode_basestring
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, Field

from memorist.errors import InvalidError

T = TypeVar("T")
MOST = 500
MOST_BYTES = 8 * 1024 * 1024  # of one page, and more only where one item has more
Limit = Annotated[
    int, Query(ge=1, le=MOST, description="How many at most; fewer where they are long.")
]
Cursor = Annotated[
    str | None, Query(max_length=4_096, description="`next` of the page before this one.")
]


class Page(BaseModel, Generic[T]):
    """A piece of a list; `next` is the cursor of the following one, null at the end."""

    items: list[T]
    next: str | None = Field(default=None, description="Pass it as `cursor`.")


def page_of(items: Sequence[T], limit: int, cursor: str | None, key: Callable[[T], str]) -> Page[T]:
    """The piece that follows the item whose key the cursor holds; keys grow along the list."""
    after = read_cursor(cursor)
    rest = items if after is None else [item for item in items if key(item) > after]
    piece, more = fill(rest, limit)
    return Page(items=piece, next=make_cursor(key(piece[-1])) if more else None)


def fill(items: Iterable[T], limit: int) -> tuple[list[T], bool]:
    """As many items as a page takes, one at least if there is one, and whether more follow."""
    taken: list[T] = []
    size = 0
    for item in items:
        size += weight(item)
        if len(taken) == limit or (taken and size > MOST_BYTES):
            return taken, True
        taken.append(item)
    return taken, False


def weight(value: Any) -> int:
    """About how many bytes a value takes in an answer: those of its texts."""
    if isinstance(value, str):
        return len(encode_basestring(value).encode("utf-8", "surrogatepass"))
    if isinstance(value, Mapping):
        return sum(weight(name) + weight(one) for name, one in value.items())
    if isinstance(value, list | tuple):
        return sum(map(weight, value))
    fields = getattr(value, "__dataclass_fields__", ())
    return sum(weight(getattr(value, name)) for name in fields)


def make_cursor(place: str) -> str:
    """A place in a list as a cursor: nothing to be read into."""
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def read_cursor(cursor: str | None) -> str | None:
    """The place that a cursor holds."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error):
        raise InvalidError("cursor is none that a page gave") from None
