"""The toolbox's tools as schemas tell of them, for whatever framework offers them to a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from memorist.agents.toolbox import Toolbox


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a tool, as a schema tells of it; `default` is `...` where it must be given."""

    name: str
    type: Any
    about: str
    default: Any = ...


@dataclass(frozen=True, slots=True)
class Described:
    """A tool of the toolbox: what it is called, does, takes and gives, and if it only reads."""

    name: str
    about: str
    arguments: tuple[Argument, ...]
    returns: Any
    reads: bool


READING = ("recall", "retrieve_context")
NAMES = (
    "recall",
    "remember",
    "store_session_message",
    "store_concept",
    "store_episode",
    "store_fact",
    "store_procedure",
    "store_working_memory",
    "summarize_session",
    "manage_long_term_memory",
    "retrieve_context",
)


def described() -> list[Described]:
    """Every tool of the toolbox."""
    return [_described(name, getattr(Toolbox, name)) for name in NAMES]


def given(tool: Described, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call without those that were left empty."""
    empty = {it.name for it in tool.arguments if it.default in ("", [])}
    return {name: value for name, value in arguments.items() if value or name not in empty}


def _described(name: str, method: Callable[..., Any]) -> Described:
    hints = get_type_hints(method, include_extras=True)
    arguments: list[Argument] = []
    for place in list(inspect.signature(method).parameters.values())[1:]:
        hint, default = hints[place.name], place.default
        if place.kind is place.VAR_KEYWORD:
            more = get_type_hints(get_args(hint)[0], include_extras=True)
            arguments += [_argument(key, one, None) for key, one in more.items()]
        else:
            arguments.append(
                _argument(place.name, hint, ... if default is place.empty else default)
            )
    about = inspect.cleandoc(method.__doc__ or "")
    return Described(name, about, tuple(arguments), hints["return"], name in READING)


def _argument(name: str, hint: Any, default: Any) -> Argument:
    """What may be None is empty instead: models' schemas are the simpler for it."""
    kind, about = get_args(hint)
    if get_origin(kind) is UnionType:
        kind = next(one for one in get_args(kind) if one is not NoneType)
        default = "" if kind is str else []
    return Argument(name, kind, about, default)
