"""Records from JSON, by the types of their fields."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import datetime, timedelta
from functools import cache
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from memorist.errors import InvalidError, RecordError

_DURATION = re.compile(
    r"-?P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>[\d.]+)S)?)?"
)

T = TypeVar("T")
Decoder = Callable[[Any], Any]


def from_json(kind: type[T], data: Any) -> T:
    """The record of this kind that a JSON value describes."""
    try:
        read: Decoder = _decoder(kind)  # type: ignore[arg-type]
        record: T = read(data)
    except (TypeError, ValueError, KeyError, AttributeError, StopIteration) as error:
        why = str(error) if isinstance(error, InvalidError) else type(error).__name__
        raise RecordError(f"this is not a {kind.__name__} ({why})") from None
    return record


@cache
def _decoder(kind: Any) -> Decoder:
    """Reads values of this type from JSON."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _decoder_of_one(args)
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        hints = _hints(kind).items()  # their decoders are made when they are needed
        return lambda data: kind(
            **{name: _decoder(hint)(data[name]) for name, hint in hints if name in data}
        )
    if origin in (tuple, list, Sequence):
        made: Any = list if origin is list else tuple
        return lambda data: made(map(_decoder(args[0]), data))
    if origin in (dict, Mapping):
        return lambda data: {key: _decoder(args[1])(item) for key, item in data.items()}
    if kind is datetime:
        return datetime.fromisoformat
    return _duration if kind is timedelta else _as_it_is


def _decoder_of_one(args: tuple[Any, ...]) -> Decoder:
    """The same of a type that is one of several."""
    kinds = [one for one in args if one is not NoneType]
    read = _decoder(kinds[0]) if len(kinds) == 1 else _as_it_is
    if len(kinds) > 1 and is_dataclass(kinds[0]):  # the one whose required fields are there

        def read(data: Any) -> Any:
            return _decoder(next(one for one in kinds if _required(one) <= data.keys()))(data)

    return lambda data: None if data is None and NoneType in args else read(data)


def _as_it_is(data: Any) -> Any:
    return data


@cache
def _required(kind: Any) -> frozenset[str]:
    parameters = signature(kind).parameters.values()
    return frozenset(it.name for it in parameters if it.default is Parameter.empty)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """What a dataclass or named tuple is made of, with the types."""
    made_of = signature(kind).parameters
    return {name: hint for name, hint in get_type_hints(kind).items() if name in made_of}


def _duration(text: str) -> timedelta:
    """A duration as ISO 8601 writes it."""
    if not (match := _DURATION.fullmatch(text)):
        raise ValueError("not a duration")
    length = timedelta(**{name: float(part or 0) for name, part in match.groupdict().items()})
    return -length if text.startswith("-") else length
