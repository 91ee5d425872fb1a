"""Records from JSON: a server's answers as the records they describe."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from memorist.errors import RecordError

T = TypeVar("T")
_DURATION = re.compile(
    r"-?P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>[\d.]+)S)?)?"
)


def from_json(kind: type[T], data: Any) -> T:
    """The record of this kind that a JSON value describes."""
    try:
        record: T = _decoded(kind, data)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise RecordError(f"this is not a {kind.__name__} ({type(error).__name__})") from None
    return record


def _decoded(kind: Any, data: Any) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if data is None and NoneType in args:
            return None
        rest = [one for one in args if one is not NoneType]
        return _decoded(rest[0], data) if len(rest) == 1 else data  # of several kinds: as it is
    if is_dataclass(kind):
        make: Any = kind
        known = [(name, hint) for name, hint in _hints(make) if name in data]
        return make(**{name: _decoded(hint, data[name]) for name, hint in known})
    if origin in (tuple, list, Sequence):
        return (list if origin is list else tuple)(_decoded(args[0], item) for item in data)
    if origin in (dict, Mapping):
        return {key: _decoded(args[1], item) for key, item in data.items()}
    if kind is datetime:
        return datetime.fromisoformat(data)
    return _duration(data) if kind is timedelta else data


@cache
def _hints(kind: Any) -> list[tuple[str, Any]]:
    hints = get_type_hints(kind)
    return [(field.name, hints[field.name]) for field in fields(kind) if field.init]


def _duration(text: str) -> timedelta:
    """A duration as ISO 8601 writes it."""
    if not (match := _DURATION.fullmatch(text)):
        raise ValueError("not a duration")
    length = timedelta(**{name: float(part or 0) for name, part in match.groupdict().items()})
    return -length if text.startswith("-") else length
