"""Errors for arguments of a wrong type: they say which argument, and what it must be."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from functools import cache, wraps
from types import FunctionType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from memorist.errors import InvalidError, MemoristError, StoreError
from memorist.records.values import UNSTORABLE

MOST_BITS = 63  # of whole numbers in databases


class NamesArguments:
    """A class whose methods, where one fails, name the argument that has a wrong type.

    Types are looked at only then, so that calls cost no more, and whatever works goes on to work.
    """

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, method in list(vars(cls).items()):
            is_public = isinstance(method, FunctionType) and (name == "__init__" or name[0] != "_")
            if is_public and not inspect.iscoroutinefunction(method):  # frameworks ask for that
                setattr(cls, name, _naming(method))


class CheckedSettings:
    """A frozen dataclass, as of settings, whose fields are checked by their types when it is made.

    What is wrong with one would else show only in the background, where its user is not told.
    """

    __slots__ = ()
    _least = 0.0  # of every number

    def __post_init__(self) -> None:
        kind: Any = type(self)  # a subclass, which is a dataclass
        hints = _hints(kind)
        for it in fields(kind):
            value = getattr(self, it.name)
            if not _fits(value, hints[it.name]):
                must = _shown(it.type)
                raise InvalidError(f"{it.name} must be {must}, got {type(value).__name__}")
            if isinstance(value, int | float) and not value >= self._least:
                least = "" if self._least < 0 else ", and not negative"
                raise InvalidError(f"{it.name} must be a number{least}")


_hints = cache(get_type_hints)


def _naming(method: FunctionType) -> Callable[..., Any]:
    @wraps(method)
    def run(*args: Any, **named: Any) -> Any:
        try:
            return method(*args, **named)
        except Exception as error:
            is_told = isinstance(error, MemoristError) and not isinstance(error, StoreError)
            if is_told or not (wrong := _wrong(method, args, named)):
                raise
            raise InvalidError(wrong) from error

    return run


def _wrong(method: FunctionType, args: tuple[Any, ...], named: Mapping[str, Any]) -> str:
    """What is wrong with some arguments; nothing if their types fit, or nobody can tell."""
    written = inspect.unwrap(method)
    signature = inspect.signature(method)
    try:
        given = signature.bind(*args, **named).arguments
    except TypeError:  # too many, or too few: Python says which
        return ""
    for name in list(given)[1:]:  # without self
        parameter = signature.parameters[name]
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        hint = parameter.annotation
        try:
            if isinstance(hint, str):
                hint = eval(hint, written.__globals__)
        except NameError:  # it is imported for checkers alone
            continue
        value = given[name]
        if value is not parameter.default and not _fits(value, hint):
            return f"{name} must be {_shown(parameter.annotation)}, got {type(value).__name__}"
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            return f"{name} is too large a number"
        if isinstance(value, str) and UNSTORABLE.search(value):
            return f"{name} holds a character that is none, such as NUL; remove it"
    return ""


def _shown(annotation: Any) -> str:
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value may be meant by a type; True where that cannot be told."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is None or hint is Any:
        return value is None or hint is Any
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if getattr(hint, "_is_protocol", False):
        members = {*vars(hint), *getattr(hint, "__annotations__", ())}
        return all(hasattr(value, it) for it in members if not it.startswith("_"))
    kind = origin or hint
    if kind is float:
        kind = (int, float)
    if not isinstance(kind, type | tuple):
        return True
    is_list = origin in (list, tuple, Sequence)
    if not isinstance(value, kind) or (is_list and isinstance(value, str | bytes)):
        return False
    if isinstance(value, Mapping) and len(parts) == 2:
        return all(_fits(key, parts[0]) and _fits(it, parts[1]) for key, it in value.items())
    if isinstance(value, Collection) and parts and origin is not tuple:
        return all(_fits(it, parts[0]) for it in value)
    return True
