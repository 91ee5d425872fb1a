"""Pagination: long lists in pages, with a cursor that says where the next page begins."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, Field

from memorist.errors import InvalidError
from memorist.server.http.schemas import CursorQuery

T = TypeVar("T")
MAX_PAGE_BYTES = 8 * 1024 * 1024  # exceeded only by a single item that is larger


class Page(BaseModel, Generic[T]):
    """A page of a list; `next` is the cursor of the following page, null at the end."""

    items: list[T]
    next: str | None = Field(default=None, description="Pass it as `cursor`.")


def page_of(items: Sequence[T], query: CursorQuery, key: Callable[[T], str]) -> Page[T]:
    """The page after the cursor's key, of items sorted by their keys."""
    after = read_cursor(query.cursor)
    ordered = sorted(items, key=key)
    rest = ordered if after is None else [item for item in ordered if key(item) > after]
    taken, more = take_page(rest, query.limit)
    return Page(items=taken, next=make_cursor(key(taken[-1])) if more else None)


def by_time(item: Any) -> str:
    """The key of items that are listed oldest first."""
    return f"{item.created_at.isoformat()} {item.id}"


def take_page(items: Iterable[T], limit: int) -> tuple[list[T], bool]:
    """As many items as a page holds, at least one if there is one, and whether more follow."""
    taken: list[T] = []
    size = 0
    for item in items:
        size += _text_bytes(item)
        if len(taken) == limit or (taken and size > MAX_PAGE_BYTES):
            return taken, True
        taken.append(item)
    return taken, False


def make_cursor(key: str) -> str:
    """A key as an opaque cursor."""
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def read_cursor(cursor: str | None) -> str | None:
    """The key of a cursor."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error):
        raise InvalidError("cursor is not the `next` of a page") from None


def _text_bytes(value: Any) -> int:
    """About how many bytes a value takes in a response: those of its texts."""
    if isinstance(value, str):
        return len(encode_basestring(value).encode("utf-8", "surrogatepass"))
    if isinstance(value, Mapping):
        return sum(_text_bytes(name) + _text_bytes(item) for name, item in value.items())
    if isinstance(value, list | tuple):
        return sum(map(_text_bytes, value))
    fields = getattr(value, "__dataclass_fields__", ())
    return sum(_text_bytes(getattr(value, name)) for name in fields)
