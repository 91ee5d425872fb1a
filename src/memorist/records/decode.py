"""Records from JSON: a server's answers as the records they describe."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from memorist.errors import RecordError

T = TypeVar("T")
_DURATION = re.compile(r"(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?")


def from_json(kind: type[T], data: Any) -> T:
    """The record of this kind that a JSON value describes."""
    try:
        record: T = _decoded(kind, data)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise RecordError(f"this is not a {kind.__name__} ({type(error).__name__})") from None
    return record


def _decoded(kind: Any, data: Any) -> Any:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _either(get_args(kind), data)
    if is_dataclass(kind):
        return _record(kind, data)
    if origin in (tuple, list, Sequence):
        inner = get_args(kind)[0]
        return (list if origin is list else tuple)(_decoded(inner, item) for item in data)
    if origin in (dict, Mapping):
        inner = get_args(kind)[1]
        return {key: _decoded(inner, item) for key, item in data.items()}
    if kind is datetime:
        return datetime.fromisoformat(data)
    if kind is timedelta:
        return _duration(data)
    return data


def _either(kinds: tuple[Any, ...], data: Any) -> Any:
    """A value of one of several kinds; where more than one is left, as it is."""
    if data is None and NoneType in kinds:
        return None
    rest = [kind for kind in kinds if kind is not NoneType]
    return _decoded(rest[0], data) if len(rest) == 1 else data


def _record(kind: Any, data: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    values = {name: _decoded(hint, data[name]) for name, hint in hints.items() if name in data}
    return kind(**values)


@lru_cache(maxsize=256)
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}


def _duration(text: str) -> timedelta:
    """A duration as ISO 8601 writes it."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("not a duration")
    sign, days, hours, minutes, seconds = match.groups()
    length = timedelta(
        days=int(days or 0),
        hours=int(hours or 0),
        minutes=int(minutes or 0),
        seconds=float(seconds or 0),
    )
    return -length if sign else length
