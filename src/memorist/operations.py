"""The operations of the HTTP API and the cursors of its lists, for the routes and the client."""

import base64
import binascii
import json
import tomllib
from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files
from typing import Any, NamedTuple

from memorist.errors import InvalidError


class Operation(NamedTuple):
    """An HTTP method and path. A repeatable write changes nothing when it is sent twice."""

    method: str
    path: str
    repeatable: bool = False


def _operations() -> dict[str, Operation]:
    table = tomllib.loads((files(__package__) / "operations.toml").read_text("utf-8"))
    lines = {name: line.split() for name, line in table.items()}
    return {name: Operation(it[0], it[1], "repeatable" in it) for name, it in lines.items()}


OPERATIONS = _operations()


def make_cursor(key: Sequence[Any]) -> str:
    """An opaque cursor: the sort key of the last item of a page."""
    parts = [part.isoformat() if isinstance(part, datetime) else part for part in key]
    text = json.dumps(parts, ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str | None, *kinds: type[Any]) -> tuple[Any, ...] | None:
    """The sort key in a cursor, whose parts have these types."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        parts = json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
        if not isinstance(parts, list):
            raise ValueError("not a key")
        key = tuple(_read_part(part, kind) for part, kind in zip(parts, kinds, strict=True))
    except (ValueError, TypeError, OverflowError, RecursionError, binascii.Error):
        raise InvalidError("cursor is not the `next` of a page") from None
    return key


def _read_part(part: Any, kind: type[Any]) -> Any:
    value: Any = datetime.fromisoformat(part) if kind is datetime else part
    if isinstance(value, str):
        value.encode()  # half a character, which no list is sorted by, is a ValueError
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError("another type than the list is sorted by")
    if isinstance(value, datetime) and value.tzinfo is None:
        raise ValueError("a moment without a time zone")
    if isinstance(value, int) and not 0 <= value < 2**63:
        raise ValueError("not the number of an item")
    return value
