"""Pages: long lists in pieces, with a cursor that says where the next one begins."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar

from recollect.errors import InvalidError, MissingExtraError

try:
    from fastapi import Query
    from pydantic import BaseModel, Field
except ImportError as error:
    raise MissingExtraError("server") from error

T = TypeVar("T")
MOST = 500
Limit = Annotated[int, Query(ge=1, le=MOST, description="How many at most.")]
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
    piece = list(rest[:limit])
    return Page(items=piece, next=make_cursor(key(piece[-1])) if len(rest) > limit else None)


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
