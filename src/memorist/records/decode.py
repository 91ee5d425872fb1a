"""Records from JSON: a server's answers as the records they describe."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
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
        kinds = [one for one in args if one is not NoneType]
        if len(kinds) > 1 and is_dataclass(kinds[0]):  # the first that has all of these fields
            kinds = [one for one in kinds if data.keys() <= _hints(one).keys()]
        return _decoded(kinds[0], data) if len(kinds) == 1 else data  # of several: as it is
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        known = {name: hint for name, hint in _hints(kind).items() if name in data}
        return kind(**{name: _decoded(hint, data[name]) for name, hint in known.items()})
    if origin in (tuple, list, Sequence):
        return (list if origin is list else tuple)(_decoded(args[0], item) for item in data)
    if origin in (dict, Mapping):
        return {key: _decoded(args[1], item) for key, item in data.items()}
    if kind is datetime:
        return datetime.fromisoformat(data)
    return _duration(data) if kind is timedelta else data


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """The fields of a dataclass or named tuple with their types."""
    return get_type_hints(kind)


def _duration(text: str) -> timedelta:
    """A duration as ISO 8601 writes it."""
    if not (match := _DURATION.fullmatch(text)):
        raise ValueError("not a duration")
    length = timedelta(**{name: float(part or 0) for name, part in match.groupdict().items()})
    return -length if text.startswith("-") else length
